/* pattern.c - see pattern.h. */
#include "gate/pattern.h"

#include <stddef.h>
#include <string.h>

/* The length up to the next star or the end; a '$' at the end of the pattern is not counted. */
static size_t
part_length(const char *part, bool *is_last_anchored)
{
	size_t length = strcspn(part, "*");

	*is_last_anchored = length != 0 && part[length] == '\0' && part[length - 1] == '$';
	return length - *is_last_anchored;
}

/*
 * Looks for the parts between the stars from left to right, each at its first place: a later place would leave less for the parts behind
 * it. A part that must stand at the end is looked for there.
 */
bool
pattern_fits(const char *pattern, const char *text)
{
	bool is_anchored = *pattern == '^';
	bool is_at_end;

	for (pattern += is_anchored;; pattern++) {
		size_t length = part_length(pattern, &is_at_end);
		size_t left = strlen(text);

		if (is_at_end && (left < length || (is_anchored && left != length)))
			return false;
		if (is_at_end)
			text += left - length;
		if (is_at_end || is_anchored) {
			if (strncmp(text, pattern, length) != 0)
				return false;
		} else {
			while (left >= length && strncmp(text, pattern, length) != 0) {
				text++;
				left--;
			}
			if (left < length)
				return false;
		}
		text += length;
		pattern += length;
		if (*pattern != '*')
			return true;
		is_anchored = false;
	}
}
