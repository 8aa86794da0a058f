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
	uint32_t ends[2]; // from, to
	uint64_t cost;    // GRAPH_NO_WAY = no way goes here
};

/* Along the edges, or against them. */
enum graph_way { GRAPH_ALONG, GRAPH_AGAINST };

/* All 0 is an empty one. */
struct graph {
	size_t node_count;
	size_t edge_count;
	struct graph_edge *edges;
	uint32_t *first[2];   // [n + 1] up to [n + 2]: where the numbers of the edges stand that begin, or end, at node n
	uint32_t *numbers[2]; // of edges
};

/* edges: of malloc(); they become the graph's. */
void graph_make(size_t node_count, size_t edge_count, struct graph_edge *edges, struct graph *graph);
void graph_free(struct graph *graph);

/*
 * cost_max  no edge costs more
 * costs     of each node: in, where a way may begin, else GRAPH_NO_WAY; out, of the cheapest way to it
 * best      out, of each node the edge by which that comes; GRAPH_NO_EDGE = it begins here, or there is none
 * order     out, nodes with a way, the cheapest first; at most `max`
 *
 * Returns how many nodes are in that order.
 */
size_t graph_find_ways(const struct graph *graph, enum graph_way way, uint64_t cost_max, uint64_t *costs,
                       uint32_t *best, uint32_t *order, size_t max);

#endif
