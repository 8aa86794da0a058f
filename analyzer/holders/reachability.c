/*
 * reachability.c - marks what roots lead to, and sorts the rest (see reachability.h).
 *
 * Invariants, tested by number in tests/preload/test_lost.py:
 *   R1  every live block is counted once.
 *   R2  a block that a root, a register or a reachable block leads to is reachable, by an address anywhere in it.
 *   R3  a lost block that another lost block leads to is lost indirectly, but for one of each circle.
 *   R4  a block that leads to itself alone is lost directly.
 *   R5  a list that is longer than there is room for changes no count of what is reachable.
 */
#include "holders/reachability.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct flood {
	struct process_memory *memory;
	const struct stopped_process *process;
	struct live_blocks *blocks;
	const struct root_ranges *ranges;
	struct reachability *found;
	struct address_range *pending; // blocks whose words were not looked at yet
	size_t pending_count;
	bool is_full; // some had no place
	enum {
		REACHED_IS_MARKED,
		REACHED_IS_HELD, // marked alone, but for the block itself
		REACHED_LEAVES   // counted as indirectly lost, and unlisted
	} reached;
	uint64_t from;      // of the block itself
	bool is_of_circles; // what is left: its blocks lead to each other
};

static bool
is_late(struct flood *flood)
{
	flood->found->is_unfinished = flood->found->is_unfinished || process_memory_is_late(flood->memory);
	return flood->found->is_unfinished;
}

static void
count(struct reachability *found, const struct live_block *block, enum reach reach)
{
	struct reach_count *counted = &(*MEMORY_AT(found->sites, found->site_count, block->site))[reach];

	counted->blocks++;
	counted->bytes += block->bytes;
}

/* False: there is no room for it. */
static bool
push(struct flood *flood, const struct live_block *block)
{
	if (flood->pending_count >= REACHABILITY_PENDING_MAX) {
		flood->is_full = true;
		return false;
	}
	*MEMORY_NEXT(flood->pending, flood->pending_count) = (struct address_range){ block->addr,
		                                                                         block->addr + block->bytes };
	return true;
}

/* A word that may lead into the heap. */
static bool
see_word(void *context, uint64_t at, uint64_t word)
{
	struct flood *flood = context;
	struct live_block block;

	(void)at;
	if (!live_blocks_find(flood->blocks, word, &block))
		return true;
	switch (flood->reached) {
	case REACHED_IS_MARKED:
		if (live_blocks_mark(flood->blocks, &block))
			(void)push(flood, &block);
		break;
	case REACHED_IS_HELD:
		if (block.addr != flood->from)
			(void)live_blocks_mark(flood->blocks, &block);
		break;
	case REACHED_LEAVES:
		if (!push(flood, &block))
			break;
		count(flood->found, &block, REACH_INDIRECTLY_LOST);
		live_blocks_unlist(flood->blocks, &block);
		break;
	}
	return true;
}

static void
look_into(struct flood *flood, uint64_t start, uint64_t end)
{
	(void)process_memory_scan(flood->memory, start, end, live_blocks_range(flood->blocks), see_word, flood);
}

static void
drain(struct flood *flood)
{
	for (unsigned turn = 1; flood->pending_count != 0; turn++) {
		struct address_range block = flood->pending[--flood->pending_count];

		look_into(flood, block.start, block.end);
		if (turn % 256 == 0 && is_late(flood))
			return;
	}
}

static bool
look_into_marked(void *context, const struct live_block *block)
{
	struct flood *flood = context;

	if (live_blocks_is_marked(flood->blocks, block)) {
		look_into(flood, block->addr, block->addr + block->bytes);
		drain(flood);
	}
	return !is_late(flood);
}

static void
mark_from_roots(struct flood *flood)
{
	const struct root_ranges *ranges = flood->ranges;

	for (size_t i = 0; i < flood->process->count; i++) {
		for (unsigned k = 0; k < MACHINE_REGISTERS; k++)
			(void)see_word(flood, 0, flood->process->threads[i].registers[k]);
	}
	for (size_t i = 0; i < ranges->count && !is_late(flood); i++) {
		if (ranges->at[i].kind == ROOT_HEAP)
			continue;
		look_into(flood, ranges->at[i].start, ranges->at[i].end);
		drain(flood);
	}
	while (flood->is_full && !is_late(flood)) {
		flood->is_full = false;
		(void)live_blocks_visit(flood->blocks, look_into_marked, flood);
	}
}

static bool
take_reachable(void *context, const struct live_block *block)
{
	struct flood *flood = context;

	if (live_blocks_is_marked(flood->blocks, block)) {
		count(flood->found, block, REACH_REACHABLE);
		live_blocks_unlist(flood->blocks, block);
	}
	return true;
}

/* ---- what is lost: nothing else is listed any more, and no bit is set ---- */

static bool
mark_what_it_holds(void *context, const struct live_block *block)
{
	struct flood *flood = context;

	flood->from = block->addr;
	look_into(flood, block->addr, block->addr + block->bytes);
	return !is_late(flood);
}

/* A block to which no lost block leads, and then the first of each circle, leaves the list with all to which it leads. */
static bool
take_lost(void *context, const struct live_block *block)
{
	struct flood *flood = context;

	if (flood->is_of_circles || !live_blocks_is_marked(flood->blocks, block)) {
		count(flood->found, block, REACH_DIRECTLY_LOST);
		live_blocks_unlist(flood->blocks, block);
		look_into(flood, block->addr, block->addr + block->bytes);
		drain(flood);
	}
	return !is_late(flood);
}

void
reachability_find(struct process_memory *memory, const struct stopped_process *process, struct live_blocks *blocks,
                  const struct root_ranges *ranges, struct reachability *found)
{
	struct flood flood = { .memory = memory, .process = process, .blocks = blocks, .ranges = ranges, .found = found };

	*found = (struct reachability){ 0 };
	mark_from_roots(&flood);
	(void)live_blocks_visit(blocks, take_reachable, &flood);
	live_blocks_unmark_all(blocks);
	flood.reached = REACHED_IS_HELD;
	(void)live_blocks_visit(blocks, mark_what_it_holds, &flood);
	flood.reached = REACHED_LEAVES;
	(void)live_blocks_visit(blocks, take_lost, &flood);
	flood.is_of_circles = true;
	(void)live_blocks_visit(blocks, take_lost, &flood);
	free(flood.pending);
}

void
reachability_free(struct reachability *found)
{
	free(found->sites);
	*found = (struct reachability){ 0 };
}
