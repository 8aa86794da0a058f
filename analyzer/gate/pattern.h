/*
 * pattern.h - does a text fit a pattern, as the suppressions of LeakSanitizer have them?
 *
 * A pattern is found anywhere in the text. '*' stands for any characters, '^' at the beginning for the beginning of the text, '$' at
 * the end for its end.
 *
 * Safe from   anywhere; no state.
 */
#ifndef PATTERN_H
#define PATTERN_H

#include <stdbool.h>

bool pattern_fits(const char *pattern, const char *text);

#endif
