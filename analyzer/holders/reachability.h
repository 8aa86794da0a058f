/*
 * reachability.h - which live blocks does nothing lead to any more?
 *
 * From the roots and the registers forwards, through every word of every block that is reached: a word that is an address in a block
 * keeps the block alive, wherever in it. Lost directly: no lost block leads there either. Lost indirectly: lost blocks hold it. Of a
 * circle of lost blocks the one with the lowest address counts as directly lost.
 *
 * Memory  two bits a window of the heap (live_blocks.h), a list of at most REACHABILITY_PENDING_MAX blocks (8 MiB), and the counts.
 * Limits  a number that looks like an address keeps a block alive: what is said to be lost is lost.
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

/* deadline_ns: of the process's standing still. No block is listed any more afterwards. */
void reachability_find(struct process_memory *memory, const struct stopped_process *process, struct live_blocks *blocks,
                       const struct root_ranges *ranges, uint64_t deadline_ns, struct reachability *found);
void reachability_free(struct reachability *found);

#endif
