/*
 * text_start.h - does a text start so?
 *
 * Safe from   anywhere; no state.
 */
#ifndef TEXT_START_H
#define TEXT_START_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static inline bool
text_starts(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

static inline bool
text_ends(const char *text, const char *end)
{
	size_t length = strlen(text);

	return length >= strlen(end) && strcmp(text + length - strlen(end), end) == 0;
}

/* starts: ends with NULL */
static inline bool
text_starts_with_any(const char *text, const char *const *starts)
{
	for (; *starts != NULL; starts++) {
		if (text_starts(text, *starts))
			return true;
	}
	return false;
}

#endif
