/*
 * graph.c - ways from the cheapest node on (see graph.h).
 */
#include "holders/graph.h"

#include <stdlib.h>

#include "base/amount.h"
#include "base/memory.h"

struct entry {
	uint64_t cost;
	uint32_t node;
};

/* The cheapest entry is the first; those at 2 i + 1 and 2 i + 2 cost no less than the one at i. */
struct heap {
	size_t count;
	struct entry *entries;
};

static bool
is_cheaper(const struct entry *a, const struct entry *b)
{
	return a->cost != b->cost ? a->cost < b->cost : a->node < b->node;
}

static void
push(struct heap *heap, uint64_t cost, uint32_t node)
{
	const struct entry entry = { cost, node };

	(void)MEMORY_NEXT(heap->entries, heap->count);

	size_t at = heap->count - 1;

	for (; at != 0 && is_cheaper(&entry, &heap->entries[(at - 1) / 2]); at = (at - 1) / 2)
		heap->entries[at] = heap->entries[(at - 1) / 2];
	heap->entries[at] = entry;
}

static struct entry
pop(struct heap *heap)
{
	const struct entry first = heap->entries[0];
	const struct entry last = heap->entries[--heap->count];
	size_t at = 0;

	for (size_t next; (next = 2 * at + 1) < heap->count; at = next) {
		if (next + 1 < heap->count && is_cheaper(&heap->entries[next + 1], &heap->entries[next]))
			next++;
		if (!is_cheaper(&heap->entries[next], &last))
			break;
		heap->entries[at] = heap->entries[next];
	}
	heap->entries[at] = last;
	return first;
}

static void
sort_edges(struct graph *graph, enum graph_way way)
{
	uint32_t *first = memory_zeroed(graph->node_count + 2, sizeof(*first));
	uint32_t *numbers = memory_zeroed(graph->edge_count, sizeof(*numbers));

	for (size_t i = 0; i < graph->edge_count; i++)
		first[graph->edges[i].ends[way] + 1]++;
	for (size_t i = 0; i < graph->node_count; i++)
		first[i + 1] += first[i];
	first[graph->node_count + 1] = (uint32_t)graph->edge_count;
	for (size_t i = graph->edge_count; i-- > 0;)
		numbers[--first[graph->edges[i].ends[way] + 1]] = (uint32_t)i;
	graph->first[way] = first;
	graph->numbers[way] = numbers;
}

void
graph_make(size_t node_count, size_t edge_count, struct graph_edge *edges, struct graph *graph)
{
	*graph = (struct graph){ .node_count = node_count, .edge_count = edge_count, .edges = edges };
	sort_edges(graph, GRAPH_ALONG);
	sort_edges(graph, GRAPH_AGAINST);
}

void
graph_free(struct graph *graph)
{
	free(graph->edges);
	for (unsigned way = 0; way <= GRAPH_AGAINST; way++) {
		free(graph->first[way]);
		free(graph->numbers[way]);
	}
	*graph = (struct graph){ 0 };
}

size_t
graph_find_ways(const struct graph *graph, enum graph_way way, uint64_t cost_max, uint64_t *costs, uint32_t *best,
                uint32_t *order, size_t max)
{
	const uint32_t *first = graph->first[way];
	OWNED bool *is_done = memory_zeroed(graph->node_count, sizeof(*is_done));
	struct heap heap = { 0 };
	size_t count = 0;

	for (uint32_t i = 0; i < graph->node_count; i++) {
		best[i] = GRAPH_NO_EDGE;
		if (costs[i] != GRAPH_NO_WAY)
			push(&heap, costs[i], i);
	}
	while (heap.count != 0 && count < max) {
		const struct entry entry = pop(&heap);

		if (is_done[entry.node])
			continue;
		is_done[entry.node] = true;
		order[count++] = entry.node;
		for (uint32_t i = first[entry.node + 1]; i < first[entry.node + 2]; i++) {
			const uint32_t number = graph->numbers[way][i];
			const struct graph_edge *edge = &graph->edges[number];
			const uint64_t cost = entry.cost + amount_lesser(edge->cost, cost_max);
			const uint32_t to = edge->ends[1 - way];

			if (edge->cost == GRAPH_NO_WAY || cost >= costs[to])
				continue;
			costs[to] = cost;
			best[to] = number;
			push(&heap, cost, to);
		}
	}
	memory_free_owned(&heap.entries);
	return count;
}
