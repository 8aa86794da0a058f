/*
 * holder_lists.c - from node to node of a list, up to its begin (see holder_lists.h).
 */
#include "holders/holder_lists.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define PLACES (HOLDER_LIST_NODES_MAX * 2)

void
holder_lists_begin(struct process_look *look, struct holder_lists *lists)
{
	*lists = (struct holder_lists){ .look = look };
	lists->nodes = memory_zeroed(HOLDER_LIST_NODES_MAX, sizeof(*lists->nodes));
	lists->places = memory_zeroed(PLACES, sizeof(*lists->places));
}

void
holder_lists_end(struct holder_lists *lists)
{
	free(lists->nodes);
	free(lists->places);
	free(lists->site_blocks);
	*lists = (struct holder_lists){ 0 };
}

void
holder_lists_show(struct holder_lists *lists, const struct live_block *block)
{
	(*MEMORY_AT(lists->site_blocks, lists->site_count, block->site))++;
}

static uint32_t *
place_of(const struct holder_lists *lists, uint64_t addr)
{
	uint32_t i = (uint32_t)(addr * UINT64_C(0x9e3779b97f4a7c15) >> 32);

	while (lists->places[i % PLACES] != 0 && lists->nodes[lists->places[i % PLACES] - 1].addr != addr)
		i++;
	return &lists->places[i % PLACES];
}

/* What stands before it in its list; 0 = it is in none. */
static uint64_t
before(const struct holder_lists *lists, uint64_t addr)
{
	struct process_memory *memory = &lists->look->memory;
	uint64_t other = process_memory_word(memory, addr + 8);

	return other % 8 == 0 && root_ranges_at(&lists->look->ranges, other) != NULL &&
	               process_memory_word(memory, other) == addr
	           ? other
	           : 0;
}

/* The list may have all blocks of its site. */
static bool
is_room(const struct holder_lists *lists, uint32_t site)
{
	return site < lists->site_count && lists->site_blocks[site] <= HOLDER_LIST_NODES_MAX - lists->count;
}

uint64_t
holder_lists_head(struct holder_lists *lists, const struct live_block *block)
{
	const uint32_t first = lists->count;
	struct live_block node = *block;
	uint64_t head = block->addr;

	if (block->bytes < 16 || !is_room(lists, block->site) || before(lists, block->addr) == 0)
		return 0;
	do {
		uint32_t *place = place_of(lists, head);

		if (*place != 0) { // a ring has no begin
			head = lists->nodes[*place - 1].head;
			break;
		}
		if (lists->count == HOLDER_LIST_NODES_MAX)
			return 0;
		lists->nodes[lists->count++] = (struct list_node){ head, 0 };
		*place = lists->count;
		lists->site_blocks[block->site]--;
		head = before(lists, head);
	} while (live_blocks_find(lists->look->blocks, head, &node) && node.addr == head && node.site == block->site);
	for (uint32_t i = first; i < lists->count; i++)
		lists->nodes[i].head = head;
	return head;
}
