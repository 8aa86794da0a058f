/*
 * json_write.c - JSON, written as it comes.
 *
 * When failing  see json_write.h.
 */
#include "base/json_write.h"

#include <inttypes.h>

static void
put(struct json_write *json, const char *text)
{
	(void)fputs_unlocked(text, json->stream);
}

static void
put_line(struct json_write *json)
{
	(void)putc_unlocked('\n', json->stream);
	for (unsigned i = 0; i < json->depth; i++)
		put(json, "  ");
}

/* Length of the UTF-8 sequence at `text`; 0 = it is none. */
static size_t
sequence_length(const unsigned char *text)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t length = text[0] < 0x80 ? 1 : text[0] < 0xc2 ? 0 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
	uint32_t code = text[0] & (0xffu >> (length + 1));

	if (length <= 1)
		return length;
	for (size_t i = 1; i < length; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (text[i] & 0x3f);
	}
	return code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : length;
}

static void
put_text(struct json_write *json, const char *text)
{
	const unsigned char *at = (const unsigned char *)text;

	(void)putc_unlocked('"', json->stream);
	while (*at != '\0') {
		const unsigned char *plain = at;
		size_t length = 1;

		while (*at >= 0x20 && *at < 0x7f && *at != '"' && *at != '\\')
			at++;
		if (at != plain)
			(void)fwrite_unlocked(plain, 1, (size_t)(at - plain), json->stream);
		if (*at == '\0')
			break;
		if (*at == '"' || *at == '\\') {
			(void)putc_unlocked('\\', json->stream);
			(void)putc_unlocked(*at, json->stream);
		} else if (*at < 0x20 || *at == 0x7f) {
			(void)fprintf(json->stream, "\\u%04x", *at);
		} else if ((length = sequence_length(at)) != 0) {
			(void)fwrite_unlocked(at, 1, length, json->stream);
		} else {
			put(json, "\\ufffd");
			length = 1;
		}
		at += length;
	}
	(void)putc_unlocked('"', json->stream);
}

static void
begin(struct json_write *json, const char *name)
{
	bool is_inline = json->depth > json->inline_depth;

	if (json->has_member)
		put(json, is_inline && !json->is_dense ? ", " : ",");
	if (json->depth != 0 && !is_inline)
		put_line(json);
	json->has_member = true;
	if (name != NULL) {
		put_text(json, name);
		put(json, json->is_dense ? ":" : ": ");
	}
}

void
json_write_open(struct json_write *json, const char *name, char bracket)
{
	begin(json, name);
	(void)putc_unlocked(bracket, json->stream);
	json->depth++;
	json->has_member = false;
}

void
json_write_close(struct json_write *json, char bracket)
{
	bool is_inline = json->depth > json->inline_depth;

	json->depth--;
	if (json->has_member && !is_inline)
		put_line(json);
	(void)putc_unlocked(bracket, json->stream);
	json->has_member = true;
	if (json->depth == 0)
		(void)putc_unlocked('\n', json->stream);
}

void
json_write_text(struct json_write *json, const char *name, const char *text)
{
	begin(json, name);
	put_text(json, text);
}

void
json_write_number(struct json_write *json, const char *name, uint64_t number)
{
	char digits[24];
	char *at = digits + sizeof(digits) - 1;

	if (number > INT64_MAX) // of a damaged capture; readers refuse the whole document for it
		number = INT64_MAX;
	*at = '\0';
	do {
		*--at = (char)('0' + number % 10);
		number /= 10;
	} while (number != 0);
	begin(json, name);
	put(json, at);
}

void
json_write_signed(struct json_write *json, const char *name, int64_t number)
{
	begin(json, name);
	(void)fprintf(json->stream, "%" PRId64, number);
}

void
json_write_bool(struct json_write *json, const char *name, bool value)
{
	begin(json, name);
	put(json, value ? "true" : "false");
}

void
json_write_null(struct json_write *json, const char *name)
{
	begin(json, name);
	put(json, "null");
}

void
json_write_raw(struct json_write *json, const char *value, size_t bytes)
{
	begin(json, NULL);
	(void)fwrite_unlocked(value, 1, bytes, json->stream);
}
