/*
 * holder_lists.c - from node to node of a list, up to its begin (see holder_lists.h).
 */
#include "holders/holder_lists.h"

#include <stdlib.h>

#include "base/memory.h"

void
holder_lists_begin(struct process_look *look, struct holder_lists *lists)
{
	*lists = (struct holder_lists){ .look = look };
	lists->heads = memory_zeroed(HOLDER_LIST_NODES_MAX, sizeof(*lists->heads));
	address_map_make(&lists->places, HOLDER_LIST_NODES_MAX);
}

void
holder_lists_end(struct holder_lists *lists)
{
	free(lists->heads);
	address_map_free(&lists->places);
	free(lists->site_blocks);
	*lists = (struct holder_lists){ 0 };
}

void
holder_lists_show(struct holder_lists *lists, const struct live_block *block)
{
	(*MEMORY_AT(lists->site_blocks, lists->site_count, block->site))++;
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
		uint32_t known = address_map_find(&lists->places, head);

		if (known != ADDRESS_NONE) { // a ring has no begin
			head = lists->heads[known];
			break;
		}
		if (lists->count == HOLDER_LIST_NODES_MAX)
			return 0;
		address_map_put(&lists->places, head, lists->count++);
		lists->site_blocks[block->site]--;
		head = before(lists, head);
	} while (live_blocks_find(lists->look->blocks, head, &node) && node.addr == head && node.site == block->site);
	for (uint32_t i = first; i < lists->count; i++)
		lists->heads[i] = head;
	return head;
}
