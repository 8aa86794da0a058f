/*
 * shell_words.c - a command line as a shell would take it.
 *
 * When failing  it cannot.
 */
#include "base/shell_words.h"

#include <stdbool.h>
#include <string.h>

#include "base/items.h"
#include "base/memory.h"
#include "base/text_clean.h"

static bool
needs_quotes(const char *word, size_t length)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@%+";

	return ANY(character, word, length, strchr(plain, *character) == NULL) || length == 0;
}

/* 'it'\''s' */
static char *
put_quoted(char *to, const char *word, size_t length)
{
	*to++ = '\'';
	for (size_t i = 0; i < length; i++) {
		if (word[i] == '\'') {
			memcpy(to, "'\\''", 4);
			to += 4;
		} else {
			*to++ = word[i];
		}
	}
	*to++ = '\'';
	return to;
}

/* $'two\nlines': what cannot be shown is escaped in this form alone. */
static char *
put_escaped(char *to, const char *word, size_t length)
{
	*to++ = '$';
	*to++ = '\'';
	for (size_t i = 0; i < length;) {
		size_t plain = i;

		while (plain < length && word[plain] != '\'' && word[plain] != '\\')
			plain++;
		to += text_escape(word + i, plain - i, to);
		if (plain < length) {
			*to++ = '\\';
			*to++ = word[plain++];
		}
		i = plain;
	}
	*to++ = '\'';
	return to;
}

char *
shell_words_join(const char *words, size_t bytes)
{
	/* Four for one is the most for an escape and for a quote; what stands around a word takes the room of its zero. */
	char *joined = memory_zeroed(bytes * TEXT_ESCAPED_MOST + 4, 1);
	char *to = joined;

	for (size_t at = 0; at < bytes;) {
		size_t length = strnlen(words + at, bytes - at);

		if (to != joined)
			*to++ = ' ';
		if (!text_is_clean(words + at, length))
			to = put_escaped(to, words + at, length);
		else if (needs_quotes(words + at, length))
			to = put_quoted(to, words + at, length);
		else
			to = mempcpy(to, words + at, length);
		at += length + 1;
	}
	return joined;
}
