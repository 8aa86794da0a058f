/*
 * reachability.h - which live blocks does nothing lead to any more?
 *
 * Goes from the roots and the registers forwards, through every word of every block that is reached. A word that is an address anywhere
 * in a block keeps the block alive. A lost block is lost directly when no lost block leads there, and indirectly when one does. In a
 * circle of lost blocks the one with the lowest address counts as directly lost.
 *
 * Memory  two bits a window of the heap (live_blocks.h), a list of at most REACHABILITY_PENDING_MAX blocks (8 MiB), and the counts.
 * Limits  a number that looks like an address keeps a block alive: a lost block may be missed, but one that is told is lost.
 */
#ifndef REACHABILITY_H
#define REACHABILITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holders/root_ranges.h"

#define REACHABILITY_PENDING_MAX (UINT64_C(1) << 19)

enum reach { REACH_DIRECTLY_LOST, REACH_INDIRECTLY_LOST, REACH_REACHABLE, REACH_COUNT };

struct reach_count {
	uint64_t blocks;
	uint64_t bytes;
};

struct reachability {
	size_t site_count; // of the next: number of a site's record + 1
	struct reach_count (*sites)[REACH_COUNT];
	bool is_unfinished; // there was no time: the counts say nothing
};

/* Until the memory's deadline. No block is listed any more afterwards. */
void reachability_find(struct process_memory *memory, const struct stopped_process *process, struct live_blocks *blocks,
                       const struct root_ranges *ranges, struct reachability *found);
void reachability_free(struct reachability *found);

#endif
