/*
 * paragraph.c - how is a text of several sentences laid out in lines?
 *
 * When failing  errors stay in the stream.
 */
#include "base/paragraph.h"

#include <stdbool.h>
#include <string.h>

#include "base/memory.h"
#include "base/text_clean.h"

#define FITTED_LEAST 8

size_t
text_columns(const char *text, size_t bytes)
{
	size_t columns = 0;

	for (size_t i = 0; i < bytes; i++)
		columns += ((unsigned char)text[i] & 0xc0) != 0x80;
	return columns;
}

/* How many bytes the first `characters` of a text take. */
static size_t
bytes_of(const char *text, size_t characters)
{
	size_t at = 0;

	for (; text[at] != '\0' && characters != 0; characters--) {
		do
			at++;
		while (((unsigned char)text[at] & 0xc0) == 0x80);
	}
	return at;
}

char *
text_fitted(const char *text, size_t columns)
{
	size_t length = strlen(text);
	size_t all = text_columns(text, length);

	if (all <= columns)
		return memory_text(text);
	columns = columns > FITTED_LEAST ? columns : FITTED_LEAST;
	size_t head = (columns - 3) / 2;
	size_t head_bytes = bytes_of(text, head);
	const char *tail = text + bytes_of(text, all - (columns - 3 - head));

	char *fitted = memory_zeroed(length + 4, 1);

	return memory_text_in(fitted, length + 4, "%.*s...%s", (int)head_bytes, text, tail);
}

/* As units.c writes them: "%", "B", "KiB". */
static bool
is_unit(const char *word)
{
	size_t letter = word[0] != '\0' && strncmp(word + 1, "iB", 2) == 0 ? 2 : 0;

	return word[0] == '%' || (word[letter] == 'B' && strchr(" ,;:.)", word[letter + 1]) != NULL);
}

size_t
paragraph_put(FILE *stream, size_t columns, const char *text, size_t indent, size_t column)
{
	size_t lines = 1;
	OWNED char *clean = text_cleaned(memory_text(text));
	const char *at;
	bool is_first = true;

	for (at = clean + strspn(clean, " "); *at != '\0'; at += strspn(at, " ")) {
		size_t bytes = strcspn(at, " ");

		if (at[0] == '`' && strchr(at + 1, '`') != NULL)
			bytes = (size_t)(strchr(at + 1, '`') - at) + strcspn(strchr(at + 1, '`'), " ");
		if (at[bytes] == ' ' && is_unit(at + bytes + 1))
			bytes += 1 + strcspn(at + bytes + 1, " ");

		size_t width = text_columns(at, bytes);

		if (!is_first && column + 1 + width > columns) {
			if (stream != NULL)
				(void)fprintf(stream, "\n%*s", (int)indent, "");
			column = indent;
			lines++;
		} else if (!is_first) {
			if (stream != NULL)
				(void)fputc(' ', stream);
			column++;
		}
		if (stream != NULL)
			(void)fprintf(stream, "%.*s", (int)bytes, at);
		column += width;
		at += bytes;
		is_first = false;
	}
	if (stream != NULL)
		(void)fputc('\n', stream);
	return lines;
}
