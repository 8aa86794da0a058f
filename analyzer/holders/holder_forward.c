/*
 * holder_forward.c - from names forwards, where the way back is too long (see holder_search.h).
 *
 * A pass over all memory climbs one link of a chain. So a list of 10,000 nodes, or the graph of a training loop that was never cut, has no
 * way within the time. From the names that a program has, its locals and globals, each block is read once, however long the chain.
 * Only what leads to a node that the passes know becomes a part of the search.
 *
 * When full  FORWARD_MAX blocks, or a part of the time: what was found until then stays.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "base/order.h"
#include "holders/holder_search.h"

#define FORWARD_MAX 131072u
#define FORWARD_NONE UINT32_MAX
#define PART_OF_TIME 2                    // of what is left
#define UNREGARDED 64                     // blocks between two looks at the clock
#define PIECE_WORDS 512u                  // that are read at once
#define PIECE_BYTES (UINT64_C(4) << 20)   // of what is scanned, between two looks at the clock
#define NODES_KEPT (HOLDER_NODES_MAX / 4) // for passes that follow
#define DICT_KEYS 32u

/* A block, or an object, that is reached. */
struct reached {
	uint64_t start;
	uint64_t end;
	uint64_t at;     // the word that leads there
	uint64_t value;  // and what stands in it
	uint32_t parent; // where that word is; FORWARD_NONE = in a root, or this is one
	bool is_known;   // it is a node of the search, and so are those above it
};

struct forward {
	struct holder_search *search;
	uint64_t deadline_ns;
	size_t count;
	struct reached *reached;   // in their order
	struct address_map places; // of what is reached, by its start
	size_t next;               // what is reached and was not looked into yet
	size_t met_count;
	uint32_t *met;  // those that passes found, too
	size_t missing; // samples without a way, that were not met
};

/* Who holds the words that are being read. */
struct holder {
	uint32_t number; // FORWARD_NONE = a root
	struct python_object object;
	const struct python_frame *frame;
	struct python_object owner; // whose items they are
	uint64_t owner_at;
	uint64_t owner_value;
};

static bool
is_reached(const struct forward *forward, uint64_t start)
{
	return address_map_find(&forward->places, start) != ADDRESS_NONE;
}

static bool
is_over(struct forward *forward)
{
	return forward->count == FORWARD_MAX ||
	       stopped_process_time(&forward->search->look->process) > forward->deadline_ns;
}

/* The memory of the block, or of the small object of Python, that the word leads to. */
static bool
find_memory(struct holder_search *search, uint64_t word, struct address_range *memory)
{
	struct live_block block;

	if (word < PROCESS_MEMORY_PAGE || word >> 47 != 0)
		return false;
	if (live_blocks_find(search->look->blocks, word, &block)) {
		*memory = (struct address_range){ block.addr, block.addr + (block.bytes != 0 ? block.bytes : 1) };
		return true;
	}
	if (search->python->shape == NULL)
		return false;

	const struct root_range *range = root_ranges_at(&search->look->ranges, word);

	return range != NULL && range->kind == ROOT_MAPPING &&
	       python_objects_small(search->python, word, memory) == PYTHON_SMALL_LIVE;
}

static enum python_hold
hold_of(struct holder_search *search, const struct holder *from, uint64_t at)
{
	if (from->frame != NULL)
		return python_objects_frame_hold(search->python, from->frame, at);
	if (from->object.type != NULL)
		return python_objects_hold(search->python, &from->object, at);
	if (from->owner.type != NULL)
		return python_objects_buffer_holds(search->python, &from->owner, from->owner_at, from->owner_value, at)
		           ? PYTHON_HOLD_SURE
		           : PYTHON_HOLD_NOT;
	return PYTHON_HOLD_LIKELY;
}

/* Words that may be left over are not followed: they lead everywhere. */
static bool
is_held(struct holder_search *search, const struct holder *from, uint64_t at, uint64_t word,
        const struct address_range *memory)
{
	bool is_buffer = from->object.type != NULL && python_objects_is_buffer(search->python, &from->object, at);
	struct python_object to;

	if (!is_buffer && python_objects_in(search->python, memory->start, memory->end - memory->start, &to)) {
		if ((word & ~UINT64_C(7)) + search->python->shift != to.addr ||
		    (from->frame == NULL && from->object.type == NULL && from->owner.type == NULL &&
		     search->python->shape != NULL))
			return false;
	} else if (word - memory->start > HOLDER_HEAD_BYTES) {
		return false;
	}
	return hold_of(search, from, at) >= PYTHON_HOLD_LIKELY;
}

/* The block is reached, by a word of `from`. */
static uint32_t
reach(struct forward *forward, const struct holder *from, const struct address_range *memory, uint64_t at,
      uint64_t value)
{
	struct reached *added = &forward->reached[forward->count];

	*added = (struct reached){ memory->start, memory->end, at, value, from->number, false };
	address_map_put(&forward->places, memory->start, (uint32_t)forward->count);
	return (uint32_t)forward->count++;
}

static void
see_word(struct forward *forward, const struct holder *from, uint64_t at, uint64_t word)
{
	struct address_range memory;

	if (forward->count == FORWARD_MAX || !find_memory(forward->search, word, &memory) ||
	    is_reached(forward, memory.start) || !is_held(forward->search, from, at, word, &memory))
		return;

	uint32_t number = reach(forward, from, &memory, at, word);

	const struct holder_node *node = holder_search_wanted(forward->search, memory.start);

	if (node == NULL)
		return;
	forward->met[forward->met_count++] = number;
	forward->missing -= node->is_sample && node->cost == UINT32_MAX;
}

struct scan {
	struct forward *forward;
	const struct holder *from;
	size_t seen;
};

static bool
scan_word(void *context, uint64_t at, uint64_t word)
{
	struct scan *scan = context;

	see_word(scan->forward, scan->from, at, word);
	return ++scan->seen % PIECE_WORDS != 0 || !is_over(scan->forward);
}

/* What is large is scanned: of it much may not be there, and asking for that would give the program pages of zeros. */
static void
see_words(struct forward *forward, const struct holder *from, uint64_t start, uint64_t end)
{
	struct process_memory *memory = &forward->search->look->memory;
	struct scan scan = { forward, from, 0 };
	uint64_t words[PIECE_WORDS];

	start = (start + 7) & ~UINT64_C(7);
	for (; end > start && end - start > sizeof(words) && !is_over(forward); start += PIECE_BYTES) {
		uint64_t until = end - start > PIECE_BYTES ? start + PIECE_BYTES : end;

		(void)process_memory_scan(memory, start, until, memory->pointers, scan_word, &scan);
	}
	if (start + 8 > end || is_over(forward))
		return;
	(void)process_memory_read(memory, start, words, (end - start) / 8 * 8);
	for (uint64_t i = 0; i < (end - start) / 8; i++)
		see_word(forward, from, start + i * 8, words[i]);
}

static void
look_into(struct forward *forward, uint32_t number)
{
	struct holder_search *search = forward->search;
	const struct reached *reached = &forward->reached[number];
	const struct reached *parent = reached->parent != FORWARD_NONE ? &forward->reached[reached->parent] : NULL;
	struct holder holder = { .number = number };
	struct python_object owner;

	if (holder_skips_has(&search->skips, reached->start, reached->end))
		return;
	if (parent != NULL && python_objects_in(search->python, parent->start, parent->end - parent->start, &owner) &&
	    python_objects_is_buffer(search->python, &owner, reached->at)) {
		holder.owner = owner;
		holder.owner_at = reached->at;
		holder.owner_value = owner.type->kind == PYTHON_DEQUE ? reached->start : reached->value;
	} else if (python_objects_in(search->python, reached->start, reached->end - reached->start, &holder.object) &&
	           (holder.object.type->kind == PYTHON_PLAIN || holder_search_ends_at(search, &holder.object)))
		return;
	see_words(forward, &holder, reached->start, reached->end);
}

static void
follow(struct forward *forward)
{
	for (; forward->next < forward->count && (forward->next % UNREGARDED != 0 || !is_over(forward)); forward->next++)
		look_into(forward, (uint32_t)forward->next);
}

/* Is there room for all that lies above this block, up to what is known or a root? */
static bool
has_room(const struct forward *forward, uint32_t number)
{
	size_t wanted = forward->search->node_count + 1;

	for (; number != FORWARD_NONE && !forward->reached[number].is_known && wanted <= HOLDER_NODES_MAX - NODES_KEPT;
	     number = forward->reached[number].parent)
		wanted++;
	return wanted <= HOLDER_NODES_MAX - NODES_KEPT;
}

/* What lies on the way becomes a part of the search, from the block up to what is known. */
static void
take_way(struct forward *forward, uint32_t number)
{
	struct holder_search *search = forward->search;

	while (!forward->reached[number].is_known && forward->reached[number].at != 0) {
		struct reached *reached = &forward->reached[number];
		uint32_t to = holder_search_node_at(search, reached->start);
		uint32_t from = holder_search_node_at(search, reached->at);

		reached->is_known = true;
		if (to == HOLDER_NONE || from == HOLDER_NONE)
			return;
		holder_search_lead(search, from, to, reached->at, reached->value);
		if (reached->parent == FORWARD_NONE)
			return;
		number = reached->parent;
	}
}

/* The outermost first: who calls a method has its object longer than the method, whose `self` it is. */
ORDER_OF_POINTERS(compare_depths, struct python_frame,
                  order_numbers(b->depth, a->depth) ?: order_numbers(a->start, b->start))

static void
start_at_locals(struct forward *forward, const struct python_frame **frames, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct holder frame = { .number = FORWARD_NONE, .frame = frames[i] };

		see_words(forward, &frame, frames[i]->start, frames[i]->end);
	}
}

/* Of modules that run. */
static void
start_at_globals(struct forward *forward, const struct python_frame **frames, size_t count)
{
	struct python_objects *python = forward->search->python;

	for (size_t i = 0; i < count; i++) {
		uint64_t names = python_objects_at(python, frames[i]->start + python->shape->frame_names);
		struct holder dict = { .number = FORWARD_NONE };
		struct address_range memory;

		if (names == 0 || !find_memory(forward->search, names, &memory) || is_reached(forward, memory.start) ||
		    forward->count == FORWARD_MAX ||
		    !python_objects_in(python, memory.start, memory.end - memory.start, &dict.object) ||
		    !holder_search_ends_at(forward->search,
		                           &dict.object)) // names for exec() are no module's: no way ends there
			continue;
		dict.number = reach(forward, &dict, &memory, 0, 0);
		see_words(forward, &dict, names + DICT_KEYS, memory.end);
	}
	for (size_t known = forward->count; forward->next < known; forward->next++)
		look_into(forward, (uint32_t)forward->next); // its storage, before a local variable has the same object
}

/* From the names that a person knows best. */
static void
start_at_names(struct forward *forward)
{
	struct python_objects *python = forward->search->python;
	OWNED const struct python_frame **frames = memory_zeroed(python->frame_count, sizeof(*frames));

	for (size_t i = 0; i < python->frame_count; i++)
		frames[i] = &python->frames[i];
	SORT(frames, python->frame_count, compare_depths);
	start_at_globals(forward, frames, python->frame_count);
	start_at_locals(forward, frames, python->frame_count);
}

/* From its end: there are the variables of the functions that were called first. */
static void
start_at_stack(struct forward *forward, const struct root_range *stack)
{
	const struct holder root = { .number = FORWARD_NONE };

	for (uint64_t at = stack->end & ~UINT64_C(7);
	     at >= stack->start + 8 && (at % PROCESS_MEMORY_PAGE != 0 || !is_over(forward));) {
		at -= 8;
		see_word(forward, &root, at, process_memory_word(&forward->search->look->memory, at));
	}
}

/* Of a program without Python: static data first, as variables have names there. */
static void
start_at_roots(struct forward *forward)
{
	const struct root_ranges *ranges = &forward->search->look->ranges;
	const struct holder root = { .number = FORWARD_NONE };

	for (size_t i = 0; i < ranges->count; i++) {
		if (ranges->at[i].kind == ROOT_STATIC)
			see_words(forward, &root, ranges->at[i].start, ranges->at[i].end);
	}
	for (size_t i = 0; i < ranges->count; i++) {
		if (ranges->at[i].kind == ROOT_STACK)
			start_at_stack(forward, &ranges->at[i]);
		else if (ranges->at[i].kind != ROOT_STATIC && ranges->at[i].kind != ROOT_HEAP)
			see_words(forward, &root, ranges->at[i].start, ranges->at[i].end);
	}
}

void
holder_search_go_forward(struct holder_search *search)
{
	uint64_t now_ns = stopped_process_time(&search->look->process);
	struct forward forward = { .search = search };

	if (now_ns > search->deadline_ns)
		return;
	for (size_t i = 0; i < search->sample_count; i++)
		forward.missing += search->nodes[search->samples[i]].cost == UINT32_MAX;
	forward.deadline_ns = now_ns + (search->deadline_ns - now_ns) / PART_OF_TIME;
	forward.reached = memory_zeroed(FORWARD_MAX, sizeof(*forward.reached));
	address_map_make(&forward.places, FORWARD_MAX);
	forward.met = memory_zeroed(FORWARD_MAX, sizeof(*forward.met));
	if (search->python->shape != NULL)
		start_at_names(&forward);
	else
		start_at_roots(&forward);
	follow(&forward);
	for (size_t i = forward.met_count; i-- > 0 && !holder_search_is_late(search);) { // the farthest first
		if (has_room(&forward, forward.met[i]))
			take_way(&forward, forward.met[i]);
	}
	free(forward.reached);
	address_map_free(&forward.places);
	free(forward.met);
}
