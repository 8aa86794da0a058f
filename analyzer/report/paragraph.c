/*
 * paragraph.c - how is a text of several sentences laid out in lines?
 *
 * When failing  errors stay in the stream.
 */
#include "report/paragraph.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text_clean.h"

size_t
text_columns(const char *text, size_t bytes)
{
	size_t columns = 0;

	for (size_t i = 0; i < bytes; i++)
		columns += ((unsigned char)text[i] & 0xc0) != 0x80;
	return columns;
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
	char *clean = memory_text(text);
	const char *at;
	bool is_first = true;

	(void)text_clean(clean, strlen(clean));
	for (at = clean + strspn(clean, " "); *at != '\0'; at += strspn(at, " ")) {
		size_t bytes = strcspn(at, " ");
		size_t width;

		if (at[0] == '`' && strchr(at + 1, '`') != NULL)
			bytes = (size_t)(strchr(at + 1, '`') - at) + strcspn(strchr(at + 1, '`'), " ");
		if (at[bytes] == ' ' && is_unit(at + bytes + 1))
			bytes += 1 + strcspn(at + bytes + 1, " ");
		width = text_columns(at, bytes);

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
	free(clean);
	return lines;
}
