/*
 * grows_with.h - do two lines leak together, because one thing keeps the blocks of both?
 *
 * An object and what it holds, an array and what was computed from it: as many blocks of each stay, and the same call made them. Two things
 * that each keep a block of a call look the same, so nobody is told more than that one thing may keep both.
 *
 * Context     Reads what rank_run() gave.
 */
#ifndef GROWS_WITH_H
#define GROWS_WITH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/rank.h"

/* Two lines of class leak; not the same line in two domains. */
bool lines_grow_together(const struct rank_line *left, const struct rank_line *right);

struct grows_with {
	const struct rank_line
		*first;           // that it grows with: the first in the ranking; NULL = it is the first itself, or grows alone
	size_t others;        // of the first: how many lines grow with it
	uint64_t other_bytes; // what these hold
};

/* Of a line of the ranking, and of others among its first ones. */
struct grows_with grows_with_of(const struct ranked *ranked, const struct rank_line *line);

#endif
