/*
 * text_clean.h - can this text be shown?
 *
 * Texts of a capture are whatever the program, its file system or a damaged disk made of them. Shown are valid UTF-8
 * sequences without control characters and what else ends lines or turns text around, so that no text can end a line, steer a
 * terminal or break JSON.
 *
 * Safe from   anywhere; no state.
 */
#ifndef TEXT_CLEAN_H
#define TEXT_CLEAN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Replaces every byte that is not part of printable UTF-8 by '?', in place. Returns bytes. */
size_t text_clean(char *text, size_t bytes);

/* The whole text, cleaned in place. */
static inline char *
text_cleaned(char *text)
{
	(void)text_clean(text, strlen(text));
	return text;
}

/* So many of these bytes that no character is cut at their end. */
size_t text_whole(const char *text, size_t bytes);

/* Would text_clean() change nothing? */
bool text_is_clean(const char *text, size_t bytes);

/*
 * The same with every such byte as "\\n", "\\t", "\\r" or "\\x1b": two texts that differ still do, nearly. `to` has room for
 * TEXT_ESCAPED_MOST times `bytes`; returns how many are used.
 */
#define TEXT_ESCAPED_MOST 4
size_t text_escape(const char *text, size_t bytes, char *to);

#endif
