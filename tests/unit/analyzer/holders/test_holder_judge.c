/*
 * test_holder_judge.c - does a search over many nodes end where the process has stood still for long enough?
 */
#include "test.h"

#include <string.h>

#include "holders/holder_search.h"

#define NODES 3 // a static variable, an object, the sample

/* All words are 9: so many references each object has. */
static size_t
fetch(void *context, uint64_t addr, void *to, size_t bytes)
{
	static const uint64_t nine = 9;

	(void)context;
	(void)addr;
	for (size_t i = 0; i < bytes; i += sizeof(nine))
		memcpy((char *)to + i, &nine, sizeof(nine));
	return bytes;
}

TEST(what_has_no_time_is_not_judged)
{
	uint32_t sample = NODES - 1;
	const struct python_layout shape = { .version = 0x030b };
	struct process_look look = { .memory = { .fetch = fetch } };
	struct python_objects python = { .memory = &look.memory, .shape = &shape };
	struct python_type type = { .name = "Node" };
	struct holder_node nodes[NODES] = { { .kind = HOLDER_STATIC } };
	struct holder_edge edges[NODES - 1];
	struct holder_search search = { .look = &look,
		                            .python = &python,
		                            .node_count = NODES,
		                            .nodes = nodes,
		                            .edge_count = NODES - 1,
		                            .edges = edges,
		                            .sample_count = 1,
		                            .samples = &sample };
	uint64_t counted;
	uint64_t seen;
	uint32_t node;

	for (uint32_t i = 0; i < NODES; i++) {
		nodes[i].start = 0x1000 * (i + 1);
		nodes[i].owner = nodes[i].best = HOLDER_NONE;
		nodes[i].is_expanded = true;
		if (i != 0)
			nodes[i].object = (struct python_object){ nodes[i].start, &type };
		if (i != NODES - 1)
			edges[i] = (struct holder_edge){
				.from = i, .to = i + 1, .value = 0x1000 * (i + 2), .hold = PYTHON_HOLD_SURE
			};
	}
	for (unsigned has_time = 0; has_time <= 1; has_time++) {
		look.memory.deadline_ns = has_time != 0 ? UINT64_MAX : 1;
		holder_search_judge(&search);
		assert_int_equal(nodes[sample].best != HOLDER_NONE, has_time);
		assert_int_equal(holder_search_is_done(&search, sample), has_time);
		/* Of two objects with references that were not found the nearest is told. */
		assert_int_equal(holder_search_unseen(&search, sample, &node, &counted, &seen), has_time);
		assert_true(!has_time || (node == sample && counted == 9 && seen == 1));
	}
	graph_free(&search.graph);
	process_memory_close(&look.memory);
}

RUN_TESTS(NULL, NULL)
