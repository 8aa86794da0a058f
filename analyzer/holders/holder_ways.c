/*
 * holder_ways.c - a chain of nodes becomes steps (see holder_ways.h).
 *
 * A step is one object, or one block, and the name by which it holds the next. The storage of a list or a dictionary is no step of its own:
 * its places have names. Neither is the dictionary of an instance or a class.
 */
#include "holders/holder_ways.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/items.h"
#include "base/memory.h"
#include "base/text_pool.h"
#include "base/units.h"

#define CHAIN_MAX (4 * HOLDER_WAY_STEPS) // steps, when those that follow each other are one
#define MANY 8u                          // items with more than so many: their keys say nothing,
#define MANY_IN_A_ROW 4u                 // nor do their numbers
#define FEW 32u                          // items: rather than such a container one of more is named
#define REASON_BYTES 512u
#define LOST_NODES 128u // that are looked at

struct chain {
	size_t count;
	size_t left_out; // of the middle, which is not told: there was no room
	struct holder_step steps[CHAIN_MAX];
};

static const char *
type_name(const struct python_type *type, struct text_pool *texts)
{
	char name[2 * PYTHON_NAME_BYTES];

	python_objects_type_name(type, name);
	return text_pool_add_text(texts, name);
}

/* Nodes from the sample to the root. */
static size_t
read_nodes(const struct holder_search *search, uint32_t sample, uint32_t *nodes, uint32_t *edges)
{
	size_t count = 0;

	for (uint32_t number = sample; count < search->node_count; number = search->edges[edges[count - 1]].from) {
		uint32_t edge = search->nodes[number].best;

		nodes[count] = number;
		edges[count++] = edge;
		if (edge == HOLDER_NONE)
			break;
	}
	return count;
}

static bool
is_of_type(const struct holder_node *node, const char *name)
{
	return node->object.type != NULL && node->object.type->module[0] == '\0' &&
	       strcmp(node->object.type->name, name) == 0;
}

static bool
is_dict(const struct holder_step *step)
{
	return step->node->object.type != NULL && step->node->object.type->kind == PYTHON_DICT;
}

/* Reads the step of nodes[i], which leads to nodes[i - 1]. Returns for how many nodes it stands. */
static size_t
read_step(struct holder_search *search, const uint32_t *nodes, const uint32_t *edges, size_t i,
          struct holder_step *step)
{
	const struct holder_node *node = &search->nodes[nodes[i]];
	const struct holder_edge *edge = &search->edges[edges[i - 1]];
	struct python_objects *python = search->python;

	*step = (struct holder_step){ .node = node, .items = UINT64_MAX, .blocks = 1 };
	step->last = (struct holder_place){ edge->at - node->start, edge->value - search->nodes[nodes[i - 1]].start };
	if (node->kind == HOLDER_FRAME) {
		python_objects_local(python, python_objects_frame(python, node->start), edge->at, &step->edge);
		return 1;
	}
	if (node->object.type == NULL) {
		step->tables[0] = node->kind == HOLDER_BLOCK ? process_memory_word(&search->look->memory, node->start) : 0;
		step->released = python_objects_released(python, node->start, node->end - node->start);
		step->table_count = step->tables[0] != 0 && process_modules_at(search->modules, step->tables[0]) != NULL;
		step->is_alike = step->table_count != 0;
		return 1;
	}
	step->items = python_objects_items(python, &node->object);

	bool is_buffer = search->nodes[nodes[i - 1]].object.type == NULL &&
	                 python_objects_is_buffer(python, &node->object, edge->at);
	step->grown_site = is_buffer ? search->nodes[nodes[i - 1]].site : 0;
	step->is_storage = is_buffer && i == 1;
	python_objects_edge(python, &node->object, edge->at, is_buffer && i > 1 ? search->edges[edges[i - 2]].at : 0,
	                    &step->edge);
	step->is_storage = step->is_storage || (i == 1 && step->edge.role == PYTHON_MEMBER_STORAGE);
	step->is_data = i == 1 && step->edge.role == PYTHON_MEMBER_DATA &&
	                (search->nodes[nodes[0]].object.type == NULL || is_of_type(node, "bytearray"));
	return is_buffer && i > 1 ? 2 : 1;
}

/* "'name'" -> "name" */
static void
unquote(char *name)
{
	size_t length = strlen(name);

	if (length >= 2 && name[0] == '\'' && name[length - 1] == '\'') {
		memmove(name, name + 1, length - 2);
		name[length - 2] = '\0';
	}
}

/*
 * Where the second of two steps has the name, it is that of the first: an instance or a class and its dictionary; thread-local data and the
 * dictionary of a thread; a generator and its frame (up to 3.10). False: they are two.
 */
static bool
take_name(struct holder_step *last, const struct holder_step *step)
{
	if (is_dict(step) && last->edge.role == PYTHON_MEMBER_THREAD_NAMES) {
		last->edge.role = PYTHON_MEMBER_NAMES;
		(void)snprintf(last->edge.name, sizeof(last->edge.name), "__dict__");
	} else if (is_dict(step) && step->edge.kind == PYTHON_EDGE_KEY && last->edge.role == PYTHON_MEMBER_NAMES) {
		last->edge = step->edge;
		last->edge.kind = PYTHON_EDGE_ATTRIBUTE;
		unquote(last->edge.name);
	} else if (step->edge.kind == PYTHON_EDGE_LOCAL && last->edge.role == PYTHON_MEMBER_FRAME) {
		last->edge = step->edge;
	} else {
		return false;
	}
	return true;
}

static bool
is_of_one_type(const struct python_type *a, const struct python_type *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a->name, b->name) == 0 && strcmp(a->module, b->module) == 0);
}

/* Are both links of one linked list? Then they are told once. */
static bool
is_like(const struct holder_step *a, const struct holder_step *b)
{
	return is_of_one_type(a->node->object.type, b->node->object.type) && a->edge.kind == b->edge.kind &&
	       a->edge.number == b->edge.number && strcmp(a->edge.name, b->edge.name) == 0 &&
	       (a->node->object.type != NULL || a->node->site == b->node->site);
}

static void
add_tables(struct holder_step *to, const struct holder_step *from)
{
	if (from->table_count != 0 && to->table_count < HOLDER_TABLES_MAX &&
	    !ANY(table, to->tables, to->table_count, *table == from->tables[0]))
		to->tables[to->table_count++] = from->tables[0];
}

static void
add_block(struct holder_step *to, const struct holder_step *from)
{
	size_t i = 0;

	while (i < to->between_count && memcmp(&to->between[i], &to->last, sizeof(to->last)) != 0)
		i++;
	to->blocks += to->blocks != 0;
	if (i == HOLDER_PLACES_MAX)
		to->blocks = to->between_count = 0;
	else if (i == to->between_count && to->blocks != 0)
		to->between[to->between_count++] = to->last;
	to->last = from->last;
	to->is_alike = to->is_alike && from->is_alike && to->tables[0] == from->tables[0];
}

/* first: from this step on, steps that are alike become one. A long way keeps its begin and its end, which are told. */
static void
add_step(struct chain *chain, const struct holder_step *step, size_t first)
{
	if (chain->count == 0 || !take_name(&chain->steps[chain->count - 1], step))
		chain->steps[chain->count++] = *step;

	struct holder_step *last = &chain->steps[chain->count - 1];

	if (chain->count > first + 1 && is_like(last - 1, last)) {
		chain->count--;
		last[-1].is_repeated = true;
		add_tables(last - 1, last);
		add_block(last - 1, last);
	} else if (chain->count == CHAIN_MAX) {
		chain->count--;
		chain->left_out++;
		memmove(&chain->steps[HOLDER_WAY_STEPS], &chain->steps[HOLDER_WAY_STEPS + 1],
		        (chain->count - HOLDER_WAY_STEPS) * sizeof(*last));
	}
}

/* nodes: from the sample on; edges[i] leads to nodes[i]. */
static void
make_chain(struct holder_search *search, const uint32_t *nodes, const uint32_t *edges, size_t count, size_t first,
           struct chain *chain)
{
	chain->count = chain->left_out = 0;
	for (size_t i = count - 1, used; i > 0; i -= used) {
		struct holder_step step;

		used = read_step(search, nodes, edges, i, &step);
		add_step(chain, &step, first);
	}
}

/* Where a way goes through objects of a graph of PyTorch, the first of them is told with the size of the graph. */
static void
count_graph(struct holder_search *search, struct chain *chain)
{
	struct holder_step *first = FIRST(
		step, chain->steps, chain->count,
		ANY(table, step->tables, step->table_count, torch_graph_is_table(search->modules, *table)));

	if (first != NULL)
		first->graph = holder_search_graph(search, first->node->start);
}

/* Returns the edge by which the root leads on; NULL: it does not. */
static const struct holder_edge *
read_chain(struct holder_search *search, uint32_t sample, struct chain *chain)
{
	OWNED uint32_t *nodes = memory_zeroed(search->node_count, sizeof(*nodes));
	OWNED uint32_t *edges = memory_zeroed(search->node_count, sizeof(*edges));
	size_t count = read_nodes(search, sample, nodes, edges);

	make_chain(search, nodes, edges, count, 1, chain); // a root has no siblings to compare with
	count_graph(search, chain);
	return count > 1 ? &search->edges[edges[count - 2]] : NULL;
}

/* ---- what is kept of a chain ---- */

bool
holder_step_has_many(const struct holder_step *step)
{
	return step->items != UINT64_MAX && step->items > (step->edge.kind == PYTHON_EDGE_INDEX ? MANY_IN_A_ROW : MANY);
}

/* "_12" of IPython, where each result of a cell has a name, and all are in Out. */
static bool
is_cell_result(const char *name)
{
	return name[0] == '_' && name[1] != '\0' && name[1 + strspn(name + 1, "0123456789")] == '\0';
}

/* The name of a module or a class. told.module: out, the one, or that of the other. key: in it, may be replaced. */
static const char *
root_name(struct holder_search *search, const struct holder_node *node, char key[PYTHON_NAME_BYTES],
          struct text_pool *texts, struct holder_way *way)
{
	const struct python_type *type = node->root == HOLDER_END_CLASS
	                                     ? python_objects_type(search->python, node->object.addr)
	                                     : NULL;
	struct python_namespace module = { .name = "?" };

	if (node->root == HOLDER_END_MODULE && python_objects_module(search->python, &node->object, &module) &&
	    strcmp(module.name, "__main__") != 0 && strcmp(module.name, "__mp_main__") != 0)
		way->told.module = text_pool_add_text(texts, module.name);
	if (module.has_results && is_cell_result(key))
		(void)memory_text_in(key, PYTHON_NAME_BYTES, "Out");
	if (type != NULL)
		way->told.module = text_pool_add_text(texts, type->module);
	return type != NULL ? type_name(type, texts) : text_pool_add_text(texts, module.name);
}

/* What Python knows about a root; step: NULL = the sample is the root itself. False: symbols must tell it. */
static bool
read_root(struct holder_search *search, const struct holder_node *node, const struct holder_step *step,
          struct text_pool *texts, struct holder_way *way)
{
	static const struct {
		enum way_step_kind named; // by what it leads on
		enum way_step_kind other;
		enum python_edge_kind name;
	} kinds[] = {
		[HOLDER_END_NONE] = { WAY_LOCAL, WAY_TEMPORARY, PYTHON_EDGE_LOCAL },
		[HOLDER_END_MODULE] = { WAY_GLOBAL, WAY_MODULE, PYTHON_EDGE_KEY },
		[HOLDER_END_CLASS] = { WAY_ATTRIBUTE, WAY_CLASS, PYTHON_EDGE_ATTRIBUTE },
		[HOLDER_END_FRAME] = { WAY_FRAME, WAY_FRAME, PYTHON_EDGE_UNKNOWN },
	};
	const bool is_frame = step != NULL && (node->kind == HOLDER_FRAME ||
	                                       (node->root == HOLDER_END_FRAME && step->edge.function[0] != '\0'));
	const enum holder_end end = is_frame ? HOLDER_END_NONE : node->root;
	char key[PYTHON_NAME_BYTES];

	if (end == HOLDER_END_NONE && !is_frame)
		return false;
	(void)memory_text_in(key, sizeof(key), "%s", step != NULL ? step->edge.name : "");
	unquote(key);

	const char *of = is_frame ? text_pool_add_text(texts, step->edge.function)
	                          : root_name(search, node, key, texts, way);

	way->begin = model_way_step(
		step != NULL && step->edge.kind == kinds[end].name && !step->is_storage ? kinds[end].named : kinds[end].other,
		text_pool_add_text(texts, key), of);
	way->begin.by = step != NULL ? WAY_BY_NOTHING : WAY_BY_ITSELF;
	return true;
}

/* Does the way lead through one of its many items? A tuple does not grow. */
static bool
is_container(const struct holder_step *step)
{
	return holder_step_has_many(step) && step->node->object.type->kind != PYTHON_TUPLE &&
	       (step->is_storage || (step->edge.kind != PYTHON_EDGE_ATTRIBUTE && step->edge.kind != PYTHON_EDGE_UNKNOWN));
}

/* The outermost one grows: what it has in it was put there item by item, and an inner one has often a fixed size. The root is none. */
static struct holder_step *
container_of(struct chain *chain)
{
	struct holder_step *first = chain->steps + 1;
	size_t count = chain->count != 0 ? chain->count - 1 : 0;
	struct holder_step *of_more = FIRST(step, first, count, is_container(step) && step->items > FEW);

	return of_more != NULL ? of_more : FIRST(step, first, count, is_container(step));
}

/* The steps from `first` on. Of a way with a root, which is no step, that is very long the middle is left out. */
static void
keep_steps(const struct holder_search *search, const struct chain *chain, size_t first, uint32_t sample,
           struct holder_way *way)
{
	size_t left_out = first != 0 && chain->count > HOLDER_WAY_STEPS ? chain->count - HOLDER_WAY_STEPS : 0;

	if (chain->count == 0)
		return;
	way->steps = memory_zeroed(chain->count - left_out, sizeof(*way->steps));
	for (size_t i = first; i < chain->count; i++) {
		if (left_out != 0 && i == first + HOLDER_WAY_BEGIN)
			i += left_out;
		way->steps[way->step_count++] = chain->steps[i];
	}
	way->left_out = left_out != 0 ? left_out + chain->left_out : 0;
	way->leaf = chain->steps[chain->count - 1].is_data ? NULL : search->nodes[sample].object.type;
}

static bool
is_of_one_kind(const struct holder_node *a, const struct holder_node *b)
{
	return a->site == b->site && a->object.type == b->object.type && a->owner == HOLDER_NONE && b->owner == HOLDER_NONE;
}

/* The farthest node. In a circle that may be any: so one that is alone of its kind comes first, as the head of a list or tree is. */
static size_t
choose_top(const struct holder_search *search, const uint32_t *nodes, size_t count)
{
	size_t fewest = SIZE_MAX;
	size_t top = 0;

	for (size_t i = 1; i < count; i++) {
		const struct holder_node *node = &search->nodes[nodes[i]];

		if (node->owner != HOLDER_NONE)
			continue;

		size_t same = SUM_OF(other, nodes, count, is_of_one_kind(node, &search->nodes[*other]));

		if (same <= fewest) {
			fewest = same;
			top = i;
		}
	}
	return top;
}

/* The farthest node, where the search ended. A dictionary, or a block without an object, may be a part of another one. */
static size_t
farthest(const struct holder_search *search, const uint32_t *nodes, size_t count)
{
	size_t top = 0;

	for (size_t i = count - 1; i > 0 && top == 0; i--) {
		const struct python_type *type = search->nodes[nodes[i]].object.type;

		top = type != NULL && type->kind != PYTHON_DICT ? i : 0;
	}
	return top != 0 ? top : count - 1;
}

/* What leads to the sample without a root, from far to near: lost blocks, or the end of a long chain. */
static void
read_above(struct holder_search *search, uint32_t sample, bool is_lost, struct text_pool *texts, struct holder_way *way)
{
	OWNED struct chain *chain = memory_zeroed(1, sizeof(*chain));
	OWNED uint32_t *found = memory_zeroed(search->node_count, sizeof(*found));
	OWNED uint32_t *above = memory_zeroed(search->node_count, sizeof(*above));
	uint32_t nodes[LOST_NODES + 1];
	uint32_t edges[LOST_NODES + 1];
	size_t count = 0;
	uint32_t path[LOST_NODES];
	size_t length = 0;

	size_t found_count = holder_search_above(search, sample, found, above, LOST_NODES);

	if (found_count == 0) // there was no time
		return;

	uint32_t at = found[is_lost ? choose_top(search, found, found_count) : farthest(search, found, found_count)];

	/* Down to the sample; then the other way round. */
	for (; above[at] != HOLDER_NONE && length < LOST_NODES; at = search->edges[path[length++]].to)
		path[length] = above[at];
	nodes[count++] = sample;
	while (length-- > 0) {
		edges[count - 1] = path[length];
		nodes[count++] = search->edges[path[length]].from;
	}
	make_chain(search, nodes, edges, count, 0, chain);
	const uint32_t *unseen = FIRST(node, found, is_lost ? found_count : 0, holder_search_is_uncollected(search, *node));

	if (unseen != NULL)
		way->told.uncollected = type_name(search->nodes[*unseen].object.type, texts);
	if (is_lost)
		count_graph(search, chain);
	keep_steps(search, chain, 0, sample, way);
}

static void
read_without_root(struct holder_search *search, uint32_t sample, struct text_pool *texts, struct holder_way *way)
{
	uint64_t counted;
	uint64_t seen;
	uint32_t node;

	bool is_short = search->is_late || search->is_full;
	bool is_unseen = !is_short && holder_search_unseen(search, sample, &node, &counted, &seen);
	is_short = is_short || holder_search_is_over(search); // then it may not have asked all

	const char *reason = NULL;

	/* Words that may be left over lead on and on to what an extension holds: that is not a chain. */
	if (is_short) {
		way->told.kind = HOLDERS_UNFINISHED;
		reason = search->is_late ? "there was no time to find it" : "too many blocks lead there";
	} else if (is_unseen) {
		way->told.kind = HOLDERS_UNSEEN;
		const char *name = type_name(search->nodes[node].object.type, texts);

		reason = counted == UINT64_MAX
		             ? TEXT(REASON_BYTES, "%s, which lives for ever", name)
		             : TEXT(REASON_BYTES, "%s with %" PRIu64 " reference%s, of which %" PRIu64 " %s found", name,
		                    counted, UNITS_S(counted), seen, seen == 1 ? "was" : "were");
	} else if (!holder_search_is_done(search, sample)) {
		way->told.kind = HOLDERS_UNFINISHED;
		read_above(search, sample, false, texts, way);
		reason = "it is in a long chain";
	} else if (search->look->ranges.shared_bytes != 0) {
		way->told.kind = HOLDERS_UNREAD;
	} else {
		way->told.kind = HOLDERS_LOST;
		read_above(search, sample, true, texts, way);
	}
	way->begins = reason != NULL ? HOLDER_BEGINS_AS_TOLD : HOLDER_BEGINS_NOWHERE;
	if (reason != NULL)
		way->begin = model_way_step(WAY_REASON, text_pool_add_text(texts, reason), "");
	way->begin.count = is_unseen && seen == 0 && counted != UINT64_MAX ? counted : 0;
}

/* Was time or room up before all better ways were looked for? */
static bool
is_cut_short(const struct holder_search *search, uint32_t sample)
{
	return (search->is_late || search->is_full) && !holder_search_is_done(search, sample);
}

/* False for a way of Python's that may be wrong, and would have been replaced by one that is not found yet; or without time to read it. */
static bool
is_way_told(const struct holder_search *search, uint32_t sample)
{
	if (search->nodes[sample].cost == UINT32_MAX || holder_search_is_over(search))
		return false;
	return !is_cut_short(search, sample) || (search->python->shape == NULL && !search->nodes[sample].is_guess);
}

static enum way_call
call_of(const struct holder_search *search, const struct holder_way *way)
{
	enum holder_kind kind = search->nodes[way->root].kind;

	if (way->root_edge == NULL || search->python->shape == NULL)
		return WAY_CALL_NONE;
	if (kind == HOLDER_STACK || kind == HOLDER_REGISTER)
		return WAY_CALL_NATIVE;
	return way->root_edge->is_library ? WAY_CALL_PYTHON : WAY_CALL_NONE;
}

/* Whose the container is: the module of the class that has it, else that of the root. */
static void
find_module(const struct chain *chain, const struct holder_step *container, struct text_pool *texts,
            struct holder_way *way)
{
	for (const struct holder_step *step = container; container != NULL && step-- > chain->steps;) {
		const struct python_type *type = step->node->object.type;

		if (type == NULL || !type->is_of_python)
			continue;
		way->told.module = text_pool_add_text(texts, type->module);
		break;
	}
}

void
holder_way_read(struct holder_search *search, uint32_t sample, struct text_pool *texts, struct holder_way *way)
{
	OWNED struct chain *chain = memory_zeroed(1, sizeof(*chain));

	*way = (struct holder_way){
		.root = search->nodes[sample].way_root,
		.told = { .kind = HOLDERS_HELD, .text = "", .container = "", .module = "", .uncollected = "" }
	};
	if (!is_way_told(search, sample)) {
		read_without_root(search, sample, texts, way);
		return;
	}
	if (search->nodes[sample].is_guess || is_cut_short(search, sample))
		way->told.kind = HOLDERS_PERHAPS;
	way->root_edge = read_chain(search, sample, chain);
	way->told.call = call_of(search, way);

	struct holder_step *container = container_of(chain);

	if (container != NULL) {
		container->is_container = true;
		way->told.container = type_name(container->node->object.type, texts);
		way->told.items = container->items;
		way->grown_site = container->grown_site;
	}
	if (read_root(search, &search->nodes[way->root], chain->count != 0 ? &chain->steps[0] : NULL, texts, way))
		way->begins = HOLDER_BEGINS_AS_TOLD;
	find_module(chain, container, texts, way);
	way->into = chain->steps[0].last.into;
	keep_steps(search, chain, 1, sample, way);
}
