/*
 * holder_words.c - steps become a line of text (see holder_words.h).
 */
#include "holders/holder_words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/items.h"
#include "base/memory.h"
#include "base/text_start.h"
#include "base/units.h"
#include "holders/holder_roots.h"
#include "holders/site_lines.h"

#define ARROW " -> "
#define TYPE_BYTES 64u    // of a name that is told
#define TABLE_BEGIN 16u   // what comes before the functions of a class's own table
#define BLOCKS_FOLLOWED 4 // whose types are followed: then a type must lead to itself

struct words {
	const struct holder_search *search;
	bool is_private;
	bool is_key;
	FILE *stream;
	const struct symbol_type *leads; // of what the last word points to; NULL = not known
	uint64_t into;                   // and where that begins in its block
};
#define say(words, ...) ((void)fprintf((words)->stream, __VA_ARGS__))

/* ---- types and members of C++ ---- */

static const char *
without_namespaces(const char *name)
{
	size_t end = strcspn(name, "<(");

	for (size_t i = end; i > 1; i--) {
		if (name[i - 1] == ':' && name[i - 2] == ':')
			return name + i;
	}
	return name;
}

/* NULL = it is no table of virtual functions, or the library has no names. offset: out, in the table. */
static const char *
class_of_table(struct process_modules *modules, uint64_t addr, struct process_module **module, uint64_t *offset)
{
	static const char prefix[] = "vtable for ";
	const char *name;

	*module = process_modules_at(modules, addr);

	struct data_symbols *symbols = *module != NULL ? process_module_symbols(modules, *module) : NULL;

	if (symbols == NULL ||
	    !data_symbols_at(symbols, DATA_SYMBOL_VARIABLE, addr - process_module_bias(*module), &name, offset) ||
	    !text_starts(name, prefix))
		return NULL;
	return name + sizeof(prefix) - 1;
}

/* The type of an object that begins with this table; NULL = not known. */
static const struct symbol_type *
type_of_table(struct process_modules *modules, uint64_t table)
{
	struct process_module *module;
	uint64_t offset;
	const char *name = table != 0 ? class_of_table(modules, table, &module, &offset) : NULL;
	struct symbolizer_file *types = name != NULL && offset == TABLE_BEGIN ? process_module_types(modules, module)
	                                                                      : NULL;

	return types != NULL ? symbolizer_class(modules->symbolizer, types, name) : NULL;
}

/* "(anonymous namespace)::secret" has a bracket that is no argument's. Returns the first table whose class has a name; 0 = none has. */
static uint64_t
say_types(struct words *words, const struct holder_step *step)
{
	static const char local[] = "(anonymous namespace)::";
	uint64_t first = 0;

	EACH (table, step->tables, step->table_count) {
		struct process_module *module;
		uint64_t offset;
		const char *name = class_of_table(words->search->modules, *table, &module, &offset);

		if (name == NULL)
			continue;
		for (const char *next; (next = strstr(name, local)) != NULL && strcspn(name, "<") > (size_t)(next - name);)
			name = next + sizeof(local) - 1;
		name = without_namespaces(name);
		say(words, first == 0 ? " (%.*s%s" : ", %.*s%s",
		    (int)(strlen(name) >= TYPE_BYTES ? TYPE_BYTES - 4 : TYPE_BYTES), name,
		    strlen(name) >= TYPE_BYTES ? "..." : "");
		first = first != 0 ? first : *table;
	}
	if (first != 0)
		say(words, ")");
	return first;
}

/* The type to which this word leads, from what begins at *into of its block. *into: out, the same in the next block. */
static const struct symbol_type *
follow_word(const struct symbol_type *type, const struct holder_place *word, uint64_t *into)
{
	char name[SYMBOL_MEMBER_BYTES];
	const struct symbol_type *next;

	if (!symbolizer_member(type, (int64_t)(word->offset - *into), name, &next))
		return NULL;
	*into = word->into;
	return next;
}

/* The type of the last of these blocks, found from the type that leads to the first one. In a list or a tree all have that type. */
static const struct symbol_type *
follow(const struct words *words, const struct holder_step *step, uint64_t *into)
{
	const struct symbol_type *type = words->leads;

	*into = words->into;
	for (size_t i = 1; i < step->blocks && type != NULL; i++) {
		size_t itself = 0;

		for (size_t k = 0; k < step->between_count; k++) {
			uint64_t next_into = *into;

			itself += symbol_type_is(type, follow_word(type, &step->between[k], &next_into)) && next_into == *into;
		}
		if (itself == step->between_count)
			return type;
		if (step->between_count > 1 || i >= BLOCKS_FOLLOWED)
			return NULL;
		type = follow_word(type, &step->between[0], into);
	}
	return step->blocks != 0 ? type : NULL;
}

static void
say_member(struct words *words, const struct holder_step *step, uint64_t table)
{
	const struct symbol_type *type = step->is_alike ? type_of_table(words->search->modules, table) : NULL;
	const struct symbol_type *leads = NULL;
	char name[SYMBOL_MEMBER_BYTES] = "";
	bool is_repeated = step->blocks != 1;
	bool is_between = ANY(place, step->between, step->between_count, place->offset == step->last.offset);
	bool is_known = type != NULL && symbolizer_member(type, (int64_t)step->last.offset, name, &leads);

	if (!is_known) {
		uint64_t into;

		type = follow(words, step, &into);
		is_known = type != NULL && symbolizer_member(type, (int64_t)(step->last.offset - into), name, &leads);
	}
	if (is_known && symbol_type_is_node(type)) // how many lie between is the container's business
		is_repeated = is_between = false;
	if (is_between && step->between_count > 1) // of a tree: which one it was says nothing
		name[0] = '\0';
	if (is_repeated && !is_between)
		say(words, name[0] != '\0' ? ", one after another," : ", one after another");
	if (name[0] != '\0')
		say(words, " %s", name);
	else if (!is_known && !is_repeated && table != 0)
		say(words, " +%" PRIu64, step->last.offset);
	if (is_between)
		say(words, ", one after another");
	words->leads = leads;
	words->into = step->last.into;
}

/* Has the class a name by which PyTorch calls nodes of its graphs? */
static bool
is_graph_node(const char *name)
{
	static const char autograd[] = "torch::autograd::";

	return text_starts(name, autograd) &&
	       (strstr(name, "Backward") != NULL || strcmp(name + sizeof(autograd) - 1, "AccumulateGrad") == 0 ||
	        strcmp(name + sizeof(autograd) - 1, "PyNode") == 0 || text_starts(name + sizeof(autograd) - 1, "CppNode<"));
}

static void
say_graph(struct words *words, const struct torch_graph *graph)
{
	uint64_t nodes = 0;

	for (size_t i = 0; i < graph->table_count; i++) {
		struct process_module *module;
		uint64_t offset;
		const char *name = class_of_table(words->search->modules, graph->tables[i], &module, &offset);

		nodes += name != NULL && is_graph_node(name) ? graph->counts[i] : 0;
	}
	if (nodes > 1)
		say(words, ", grad_fn chain of %s%s nodes", graph->is_cut ? "at least " : "", UNITS_COUNT(nodes));
}

/* ---- steps ---- */

static void
say_type(struct words *words, const struct python_type *type)
{
	char name[2 * PYTHON_NAME_BYTES];

	python_objects_type_name(type, name);
	say(words, "%s", name);
}

static void
say_edge(struct words *words, const struct holder_step *step)
{
	bool is_dict = step->node->object.type->kind == PYTHON_DICT;
	bool is_one_of_many = holder_step_has_many(step) || (step->items != UINT64_MAX && words->is_private && is_dict);

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

static const char *
line_text(const struct words *words, uint32_t site, char text[PLACE_TEXT_BYTES])
{
	uint32_t line = site_lines_of(words->search->lines, site);

	return line != 0 ? site_lines_text(&words->search->lines->lines[line], text) : NULL;
}

/* Is it known whether the word that leads on is a member, and perhaps what it points to? */
static bool
say_block(struct words *words, const struct holder_step *step)
{
	const char *place = line_text(words, step->node->site, PLACE_ROOM);
	bool has_member = !step->is_data && step->node->kind == HOLDER_BLOCK;

	if (step->released != NULL) {
		say_type(words, step->released);
		say(words, " that is being released");
		return false;
	}
	say(words, "block");

	uint64_t table = say_types(words, step);

	if (place != NULL)
		say(words, " of %s", place);
	else
		say(words, " of %" PRIu64 " bytes?", step->node->end - step->node->start);
	if (has_member)
		say_member(words, step, table);
	else
		say(words, "%s", step->is_repeated ? ", one after another" : "");
	if (step->graph != NULL)
		say_graph(words, step->graph);
	return has_member;
}

static void
say_object(struct words *words, const struct holder_step *step)
{
	const char *grown_at = line_text(words, step->grown_site, PLACE_ROOM);

	say_type(words, step->node->object.type);
	if (!words->is_key && holder_step_has_many(step))
		say(words, " of %s", UNITS_COUNT(step->items));
	if (!words->is_key && step->is_container && grown_at != NULL)
		say(words, ", grown at %s%s", grown_at, step->is_storage ? "" : ",");
	if (step->is_storage)
		say(words, ": its storage");
	else if (!step->is_data)
		say_edge(words, step);
	say(words, "%s", step->is_repeated ? ", one after another" : "");
}

static void
say_step(struct words *words, const struct holder_step *step)
{
	bool has_member = false;

	if (step->node->object.type != NULL)
		say_object(words, step);
	else
		has_member = say_block(words, step);
	if (!has_member)
		words->leads = NULL;
}

char *
holder_words(const struct holder_search *search, struct stack_locals *locals, const struct holder_way *way,
             bool is_private, bool is_key)
{
	bool has_root = way->kind == HOLDER_WAY_HELD || way->kind == HOLDER_WAY_PERHAPS;
	struct words words = {
		.search = search, .is_private = is_private, .is_key = is_key || !has_root, .into = way->into
	};
	char root[HOLDER_ROOT_BYTES];
	char *text;

	words.stream = memory_stream(&text, NULL);
	say(&words, "%s", way->begin != NULL ? way->begin : holder_root_text(search, way, locals, root, &words.leads));
	for (size_t i = 0; i < way->step_count; i++) {
		if (way->left_out != 0 && i == HOLDER_WAY_BEGIN) {
			say(&words, is_key ? ARROW "..." : ARROW "... %zu more ...", way->left_out);
			words.leads = NULL;
		}
		say(&words, "%s", has_root || i != 0 ? ARROW : "");
		say_step(&words, &way->steps[i]);
	}
	if (way->leaf != NULL) {
		say(&words, ARROW);
		say_type(&words, way->leaf);
	}
	memory_stream_close(words.stream);
	return text;
}
