/*
 * kept_way.h - is there one way through the program whose blocks stay, while those of all other ways are released?
 *
 * A line that leaks often serves many callers, and one of them forgets to release. The call stacks show which: nearly all live blocks have
 * this caller in common, most of its blocks stay, and next to nothing is left of the blocks of other callers.
 *
 * Context     Reads what rank_run() gave.
 */
#ifndef KEPT_WAY_H
#define KEPT_WAY_H

#include <stdbool.h>

#include "analysis/rank.h"

struct kept_way {
	const struct model_frame *through; // the caller
	uint64_t live_count;               // blocks through it that are alive
	uint64_t allocated_count;          // through it
	uint64_t other_live_count;
	uint64_t other_allocated_count;
};

/* False: there is none. */
bool kept_way_find(const struct ranked *ranked, const struct rank_line *line, struct kept_way *way);

#endif
