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

#include "base/items.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/sorted.h"
#include "base/text_start.h"

#define TARGETS_MAX 16384u
#define PAGE_BITS (UINT64_C(1) << 18)

struct holder_target {
	uint64_t start;
	uint64_t end;
	uint32_t node;
};

/* What one reading of all memory looks for. */
struct holder_pass {
	size_t count;
	struct holder_target targets[TARGETS_MAX]; // by address
	uint64_t pages[PAGE_BITS / 64]; // a bit for each page of a target, by its last digits: most words lead elsewhere
};

#define PIECE_BYTES (UINT64_C(4) << 20) // between two looks at the clock
#define DEQUE_FIRST 24u                 // in its object
#define DEQUE_BLOCKS_MAX HOLDER_NODES_MAX
#define NEAR_PASSES 3u        // short ways are found in so many
#define EDGES_UNREGARDED 4096 // between two looks at the clock
#define WORDS_PART 16         // of the time is for the words

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
holder_search_is_late(struct holder_search *search)
{
	search->is_late = search->is_late || stopped_process_time(&search->look->process) > search->deadline_ns;
	return search->is_late;
}

bool
holder_search_is_over(const struct holder_search *search)
{
	return stopped_process_time(&search->look->process) > search->words_deadline_ns;
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
		torch_graph_count(search->look, search->modules, start, search->words_deadline_ns, &search->graphs[i]);
		search->graph_count++;
	}
	return &search->graphs[i];
}

/* ---- nodes ---- */

/* HOLDER_NONE: there is no room. */
static uint32_t
find_or_add(struct holder_search *search, const struct holder_node *node)
{
	uint32_t known = address_map_find(&search->places, node->start);

	if (known != ADDRESS_NONE)
		return known;
	if (search->node_count >= HOLDER_NODES_MAX) {
		search->is_full = true;
		return HOLDER_NONE;
	}
	address_map_put(&search->places, node->start, (uint32_t)search->node_count);
	search->nodes[search->node_count] = *node;
	return (uint32_t)search->node_count++;
}

/* Does a Python object end a way? */
static enum holder_end
end_of(struct holder_search *search, const struct python_object *object, bool *is_library)
{
	char name[PYTHON_NAME_BYTES];

	if (object->type == NULL)
		return HOLDER_END_NONE;
	switch (object->type->kind) {
	case PYTHON_TYPE: {
		struct python_type *type = python_objects_type(search->python, object->addr);

		return type == NULL || python_objects_is_named(search->python, type) ? HOLDER_END_CLASS : HOLDER_END_NONE;
	}
	case PYTHON_DICT:
		return python_objects_module(search->python, object, name, is_library) ? HOLDER_END_MODULE : HOLDER_END_NONE;
	case PYTHON_FRAME:
		for (size_t i = 0; i < search->python->frame_count; i++) {
			if (search->python->frames[i].object == object->addr)
				return HOLDER_END_FRAME;
		}
		return HOLDER_END_NONE;
	default:
		return HOLDER_END_NONE;
	}
}

static struct holder_node
new_node(enum holder_kind kind, uint64_t start, uint64_t end, uint32_t thread)
{
	return (struct holder_node){ .start = start,
		                         .end = end,
		                         .kind = kind,
		                         .thread = thread,
		                         .cost = UINT32_MAX,
		                         .best = HOLDER_NONE,
		                         .owner = HOLDER_NONE,
		                         .first_edge = HOLDER_NONE };
}

static uint32_t
add_new(struct holder_search *search, enum holder_kind kind, uint64_t start, uint64_t end, uint32_t thread)
{
	struct holder_node node = new_node(kind, start, end, thread);

	return find_or_add(search, &node);
}

static struct holder_node
node_with_object(struct holder_search *search, enum holder_kind kind, uint64_t start, uint64_t end, uint32_t site)
{
	struct holder_node node = new_node(kind, start, end, 0);

	node.site = site;
	node.is_released = !python_objects_in(search->python, start, end - start, &node.object) &&
	                   python_objects_released(search->python, start, end - start) != NULL;
	node.root = end_of(search, &node.object, &node.is_library);
	return node;
}

static void
push_edge(struct holder_search *search, const struct holder_edge *edge)
{
	struct holder_edge *added = &search->edges[search->edge_count];
	struct holder_node *from = &search->nodes[edge->from];

	if (search->edge_count >= HOLDER_EDGES_MAX) {
		search->is_full = true;
		return;
	}
	*added = *edge;
	added->next = from->first_edge;
	from->first_edge = (uint32_t)search->edge_count++;
	if (search->edge_count % EDGES_UNREGARDED == 0)
		(void)holder_search_is_late(search);
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

/* Marks the blocks of a deque that are nodes as its own. Other blocks that are linked to them may be free, with old contents. */
static void
own_blocks(struct holder_search *search, uint32_t deque)
{
	uint64_t block = 0;

	for (size_t i = 0;
	     i < DEQUE_BLOCKS_MAX && python_objects_next_block(search->python, &search->nodes[deque].object, &block); i++) {
		uint32_t number = address_map_find(&search->places, block);

		if (number == HOLDER_NONE || search->nodes[number].object.type != NULL)
			continue;
		if (owner_of(search, &search->nodes[number]) ==
		    NULL) // from it, not from block to block: a long way would cost much
			push_edge(search, &(struct holder_edge){ deque, number, search->nodes[deque].object.addr + DEQUE_FIRST,
			                                         block, false, PYTHON_HOLD_SURE, false, false, HOLDER_NONE });
		search->nodes[number].owner = deque;
		search->nodes[number].owner_at = search->nodes[deque].object.addr + DEQUE_FIRST;
		judge_items(search, number);
	}
}

/* A list is a long chain, and what leads into its middle, as iterators do, does not hold it: its head leads to each node. */
static void
add_to_list(struct holder_search *search, uint32_t number, const struct live_block *block)
{
	uint64_t head = holder_lists_head(&search->lists, block);

	search->nodes[number].list_head = head;

	uint32_t from = head != 0 ? holder_search_node_at(search, head) : HOLDER_NONE;

	if (from != HOLDER_NONE && from != number)
		push_edge(search, &(struct holder_edge){ from, number, head, block->addr, false, PYTHON_HOLD_LIKELY, false,
		                                         false, HOLDER_NONE });
}

uint32_t
holder_search_add(struct holder_search *search, const struct live_block *block)
{
	uint32_t known = address_map_find(&search->places, block->addr);

	if (known != HOLDER_NONE)
		return known;

	struct holder_node node = node_with_object(search, HOLDER_BLOCK, block->addr,
	                                           block->addr + (block->bytes != 0 ? block->bytes : 1), block->site);
	known = find_or_add(search, &node);
	if (known != HOLDER_NONE && search->python->shape == NULL) // objects of Python are linked by its collector
		add_to_list(search, known, block);
	return known;
}

/*
 * The node of an address in a mapping: a frame or a small object of Python, else a root. The kernel joins mappings: one of Python may
 * follow a thread's memory.
 */
static uint32_t
node_in_mapping(struct holder_search *search, const struct root_range *range, uint64_t at)
{
	enum holder_kind kind = range->kind == ROOT_THREAD_LOCAL ? HOLDER_THREAD_LOCAL : HOLDER_MAPPING;
	const struct python_frame *frame = python_objects_frame(search->python, at);
	struct address_range small;
	struct holder_node node;

	if (frame != NULL)
		return add_new(search, HOLDER_FRAME, frame->start, frame->end, frame->thread);
	switch (python_objects_small(search->python, at, &small)) {
	case PYTHON_SMALL_FREE:
		return HOLDER_NONE;
	case PYTHON_SMALL_LIVE:
		node = node_with_object(search, HOLDER_SMALL, small.start, small.end, 0);
		return find_or_add(search, &node);
	case PYTHON_NOT_SMALL:
		break;
	}
	/* Zeroed data of a program or a library is a mapping without a name, behind the mapping of its file. */
	if (process_modules_at(search->modules, at) != NULL)
		kind = HOLDER_STATIC;
	return add_new(search, kind, at, at + 8, range->thread);
}

uint32_t
holder_search_node_at(struct holder_search *search, uint64_t at)
{
	const struct thread_area *area = thread_areas_at(search->areas, at);
	struct live_block block;

	if (area != NULL) { // also in a block: the loader asks for one when a library comes later
		if (strstr(area->module->path, "/libkmemshim.so") != NULL)
			return HOLDER_NONE; // what the recorder notes of a block does not hold it
		return add_new(search, HOLDER_THREAD_LOCAL, at, at + 8, area->thread);
	}
	if (python_objects_is_state(search->python, at))
		return add_new(search, HOLDER_STATE, at, at + 8, 0);
	if (live_blocks_find(search->look->blocks, at, &block)) {
		const struct python_frame *frame = python_objects_frame(search->python, at);

		if (frame != NULL && search->python->shape->frame_object != 0) // of a coroutine that runs: in its object
			return add_new(search, HOLDER_FRAME, frame->start, frame->end, frame->thread);
		return holder_search_add(search, &block);
	}

	const struct root_range *range = root_ranges_at(&search->look->ranges, at);

	if (range == NULL || range->kind == ROOT_HEAP)
		return HOLDER_NONE;
	if (range->kind == ROOT_MAPPING || range->kind == ROOT_THREAD_LOCAL)
		return node_in_mapping(search, range, at);
	return add_new(search, range->kind == ROOT_STATIC ? HOLDER_STATIC : HOLDER_STACK, at, at + 8, range->thread);
}

const struct holder_node *
holder_search_wanted(const struct holder_search *search, uint64_t start)
{
	uint32_t number = address_map_find(&search->places, start);

	return number != HOLDER_NONE && search->nodes[number].is_wanted && !holder_is_root(&search->nodes[number])
	           ? &search->nodes[number]
	           : NULL;
}

bool
holder_search_ends_at(struct holder_search *search, const struct python_object *object)
{
	bool is_library;

	return end_of(search, object, &is_library) != HOLDER_END_NONE;
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
	const struct holder_node *owner = &search->nodes[edge->from];

	if (edge->from == edge->to) {
		search->nodes[edge->to].own++;
		return;
	}
	push_edge(search, edge);
	if (owner->object.type != NULL && search->nodes[edge->to].object.type == NULL &&
	    owner_of(search, &search->nodes[edge->to]) == NULL &&
	    python_objects_is_buffer(search->python, &owner->object, edge->at))
		set_owner(search, edge->from, edge->to, edge->at);
}

/* NULL = no target is there. */
static const struct holder_target *
target_at(const struct holder_search *search, uint64_t addr)
{
	const struct holder_pass *pass = search->pass;
	size_t until = SORTED_UP_TO(pass->targets, pass->count, start, addr);

	return until != 0 && addr < pass->targets[until - 1].end ? &pass->targets[until - 1] : NULL;
}

/* The same word once more: counted twice it would account for two references. */
static bool
is_known_edge(const struct holder_search *search, uint32_t from, uint32_t to, uint64_t at)
{
	uint32_t number = search->nodes[to].is_led ? search->nodes[from].first_edge : HOLDER_NONE;

	while (number != HOLDER_NONE && (search->edges[number].to != to || search->edges[number].at != at))
		number = search->edges[number].next;
	return number != HOLDER_NONE;
}

static void
try_edge(struct holder_search *search, uint32_t from, uint32_t to, uint64_t at, uint64_t value)
{
	if (search->stage < HOLDER_STAGE_INSIDE && is_far_inside(&search->nodes[to], value))
		return;

	enum python_hold hold = hold_of(search, &search->nodes[from], &search->nodes[to], at, value);

	if (hold == PYTHON_HOLD_NOT || is_known_edge(search, from, to, at))
		return;

	const struct python_frame *frame = holder_search_frame(search, &search->nodes[from]);
	bool is_library = frame != NULL && python_objects_is_of_library(search->python, frame);
	bool is_short = is_library || holder_is_iterator(&search->nodes[from]) ||
	                (frame != NULL && python_objects_is_argument(search->python, frame, at));

	add_edge(search,
	         &(struct holder_edge){ from, to, at, value, false, (uint8_t)hold, is_short, is_library, HOLDER_NONE });
}

void
holder_search_lead(struct holder_search *search, uint32_t from, uint32_t to, uint64_t at, uint64_t value)
{
	try_edge(search, from, to, at, value);
	search->nodes[to].is_led = true;
}

static bool
see_word(void *context, uint64_t at, uint64_t word)
{
	struct holder_search *search = context;
	uint64_t page = word / PROCESS_MEMORY_PAGE % PAGE_BITS;

	if ((search->pass->pages[page / 64] >> page % 64 & 1) == 0)
		return true;

	const struct holder_target *target = target_at(search, word);
	uint32_t from = target != NULL ? holder_search_node_at(search, at) : HOLDER_NONE;

	if (from != HOLDER_NONE)
		try_edge(search, from, target->node, at, word);
	return !search->is_full && !search->is_late;
}

/* ---- passes ---- */

static void
scan_piece(struct holder_search *search, uint64_t start, uint64_t end, struct word_range wanted)
{
	while (start < end && !search->is_full && !holder_search_is_late(search)) {
		uint64_t until = end - start > PIECE_BYTES ? start + PIECE_BYTES : end;

		(void)process_memory_scan(&search->look->memory, start, until, wanted, see_word, search);
		start = until;
	}
}

/* Without what is left out. */
static void
scan_range(struct holder_search *search, const struct root_range *range, struct word_range wanted)
{
	const struct holder_skips *skips = &search->skips;
	uint64_t start = range->start;

	if (search->stage < HOLDER_STAGE_LEFT_OUT) {
		for (size_t at = SORTED_UP_TO(skips->ranges, skips->count, end, start);
		     at < skips->count && skips->ranges[at].start < range->end; at++) {
			scan_piece(search, start, skips->ranges[at].start, wanted);
			start = skips->ranges[at].end;
		}
	}
	scan_piece(search, start, range->end, wanted);
}

static void
scan_registers(struct holder_search *search)
{
	for (uint32_t i = 0; i < search->look->process.count; i++) {
		for (uint32_t k = 0; k < MACHINE_REGISTERS; k++) {
			uint64_t value = search->look->process.threads[i].registers[k];
			const struct holder_target *target = target_at(search, value);
			uint32_t from = target != NULL ? add_new(search, HOLDER_REGISTER, i * MACHINE_REGISTERS + k, 0, i)
			                               : HOLDER_NONE;

			if (from != HOLDER_NONE)
				try_edge(search, from, target->node, 0, value);
		}
	}
}

ORDER_OF(compare_targets, struct holder_target, order_numbers(a->start, b->start))

static void
mark_pages(struct holder_pass *pass)
{
	memset(pass->pages, 0, sizeof(pass->pages));
	EACH (target, pass->targets, pass->count) {
		uint64_t first = target->start / PROCESS_MEMORY_PAGE;
		uint64_t last = (target->end - 1) / PROCESS_MEMORY_PAGE;

		for (uint64_t page = first; page <= last && page - first < PAGE_BITS; page++)
			pass->pages[page % PAGE_BITS / 64] |= UINT64_C(1) << page % 64;
	}
}

/* Chooses the next pass's targets: nodes for which words were looked for already, or the others. False: there are none. */
static bool
choose_targets(struct holder_search *search, bool is_expanded)
{
	struct holder_pass *pass = search->pass;

	pass->count = 0;
	for (uint32_t i = 0; i < search->node_count && pass->count < TARGETS_MAX; i++) {
		struct holder_node *node = &search->nodes[i];

		if (node->is_expanded != is_expanded || !node->is_wanted || holder_is_root(node))
			continue;
		node->is_led = node->is_led || is_expanded;
		node->is_expanded = true;
		pass->targets[pass->count++] = (struct holder_target){ node->start, node->end, i };
	}
	SORT(pass->targets, pass->count, compare_targets);
	return pass->count != 0;
}

static void
run_pass(struct holder_search *search)
{
	const struct holder_pass *pass = search->pass;
	struct word_range wanted = { pass->targets[0].start, pass->targets[pass->count - 1].end };
	const struct root_ranges *ranges = &search->look->ranges;

	search->passes++;
	mark_pages(search->pass);
	for (size_t i = 0; i < ranges->count && !holder_search_is_late(search) && !search->is_full; i++)
		scan_range(search, &ranges->at[i], wanted);
	scan_registers(search);
	if (!holder_search_is_late(search) && !search->is_full)
		return;
	EACH (target, pass->targets, pass->count) // not all that leads there was seen
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
	search->is_full = search->is_full || search->pass->count == TARGETS_MAX;
	run_pass(search);
	return true;
}

/* ---- beginning and end ---- */

void
holder_search_begin(struct process_look *look, struct python_objects *python, struct process_modules *modules,
                    const struct thread_areas *areas, const struct site_lines *lines, uint64_t deadline_ns,
                    struct holder_search *search)
{
	*search = (struct holder_search){ .look = look,
		                              .python = python,
		                              .modules = modules,
		                              .areas = areas,
		                              .lines = lines,
		                              .deadline_ns = deadline_ns - deadline_ns / WORDS_PART,
		                              .words_deadline_ns = deadline_ns };
	search->nodes = memory_zeroed(HOLDER_NODES_MAX, sizeof(*search->nodes));
	search->edges = memory_zeroed(HOLDER_EDGES_MAX, sizeof(*search->edges));
	search->pass = memory_zeroed(1, sizeof(*search->pass));
	address_map_make(&search->places, HOLDER_NODES_MAX);
	holder_lists_begin(look, &search->lists);
	process_memory_stands_still(&look->memory);
}

void
holder_search_show(struct holder_search *search, const struct live_block *block)
{
	holder_lists_show(&search->lists, block);
	holder_skips_show(&search->skips, block);
}

void
holder_search_run(struct holder_search *search, const uint32_t *samples, size_t count)
{
	search->samples = samples;
	search->sample_count = count;
	for (size_t i = 0; i < count; i++)
		search->nodes[samples[i]].is_sample = true;
	holder_skips_find(&search->skips, search->look, search->deadline_ns);
	for (;;) {
		holder_search_judge(search);
		if (holder_search_is_late(search) || search->is_full)
			return;
		if (search->passes >= NEAR_PASSES && search->stage == HOLDER_STAGE_NEAR && is_one_missing(search)) {
			search->stage = HOLDER_STAGE_NAMES;
			holder_search_go_forward(search);
		} else if (search->passes < HOLDER_PASSES_MAX && choose_targets(search, false)) {
			run_pass(search);
		} else if (!widen(search)) {
			return;
		}
	}
}

void
holder_search_end(struct holder_search *search)
{
	free(search->nodes);
	free(search->edges);
	free(search->pass);
	address_map_free(&search->places);
	holder_skips_free(&search->skips);
	holder_lists_end(&search->lists);
	*search = (struct holder_search){ 0 };
}
