/* markdown.c - see markdown.h. */
#include "report/markdown.h"

#include <string.h>
#include <strings.h>

/* The span is marked by more backticks than its longest run of them; a bar would end the cell. */
void
markdown_code(const char *text, FILE *stream)
{
	size_t longest = 0;
	size_t run = 0;

	for (const char *at = text; *at != '\0'; at++) {
		run = *at == '`' ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	for (size_t i = 0; i <= longest; i++)
		(void)fputc('`', stream);
	(void)fputs(longest != 0 ? " " : "", stream);
	for (const char *at = text; *at != '\0'; at++)
		(void)fprintf(stream, *at == '|' ? "\\|" : "%c", *at);
	(void)fputs(longest != 0 ? " " : "", stream);
	for (size_t i = 0; i <= longest; i++)
		(void)fputc('`', stream);
}

void
markdown_escaped(const char *text, FILE *stream)
{
	for (; *text != '\0'; text++) {
		if (strchr("\\`*_[]<>|#&~", *text) != NULL)
			(void)fputc('\\', stream);
		(void)fputc(*text, stream);
		if (*text == '@' || strncmp(text, "://", 3) == 0 || strncasecmp(text, "www.", 4) == 0)
			(void)fputs("<!-- -->", stream); // else a platform tells whom it names, or makes a link of it
	}
}
