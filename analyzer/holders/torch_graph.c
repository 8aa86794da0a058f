/*
 * torch_graph.c - counts the objects that can be reached from a block (see torch_graph.h).
 */
#include "holders/torch_graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "holders/address_map.h"

#define OBJECT_BYTES 512u      // of an object that are looked at
#define PLAIN_BYTES_MAX 16384u // of a block without a table, that has pointers perhaps
#define HEAD_BYTES 32u         // of a block: a pointer may lead behind what a smart pointer keeps there
#define BLOCKS_UNREGARDED 64   // between two looks at the clock

struct walk {
	struct process_look *look;
	struct process_modules *modules;
	struct torch_graph *graph;
	size_t count;
	struct live_block *blocks; // that are reached, in their order
	struct address_map places;
};

bool
torch_graph_is_table(struct process_modules *modules, uint64_t addr)
{
	const struct process_module *module = process_modules_at(modules, addr);

	return module != NULL && (strstr(module->path, "/libtorch") != NULL || strstr(module->path, "/libc10") != NULL);
}

static uint64_t
table_of(const struct walk *walk, const struct live_block *block)
{
	uint64_t word = process_memory_word(&walk->look->memory, block->addr);

	return word != 0 && torch_graph_is_table(walk->modules, word) ? word : 0;
}

static void
count_table(struct torch_graph *graph, uint64_t table)
{
	size_t i = 0;

	while (i < graph->table_count && graph->tables[i] != table)
		i++;
	if (i == TORCH_GRAPH_TABLES) {
		graph->is_cut = true;
		return;
	}
	if (i == graph->table_count)
		graph->tables[graph->table_count++] = table;
	graph->counts[i]++;
}

static void
reach(struct walk *walk, uint64_t word, bool is_from_object)
{
	struct live_block block;

	if (!live_blocks_find(walk->look->blocks, word, &block) || word - block.addr > HEAD_BYTES ||
	    block.addr % sizeof(word) != 0)
		return;

	uint64_t table = table_of(walk, &block);

	if (table == 0 && (!is_from_object || block.bytes > PLAIN_BYTES_MAX))
		return;

	if (address_map_find(&walk->places, block.addr) != ADDRESS_NONE)
		return;
	if (walk->count == TORCH_GRAPH_BLOCKS) {
		walk->graph->is_cut = true;
		return;
	}
	address_map_put(&walk->places, block.addr, (uint32_t)walk->count);
	if (table != 0)
		count_table(walk->graph, table);
	walk->blocks[walk->count++] = block;
}

void
torch_graph_count(struct process_look *look, struct process_modules *modules, uint64_t start, struct torch_graph *graph)
{
	struct walk walk = { .look = look, .modules = modules, .graph = graph };

	*graph = (struct torch_graph){ .start = start };
	walk.blocks = memory_zeroed(TORCH_GRAPH_BLOCKS, sizeof(*walk.blocks));
	address_map_make(&walk.places, TORCH_GRAPH_BLOCKS);
	reach(&walk, start, true);
	for (size_t i = 0; i < walk.count && !graph->is_cut; i++) {
		bool is_object = table_of(&walk, &walk.blocks[i]) != 0;

		if (i % BLOCKS_UNREGARDED == 0 && process_memory_is_late(&look->memory))
			graph->is_cut = true;
		for (uint64_t at = 0; at + 8 <= walk.blocks[i].bytes && at < (is_object ? OBJECT_BYTES : PLAIN_BYTES_MAX);
		     at += 8)
			reach(&walk, process_memory_word(&look->memory, walk.blocks[i].addr + at), is_object);
	}
	free(walk.blocks);
	address_map_free(&walk.places);
}
