/*
 * holder_search.c - passes over memory, from blocks to roots (see holder_search.h).
 *
 * Invariants, tested by number in tests/preload/test_holders.py and tests/unit/analyzer/holders/test_python_objects.c:
 *   H1  an edge is a word that stood in live memory and led into the node that it leads to.
 *   H3  a place of a list, or of a dictionary, that is not in use holds nothing.
 *   H4  without room or time what was found stays, and it is said.
 */
#include "holders/holder_search.h"

#include <stdlib.h>
#include <string.h>

#include "base/amount.h"
#include "base/clock.h"
#include "base/items.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/sorted.h"
#include "base/text_start.h"

#define TARGETS_MAX 16384u // of a pass
#define DEQUE_FIRST 24u    // in its object
#define DEQUE_BLOCKS_MAX HOLDER_NODES_MAX
#define NEAR_PASSES 3u                    // short ways are found in so many
#define WORDS_UNREGARDED 512              // between two looks at the clock
#define WORDS_PART 16                     // of the time is for the words
#define FORWARD_PART 2                    // of what is left is for the way forwards
#define NODES_KEPT (HOLDER_NODES_MAX / 5) // for passes that follow it

bool
holder_is_root(const struct holder_node *node)
{
	return node->root != HOLDER_END_NONE || node->kind >= HOLDER_FRAME;
}

bool
holder_is_iterator(const struct holder_node *node)
{
	return node->object.type != NULL && text_ends(node->object.type->name, "iterator");
}

bool
holder_search_is_over(const struct holder_search *search)
{
	return process_memory_is_late(&search->look->memory);
}

const struct torch_graph *
holder_search_graph(struct holder_search *search, uint64_t start)
{
	size_t i = 0;

	while (i < search->graph_count && search->graphs[i].start != start)
		i++;
	if (i == HOLDER_GRAPHS)
		return NULL;
	if (i == search->graph_count) {
		torch_graph_count(search->look, search->modules, start, &search->graphs[i]);
		search->graph_count++;
	}
	return &search->graphs[i];
}

/* ---- nodes ---- */

/* Does a Python object end a way? */
static enum holder_end
end_of(struct holder_search *search, const struct python_object *object, bool *is_library)
{
	const struct python_objects *python = search->python;
	const enum python_type_kind kind = object->type != NULL ? object->type->kind : PYTHON_OTHER;
	struct python_type *type = kind == PYTHON_TYPE ? python_objects_type(search->python, object->addr) : NULL;
	struct python_namespace module;

	if (kind == PYTHON_TYPE && (type == NULL || python_objects_is_named(search->python, type)))
		return HOLDER_END_CLASS;
	if (kind == PYTHON_DICT && python_objects_module(search->python, object, &module)) {
		*is_library = module.is_library;
		return HOLDER_END_MODULE;
	}
	if (kind == PYTHON_FRAME && ANY(frame, python->frames, python->frame_count, frame->object == object->addr))
		return HOLDER_END_FRAME;
	return HOLDER_END_NONE;
}

static struct holder_node
new_node(enum holder_kind kind, uint64_t start, uint64_t end, uint32_t thread)
{
	return (struct holder_node){ .start = start,
		                         .end = end,
		                         .kind = (uint8_t)kind,
		                         .thread = thread,
		                         .cost = UINT32_MAX,
		                         .reached = HOLDER_NONE,
		                         .best = HOLDER_NONE,
		                         .owner = HOLDER_NONE,
		                         .first_edge = HOLDER_NONE };
}

static struct holder_node
node_of_block(const struct live_block *block)
{
	struct holder_node node = new_node(HOLDER_BLOCK, block->addr, block->addr + (block->bytes != 0 ? block->bytes : 1),
	                                   0);

	node.site = block->site;
	return node;
}

static void
read_object(struct holder_search *search, struct holder_node *node)
{
	bool is_library = false;

	if (node->kind != HOLDER_BLOCK && node->kind != HOLDER_SMALL)
		return;
	node->is_released = !python_objects_in(search->python, node->start, node->end - node->start, &node->object) &&
	                    python_objects_released(search->python, node->start, node->end - node->start) != NULL;
	node->root = (uint8_t)end_of(search, &node->object, &is_library);
	node->is_library = is_library;
}

static uint32_t node_at(struct holder_search *search, uint64_t at);
static void push_edge(struct holder_search *search, const struct holder_edge *edge);

/* A list is a long chain, and what leads into its middle, as iterators do, does not hold it: its head leads to each node. */
static void
add_to_list(struct holder_search *search, uint32_t number)
{
	struct holder_node *node = &search->nodes[number];

	if (search->python->shape != NULL || node->kind != HOLDER_BLOCK || node->list_head != 0)
		return; // objects of Python are linked by its collector

	const struct live_block block = { .addr = node->start, .bytes = node->end - node->start, .site = node->site };
	uint64_t head = node->list_head = holder_lists_head(&search->lists, &block);
	uint32_t from = head != 0 ? node_at(search, head) : HOLDER_NONE;

	if (from != HOLDER_NONE && from != number)
		push_edge(search, &(struct holder_edge){ from, number, head, node->start, .hold = PYTHON_HOLD_LIKELY });
}

/* A new one. HOLDER_NONE: there is no room. */
static uint32_t
put_node(struct holder_search *search, const struct holder_node *node)
{
	uint32_t number = (uint32_t)search->node_count;

	if (number == HOLDER_NODES_MAX) {
		search->is_full = true;
		return HOLDER_NONE;
	}
	address_map_put(&search->places, node->start, number);
	search->nodes[search->node_count++] = *node;
	if (!node->is_idle)
		add_to_list(search, number);
	return number;
}

static uint32_t
find_or_add(struct holder_search *search, struct holder_node *node)
{
	uint32_t known = address_map_find(&search->places, node->start);

	if (known != HOLDER_NONE)
		return known;
	read_object(search, node);
	return put_node(search, node);
}

bool
holder_search_ask(struct holder_search *search, const struct live_block *block)
{
	struct holder_node node = node_of_block(block);
	uint32_t number = find_or_add(search, &node);

	if (number != HOLDER_NONE)
		*MEMORY_NEXT(search->samples, search->sample_count) = number;
	return number != HOLDER_NONE;
}

/* What the way forwards has found leads on to what was asked for. */
static void
wake(struct holder_search *search, uint32_t number)
{
	for (; search->nodes[number].is_idle; number = search->edges[search->nodes[number].reached].from) {
		search->nodes[number].is_idle = false;
		add_to_list(search, number);
	}
}

static void
push_edge(struct holder_search *search, const struct holder_edge *edge)
{
	struct holder_edge *added = &search->edges[search->edge_count];
	struct holder_node *from = &search->nodes[edge->from];

	if (search->edge_count == HOLDER_EDGES_MAX) {
		search->is_full = true;
		return;
	}
	*added = *edge;
	added->next = from->first_edge;
	from->first_edge = (uint32_t)search->edge_count++;
	if (!search->nodes[edge->to].is_idle)
		wake(search, edge->from);
}

/* The object whose items stand in the block. NULL: there is none, or it has turned out to be no object. */
static const struct python_object *
owner_of(const struct holder_search *search, const struct holder_node *buffer)
{
	const struct python_object *owner = buffer->owner != HOLDER_NONE ? &search->nodes[buffer->owner].object : NULL;

	return owner != NULL && owner->type != NULL ? owner : NULL;
}

static uint64_t
word_of_owner(struct holder_search *search, const struct holder_node *buffer)
{
	if (owner_of(search, buffer)->type->kind == PYTHON_DEQUE)
		return buffer->start;
	return process_memory_word(&search->look->memory, buffer->owner_at);
}

/* It is known now whose items stand in the block: places that are not in use hold nothing, the others do. */
static void
judge_items(struct holder_search *search, uint32_t block)
{
	const struct holder_node *buffer = &search->nodes[block];
	const struct python_object *owner = owner_of(search, buffer);
	uint64_t value = word_of_owner(search, buffer);

	for (uint32_t i = buffer->first_edge; i != HOLDER_NONE; i = search->edges[i].next) {
		struct holder_edge *edge = &search->edges[i];

		edge->hold = PYTHON_HOLD_SURE;
		edge->is_gone = !python_objects_buffer_holds(search->python, owner, buffer->owner_at, value, edge->at);
	}
}

/* A block of a deque is its own. Other blocks that are linked to them may be free, with old contents. */
static void
own_block(struct holder_search *search, uint32_t deque, uint64_t block)
{
	const uint64_t at = search->nodes[deque].object.addr + DEQUE_FIRST;
	uint32_t number = address_map_find(&search->places, block);

	if (number == HOLDER_NONE || search->nodes[number].object.type != NULL)
		return;
	if (owner_of(search, &search->nodes[number]) ==
	    NULL) // from it, not from block to block: a long way would cost much
		push_edge(search, &(struct holder_edge){ deque, number, at, block, .hold = PYTHON_HOLD_SURE });
	search->nodes[number].owner = deque;
	search->nodes[number].owner_at = at;
	judge_items(search, number);
}

static void
own_blocks(struct holder_search *search, uint32_t deque)
{
	uint64_t block = 0;

	for (size_t i = 0;
	     i < DEQUE_BLOCKS_MAX && python_objects_next_block(search->python, &search->nodes[deque].object, &block); i++)
		own_block(search, deque, block);
}

/* The block, or the small object of Python, in which this stands. False: it stands in neither. */
static bool
find_held(struct holder_search *search, uint64_t at, struct holder_node *node)
{
	struct live_block block;
	struct address_range small;

	if (live_blocks_find(search->look->blocks, at, &block)) {
		*node = node_of_block(&block);
		return true;
	}
	if (search->python->shape == NULL)
		return false;

	const struct root_range *range = root_ranges_at(&search->look->ranges, at);

	/* The kernel joins mappings: one of Python may follow a thread's memory. */
	if (range == NULL || (range->kind != ROOT_MAPPING && range->kind != ROOT_THREAD_LOCAL) ||
	    python_objects_small(search->python, at, &small) != PYTHON_SMALL_LIVE)
		return false;
	*node = new_node(HOLDER_SMALL, small.start, small.end, 0);
	return true;
}

/* In memory that no block has. False: it is nobody's. */
static bool
find_root(struct holder_search *search, uint64_t at, struct holder_node *node)
{
	static const enum holder_kind kinds[] = { [ROOT_STATIC] = HOLDER_STATIC,
		                                      [ROOT_STACK] = HOLDER_STACK,
		                                      [ROOT_THREAD_LOCAL] = HOLDER_THREAD_LOCAL,
		                                      [ROOT_MAPPING] = HOLDER_MAPPING };
	const struct root_range *range = root_ranges_at(&search->look->ranges, at);
	struct address_range small;

	if (range == NULL || range->kind == ROOT_HEAP)
		return false;
	*node = new_node(kinds[range->kind], at, at + 8, range->thread);
	if (range->kind != ROOT_MAPPING && range->kind != ROOT_THREAD_LOCAL)
		return true;
	/* Zeroed data of a program or a library is a mapping without a name, behind the mapping of its file. */
	if (process_modules_at(search->modules, at) != NULL)
		node->kind = HOLDER_STATIC;
	return python_objects_small(search->python, at, &small) != PYTHON_SMALL_FREE;
}

/* Without what is known of an object. False: it stands in nothing that is alive. */
static bool
find_node(struct holder_search *search, uint64_t at, struct holder_node *node)
{
	const struct thread_area *area = thread_areas_at(search->areas, at);
	const struct python_frame *frame = python_objects_frame(search->python, at);

	if (at / MACHINE_REGISTERS < search->look->process.count) { // no address is so low
		*node = new_node(HOLDER_REGISTER, at, 0, (uint32_t)(at / MACHINE_REGISTERS));
		return true;
	}
	if (area != NULL) { // also in a block: the loader asks for one when a library comes later
		*node = new_node(HOLDER_THREAD_LOCAL, at, at + 8, area->thread);
		return strstr(area->module->path, "/libkmemshim.so") ==
		       NULL; // what the recorder notes of a block does not hold it
	}
	if (python_objects_is_state(search->python, at)) {
		*node = new_node(HOLDER_STATE, at, at + 8, 0);
		return true;
	}
	if (find_held(search, at, node) &&
	    (frame == NULL || (node->kind == HOLDER_BLOCK && search->python->shape->frame_object == 0)))
		return true;
	if (frame != NULL) { // of a coroutine that runs it lies in its object
		*node = new_node(HOLDER_FRAME, frame->start, frame->end, frame->thread);
		return true;
	}
	return find_root(search, at, node);
}

/* The node in which this word stands; HOLDER_NONE: in nothing that is alive. */
static uint32_t
node_at(struct holder_search *search, uint64_t at)
{
	struct holder_node node;

	return find_node(search, at, &node) ? find_or_add(search, &node) : HOLDER_NONE;
}

/* ---- edges ---- */

/* Is a variable of a library in use? Those of the interpreter also keep addresses of objects that it has released. */
static bool
is_variable_in_use(struct holder_search *search, const struct holder_node *from)
{
	return from->kind == HOLDER_STATIC && !python_objects_is_own(search->python, from->start);
}

/* Objects that are kept for reuse hang on the interpreter's state. */
static bool
is_of_interpreter(struct holder_search *search, const struct holder_node *from)
{
	return (from->kind == HOLDER_STATIC && python_objects_is_own(search->python, from->start)) ||
	       search->python->interpreter - from->start < from->end - from->start;
}

/* Of a word that is in no object of Python, or in a block of which that is not known. */
static enum python_hold
hold_of_word(struct holder_search *search, const struct holder_node *from, const struct holder_node *to, uint64_t at)
{
	/* What is kept for reuse; the words also stay when a list or a dictionary is used again. Those of the program are no interpreter's. */
	if ((to->is_released ||
	     (to->object.type != NULL && (to->object.type->kind == PYTHON_LIST || to->object.type->kind == PYTHON_DICT))) &&
	    is_of_interpreter(search, from))
		return PYTHON_HOLD_NOT;
	if (from->kind == HOLDER_FRAME)
		return python_objects_frame_hold(search->python, python_objects_frame(search->python, at), at);
	if (to->object.type == NULL || is_variable_in_use(search, from) || from->kind == HOLDER_STATE)
		return PYTHON_HOLD_LIKELY;
	return PYTHON_HOLD_PERHAPS;
}

/*
 * By chance, hundreds of words lead into the middle of a large block: they are older than the block. In a program that imports PyTorch
 * such words lead on to most of its blocks. So they are followed only if nothing else leads to a block.
 */
static bool
is_far_inside(const struct holder_node *to, uint64_t value)
{
	return to->object.type == NULL && value - to->start > HOLDER_HEAD_BYTES;
}

/* Does a word that leads there keep the node alive? */
static enum python_hold
hold_of(struct holder_search *search, const struct holder_node *from, struct holder_node *to, uint64_t at,
        uint64_t value)
{
	bool is_buffer = from->object.type != NULL && python_objects_is_buffer(search->python, &from->object, at);

	if (is_buffer && to->root == HOLDER_END_NONE) { // whatever it looks like: items are there
		to->object = (struct python_object){ 0, NULL };
		return PYTHON_HOLD_SURE;
	}
	if (to->object.type != NULL) {
		if ((value & ~UINT64_C(7)) + search->python->shift != to->object.addr)
			return PYTHON_HOLD_NOT;
	} else if (value != to->start && value - to->start >= to->end - to->start - 8) {
		return PYTHON_HOLD_NOT; // an end, or what the allocator keeps in front of the next block
	}
	if (from->object.type != NULL)
		return python_objects_hold(search->python, &from->object, at);

	const struct python_object *owner = owner_of(search, from);

	if (owner != NULL)
		return python_objects_buffer_holds(search->python, owner, from->owner_at, word_of_owner(search, from), at)
		           ? PYTHON_HOLD_SURE
		           : PYTHON_HOLD_NOT;
	return hold_of_word(search, from, to, at);
}

static void
set_owner(struct holder_search *search, uint32_t owner, uint32_t buffer, uint64_t at)
{
	search->nodes[buffer].owner = owner;
	search->nodes[buffer].owner_at = at;
	if (search->nodes[owner].object.type->kind == PYTHON_DEQUE)
		own_blocks(search, owner);
	else
		judge_items(search, buffer);
}

static void
add_edge(struct holder_search *search, const struct holder_edge *edge)
{
	const struct holder_node *from = &search->nodes[edge->from];
	const struct python_object *owner = owner_of(search, from);
	uint64_t block = from->start;

	if (edge->from == edge->to) {
		search->nodes[edge->to].own++;
		return;
	}
	push_edge(search, edge);
	if (search->nodes[edge->to].object.type != NULL || owner_of(search, &search->nodes[edge->to]) != NULL)
		return;
	if (from->object.type != NULL && python_objects_is_buffer(search->python, &from->object, edge->at))
		set_owner(search, edge->from, edge->to, edge->at);
	else if (owner != NULL && owner->type->kind == PYTHON_DEQUE &&
	         python_objects_next_block(search->python, owner, &block) && block == edge->value)
		own_block(search, from->owner, block);
}

/*
 * The place that judges: does this word keep alive what it leads to? False: it does not, or that is not believed yet.
 */
static bool
judge_word(struct holder_search *search, const struct holder_node *from, struct holder_node *to,
           struct holder_edge *edge)
{
	if (search->stage < HOLDER_STAGE_INSIDE && is_far_inside(to, edge->value))
		return false;

	enum python_hold hold = hold_of(search, from, to, edge->at, edge->value);

	if (hold < (search->stage == HOLDER_STAGE_FORWARD ? PYTHON_HOLD_LIKELY : PYTHON_HOLD_PERHAPS))
		return false;

	const struct python_frame *frame = holder_search_frame(search, from);

	edge->hold = (uint8_t)hold;
	edge->is_library = frame != NULL && python_objects_is_of_library(search->python, frame);
	edge->is_short = edge->is_library || holder_is_iterator(from) ||
	                 (frame != NULL && python_objects_is_argument(search->python, frame, edge->at));
	return true;
}

/* Is there room, and time? */
static bool
may_go_on(const struct holder_search *search)
{
	return !search->is_full &&
	       (search->stage != HOLDER_STAGE_FORWARD || search->node_count < HOLDER_NODES_MAX - NODES_KEPT) &&
	       !process_memory_is_late(&search->look->memory);
}

/* The same word once more: counted twice it would account for two references. */
static bool
is_known_edge(const struct holder_search *search, uint32_t from, uint32_t to, uint64_t at)
{
	uint32_t number = search->nodes[to].is_again ? search->nodes[from].first_edge : HOLDER_NONE;

	while (number != HOLDER_NONE && (search->edges[number].to != to || search->edges[number].at != at))
		number = search->edges[number].next;
	return number != HOLDER_NONE;
}

/* What a word forwards leads to comes to the frontier. */
static void
reach(struct holder_search *search, uint32_t to, struct holder_node *found, struct holder_edge *edge)
{
	const struct holder_node *node = to != HOLDER_NONE ? &search->nodes[to] : found;
	/* Else passes have seen each word that leads there, or it has its way. */
	const bool is_new = !node->is_expanded && (node->cost == UINT32_MAX || node->is_wanted);

	found->is_idle = true;
	edge->to = to != HOLDER_NONE ? to : put_node(search, found);
	if (edge->to == HOLDER_NONE)
		return;
	search->nodes[edge->to].is_reached = true;
	search->frontier[search->frontier_count++].node = edge->to;
	if (!is_new)
		return;
	search->nodes[edge->to].is_idle = !search->nodes[edge->to].is_wanted;
	search->nodes[edge->to].is_again = true;
	search->nodes[edge->to].reached = (uint32_t)search->edge_count;
	add_edge(search, edge);
}

/* Of a pass. NULL = no node of its frontier is there. */
static const struct holder_target *
target_at(const struct holder_search *search, uint64_t word)
{
	const uint64_t page = word / PROCESS_MEMORY_PAGE % HOLDER_PAGES;

	if ((search->pages[page / 64] >> page % 64 & 1) == 0)
		return NULL;

	size_t until = SORTED_UP_TO(search->frontier, search->frontier_count, start, word);

	return until != 0 && word < search->frontier[until - 1].end ? &search->frontier[until - 1] : NULL;
}

/* A word that may lead somewhere: backwards to a node of the frontier, forwards to one that is not of it yet. */
static bool
see_word(void *context, uint64_t at, uint64_t word)
{
	struct holder_search *search = context;
	const bool is_forward = search->stage == HOLDER_STAGE_FORWARD;
	const struct holder_target *target = is_forward ? NULL : target_at(search, word);
	struct holder_node found;

	if (is_forward ? !find_held(search, word, &found) : target == NULL)
		return true;

	uint32_t to = is_forward ? address_map_find(&search->places, found.start) : target->node;
	bool is_seen = is_forward && to != HOLDER_NONE && search->nodes[to].is_reached;
	uint32_t from = is_seen ? HOLDER_NONE : search->reader != HOLDER_NONE ? search->reader : node_at(search, at);
	struct holder_edge edge = { .from = from, .to = to, .at = at, .value = word };

	if (from != HOLDER_NONE && to == HOLDER_NONE)
		read_object(search, &found);
	if (from != HOLDER_NONE &&
	    judge_word(search, &search->nodes[from], to != HOLDER_NONE ? &search->nodes[to] : &found, &edge)) {
		if (is_forward)
			reach(search, to, &found, &edge);
		else if (!is_known_edge(search, from, to, at))
			add_edge(search, &edge);
	}
	return ++search->words % WORDS_UNREGARDED != 0 || may_go_on(search);
}

/* ---- backwards: passes ---- */

/* Without what is left out. */
static void
scan_range(struct holder_search *search, const struct root_range *range)
{
	struct process_memory *memory = &search->look->memory;
	const struct holder_skips *skips = &search->skips;
	uint64_t start = range->start;

	for (size_t at = SORTED_UP_TO(skips->ranges, skips->count, end, start);
	     search->stage < HOLDER_STAGE_LEFT_OUT && at < skips->count && skips->ranges[at].start < range->end; at++) {
		(void)process_memory_scan(memory, start, skips->ranges[at].start, search->wanted, see_word, search);
		start = skips->ranges[at].end;
	}
	(void)process_memory_scan(memory, start, range->end, search->wanted, see_word, search);
}

ORDER_OF(compare_targets, struct holder_target, order_numbers(a->start, b->start))

/* To the frontier comes who leads there: nodes for which words were looked for already, or the others. False: there are none. */
static bool
choose_targets(struct holder_search *search, bool is_expanded)
{
	memset(search->pages, 0, sizeof(search->pages));
	search->wanted = (struct word_range){ UINT64_MAX, 0 };
	search->frontier_count = 0;
	for (uint32_t i = 0; i < search->node_count && search->frontier_count < TARGETS_MAX; i++) {
		struct holder_node *node = &search->nodes[i];

		if (node->is_expanded != is_expanded || !node->is_wanted || holder_is_root(node))
			continue;
		node->is_again = node->is_again || is_expanded;
		node->is_expanded = true;
		search->frontier[search->frontier_count++] = (struct holder_target){ node->start, node->end, i };
		search->wanted.lowest = amount_lesser(search->wanted.lowest, node->start);
		search->wanted.end = amount_greater(search->wanted.end, node->end);
		for (uint64_t page = node->start / PROCESS_MEMORY_PAGE, k = 0;
		     page <= (node->end - 1) / PROCESS_MEMORY_PAGE && k < HOLDER_PAGES; page++, k++)
			search->pages[page % HOLDER_PAGES / 64] |= UINT64_C(1) << page % 64;
	}
	SORT(search->frontier, search->frontier_count, compare_targets);
	return search->frontier_count != 0;
}

static void
run_pass(struct holder_search *search)
{
	const struct root_ranges *ranges = &search->look->ranges;
	const struct stopped_process *process = &search->look->process;

	search->passes++;
	search->reader = HOLDER_NONE;
	for (size_t i = 0; i < ranges->count && may_go_on(search); i++)
		scan_range(search, &ranges->at[i]);
	for (uint64_t i = 0; i < process->count * MACHINE_REGISTERS; i++)
		(void)see_word(search, i, process->threads[i / MACHINE_REGISTERS].registers[i % MACHINE_REGISTERS]);
	if (may_go_on(search))
		return;
	EACH (target, search->frontier, search->frontier_count) // not all that leads there was seen
		search->nodes[target->node].is_expanded = false;
}

static bool
is_one_missing(const struct holder_search *search)
{
	return ANY(sample, search->samples, search->sample_count, search->nodes[*sample].cost == UINT32_MAX);
}

/* Some samples have no way, and nothing new leads to them: the next stage. False: there is none that may find more. */
static bool
widen(struct holder_search *search)
{
	if (!is_one_missing(search) || search->stage == HOLDER_STAGE_LEFT_OUT)
		return false;
	search->stage = search->stage == HOLDER_STAGE_INSIDE ? HOLDER_STAGE_LEFT_OUT : HOLDER_STAGE_INSIDE;
	if ((search->stage == HOLDER_STAGE_LEFT_OUT && search->skips.count == 0) || !choose_targets(search, true))
		return false;
	search->is_full = search->is_full || search->frontier_count == TARGETS_MAX;
	run_pass(search);
	return true;
}

/* ---- forwards: each block once ---- */

static void
read_words(struct holder_search *search, uint32_t reader, uint64_t start, uint64_t end)
{
	struct process_memory *memory = &search->look->memory;

	search->reader = reader;
	if (may_go_on(search))
		(void)process_memory_scan(memory, start, end, memory->pointers, see_word, search);
}

/* Those that were reached, from this one on: what is plain leads nowhere, and ways begin at a root. Returns which is next. */
static size_t
read_frontier(struct holder_search *search, size_t next)
{
	for (size_t until = search->frontier_count; next < until && may_go_on(search); next++) {
		uint32_t number = search->frontier[next].node;
		const struct holder_node *node = &search->nodes[number];

		if ((node->object.type == NULL || node->object.type->kind != PYTHON_PLAIN) && !holder_is_root(node) &&
		    !holder_skips_has(&search->skips, node->start, node->end))
			read_words(search, number, node->start, node->end);
	}
	return next;
}

/* The outermost first: who calls a method has its object longer than the method, whose `self` it is. */
ORDER_OF(compare_depths, struct python_frame, order_numbers(b->depth, a->depth) ?: order_numbers(a->start, b->start))

/* From the names that a person knows best: globals of modules that run, then locals. Returns which node of the frontier is read next. */
static size_t
read_names(struct holder_search *search)
{
	struct python_objects *python = search->python;
	OWNED struct python_frame *frames = memory_zeroed(python->frame_count, sizeof(*frames));
	size_t next;

	memcpy(frames, python->frames, python->frame_count * sizeof(*frames));
	SORT(frames, python->frame_count, compare_depths);
	for (size_t i = 0; i < python->frame_count; i++) {
		uint64_t names = python_objects_at(python, frames[i].start + python->shape->frame_names);
		uint32_t dict = names != 0 ? node_at(search, names) : HOLDER_NONE;

		/* Names for exec() are no module's: no way ends there. */
		if (dict == HOLDER_NONE || search->nodes[dict].root != HOLDER_END_MODULE || search->nodes[dict].is_reached)
			continue;
		search->nodes[dict].is_reached = true;
		read_words(search, dict, search->nodes[dict].start, search->nodes[dict].end);
	}
	next = read_frontier(search, 0); // their storage, before a local variable has the same object
	for (size_t i = 0; i < python->frame_count; i++) {
		uint32_t frame = node_at(search, frames[i].start);

		if (frame != HOLDER_NONE)
			read_words(search, frame, frames[i].start, frames[i].end);
	}
	return next;
}

/* From its end: there are the variables of the functions that were called first. */
static void
read_stack(struct holder_search *search, const struct root_range *stack)
{
	search->reader = HOLDER_NONE;
	for (uint64_t at = stack->end & ~UINT64_C(7); at >= stack->start + 8;) {
		at -= 8;
		if (!see_word(search, at, process_memory_word(&search->look->memory, at)))
			return;
	}
}

/* Of a program without Python: static data first, as variables have names there. */
static void
read_roots(struct holder_search *search)
{
	const struct root_ranges *ranges = &search->look->ranges;

	EACH (range, ranges->at, ranges->count) {
		if (range->kind == ROOT_STATIC)
			read_words(search, HOLDER_NONE, range->start, range->end);
	}
	EACH (range, ranges->at, ranges->count) {
		if (range->kind == ROOT_STACK)
			read_stack(search, range);
		else if (range->kind != ROOT_STATIC && range->kind != ROOT_HEAP)
			read_words(search, HOLDER_NONE, range->start, range->end);
	}
}

/* What leads to nothing that was asked for would cost time each time that ways are judged. Of the first nodes all stay. */
static void
forget_idle(struct holder_search *search, size_t first)
{
	OWNED uint32_t *numbers = memory_zeroed(search->node_count, sizeof(*numbers));
	size_t nodes = 0;
	size_t edges = 0;

	address_map_free(&search->places);
	address_map_make(&search->places, HOLDER_MAP_MAX);
	for (size_t i = 0; i < search->node_count; i++) {
		struct holder_node *node = &search->nodes[i];

		numbers[i] = i >= first && node->is_idle ? HOLDER_NONE : (uint32_t)nodes;
		if (numbers[i] == HOLDER_NONE)
			continue;
		node->first_edge = HOLDER_NONE;
		address_map_put(&search->places, node->start, numbers[i]);
		search->nodes[nodes++] = *node;
	}
	for (size_t i = 0; i < search->edge_count; i++) {
		struct holder_edge *edge = &search->edges[edges];

		*edge = search->edges[i];
		edge->from = numbers[edge->from];
		edge->to = numbers[edge->to];
		if (edge->from == HOLDER_NONE || edge->to == HOLDER_NONE ||
		    (search->nodes[edge->to].is_idle && search->nodes[edge->to].reached == i))
			continue;
		edge->next = search->nodes[edge->from].first_edge;
		search->nodes[edge->from].first_edge = (uint32_t)edges++;
	}
	EACH (node, search->nodes, nodes) {
		node->is_idle = false;
		node->owner = node->owner != HOLDER_NONE ? numbers[node->owner] : HOLDER_NONE;
	}
	search->node_count = nodes;
	search->edge_count = edges;
}

static void
go_forward(struct holder_search *search)
{
	struct process_memory *memory = &search->look->memory;
	uint64_t left_ns = memory->deadline_ns - clock_monotonic_ns();
	size_t known = search->node_count;
	size_t next = 0;

	search->stage = HOLDER_STAGE_FORWARD;
	memory->deadline_ns -= left_ns / FORWARD_PART;
	search->frontier_count = 0;
	if (search->python->shape != NULL)
		next = read_names(search);
	else
		read_roots(search);
	while (next < search->frontier_count && may_go_on(search))
		next = read_frontier(search, next);
	memory->deadline_ns += left_ns / FORWARD_PART;
	search->stage = HOLDER_STAGE_FAR;
	forget_idle(search, known);
}

/* ---- beginning and end ---- */

void
holder_search_begin(struct process_look *look, struct python_objects *python, struct process_modules *modules,
                    const struct thread_areas *areas, const struct site_lines *lines, struct holder_search *search)
{
	*search = (struct holder_search){
		.look = look, .python = python, .modules = modules, .areas = areas, .lines = lines
	};
	search->nodes = memory_zeroed(HOLDER_NODES_MAX, sizeof(*search->nodes));
	search->edges = memory_zeroed(HOLDER_EDGES_MAX, sizeof(*search->edges));
	search->frontier = memory_zeroed(HOLDER_NODES_MAX, sizeof(*search->frontier));
	address_map_make(&search->places, HOLDER_MAP_MAX);
	holder_lists_begin(look, &search->lists);
	process_memory_stands_still(&look->memory);
}

void
holder_search_show(struct holder_search *search, const struct live_block *block)
{
	holder_lists_show(&search->lists, block);
	holder_skips_show(&search->skips, block);
}

/* False: there is nothing more to look for, or neither time nor room. */
static bool
look_further(struct holder_search *search)
{
	if (holder_search_is_over(search) || search->is_full)
		return false;
	if (search->passes >= NEAR_PASSES && search->stage == HOLDER_STAGE_NEAR && is_one_missing(search))
		go_forward(search);
	else if (search->passes < HOLDER_PASSES_MAX && choose_targets(search, false))
		run_pass(search);
	else
		return widen(search);
	return true;
}

void
holder_search_run(struct holder_search *search)
{
	struct process_memory *memory = &search->look->memory;
	const uint64_t end_ns = memory->deadline_ns; // of the look: a part of its time is for the ways' words

	memory->deadline_ns -= (end_ns - search->look->process.since_ns) / WORDS_PART;
	holder_skips_find(&search->skips, search->look);
	do {
		holder_search_judge(search);
	} while (look_further(search));
	search->is_late = holder_search_is_over(search);
	memory->deadline_ns = end_ns;
	if (search->is_late) // what was found last was not judged
		holder_search_judge(search);
}

void
holder_search_end(struct holder_search *search)
{
	free(search->nodes);
	free(search->edges);
	free(search->frontier);
	free(search->samples);
	address_map_free(&search->places);
	graph_free(&search->graph);
	holder_skips_free(&search->skips);
	holder_lists_end(&search->lists);
	*search = (struct holder_search){ 0 };
}
