/*
 * graph.h - the cheapest ways between nodes, which are numbers; what they and the edges stand for is the caller's.
 *
 * Dijkstra's algorithm: from the cheapest node on, and of equal ones from the one with the lowest number. Of equal ways the first stays.
 */
#ifndef GRAPH_H
#define GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GRAPH_NO_WAY UINT64_MAX
#define GRAPH_NO_EDGE UINT32_MAX

struct graph_edge {
	uint32_t from;
	uint32_t to;
	uint64_t cost; // GRAPH_NO_WAY = no way goes here
};

struct graph {
	size_t node_count;
	size_t edge_count;
	struct graph_edge *edges;
	bool is_backwards; // ways are looked for against the edges
};

/*
 * costs  of each node: in, where a way may begin, else GRAPH_NO_WAY; out, of the cheapest way to it
 * best   out, of each node the edge by which that comes; GRAPH_NO_EDGE = it begins here, or there is none; NULL = not wanted
 * order  out, nodes with a way, the cheapest first; at most `max`; NULL = not wanted, of any number
 *
 * Returns how many nodes are in that order.
 */
size_t graph_find_ways(const struct graph *graph, uint64_t *costs, uint32_t *best, uint32_t *order, size_t max);

#endif
