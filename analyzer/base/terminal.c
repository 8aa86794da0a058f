/*
 * terminal.c - is a stream somebody's terminal (see terminal.h)?
 */
#include "base/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define COLUMNS_USUAL 80

bool
terminal_color_of(const char *word, enum terminal_color *color)
{
	static const char *const words[] = {
		[TERMINAL_COLOR_AUTO] = "auto", [TERMINAL_COLOR_ALWAYS] = "always", [TERMINAL_COLOR_NEVER] = "never"
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(word, words[i]) == 0) {
			*color = (enum terminal_color)i;
			return true;
		}
	}
	return false;
}

bool
terminal_has_color(FILE *stream, enum terminal_color wanted)
{
	const char *unwanted = getenv("NO_COLOR");
	const char *kind = getenv("TERM");

	if (wanted != TERMINAL_COLOR_AUTO)
		return wanted == TERMINAL_COLOR_ALWAYS;
	return (unwanted == NULL || unwanted[0] == '\0') && kind != NULL && strcmp(kind, "dumb") != 0 &&
	       isatty(fileno(stream)) == 1;
}

size_t
terminal_columns(FILE *stream)
{
	struct winsize size;

	if (isatty(fileno(stream)) == 1 && ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col != 0)
		return size.ws_col;
	return COLUMNS_USUAL;
}
