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

#define PIECE_BYTES (UINT64_C(1) << 20) // between two looks at the clock

struct flood {
	struct process_memory *memory;
	const struct stopped_process *process;
	struct live_blocks *blocks;
	const struct root_ranges *ranges;
	struct reachability *found;
	uint64_t deadline_ns;
	struct address_range *pending; // blocks whose words were not looked at yet
	size_t pending_count;
	size_t pending_room;
	bool is_full;    // some had no place
	bool is_leaving; // what is reached is counted as indirectly lost and unlisted; else it is marked
	struct live_block from;
};

static bool
is_late(struct flood *flood)
{
	flood->found->is_unfinished = flood->found->is_unfinished ||
	                              stopped_process_time(flood->process) > flood->deadline_ns;
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
	*MEMORY_NEXT(flood->pending, flood->pending_count,
	             flood->pending_room) = (struct address_range){ block->addr, block->addr + block->bytes };
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
	if (flood->is_leaving) {
		if (push(flood, &block)) {
			count(flood->found, &block, REACH_INDIRECTLY_LOST);
			live_blocks_unlist(flood->blocks, &block);
		}
	} else if (live_blocks_mark(flood->blocks, &block)) {
		(void)push(flood, &block);
	}
	return true;
}

/* Piece by piece: one mapping may be as large as all memory. */
static void
scan(struct flood *flood, uint64_t start, uint64_t end, process_memory_visitor *visitor)
{
	while (start < end) {
		uint64_t until = end - start > PIECE_BYTES ? start + PIECE_BYTES : end;

		(void)process_memory_scan(flood->memory, start, until, live_blocks_range(flood->blocks), visitor, flood);
		if (until < end && is_late(flood))
			return;
		start = until;
	}
}

static void
look_into(struct flood *flood, uint64_t start, uint64_t end)
{
	scan(flood, start, end, see_word);
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
see_word_of_lost(void *context, uint64_t at, uint64_t word)
{
	struct flood *flood = context;
	struct live_block block;

	(void)at;
	if (live_blocks_find(flood->blocks, word, &block) && block.addr != flood->from.addr)
		(void)live_blocks_mark(flood->blocks, &block);
	return true;
}

static bool
mark_what_it_holds(void *context, const struct live_block *block)
{
	struct flood *flood = context;

	flood->from = *block;
	scan(flood, block->addr, block->addr + block->bytes, see_word_of_lost);
	return !is_late(flood);
}

/* The block and all to which it leads leave the list. */
static void
take_lost(struct flood *flood, const struct live_block *block)
{
	count(flood->found, block, REACH_DIRECTLY_LOST);
	live_blocks_unlist(flood->blocks, block);
	look_into(flood, block->addr, block->addr + block->bytes);
	drain(flood);
}

static bool
take_direct(void *context, const struct live_block *block)
{
	struct flood *flood = context;

	if (!live_blocks_is_marked(flood->blocks, block))
		take_lost(flood, block);
	return !is_late(flood);
}

/* The blocks that are left lead to each other in circles. */
static bool
take_first_of_circle(void *context, const struct live_block *block)
{
	struct flood *flood = context;

	take_lost(flood, block);
	return !is_late(flood);
}

void
reachability_find(struct process_memory *memory, const struct stopped_process *process, struct live_blocks *blocks,
                  const struct root_ranges *ranges, uint64_t deadline_ns, struct reachability *found)
{
	struct flood flood = { .memory = memory,
		                   .process = process,
		                   .blocks = blocks,
		                   .ranges = ranges,
		                   .found = found,
		                   .deadline_ns = deadline_ns };

	*found = (struct reachability){ 0 };
	mark_from_roots(&flood);
	(void)live_blocks_visit(blocks, take_reachable, &flood);
	live_blocks_unmark_all(blocks);
	(void)live_blocks_visit(blocks, mark_what_it_holds, &flood);
	flood.is_leaving = true;
	(void)live_blocks_visit(blocks, take_direct, &flood);
	(void)live_blocks_visit(blocks, take_first_of_circle, &flood);
	free(flood.pending);
}

void
reachability_free(struct reachability *found)
{
	free(found->sites);
	*found = (struct reachability){ 0 };
}
