/*
 * holder_judge.c - which of the words that were found lead on, and which way is the best (see holder_search.h)?
 *
 * A word that may be left over counts only while an object has references that no other word accounts for.
 *
 * Invariant, tested by number in tests/preload/test_holders.py:
 *   H2  of two ways to a root the one with the lower cost is taken: names before addresses.
 */

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
	if (to->is_far && search->nodes[edge->from].is_far && edge->hold != PYTHON_HOLD_PERHAPS)
		return 0;
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
		return sure != 0 && (!node->is_chained || node->owner != HOLDER_NONE);
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
	}
	for (size_t i = 0; i < search->edge_count; i++) {
		struct holder_edge *edge = &search->edges[i];
		uint64_t others = sure[edge->to] + (edge->hold == PYTHON_HOLD_PERHAPS ? likely[edge->to] : 0);

		/* Decided anew each time: a word that is not sure yet may become so, when it is known whose items they are. */
		if (edge->hold != PYTHON_HOLD_SURE)
			edge->is_gone = is_settled(search, &search->nodes[edge->to], others) ||
			                is_reused(&search->nodes[edge->from], leading[edge->from]);
	}
}

const struct python_frame *
holder_search_frame(const struct holder_search *search, const struct holder_node *node)
{
	return node->kind == HOLDER_FRAME       ? python_objects_frame(search->python, node->start)
	       : node->root == HOLDER_END_FRAME ? python_objects_frame(search->python, node->object.addr)
	                                        : NULL;
}

/* Who calls a function has an object longer than the function, whose argument it is. */
static bool
is_caller(const struct holder_search *search, uint32_t root, uint32_t than)
{
	const struct python_frame *frame = holder_search_frame(search, &search->nodes[root]);
	const struct python_frame *other = frame != NULL ? holder_search_frame(search, &search->nodes[than]) : NULL;

	return other != NULL && frame->thread == other->thread && frame->depth > other->depth;
}

/* From the roots down, until nothing becomes cheaper: ways are short. */
static void
find_best(struct holder_search *search)
{
	bool has_changed = true;

	for (size_t i = 0; i < search->node_count; i++) {
		struct holder_node *node = &search->nodes[i];

		node->best = HOLDER_NONE;
		node->way_root = (uint32_t)i;
		node->cost = holder_is_root(node) ? cost_of_root(search, node) : UINT32_MAX;
	}
	while (has_changed && !holder_search_is_over(search)) {
		has_changed = false;
		for (uint32_t i = (uint32_t)search->edge_count; i-- > 0;) {
			const struct holder_edge *edge = &search->edges[i];
			const struct holder_node *from = &search->nodes[edge->from];
			struct holder_node *to = &search->nodes[edge->to];
			uint32_t cost;

			if (edge->is_gone || from->cost == UINT32_MAX || holder_is_root(to))
				continue;
			cost = from->cost + cost_of_edge(search, edge);
			if (cost > to->cost || (cost == to->cost && !is_caller(search, from->way_root, to->way_root)))
				continue;
			to->cost = cost;
			to->best = i;
			to->way_root = from->way_root;
			has_changed = true;
		}
	}
}

const struct holder_edge *
holder_search_best(const struct holder_search *search, uint32_t node)
{
	return search->nodes[node].best != HOLDER_NONE ? &search->edges[search->nodes[node].best] : NULL;
}

bool
holder_search_is_guess(const struct holder_search *search, uint32_t sample)
{
	const struct holder_edge *edge = holder_search_best(search, sample);

	while (edge != NULL && edge->hold != PYTHON_HOLD_PERHAPS)
		edge = holder_search_best(search, edge->from);
	return edge != NULL;
}

/* Does its way end at a root that says enough, without a word that may be left over? */
static bool
is_sure(const struct holder_search *search, uint32_t sample)
{
	const struct holder_node *root = &search->nodes[search->nodes[sample].way_root];

	return holder_is_root(root) && cost_of_root(search, root) <= COST_GOOD && !holder_search_is_guess(search, sample);
}

/* Does it end with a call, or an iterator? */
static bool
is_short(const struct holder_search *search, uint32_t sample)
{
	const struct holder_edge *edge = holder_search_best(search, sample);

	while (edge != NULL && !edge->is_short)
		edge = holder_search_best(search, edge->from);
	return edge != NULL;
}

/*
 * What a new way may cost at most from each node on, and still be better for a sample below: 0 = no way is wanted there. A sample with a
 * good way wants none. One without a way, or with a guess, wants any.
 */
static void
start_room(const struct holder_search *search, uint32_t sample, uint32_t *room)
{
	if (holder_search_is_guess(search, sample))
		room[sample] = UINT32_MAX;
	else if ((!is_sure(search, sample) || is_short(search, sample)) && search->nodes[sample].cost > room[sample])
		room[sample] = search->nodes[sample].cost;
}

/* With Python a word may turn out to be a sure one later. */
static void
spread_room(const struct holder_search *search, uint32_t *room)
{
	bool has_python = search->python->shape != NULL;
	bool has_changed = true;

	while (has_changed && !holder_search_is_over(search)) {
		has_changed = false;
		EACH (edge, search->edges, search->edge_count) {
			uint32_t cost = cost_of_edge(search, edge);
			uint32_t left = room[edge->to];

			if (has_python && cost > 1)
				cost = 1;
			if (left != UINT32_MAX)
				left = left > cost ? left - cost : 0;
			if (edge->is_gone || left <= room[edge->from])
				continue;
			room[edge->from] = left;
			has_changed = true;
		}
	}
}

/* Would at least the cheapest word in the cheapest root fit? */
static bool
is_room_enough(const struct holder_search *search, uint32_t room)
{
	return room > (search->python->shape != NULL ? COST_WITH_PYTHON : COST_WITHOUT_PYTHON);
}

static void
find_wanted(struct holder_search *search)
{
	OWNED uint32_t *room = memory_zeroed(search->node_count, sizeof(*room));

	for (size_t i = 0; i < search->sample_count; i++)
		start_room(search, search->samples[i], room);
	spread_room(search, room);
	for (size_t i = 0; i < search->node_count; i++)
		search->nodes[i].is_wanted = is_room_enough(search, room[i]);
}

bool
holder_search_is_done(const struct holder_search *search, uint32_t sample)
{
	OWNED uint32_t *room = NULL;
	if (is_sure(search, sample))
		return true;
	room = memory_zeroed(search->node_count, sizeof(*room));
	start_room(search, sample, room);
	spread_room(search, room);
	bool is_done = !holder_search_is_over(search); // else there was no time to ask
	for (size_t i = 0; i < search->node_count; i++) {
		const struct holder_node *node = &search->nodes[i];

		is_done = is_done && (node->is_expanded || holder_is_root(node) || !is_room_enough(search, room[i]));
	}
	return is_done;
}

void
holder_search_judge(struct holder_search *search)
{
	settle(search);
	find_best(search);
	find_wanted(search);
}

/* Marks the sample and all nodes that lead to it. */
static void
mark_above(const struct holder_search *search, uint32_t sample, bool *is_above)
{
	bool has_changed = true;

	is_above[sample] = true;
	while (has_changed && !holder_search_is_over(search)) {
		has_changed = false;
		EACH (edge, search->edges, search->edge_count) {
			if (edge->is_gone || !is_above[edge->to] || is_above[edge->from])
				continue;
			is_above[edge->from] = true;
			has_changed = true;
		}
	}
}

bool
holder_search_unseen(struct holder_search *search, uint32_t sample, uint32_t *node, uint64_t *counted, uint64_t *seen)
{
	OWNED bool *is_above = memory_zeroed(search->node_count, sizeof(*is_above));
	OWNED uint32_t *found = memory_zeroed(search->node_count, sizeof(*found));
	bool is_unseen = false;

	mark_above(search, sample, is_above);
	for (size_t i = 0; i < search->edge_count; i++)
		found[search->edges[i].to] += search->edges[i].is_gone ? 0 : 1;
	for (uint32_t i = 0; i < search->node_count && !is_unseen; i++) {
		const struct holder_node *at = &search->nodes[i];

		if (!is_above[i] || at->object.type == NULL || !at->is_expanded)
			continue;
		*node = i;
		*counted = python_objects_references(search->python, &at->object);
		*seen = found[i] + at->own;
		is_unseen = *counted > *seen;
	}
	return is_unseen;
}
