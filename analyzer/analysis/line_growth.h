/*
 * line_growth.h - since when does a line grow, how, and what part of its process's growth is that?
 *
 * Context     Reads what rank_run() gave, and what its process held over time.
 * When failing  is_known is false: several processes, no points, or the process did not grow.
 */
#ifndef LINE_GROWTH_H
#define LINE_GROWTH_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/rank.h"

enum line_pace {
	LINE_PACE_EVEN,   // about as much stays of each quarter of what was allocated since it began
	LINE_PACE_FASTER, // of each more than of the one before
	LINE_PACE_BURSTS, // anything else
};

struct line_growth {
	bool is_known;
	uint64_t since_ms;    // of the process's life, about
	uint64_t bytes;       // that it holds, all of which came since then
	uint64_t whole_bytes; // by which the process has grown since; at least `bytes`
	enum line_pace pace;
};

/* Of a line of class leak or backlog; of others, and of address space, nothing is known. */
struct line_growth line_growth_of(const struct model *model, const struct rank_line *line);

#endif
