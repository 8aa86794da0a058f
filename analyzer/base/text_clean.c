/*
 * text_clean.c - can this text be shown?
 *
 * Safe from   anywhere; no state.
 * When failing  it cannot.
 */
#include "base/text_clean.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

/* What is printed as nothing, or moves or ends the text around it: spaces without width, separators of lines, overrides of direction, tags. */
static bool
is_invisible(uint32_t point)
{
	return point == 0xad || point == 0x61c || point == 0x180e || point == 0x200b || point == 0xfeff ||
	       point == 0x200e || point == 0x200f || (point >= 0x2028 && point <= 0x202e) ||
	       (point >= 0x2060 && point <= 0x206f) || (point >= 0xe0000 && point <= 0xe007f);
}

/* What the logs of Azure Pipelines and of GitHub take as a command, also in the middle of a line. */
static bool
is_command(const unsigned char *at, size_t room)
{
	const char *text = (const char *)at;

	return (room >= 3 && strncmp(text, "##[", 3) == 0) || (room >= 6 && strncasecmp(text, "##vso[", 6) == 0);
}

/* Length of the well-formed, printable UTF-8 sequence at `at`; 0 when there is none. */
static size_t
printable_length(const unsigned char *at, size_t room)
{
	static const struct {
		unsigned char mask, lead;
		uint32_t least;
	} forms[] = { { 0x80, 0x00, 0x20 }, { 0xe0, 0xc0, 0xa0 }, { 0xf0, 0xe0, 0x800 }, { 0xf8, 0xf0, 0x10000 } };

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {

		if ((at[0] & forms[i].mask) != forms[i].lead)
			continue;
		if (i >= room)
			return 0;

		uint32_t point = at[0] & (unsigned char)~forms[i].mask;

		for (size_t k = 1; k <= i; k++) {
			if ((at[k] & 0xc0) != 0x80)
				return 0;
			point = point << 6 | (at[k] & 0x3f);
		}
		/* Controls of both sets, overlong forms, surrogates, and what Unicode does not have. */
		if (point < forms[i].least || point == 0x7f || (point >= 0xd800 && point < 0xe000) || point > 0x10ffff ||
		    is_invisible(point) || is_command(at, room))
			return 0;
		return i + 1;
	}
	return 0;
}

size_t
text_clean(char *text, size_t bytes)
{
	for (size_t at = 0; at < bytes;) {
		size_t length = printable_length((const unsigned char *)text + at, bytes - at);

		if (length == 0) {
			text[at] = '?';
			length = 1;
		}
		at += length;
	}
	return bytes;
}

bool
text_is_clean(const char *text, size_t bytes)
{
	size_t length = 1;

	for (size_t at = 0; at < bytes && length != 0; at += length)
		length = printable_length((const unsigned char *)text + at, bytes - at);
	return length != 0;
}

size_t
text_escape(const char *text, size_t bytes, char *to)
{
	static const char digits[] = "0123456789abcdef";
	char *end = to;

	for (size_t at = 0; at < bytes;) {
		size_t length = printable_length((const unsigned char *)text + at, bytes - at);

		if (length != 0) {
			memcpy(end, text + at, length);
			end += length;
			at += length;
			continue;
		}
		*end++ = '\\';
		if (text[at] == '\n' || text[at] == '\t' || text[at] == '\r') {
			*end++ = text[at] == '\n' ? 'n' : text[at] == '\t' ? 't' : 'r';
		} else {
			*end++ = 'x';
			*end++ = digits[(unsigned char)text[at] >> 4];
			*end++ = digits[text[at] & 15];
		}
		at++;
	}
	return (size_t)(end - to);
}

size_t
text_whole(const char *text, size_t bytes)
{
	size_t behind = bytes; // the first byte of the last character

	while (behind > 0 && ((unsigned char)text[behind - 1] & 0xc0) == 0x80)
		behind--;

	unsigned char lead = behind > 0 ? (unsigned char)text[behind - 1] : 0;
	size_t needed = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 0;

	return bytes - behind + 1 < needed ? behind - 1 : bytes;
}
