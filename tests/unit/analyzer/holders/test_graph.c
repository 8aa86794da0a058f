/*
 * test_graph.c - are the ways between nodes the cheapest ones, along the edges and against them?
 */
#include "test.h"

#include <stdlib.h>

#include "holders/graph.h"
#include "../../../random.h"

#define NODES 60u
#define EDGES 150u

/* Costs are what is left when nothing can become cheaper. */
TEST(costs_are_those_of_sweeps_over_all_edges)
{
	uint64_t random = random_seed();

	for (unsigned turn = 0; turn < 200; turn++) {
		struct graph_edge *edges = malloc(EDGES * sizeof(*edges));
		const enum graph_way way = turn % 2;
		const uint64_t cost_max = turn % 3 != 0 ? GRAPH_NO_WAY : 2;
		struct graph graph;
		uint64_t costs[NODES];
		uint64_t wanted[NODES];
		uint32_t best[NODES];
		uint32_t order[NODES];

		for (uint32_t i = 0; i < EDGES; i++)
			edges[i] = (struct graph_edge){ { (uint32_t)random_below(&random, NODES),
				                              (uint32_t)random_below(&random, NODES) },
				                            random_below(&random, 9) != 0 ? random_below(&random, 5) : GRAPH_NO_WAY };
		for (uint32_t i = 0; i < NODES; i++)
			wanted[i] = costs[i] = i % 20 == 0 ? random_below(&random, 7) : GRAPH_NO_WAY;
		for (unsigned sweep = 0; sweep < NODES; sweep++) {
			for (uint32_t i = 0; i < EDGES; i++) {
				const uint64_t from = wanted[edges[i].ends[way]];
				uint64_t *to = &wanted[edges[i].ends[1 - way]];
				const uint64_t cost = edges[i].cost < cost_max ? edges[i].cost : cost_max;

				if (edges[i].cost != GRAPH_NO_WAY && from != GRAPH_NO_WAY && from + cost < *to)
					*to = from + cost;
			}
		}
		graph_make(NODES, EDGES, edges, &graph);

		size_t count = graph_find_ways(&graph, way, cost_max, costs, best, order, NODES);

		assert_memory_equal(costs, wanted, sizeof(costs));
		for (size_t i = 0; i < count; i++)
			assert_true(costs[order[i]] != GRAPH_NO_WAY && (i == 0 || costs[order[i - 1]] <= costs[order[i]]));
		assert_int_equal(graph_find_ways(&graph, way, cost_max, wanted, best, order, 3), count < 3 ? count : 3);
		graph_free(&graph);
	}
}

RUN_TESTS(NULL, NULL)
