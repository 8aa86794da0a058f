/*
 * shell_words.c - a command line as a shell would take it.
 *
 * Called by   report.c, model.c, verdict.c.
 * When failing  it cannot.
 */
#include "shell_words.h"

#include <stdbool.h>
#include <string.h>

#include "memory.h"

static bool
needs_quotes(const char *word, size_t length)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@%+";

	for (size_t i = 0; i < length; i++) {
		if (strchr(plain, word[i]) == NULL)
			return true;
	}
	return length == 0;
}

char *
shell_words_join(const char *words, size_t bytes)
{
	char *joined = memory_zeroed(bytes * 4 + 4, 1); // the worst is a word of quotes: four characters for one
	char *to = joined;

	for (size_t at = 0; at < bytes;) {
		size_t length = strnlen(words + at, bytes - at);
		bool is_quoted = needs_quotes(words + at, length);

		if (to != joined)
			*to++ = ' ';
		if (is_quoted)
			*to++ = '\'';
		for (size_t i = 0; i < length; i++) {
			if (words[at + i] == '\'') {
				memcpy(to, "'\\''", 4);
				to += 4;
			} else {
				*to++ = words[at + i];
			}
		}
		if (is_quoted)
			*to++ = '\'';
		at += length + 1;
	}
	return joined;
}
