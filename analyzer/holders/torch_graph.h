/*
 * torch_graph.h - how many objects of PyTorch hang on this one, by their tables of virtual functions?
 *
 * Goes forwards, from block to block, while the process stands still: a way to one block of a graph does not say how large the graph is.
 * It follows words that lead to the begin of a block, from objects and from small blocks between them.
 *
 * When full  TORCH_GRAPH_BLOCKS blocks, TORCH_GRAPH_TABLES tables, or no time: is_cut, and what was counted until then.
 */
#ifndef TORCH_GRAPH_H
#define TORCH_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holders/process_look.h"
#include "holders/process_modules.h"

#define TORCH_GRAPH_BLOCKS 16384u
#define TORCH_GRAPH_TABLES 32u

struct torch_graph {
	uint64_t start; // of the first block; 0 = none
	bool is_cut;
	size_t table_count;
	uint64_t tables[TORCH_GRAPH_TABLES];
	uint32_t counts[TORCH_GRAPH_TABLES];
};

void torch_graph_count(struct process_look *look, struct process_modules *modules, uint64_t start,
                       struct torch_graph *graph);

/* Is it a table of a library of PyTorch? */
bool torch_graph_is_table(struct process_modules *modules, uint64_t addr);

#endif
