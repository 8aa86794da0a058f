/*
 * holder_judge.c - which of the words that were found lead on, and which way is the best (see holder_search.h)?
 *
 * A word that may be left over counts only while an object has references that no other word accounts for.
 *
 * Invariant, tested by number in tests/preload/test_holders.py:
 *   H2  of two ways to a root the one with the lower cost is taken: names before addresses.
 */

#include <stdlib.h>
#include <string.h>

#include "base/items.h"
#include "base/memory.h"
#include "holders/holder_search.h"

/* What it costs to end a way at such a root: roots that a person can find in the source come first. */
static const uint16_t kind_costs[HOLDER_KINDS] = {
	[HOLDER_FRAME] = 5,  [HOLDER_STATE] = 12,    [HOLDER_STATIC] = 3,      [HOLDER_THREAD_LOCAL] = 9,
	[HOLDER_STACK] = 12, [HOLDER_REGISTER] = 14, [HOLDER_MAPPING] = 10000, // where nothing else is
};
#define COST_LIBRARY 3u  // of a global of a library: the user's own says more
#define COST_OTHERS 30u  // of stacks and the interpreter's own variables, where there is a Python to say it better
#define COST_GOOD 11u    // a way whose root costs no more says enough
#define COST_PERHAPS 20u // a word that may be left over: rather a long way without one
#define COST_INSIDE 2u   // an address behind the block's begin
#define COST_FAR_INSIDE 4u
#define COST_SHORT 1u          // from what ends with a call: rather a way that is a few objects longer
#define COST_OF_LIBRARY 4u     // from a call in a library: a person finds a name of their own, or of a module, sooner
#define COST_BESIDE_LIST 20u   // a word into the middle of a list, as iterators are, does not hold what the list has
#define COST_PASSING 20u       // from an iterator: it passes by what another one has
#define COST_WITH_PYTHON 1u    // of the cheapest word and the cheapest root: a sure one in a class
#define COST_WITHOUT_PYTHON 5u // a likely one in static data
#define CALLS_MAX (UINT64_C(1) << 16)
#define COST(cost) ((cost)*CALLS_MAX) // in the graph: beside it is room for the depth of a call
#define ANY_ROOM (UINT64_C(1) << 30)  // no way costs as much

static uint32_t
cost_of_root(const struct holder_search *search, const struct holder_node *node)
{
	bool has_python = search->python->shape != NULL;

	if (node->root == HOLDER_END_MODULE && node->is_library)
		return COST_LIBRARY;
	if (node->root == HOLDER_END_MODULE || node->root == HOLDER_END_CLASS)
		return 0;
	if (node->root == HOLDER_END_FRAME)
		return kind_costs[HOLDER_FRAME];
	return kind_costs[node->kind] + (has_python && node->kind > HOLDER_STATE ? COST_OTHERS : 0);
}

static uint32_t
cost_of_edge(const struct holder_search *search, const struct holder_edge *edge)
{
	static const uint8_t costs[] = {
		[PYTHON_HOLD_PERHAPS] = COST_PERHAPS, [PYTHON_HOLD_LIKELY] = 2, [PYTHON_HOLD_SURE] = 1
	};
	const struct holder_node *to = &search->nodes[edge->to];
	uint64_t offset = edge->value - to->start;

	if (edge->is_short)
		return costs[edge->hold] + (holder_is_iterator(&search->nodes[edge->from]) ? COST_PASSING
		                            : edge->is_library                             ? COST_OF_LIBRARY
		                                                                           : COST_SHORT);
	if (to->list_head != 0 && edge->at != to->list_head)
		return costs[edge->hold] + COST_BESIDE_LIST;
	if (to->object.type != NULL || offset == 0 || edge->hold == PYTHON_HOLD_SURE)
		return costs[edge->hold];
	return costs[edge->hold] + (offset <= HOLDER_HEAD_BYTES ? COST_INSIDE : COST_FAR_INSIDE);
}

/*
 * Is it known for sure who holds the node? Then a word that may be left over is left over. Items belong to one object; of other objects
 * references are counted.
 */
static bool
is_settled(struct holder_search *search, const struct holder_node *node, uint64_t sure)
{
	if (node->object.type == NULL)
		return sure != 0;
	return sure + node->own >= python_objects_references(search->python, &node->object);
}

/* An object without references to which nothing leads is not being released: it is kept for reuse, with what once stood in it. */
static bool
is_reused(const struct holder_node *node, uint32_t leading)
{
	return node->is_released && node->is_expanded && leading == 0;
}

/* A likely word wins over a word that may be left over. */
static void
settle(struct holder_search *search)
{
	OWNED uint32_t *sure = memory_zeroed(search->node_count, sizeof(*sure));
	OWNED uint32_t *likely = memory_zeroed(search->node_count, sizeof(*likely));
	OWNED uint32_t *leading = memory_zeroed(search->node_count, sizeof(*leading));

	EACH (edge, search->edges, search->edge_count) {
		leading[edge->to] += !search->nodes[edge->from].is_released; // they are linked with each other
		sure[edge->to] += !edge->is_gone && edge->hold == PYTHON_HOLD_SURE;
		likely[edge->to] += edge->hold == PYTHON_HOLD_LIKELY && search->nodes[edge->to].object.type != NULL;
		search->nodes[edge->to].seen = 0;
	}
	EACH (edge, search->edges, search->edge_count) {
		uint64_t others = sure[edge->to] + (edge->hold == PYTHON_HOLD_PERHAPS ? likely[edge->to] : 0);

		/* Decided anew each time: a word that is not sure yet may become so, when it is known whose items they are. */
		if (edge->hold != PYTHON_HOLD_SURE)
			edge->is_gone = is_settled(search, &search->nodes[edge->to], others) ||
			                is_reused(&search->nodes[edge->from], leading[edge->from]);
		search->nodes[edge->to].seen += !edge->is_gone;
	}
}

const struct python_frame *
holder_search_frame(const struct holder_search *search, const struct holder_node *node)
{
	return node->kind == HOLDER_FRAME       ? python_objects_frame(search->python, node->start)
	       : node->root == HOLDER_END_FRAME ? python_objects_frame(search->python, node->object.addr)
	                                        : NULL;
}

/* Who calls a function has an object longer than the function, whose argument it is: of ways that cost the same, the one from the outer frame. */
static uint64_t
start_cost(const struct holder_search *search, const struct holder_node *root)
{
	const struct python_frame *frame = holder_search_frame(search, root);

	return COST(cost_of_root(search, root)) +
	       (frame != NULL && frame->depth < CALLS_MAX ? CALLS_MAX - 1 - frame->depth : 0);
}

/* Ways end at roots: none goes on above one. */
static void
make_graph(struct holder_search *search)
{
	struct graph_edge *edges = memory_zeroed(search->edge_count, sizeof(*edges));

	for (size_t i = 0; i < search->edge_count; i++) {
		const struct holder_edge *edge = &search->edges[i];
		const struct holder_node *to = &search->nodes[edge->to];
		const bool is_way = !edge->is_gone && !holder_is_root(to);

		edges[i] = (struct graph_edge){ { edge->from, edge->to },
			                            is_way ? COST(cost_of_edge(search, edge)) : GRAPH_NO_WAY };
	}
	graph_free(&search->graph);
	graph_make(search->node_count, search->edge_count, edges, &search->graph);
}

/* Ways through what was found when it was judged last. */
struct ways {
	uint64_t *costs;
	uint32_t *best;
	uint32_t *order;
	size_t count; // of the order
};

/* They start nowhere. */
static struct ways
ways_begin(const struct holder_search *search)
{
	size_t count = search->graph.node_count;
	struct ways ways = { memory_zeroed(count, sizeof(*ways.costs)), memory_zeroed(count, sizeof(*ways.best)),
		                 memory_zeroed(count, sizeof(*ways.order)), 0 };

	memset(ways.costs, 0xff, count * sizeof(*ways.costs));
	return ways;
}

static void
ways_end(struct ways *ways)
{
	free(ways->costs);
	free(ways->best);
	free(ways->order);
}

static void
find_ways(const struct holder_search *search, enum graph_way way, uint64_t cost_max, struct ways *ways)
{
	ways->count = graph_find_ways(&search->graph, way, cost_max, ways->costs, ways->best, ways->order,
	                              search->graph.node_count);
}

/* From the roots down. */
static void
find_best(struct holder_search *search)
{
	struct ways ways = ways_begin(search);

	for (size_t i = 0; i < search->node_count; i++) {
		struct holder_node *node = &search->nodes[i];

		node->cost = UINT32_MAX;
		node->best = HOLDER_NONE;
		node->way_root = (uint32_t)i;
		node->is_wanted = node->is_guess = node->is_short = false;
		if (holder_is_root(node))
			ways.costs[i] = start_cost(search, node);
	}
	find_ways(search, GRAPH_ALONG, GRAPH_NO_WAY, &ways);
	for (size_t i = 0; i < ways.count; i++) { // what comes before it in the order is known
		uint32_t number = ways.order[i];
		struct holder_node *node = &search->nodes[number];

		node->cost = (uint32_t)(ways.costs[number] / COST(1));
		node->best = ways.best[number];
		if (node->best == HOLDER_NONE)
			continue;

		const struct holder_edge *edge = &search->edges[node->best];
		const struct holder_node *from = &search->nodes[edge->from];

		node->way_root = from->way_root;
		node->is_guess = from->is_guess || edge->hold == PYTHON_HOLD_PERHAPS;
		node->is_short = from->is_short || edge->is_short;
	}
	ways_end(&ways);
}

/* Does its way end at a root that says enough, without a word that may be left over? */
static bool
is_sure(const struct holder_search *search, uint32_t sample)
{
	const struct holder_node *root = &search->nodes[search->nodes[sample].way_root];

	return holder_is_root(root) && cost_of_root(search, root) <= COST_GOOD && !search->nodes[sample].is_guess;
}

/*
 * What a new way may cost at most from each node on, and still be better for a sample below; a sample with a good way wants none, one without a
 * way, or with a guess, wants any. In the graph that is a cost, too: what is missing up to ANY_ROOM. With Python a word may turn out to be a sure
 * one later.
 */
static void
start_room(const struct holder_search *search, uint32_t sample, uint64_t *used)
{
	const struct holder_node *node = &search->nodes[sample];

	if (node->is_guess || node->cost >= ANY_ROOM)
		used[sample] = 0;
	else if (!is_sure(search, sample) || node->is_short)
		used[sample] = COST(ANY_ROOM - node->cost);
}

/* Of nodes above these samples: is there room for at least the cheapest word in the cheapest root? Theirs come first in the order. */
static struct ways
spread_room(const struct holder_search *search, const uint32_t *samples, size_t count)
{
	const bool has_python = search->python->shape != NULL;
	const uint64_t most = COST(ANY_ROOM - (has_python ? COST_WITH_PYTHON : COST_WITHOUT_PYTHON));
	struct ways ways = ways_begin(search);

	for (size_t i = 0; i < count; i++)
		start_room(search, samples[i], ways.costs);
	find_ways(search, GRAPH_AGAINST, has_python ? COST(1) : GRAPH_NO_WAY, &ways);
	while (ways.count != 0 && ways.costs[ways.order[ways.count - 1]] >= most)
		ways.count--;
	return ways;
}

static void
find_wanted(struct holder_search *search)
{
	struct ways ways = spread_room(search, search->samples, search->sample_count);

	for (size_t i = 0; i < ways.count; i++)
		search->nodes[ways.order[i]].is_wanted = true;
	ways_end(&ways);
}

bool
holder_search_is_done(const struct holder_search *search, uint32_t sample)
{
	if (is_sure(search, sample) || holder_search_is_over(search)) // or there is no time to ask
		return is_sure(search, sample);

	struct ways ways = spread_room(search, &sample, 1);
	bool is_open = ANY(number, ways.order, ways.count,
	                   !search->nodes[*number].is_expanded && !holder_is_root(&search->nodes[*number]));

	ways_end(&ways);
	return !is_open;
}

void
holder_search_judge(struct holder_search *search)
{
	if (holder_search_is_over(search)) // it takes time where much was found; what was known stays
		return;
	settle(search);
	make_graph(search);
	find_best(search);
	find_wanted(search);
}

size_t
holder_search_above(const struct holder_search *search, uint32_t sample, uint32_t *nodes, uint32_t *above, size_t max)
{
	if (holder_search_is_over(search))
		return 0;

	struct ways ways = ways_begin(search);

	ways.costs[sample] = 0;
	size_t count = graph_find_ways(&search->graph, GRAPH_AGAINST, COST(1), ways.costs, above, nodes, max);
	ways_end(&ways);
	return count;
}

bool
holder_search_is_uncollected(const struct holder_search *search, uint32_t node)
{
	const struct python_type *type = search->nodes[node].object.type;

	if (type == NULL || type->is_collected)
		return false;
	const uint32_t *first = search->graph.first[GRAPH_ALONG] + node + 1;
	OWNED uint32_t *nodes = memory_zeroed(search->node_count, sizeof(*nodes));
	OWNED uint32_t *above = memory_zeroed(search->node_count, sizeof(*above));

	if (holder_search_above(search, node, nodes, above, search->node_count) == 0)
		return false;
	above[node] = node; // it leads to itself
	return ANY(number, &search->graph.numbers[GRAPH_ALONG][first[0]], first[1] - first[0],
	           search->graph.edges[*number].cost != GRAPH_NO_WAY &&
	               above[search->graph.edges[*number].ends[1]] != GRAPH_NO_EDGE);
}

bool
holder_search_unseen(struct holder_search *search, uint32_t sample, uint32_t *node, uint64_t *counted, uint64_t *seen)
{
	OWNED uint32_t *above = memory_zeroed(search->node_count, sizeof(*above));
	OWNED uint32_t *edges = memory_zeroed(search->node_count, sizeof(*edges));
	size_t count = holder_search_above(search, sample, above, edges, search->node_count);

	for (size_t i = 0; i < count; i++) {
		const struct holder_node *at = &search->nodes[above[i]];

		if (at->object.type == NULL || !at->is_expanded)
			continue;
		*node = above[i];
		*counted = python_objects_references(search->python, &at->object);
		*seen = (uint64_t)at->seen + at->own;
		if (*counted > *seen)
			return true;
	}
	return false;
}
