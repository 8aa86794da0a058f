/*
 * line_steps.h - how much of a line that accumulates was kept in each step, and in an hour?
 *
 * Rounds of a loop that nothing confirms are not told: in a quick loop most of them are missed, so a round would be said to keep many times
 * what it keeps. Blocks that are about as many confirm them.
 *
 * Context     Reads what rank_run() gave.
 */
#ifndef LINE_STEPS_H
#define LINE_STEPS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/rank.h"

struct line_steps {
	uint64_t count;          // 0 = not known
	uint64_t bytes;          // that it kept in each, as far as it grows
	uint64_t bytes_per_hour; // 0 = the run was too short to tell
	bool is_one_block;       // in each, about
	uint64_t since_ms;       // of the run: what the line holds of before is in none of these; 0 = not much, or nothing
	const struct model_steps *from; // what they are
};

struct line_steps line_steps_of(const struct model *model, const struct rank_line *line);

#endif
