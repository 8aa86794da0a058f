/*
 * diff_match.h - which line of the newer side is this line of the older one?
 */
#ifndef DIFF_MATCH_H
#define DIFF_MATCH_H

#include <stddef.h>

#include "diff/diff_side.h"

struct diff_pair {
	const struct diff_line *before; // NULL: the other one is new
	const struct diff_line *after;  // NULL: the other one is gone
	size_t function;                // the same for all lines of one, and of what it was called before
};

/* Each line of both sides is in one pair. Pairs come function by function. For free(). */
struct diff_pair *diff_match(const struct diff_side *before, const struct diff_side *after, size_t *count);

#endif
