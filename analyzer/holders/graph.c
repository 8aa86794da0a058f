/*
 * graph.c - ways from the cheapest node on (see graph.h).
 */
#include "holders/graph.h"

#include "base/memory.h"

struct entry {
	uint64_t cost;
	uint32_t node;
};

/* The cheapest entry is the first; those at 2 i + 1 and 2 i + 2 cost no less than the one at i. */
struct heap {
	size_t count;
	size_t room;
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

	(void)MEMORY_NEXT(heap->entries, heap->count, heap->room);

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

static uint32_t
tail_of(const struct graph *graph, size_t edge)
{
	return graph->is_backwards ? graph->edges[edge].to : graph->edges[edge].from;
}

/* first[n + 1] up to first[n + 2]: where the numbers of the edges stand that leave node n. */
static void
sort_edges(const struct graph *graph, uint32_t *first, uint32_t *numbers)
{
	for (size_t i = 0; i < graph->edge_count; i++)
		first[tail_of(graph, i) + 1]++;
	for (size_t i = 0; i < graph->node_count; i++)
		first[i + 1] += first[i];
	first[graph->node_count + 1] = (uint32_t)graph->edge_count;
	for (size_t i = graph->edge_count; i-- > 0;)
		numbers[--first[tail_of(graph, i) + 1]] = (uint32_t)i;
}

size_t
graph_find_ways(const struct graph *graph, uint64_t *costs, uint32_t *best, uint32_t *order, size_t max)
{
	OWNED uint32_t *first = memory_zeroed(graph->node_count + 2, sizeof(*first));
	OWNED uint32_t *numbers = memory_zeroed(graph->edge_count, sizeof(*numbers));
	OWNED uint32_t *ways = memory_zeroed(graph->node_count, sizeof(*ways));
	OWNED bool *is_done = memory_zeroed(graph->node_count, sizeof(*is_done));
	struct heap heap = { 0 };
	size_t count = 0;

	best = best != NULL ? best : ways;
	sort_edges(graph, first, numbers);
	for (uint32_t i = 0; i < graph->node_count; i++) {
		best[i] = GRAPH_NO_EDGE;
		if (costs[i] != GRAPH_NO_WAY)
			push(&heap, costs[i], i);
	}
	while (heap.count != 0 && (order == NULL || count < max)) {
		const struct entry entry = pop(&heap);

		if (is_done[entry.node])
			continue;
		is_done[entry.node] = true;
		if (order != NULL)
			order[count] = entry.node;
		count++;
		for (uint32_t i = first[entry.node + 1]; i < first[entry.node + 2]; i++) {
			const struct graph_edge *edge = &graph->edges[numbers[i]];
			const uint32_t to = graph->is_backwards ? edge->from : edge->to;

			if (edge->cost == GRAPH_NO_WAY || entry.cost + edge->cost >= costs[to])
				continue;
			costs[to] = entry.cost + edge->cost;
			best[to] = numbers[i];
			push(&heap, costs[to], to);
		}
	}
	memory_free_owned(&heap.entries);
	return count;
}
