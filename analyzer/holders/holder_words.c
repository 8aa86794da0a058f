/*
 * holder_words.c - names of the steps of a way (see holder_words.h).
 */
#include "holders/holder_words.h"

#include <inttypes.h>
#include <string.h>

#include "base/items.h"
#include "base/memory.h"
#include "base/text_pool.h"
#include "base/text_start.h"
#include "holders/holder_roots.h"
#include "holders/site_lines.h"

#define TYPE_BYTES 64u    // of a name that is told
#define TABLE_BEGIN 16u   // what comes before the functions of a class's own table
#define BLOCKS_FOLLOWED 4 // whose types are followed: then a type must lead to itself

struct words {
	const struct holder_search *search;
	struct text_pool *texts;
	bool is_private;
	bool has_counts;
	const struct symbol_type *leads; // of what the last word points to; NULL = not known
	uint64_t into;                   // and where that begins in its block
};

static const char *
keep(const struct words *words, const char *text)
{
	return text_pool_add_text(words->texts, text);
}

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
read_types(const struct words *words, const struct holder_step *from, struct way_step *step)
{
	static const char local[] = "(anonymous namespace)::";
	char types[HOLDER_TABLES_MAX * (TYPE_BYTES + 2)] = "";
	uint64_t first = 0;

	EACH (table, from->tables, from->table_count) {
		struct process_module *module;
		uint64_t offset;
		const char *name = class_of_table(words->search->modules, *table, &module, &offset);

		if (name == NULL)
			continue;
		for (const char *next; (next = strstr(name, local)) != NULL && strcspn(name, "<") > (size_t)(next - name);)
			name = next + sizeof(local) - 1;
		name = without_namespaces(name);
		TEXT_ADD(types, "%s%.*s%s", first == 0 ? "" : ", ",
		         (int)(strlen(name) >= TYPE_BYTES ? TYPE_BYTES - 4 : TYPE_BYTES), name,
		         strlen(name) >= TYPE_BYTES ? "..." : "");
		first = first != 0 ? first : *table;
	}
	step->name = keep(words, types);
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
read_member(struct words *words, const struct holder_step *from, uint64_t table, struct way_step *step)
{
	const struct symbol_type *type = from->is_alike ? type_of_table(words->search->modules, table) : NULL;
	const struct symbol_type *leads = NULL;
	char name[SYMBOL_MEMBER_BYTES] = "";
	bool is_repeated = from->blocks != 1;
	bool is_between = ANY(place, from->between, from->between_count, place->offset == from->last.offset);
	bool is_known = type != NULL && symbolizer_member(type, (int64_t)from->last.offset, name, &leads);

	if (!is_known) {
		uint64_t into;

		type = follow(words, from, &into);
		is_known = type != NULL && symbolizer_member(type, (int64_t)(from->last.offset - into), name, &leads);
	}
	if (is_known && symbol_type_is_node(type)) // how many lie between is the container's business
		is_repeated = is_between = false;
	if (is_between && from->between_count > 1) // of a tree: which one it was says nothing
		name[0] = '\0';
	step->repeat = is_between ? WAY_EACH : is_repeated ? WAY_UNTIL_LAST : WAY_ONCE;
	if (name[0] != '\0') {
		step->by = WAY_BY_MEMBER;
		step->member = keep(words, name);
	} else if (!is_known && !is_repeated && table != 0) {
		step->by = WAY_BY_OFFSET;
		step->member = keep(words, TEXT(24, "%" PRIu64, from->last.offset));
	}
	words->leads = leads;
	words->into = from->last.into;
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
count_nodes(const struct words *words, const struct torch_graph *graph, struct way_step *step)
{
	uint64_t nodes = 0;

	for (size_t i = 0; i < graph->table_count; i++) {
		struct process_module *module;
		uint64_t offset;
		const char *name = class_of_table(words->search->modules, graph->tables[i], &module, &offset);

		nodes += name != NULL && is_graph_node(name) ? graph->counts[i] : 0;
	}
	step->nodes = nodes > 1 ? nodes : 0;
	step->is_graph_cut = nodes > 1 && graph->is_cut;
}

/* ---- steps ---- */

static struct way_step
object_of(const struct words *words, const struct python_type *type)
{
	char name[2 * PYTHON_NAME_BYTES];

	python_objects_type_name(type, name);
	return model_way_step(WAY_OBJECT, keep(words, name), "");
}

static void
read_edge(const struct words *words, const struct holder_step *from, struct way_step *step)
{
	static const enum way_member by[] = {
		[PYTHON_EDGE_UNKNOWN] = WAY_BY_PLACE,   [PYTHON_EDGE_KEY] = WAY_BY_ITEM,
		[PYTHON_EDGE_KEY_ITSELF] = WAY_BY_KEY,  [PYTHON_EDGE_INDEX] = WAY_BY_ITEM,
		[PYTHON_EDGE_ELEMENT] = WAY_BY_ELEMENT, [PYTHON_EDGE_ATTRIBUTE] = WAY_BY_ATTRIBUTE,
		[PYTHON_EDGE_LOCAL] = WAY_BY_LOCAL,     [PYTHON_EDGE_TEMPORARY] = WAY_BY_TEMPORARY,
	};
	const struct python_edge *edge = &from->edge;
	bool is_dict = from->node->object.type->kind == PYTHON_DICT;
	bool is_one_of_many = holder_step_has_many(from) || (from->items != UINT64_MAX && words->is_private && is_dict);
	bool is_number = edge->kind == PYTHON_EDGE_UNKNOWN || edge->kind == PYTHON_EDGE_INDEX;

	step->by = is_one_of_many && edge->kind == PYTHON_EDGE_KEY_ITSELF ? WAY_BY_ANY_KEY : by[edge->kind];
	step->member = is_one_of_many && edge->kind != PYTHON_EDGE_ATTRIBUTE && edge->kind != PYTHON_EDGE_UNKNOWN
	                   ? "*"
	                   : keep(words, is_number ? TEXT(24, "%" PRIu64, edge->number) : edge->name);
	step->function = keep(words, edge->function);
}

static const char *
line_text(const struct words *words, uint32_t site)
{
	uint32_t line = site_lines_of(words->search->lines, site);

	return line != 0 ? keep(words, site_lines_text(&words->search->lines->lines[line], PLACE_ROOM)) : "";
}

static struct way_step
block_of(struct words *words, const struct holder_step *from)
{
	struct way_step step = model_way_step(WAY_BLOCK, "", line_text(words, from->node->site));

	if (from->released != NULL) {
		step = object_of(words, from->released);
		step.kind = WAY_RELEASED;
		words->leads = NULL;
		return step;
	}

	uint64_t table = read_types(words, from, &step);

	if (step.of[0] == '\0')
		step.count = from->node->end - from->node->start;
	if (!from->is_data && from->node->kind == HOLDER_BLOCK) {
		read_member(words, from, table, &step);
	} else {
		step.repeat = from->is_repeated ? WAY_EACH : WAY_ONCE;
		words->leads = NULL;
	}
	if (from->graph != NULL)
		count_nodes(words, from->graph, &step);
	return step;
}

static struct way_step
step_of(struct words *words, const struct holder_step *from)
{
	if (from->node->object.type == NULL)
		return block_of(words, from);

	struct way_step step = object_of(words, from->node->object.type);

	words->leads = NULL;
	if (words->has_counts && holder_step_has_many(from))
		step.count = from->items;
	step.is_container = from->is_container;
	if (from->is_storage)
		step.by = WAY_BY_STORAGE;
	else if (!from->is_data)
		read_edge(words, from, &step);
	step.repeat = from->is_repeated ? WAY_EACH : WAY_ONCE;
	return step;
}

void
holder_words(const struct holder_search *search, struct stack_locals *locals, bool is_private, struct text_pool *texts,
             struct holder_way *way)
{
	struct holders_way *told = &way->told;
	struct words words = { .search = search,
		                   .texts = texts,
		                   .is_private = is_private,
		                   .has_counts = told->kind == HOLDERS_HELD || told->kind == HOLDERS_PERHAPS,
		                   .into = way->into };
	struct way_step *step = text_pool_room(texts, (way->step_count + 4) *
	                                                  sizeof(*step)); // with root, gap, leaf and where ways part

	told->steps = step;
	if (way->begins != HOLDER_BEGINS_NOWHERE)
		*step++ = way->begins == HOLDER_BEGINS_AS_TOLD ? way->begin
		                                               : holder_root_step(search, way, locals, texts, &words.leads);
	for (size_t i = 0; i < way->step_count; i++) {
		if (way->left_out != 0 && i == HOLDER_WAY_BEGIN) {
			*step = model_way_step(WAY_MORE, "", "");
			step++->count = way->left_out;
			words.leads = NULL;
		}
		*step++ = step_of(&words, &way->steps[i]);
	}
	if (way->leaf != NULL)
		*step++ = object_of(&words, way->leaf);
	told->step_count = (size_t)(step - told->steps);
	told->grown_at = line_text(&words, way->grown_site);

	uint32_t grown = site_lines_of(search->lines, way->grown_site);
	const struct model_frame *grown_in = grown != 0 ? search->lines->lines[grown].site->where : NULL;

	told->grown_file = keep(&words, grown_in != NULL ? grown_in->file : "");
	if (told->step_count != 0) {
		OWNED char *text = model_way_words(told, 0, told->step_count, false);

		told->text = keep(&words, text);
	}
}
