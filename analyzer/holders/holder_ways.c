/*
 * holder_ways.c - a chain of nodes becomes a line of text (see holder_ways.h).
 *
 * A step is one object, or one block, and the name by which it holds the next. The storage of a list or a dictionary is no step of its own:
 * its places have names. Neither is the dictionary of an instance or a class.
 */
#include "holders/holder_ways.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/items.h"
#include "base/memory.h"
#include "base/units.h"

#define CHAIN_MAX 256    // steps, when those that follow each other are one
#define MANY 8u          // items with more than so many: their keys say nothing,
#define MANY_IN_A_ROW 4u // nor do their numbers
#define FEW 32u          // items: rather than such a container one of more is named
#define TEXT_BYTES 4096
#define LOST_NODES 128u // that are looked at
#define ARROW_BYTES 4u  // " -> "
#define TABLES_MAX 3u   // of C++ types that are told of blocks that follow each other

/* The word that leads on. */
struct word_place {
	uint64_t offset; // in its block
	uint64_t into;   // how far into the next one it leads
};

struct step {
	const struct holder_node *node;
	bool is_root;
	char type[2 * PYTHON_NAME_BYTES]; // "" = of no object
	bool is_dict;
	uint64_t items; // UINT64_MAX = no container
	uint32_t grown_site;
	size_t between_count;                         // HOLDER_PLACES_MAX + 1: more than there is room for
	struct word_place between[HOLDER_PLACES_MAX]; // of blocks that follow each other: of each but the last one
	struct word_place last;
	const struct python_type *released; // what it was; NULL = not known
	size_t blocks;                      // that follow each other
	const struct holder_graph *graph;   // NULL = was not asked for
	bool is_alike;                      // all begin with the one table
	size_t table_count;
	uint64_t tables[TABLES_MAX]; // of virtual functions, perhaps: words at the begin of blocks
	struct python_edge edge;
	bool is_storage;  // the edge leads to where the items are, and that is the sample
	bool is_data;     // or to the bytes of an array, which may be an object, too
	bool is_repeated; // and so do the next ones
};

struct chain {
	size_t count;
	size_t left_out; // of the middle, which is not told: there was no room
	struct step steps[CHAIN_MAX];
};

/* Nodes from the sample to the root. A deque has one of its blocks only. */
static size_t
read_nodes(const struct holder_search *search, uint32_t sample, uint32_t *nodes, uint32_t *edges)
{
	size_t count = 0;

	for (uint32_t number = sample; count < search->node_count; number = search->edges[edges[count - 1]].from) {
		uint32_t edge = search->nodes[number].best;

		nodes[count] = number;
		while (edge != HOLDER_NONE && search->nodes[number].is_chained &&
		       search->nodes[search->edges[edge].from].is_chained) {
			number = search->edges[edge].from;
			edge = search->nodes[number].best;
		}
		edges[count++] = edge;
		if (edge == HOLDER_NONE)
			break;
	}
	return count;
}

static bool
is_attribute(const struct step *step, const char *name)
{
	return step->edge.kind == PYTHON_EDGE_ATTRIBUTE && strcmp(step->edge.name, name) == 0;
}

/* Reads the step of nodes[i], which leads to nodes[i - 1]. Returns for how many nodes it stands. */
static size_t
read_step(struct holder_search *search, const uint32_t *nodes, const uint32_t *edges, size_t i, struct step *step)
{
	const struct holder_node *node = &search->nodes[nodes[i]];
	const struct holder_edge *edge = &search->edges[edges[i - 1]];
	struct python_objects *python = search->python;

	*step = (struct step){ .node = node, .items = UINT64_MAX, .blocks = 1 };
	step->last = (struct word_place){ edge->at - node->start, edge->value - search->nodes[nodes[i - 1]].start };
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
	python_objects_type_name(node->object.type, step->type);
	step->is_dict = node->object.type->kind == PYTHON_DICT;
	step->items = python_objects_items(python, &node->object);

	bool is_buffer = search->nodes[nodes[i - 1]].object.type == NULL &&
	                 python_objects_is_buffer(python, &node->object, edge->at);
	step->grown_site = is_buffer ? search->nodes[nodes[i - 1]].site : 0;
	step->is_storage = is_buffer && i == 1;
	python_objects_edge(python, &node->object, edge->at, is_buffer && i > 1 ? search->edges[edges[i - 2]].at : 0,
	                    &step->edge);
	step->is_storage = step->is_storage || (i == 1 && is_attribute(step, "its storage"));
	step->is_data = i == 1 && strcmp(step->edge.name, "data") == 0 &&
	                (search->nodes[nodes[0]].object.type == NULL || strcmp(step->type, "bytearray") == 0);
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

static bool
is_frame_of_generator(const struct step *last, const struct step *step)
{
	return step->edge.kind == PYTHON_EDGE_LOCAL && (is_attribute(last, "gi_frame") || is_attribute(last, "cr_frame"));
}

/*
 * Joins two steps where the second one has the name: an instance or a class and its dictionary; thread-local data and the dictionary of a
 * thread; a generator and its frame (up to 3.10).
 */
static void
join_parts(struct chain *chain)
{
	size_t kept = 0;

	for (size_t i = 0; i < chain->count; i++) {
		struct step *last = kept != 0 ? &chain->steps[kept - 1] : NULL;
		struct step *step = &chain->steps[i];

		if (last != NULL && step->is_dict &&
		    is_attribute(last, "dummies")) { // of thread-local data: a dictionary for each thread
			(void)snprintf(last->edge.name, sizeof(last->edge.name), "__dict__");
			continue;
		}
		if (last != NULL && step->is_dict && step->edge.kind == PYTHON_EDGE_KEY && is_attribute(last, "__dict__")) {
			last->edge = step->edge;
			last->edge.kind = PYTHON_EDGE_ATTRIBUTE;
			unquote(last->edge.name);
			continue;
		}
		if (last != NULL && is_frame_of_generator(last, step)) {
			last->edge = step->edge;
			continue;
		}
		chain->steps[kept++] = *step;
	}
	chain->count = kept;
}

/* Are both links of one linked list? Then they are told once. */
static bool
is_like(const struct step *a, const struct step *b)
{
	return strcmp(a->type, b->type) == 0 && a->edge.kind == b->edge.kind && a->edge.number == b->edge.number &&
	       strcmp(a->edge.name, b->edge.name) == 0 && (a->type[0] != '\0' || a->node->site == b->node->site);
}

static void
add_tables(struct step *to, const struct step *from)
{
	if (from->table_count != 0 && to->table_count < TABLES_MAX &&
	    !ANY(table, to->tables, to->table_count, *table == from->tables[0]))
		to->tables[to->table_count++] = from->tables[0];
}

static void
add_block(struct step *to, const struct step *from)
{
	size_t i = 0;

	while (i < to->between_count && i < HOLDER_PLACES_MAX && memcmp(&to->between[i], &to->last, sizeof(to->last)) != 0)
		i++;
	if (i < HOLDER_PLACES_MAX)
		to->between[i] = to->last;
	if (i == to->between_count)
		to->between_count++;
	to->last = from->last;
	to->blocks++;
	to->is_alike = to->is_alike && from->is_alike && to->tables[0] == from->tables[0];
}

static size_t
without_repeats(struct chain *chain, size_t first)
{
	size_t kept = 0;

	for (size_t i = 0; i < chain->count; i++) {
		if (kept > first && is_like(&chain->steps[kept - 1], &chain->steps[i])) {
			chain->steps[kept - 1].is_repeated = true;
			add_tables(&chain->steps[kept - 1], &chain->steps[i]);
			add_block(&chain->steps[kept - 1], &chain->steps[i]);
		} else
			chain->steps[kept++] = chain->steps[i];
	}
	return kept;
}

static void
join(struct chain *chain, size_t first)
{
	join_parts(chain);
	chain->count = without_repeats(chain, first);
}

/* A long way keeps its begin and its end, which are told. */
static void
make_room(struct chain *chain, size_t first)
{
	const size_t half = CHAIN_MAX / 2;

	join(chain, first);
	if (chain->count <= half)
		return;
	chain->left_out += chain->count - half;
	memmove(&chain->steps[HOLDER_WAY_STEPS], &chain->steps[chain->count - (half - HOLDER_WAY_STEPS)],
	        (half - HOLDER_WAY_STEPS) * sizeof(chain->steps[0]));
	chain->count = half;
}

/* nodes: from the sample on; edges[i] leads to nodes[i]. first: from this step on, steps that are alike become one. */
static void
make_chain(struct holder_search *search, const uint32_t *nodes, const uint32_t *edges, size_t count, size_t first,
           struct chain *chain)
{
	chain->count = chain->left_out = 0;
	for (size_t i = count - 1; i > 0;) {
		if (chain->count == CHAIN_MAX)
			make_room(chain, first);
		size_t used = read_step(search, nodes, edges, i, &chain->steps[chain->count]);

		chain->count++;
		i -= used;
	}
	join(chain, first);
}

/* Where a way goes through objects of a graph of PyTorch, the first of them is told with the size of the graph. */
static void
count_graph(struct holder_search *search, struct chain *chain)
{
	struct step *first = FIRST(
		step, chain->steps, chain->count,
		ANY(table, step->tables, step->table_count, holder_graph_is_table(search->modules, *table)));

	if (first != NULL)
		first->graph = holder_search_graph(search, first->node->start);
}

static void
read_chain(struct holder_search *search, uint32_t sample, struct chain *chain)
{
	OWNED uint32_t *nodes = memory_zeroed(search->node_count, sizeof(*nodes));
	OWNED uint32_t *edges = memory_zeroed(search->node_count, sizeof(*edges));
	size_t count = read_nodes(search, sample, nodes, edges);

	make_chain(search, nodes, edges, count, 1, chain); // of the root nothing is like it
	if (chain->count != 0)
		chain->steps[0].is_root = true;
	count_graph(search, chain);
}

/* ---- words ---- */

struct words {
	char text[TEXT_BYTES];
};
#define say(words, ...) TEXT_ADD((words)->text, __VA_ARGS__)

static bool
has_many(const struct step *step)
{
	return step->items != UINT64_MAX && step->items > (step->edge.kind == PYTHON_EDGE_INDEX ? MANY_IN_A_ROW : MANY);
}

static void
say_edge(struct words *words, const struct step *step, bool is_private)
{
	bool is_one_of_many = has_many(step) || (step->items != UINT64_MAX && is_private && step->is_dict);

	switch (step->edge.kind) {
	case PYTHON_EDGE_UNKNOWN:
		say(words, " +%" PRIu64 "?", step->edge.number);
		break;
	case PYTHON_EDGE_KEY:
		say(words, is_one_of_many ? " [*]" : " [%s]", step->edge.name);
		break;
	case PYTHON_EDGE_KEY_ITSELF:
		say(words, is_one_of_many ? " a key" : " key %s", step->edge.name);
		break;
	case PYTHON_EDGE_INDEX:
		if (is_one_of_many)
			say(words, " [*]");
		else
			say(words, " [%" PRIu64 "]", step->edge.number);
		break;
	case PYTHON_EDGE_ELEMENT:
		say(words, " {*}");
		break;
	case PYTHON_EDGE_ATTRIBUTE:
		say(words, " .%s", step->edge.name);
		break;
	case PYTHON_EDGE_LOCAL:
		say(words, ", local `%s` of %s", step->edge.name, step->edge.function);
		break;
	case PYTHON_EDGE_TEMPORARY:
		say(words, ", a temporary value of %s?", step->edge.function);
		break;
	}
}

static void
say_places(struct words *words, const struct step *step)
{
	bool is_too_many = step->between_count > HOLDER_PLACES_MAX;

	say(words, "%c" HOLDER_MEMBER_FORMAT, HOLDER_MEMBER_MARK, is_too_many ? 0 : step->blocks, step->is_alike,
	    step->last.offset, step->last.into);
	for (size_t i = 0; i < step->between_count && !is_too_many; i++)
		say(words, HOLDER_PLACE_FORMAT, step->between[i].offset, step->between[i].into);
	say(words, ";");
}

static void
say_block(struct words *words, const struct step *step, const struct site_lines *lines)
{
	uint32_t line = site_lines_of(lines, step->node->site);
	char name[2 * PYTHON_NAME_BYTES];

	if (step->released != NULL) {
		python_objects_type_name(step->released, name);
		say(words, " -> %s that is being released", name);
		return;
	}
	say(words, " -> block");
	for (size_t i = 0; i < step->table_count; i++)
		say(words, "%c%016" PRIx64, HOLDER_TYPE_MARK, step->tables[i]);
	if (line != 0)
		say(words, " of %s", site_lines_text(&lines->lines[line], PLACE_ROOM));
	else
		say(words, " of %" PRIu64 " bytes?", step->node->end - step->node->start);
	if (step->is_data || step->node->kind != HOLDER_BLOCK)
		say(words, "%s", step->is_repeated ? ", one after another" : "");
	else
		say_places(words, step);
	if (step->graph == NULL)
		return;
	say(words, "%c%x", HOLDER_GRAPH_MARK, step->graph->is_cut);
	for (size_t i = 0; i < step->graph->table_count; i++)
		say(words, ",%" PRIx64 ":%x", step->graph->tables[i], step->graph->counts[i]);
	say(words, ";");
}

/* is_key: leaves out what differs from sample to sample. */
static void
say_step(struct words *words, const struct step *step, const struct holder_words *with, bool is_key, bool is_container)
{
	const struct site_lines *lines = with->lines;
	uint32_t line = site_lines_of(lines, step->grown_site);

	if (step->type[0] == '\0') {
		say_block(words, step, lines);
		return;
	}
	say(words, " -> %s", step->type);
	if (!is_key && has_many(step))
		say(words, " of %s", UNITS_COUNT(step->items));
	if (!is_key && is_container && line != 0)
		say(words, ", grown at %s%s", site_lines_text(&lines->lines[line], PLACE_ROOM), step->is_storage ? "" : ",");
	if (step->is_storage)
		say(words, ": its storage");
	else if (!step->is_data)
		say_edge(words, step, with->is_private);
	say(words, "%s", step->is_repeated ? ", one after another" : "");
}

/* What Python knows about a root. False: symbols must tell it. */
static bool
say_root(struct words *words, struct holder_search *search, const struct step *step)
{
	const struct holder_node *node = step->node;
	char name[PYTHON_NAME_BYTES] = "?";

	char *key = TEXT(PYTHON_NAME_BYTES, "%s", step->edge.name);
	unquote(key);
	if (node->kind == HOLDER_FRAME || (node->root == HOLDER_END_FRAME && step->edge.function[0] != '\0')) {
		if (step->edge.kind == PYTHON_EDGE_LOCAL)
			say(words, "local `%s` of %s", step->edge.name, step->edge.function);
		else
			say(words, "a temporary value of %s?", step->edge.function);
		return true;
	}
	switch (node->root) {
	case HOLDER_END_MODULE:
		(void)python_objects_module(search->python, &node->object, name, &(bool){ false });
		if (step->edge.kind == PYTHON_EDGE_KEY && !step->is_storage)
			say(words, "global `%s` of module %s", key, name);
		else
			say(words, "the names of module %s", name);
		return true;
	case HOLDER_END_CLASS: {
		const struct python_type *type = python_objects_type(search->python, node->object.addr);
		char of[2 * PYTHON_NAME_BYTES] = "?";

		if (type != NULL)
			python_objects_type_name(type, of);
		if (step->edge.kind == PYTHON_EDGE_ATTRIBUTE)
			say(words, "attribute `%s` of class %s", key, of);
		else
			say(words, "class %s", of);
		return true;
	}
	case HOLDER_END_FRAME:
		say(words, "a frame that runs");
		return true;
	case HOLDER_END_NONE:
		break;
	}
	return false;
}

/* Does the way lead through one of its many items? A tuple does not grow. */
static bool
is_container(const struct step *step)
{
	return !step->is_root && has_many(step) && strcmp(step->type, "tuple") != 0 &&
	       (step->is_storage || (step->edge.kind != PYTHON_EDGE_ATTRIBUTE && step->edge.kind != PYTHON_EDGE_UNKNOWN));
}

/* The outermost one grows: what it has in it was put there item by item, and an inner one has often a fixed size. */
static const struct step *
container_of(const struct chain *chain)
{
	const struct step *of_more = FIRST(step, chain->steps, chain->count, is_container(step) && step->items > FEW);

	return of_more != NULL ? of_more : FIRST(step, chain->steps, chain->count, is_container(step));
}

static void
say_leaf(struct words *words, const struct chain *chain, const struct holder_node *node)
{
	char name[2 * PYTHON_NAME_BYTES];

	if (node->object.type == NULL || chain->steps[chain->count - 1].is_data)
		return;
	python_objects_type_name(node->object.type, name);
	say(words, " -> %s", name);
}

/* Says what the sample itself is, when it is a root: a class, a module's names or a frame. */
static void
say_root_itself(struct words *words, struct holder_search *search, const struct holder_node *node)
{
	const struct python_type *type = NULL;
	char name[2 * PYTHON_NAME_BYTES] = "?";

	switch (node->root) {
	case HOLDER_END_CLASS:
		type = python_objects_type(search->python, node->object.addr);
		if (type != NULL)
			python_objects_type_name(type, name);
		say(words, "class %s, which is this block", name);
		break;
	case HOLDER_END_MODULE:
		(void)python_objects_module(search->python, &node->object, name, &(bool){ false });
		say(words, "module %s, whose names are this block", name);
		break;
	case HOLDER_END_FRAME:
	case HOLDER_END_NONE:
		say(words, "a frame that runs, which is this block");
		break;
	}
}

static char *
text_of(struct holder_search *search, const struct chain *chain, const struct holder_words *with, uint32_t sample,
        bool is_key, bool *has_root)
{
	struct words words = { "" };
	const struct step *container = container_of(chain);
	size_t left_out = chain->count > HOLDER_WAY_STEPS ? chain->count - HOLDER_WAY_STEPS : 0;

	if (chain->count == 0) {
		say_root_itself(&words, search, &search->nodes[sample]);
		*has_root = true;
		return memory_text(words.text);
	}
	*has_root = say_root(&words, search, &chain->steps[0]);
	if (!*has_root)
		say(&words, "%c%" PRIx64 ";", HOLDER_ROOT_MARK, chain->steps[0].last.into);
	for (size_t i = 1; i < chain->count; i++) {
		if (left_out != 0 && i == HOLDER_WAY_STEPS / 2) {
			if (is_key)
				say(&words, " -> ...");
			else
				say(&words, " -> ... %zu more ...", left_out + chain->left_out);
			i += left_out;
		}
		say_step(&words, &chain->steps[i], with, is_key, &chain->steps[i] == container);
	}
	say_leaf(&words, chain, &search->nodes[sample]);
	return memory_text(words.text);
}

/*
 * Goes from the sample upwards, nearest first: above[i] is the edge by which nodes[i] was reached, HOLDER_NONE for the sample. The
 * storage of items is passed through. Returns how many nodes there are.
 */
static size_t
find_above(const struct holder_search *search, uint32_t sample, uint32_t *nodes, uint32_t *above)
{
	OWNED bool *is_known = memory_zeroed(search->node_count, sizeof(*is_known));
	size_t count = 1;

	nodes[0] = sample;
	above[0] = HOLDER_NONE;
	is_known[sample] = true;
	for (size_t first = 0, end = 1; first < end && end < LOST_NODES; first = end, end = count) {
		for (uint32_t i = 0; i < search->edge_count && count < LOST_NODES; i++) {
			const struct holder_edge *edge = &search->edges[i];

			if (edge->is_gone || is_known[edge->from] || !is_known[edge->to] ||
			    !ANY(node, nodes + first, end - first, *node == edge->to))
				continue;
			is_known[edge->from] = true;
			nodes[count] = edge->from;
			above[count++] = i;
		}
	}
	return count;
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

/* Tells what leads to the sample without a root, from far to near: lost blocks, or the end of a long chain. */
static void
say_chain(struct words *words, struct holder_search *search, uint32_t sample, const struct holder_words *with,
          bool is_lost)
{
	char *begin = words->text + strlen(words->text);
	OWNED struct chain *chain = memory_zeroed(1, sizeof(*chain));
	uint32_t found[LOST_NODES];
	uint32_t above[LOST_NODES];
	uint32_t nodes[CHAIN_MAX];
	uint32_t edges[CHAIN_MAX];
	size_t count = 0;
	uint32_t path[CHAIN_MAX];
	size_t length = 0;

	size_t found_count = find_above(search, sample, found, above);
	size_t at = is_lost ? choose_top(search, found, found_count) : farthest(search, found, found_count);

	/* Down to the sample; then the other way round. */
	for (; above[at] != HOLDER_NONE && length < CHAIN_MAX - 1; length++) {
		path[length] = above[at];
		for (at = 0; found[at] != search->edges[path[length]].to;)
			at++;
	}
	nodes[count++] = sample;
	while (length-- > 0) {
		edges[count - 1] = path[length];
		nodes[count++] = search->edges[path[length]].from;
	}
	make_chain(search, nodes, edges, count, 0, chain);
	if (is_lost)
		count_graph(search, chain);
	for (size_t i = 0; i < chain->count; i++)
		say_step(words, &chain->steps[i], with, true, false);
	if (chain->count != 0)
		say_leaf(words, chain, &search->nodes[sample]);
	if (strlen(begin) >= ARROW_BYTES)
		memmove(begin, begin + ARROW_BYTES, strlen(begin + ARROW_BYTES) + 1);
}

static void
tell_without_root(struct holder_search *search, uint32_t sample, const struct holder_words *with,
                  struct holder_way *way)
{
	struct words words = { "" };
	char name[2 * PYTHON_NAME_BYTES];
	uint64_t counted;
	uint64_t seen;
	uint32_t node;

	bool is_short = holder_search_is_late(search) || search->is_full;
	bool is_unseen = !is_short && holder_search_unseen(search, sample, &node, &counted, &seen);

	/* Words that may be left over lead on and on to what an extension holds: that is not a chain. */
	if (is_short || (!holder_search_is_done(search, sample) && !is_unseen)) {
		way->kind = HOLDER_WAY_UNFINISHED;
		say(&words, "%s",
		    search->is_late   ? "there was no time to find it"
		    : search->is_full ? "too many blocks lead there"
		                      : "it is in a long chain");
		if (!search->is_late && !search->is_full) {
			size_t before = strlen(words.text);

			say(&words, ": ");
			say_chain(&words, search, sample, with, false);
			if (strlen(words.text) == before + 2) // nothing can be said of it
				words.text[before] = '\0';
		}
	} else if (is_unseen) {
		way->kind = HOLDER_WAY_UNSEEN;
		python_objects_type_name(search->nodes[node].object.type, name);
		if (counted == UINT64_MAX)
			say(&words, "%s, which lives for ever", name);
		else
			say(&words, "%s with %" PRIu64 " reference%s, of which %" PRIu64 " %s found", name, counted,
			    counted == 1 ? "" : "s", seen, seen == 1 ? "was" : "were");
	} else if (search->look->ranges.shared_bytes != 0) {
		way->kind = HOLDER_WAY_UNREAD;
	} else {
		way->kind = HOLDER_WAY_LOST;
		say_chain(&words, search, sample, with, true);
	}
	way->text = memory_text(words.text);
	way->key = memory_text(words.text);
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
	if (search->nodes[sample].cost == UINT32_MAX ||
	    stopped_process_time(&search->look->process) > search->words_deadline_ns)
		return false;
	return !is_cut_short(search, sample) || (search->python->shape == NULL && !holder_search_is_guess(search, sample));
}

static const char *
call_of(const struct holder_search *search, const struct holder_way *way)
{
	enum holder_kind kind = search->nodes[way->root].kind;

	if (way->root_edge == HOLDER_NONE || search->python->shape == NULL)
		return "";
	if (kind == HOLDER_STACK || kind == HOLDER_REGISTER)
		return "native";
	return search->edges[way->root_edge].is_library ? "python" : "";
}

void
holder_way_read(struct holder_search *search, uint32_t sample, const struct holder_words *with, struct holder_way *way)
{
	struct chain *chain = memory_zeroed(1, sizeof(*chain));
	uint32_t root = sample;

	*way = (struct holder_way){ .kind = HOLDER_WAY_HELD, .root_edge = HOLDER_NONE, .call = "" };
	while (search->nodes[root].best != HOLDER_NONE) {
		way->root_edge = search->nodes[root].best;
		root = search->edges[way->root_edge].from;
	}
	way->root = root;
	way->call = call_of(search, way);
	if (!is_way_told(search, sample)) {
		tell_without_root(search, sample, with, way);
		free(chain);
		return;
	}
	if (holder_search_is_guess(search, sample) || is_cut_short(search, sample))
		way->kind = HOLDER_WAY_PERHAPS;
	read_chain(search, sample, chain);
	way->text = text_of(search, chain, with, sample, false, &way->has_root_text);
	way->key = text_of(search, chain, with, sample, true, &way->has_root_text);

	const struct step *container = container_of(chain);

	if (container != NULL) {
		memcpy(way->container, container->type, sizeof(way->container));
		way->items = container->items;
		way->grown_site = container->grown_site;
	}
	free(chain);
}

void
holder_way_free(struct holder_way *way)
{
	free(way->text);
	free(way->key);
	*way = (struct holder_way){ 0 };
}
