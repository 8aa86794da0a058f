/*
 * holder_members.c - names of C++ types and of members (see holder_members.h).
 */
#include "holders/holder_members.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/items.h"
#include "base/memory.h"
#include "base/text_start.h"
#include "base/units.h"
#include "holders/holder_ways.h"

#define DIGITS 16u
#define TYPE_BYTES 64u    // of a name that is told
#define TABLE_BEGIN 16u   // what comes before the functions of a class's own table
#define BLOCKS_FOLLOWED 4 // whose types are followed: then a type must lead to itself

struct teller {
	struct process_modules *modules;
	FILE *told;
	const struct symbol_type *leads; // of what the last word points to; NULL = not known
	uint64_t into;                   // and where that begins in its block
	bool is_member;                  // since the last arrow there was a mark that says so
	size_t names;                    // of types, in a row
	bool has_type;                   // one was told since the last arrow
	uint64_t table;                  // the first one since the last arrow; 0 = none
};

void
holder_member_of_type(const struct symbol_type *type, uint64_t offset, char member[SYMBOL_MEMBER_BYTES],
                      const struct symbol_type **leads)
{
	member[0] = '\0';
	*leads = NULL;
	if (type != NULL)
		(void)symbolizer_member(type, (int64_t)offset, member, leads);
}

void
holder_member_of_variable(struct process_modules *modules, struct process_module *module, uint64_t address,
                          bool is_thread_local, uint64_t offset, char member[SYMBOL_MEMBER_BYTES],
                          const struct symbol_type **leads)
{
	struct symbolizer_file *types = process_module_types(modules, module);
	const struct symbol_type *type = types != NULL
	                                     ? symbolizer_variable(modules->symbolizer, types, address, is_thread_local)
	                                     : NULL;

	holder_member_of_type(type, offset, member, leads);
}

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
type_of_table(struct teller *teller, uint64_t table)
{
	struct process_module *module;
	uint64_t offset;
	const char *name = table != 0 ? class_of_table(teller->modules, table, &module, &offset) : NULL;
	struct symbolizer_file *types = name != NULL && offset == TABLE_BEGIN
	                                    ? process_module_types(teller->modules, module)
	                                    : NULL;

	return types != NULL ? symbolizer_class(teller->modules->symbolizer, types, name) : NULL;
}

/* "(anonymous namespace)::secret" has a bracket that is no argument's. */
static void
tell_type(struct teller *teller, uint64_t table)
{
	static const char local[] = "(anonymous namespace)::";
	struct process_module *module;
	uint64_t offset;
	const char *name = class_of_table(teller->modules, table, &module, &offset);

	if (name == NULL)
		return;
	for (const char *next; (next = strstr(name, local)) != NULL && strcspn(name, "<") > (size_t)(next - name);)
		name = next + sizeof(local) - 1;
	name = without_namespaces(name);
	(void)fprintf(teller->told, teller->names++ == 0 ? " (%.*s%s" : ", %.*s%s",
	              (int)(strlen(name) >= TYPE_BYTES ? TYPE_BYTES - 4 : TYPE_BYTES), name,
	              strlen(name) >= TYPE_BYTES ? "..." : "");
	teller->has_type = true;
	if (teller->table == 0)
		teller->table = table;
}

struct word_place {
	uint64_t offset;
	uint64_t into;
};

struct blocks {
	size_t count; // 0 = they lead to each other in too many ways
	unsigned is_alike;
	struct word_place last;
	size_t between_count;
	struct word_place between[HOLDER_PLACES_MAX];
};

/* at: behind the mark */
static void
read_blocks(const char *at, struct blocks *blocks)
{
	char *next;

	*blocks = (struct blocks){ .count = strtoul(at, &next, 16) };
	blocks->is_alike = *next == ',' && strtoul(next + 1, &next, 16) != 0;
	blocks->last.offset = *next == ',' ? strtoull(next + 1, &next, 16) : 0;
	blocks->last.into = *next == ',' ? strtoull(next + 1, &next, 16) : 0;
	while (*next == ',' && blocks->between_count < HOLDER_PLACES_MAX) {
		struct word_place *place = &blocks->between[blocks->between_count++];

		place->offset = strtoull(next + 1, &next, 16);
		place->into = *next == ',' ? strtoull(next + 1, &next, 16) : 0;
	}
}

/* The type to which this word leads, from what begins at *into of its block. *into: out, the same in the next block. */
static const struct symbol_type *
follow_word(const struct symbol_type *type, const struct word_place *word, uint64_t *into)
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
follow(const struct teller *teller, const struct blocks *blocks, uint64_t *into)
{
	const struct symbol_type *type = teller->leads;

	*into = teller->into;
	for (size_t i = 1; i < blocks->count && type != NULL; i++) {
		size_t itself = 0;

		for (size_t k = 0; k < blocks->between_count; k++) {
			uint64_t next_into = *into;

			itself += symbol_type_is(type, follow_word(type, &blocks->between[k], &next_into)) && next_into == *into;
		}
		if (itself == blocks->between_count)
			return type;
		if (blocks->between_count > 1 || i >= BLOCKS_FOLLOWED)
			return NULL;
		type = follow_word(type, &blocks->between[0], into);
	}
	return blocks->count != 0 ? type : NULL;
}

static void
tell_member(struct teller *teller, const struct blocks *blocks)
{
	const struct symbol_type *type = blocks->is_alike ? type_of_table(teller, teller->table) : NULL;
	const struct symbol_type *leads = NULL;
	char name[SYMBOL_MEMBER_BYTES] = "";
	bool is_repeated = blocks->count != 1;
	bool is_between = ANY(place, blocks->between, blocks->between_count, place->offset == blocks->last.offset);
	bool is_known = type != NULL && symbolizer_member(type, (int64_t)blocks->last.offset, name, &leads);

	if (!is_known) {
		uint64_t into;

		type = follow(teller, blocks, &into);
		is_known = type != NULL && symbolizer_member(type, (int64_t)(blocks->last.offset - into), name, &leads);
	}
	if (is_known && symbol_type_is_node(type)) // how many lie between is the container's business
		is_repeated = is_between = false;
	if (is_between && blocks->between_count > 1) // of a tree: which one it was says nothing
		name[0] = '\0';
	if (is_repeated && !is_between)
		(void)fputs(name[0] != '\0' ? ", one after another," : ", one after another", teller->told);
	if (name[0] != '\0')
		(void)fprintf(teller->told, " %s", name);
	else if (!is_known && !is_repeated && teller->has_type)
		(void)fprintf(teller->told, " +%" PRIu64, blocks->last.offset);
	if (is_between)
		(void)fputs(", one after another", teller->told);
	teller->leads = leads;
	teller->into = blocks->last.into;
	teller->is_member = true;
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

/* at: of the mark. */
static void
tell_graph(struct teller *teller, const char *at)
{
	char *next;
	bool is_cut = strtoul(at + 1, &next, 16) != 0;
	uint64_t nodes = 0;

	while (*next == ',') {
		uint64_t table = strtoull(next + 1, &next, 16);
		uint64_t count = *next == ':' ? strtoull(next + 1, &next, 16) : 0;
		struct process_module *module;
		uint64_t offset;
		const char *name = class_of_table(teller->modules, table, &module, &offset);

		nodes += name != NULL && is_graph_node(name) ? count : 0;
	}
	if (nodes > 1)
		(void)fprintf(teller->told, ", grad_fn chain of %s%s nodes", is_cut ? "at least " : "", UNITS_COUNT(nodes));
}

/* at: a mark. Returns what is behind it. */
static const char *
tell_mark(struct teller *teller, const char *at)
{
	char digits[DIGITS + 1];
	struct blocks blocks;
	const char *end = strchr(at, ';');

	if (*at == HOLDER_TYPE_MARK) {
		(void)snprintf(digits, sizeof(digits), "%s", at + 1);
		tell_type(teller, strtoull(digits, NULL, 16));
		return at + strnlen(at, DIGITS + 1);
	}
	if (*at == HOLDER_ROOT_MARK && end != NULL) {
		teller->into = strtoull(at + 1, NULL, 16);
		teller->is_member = true;
	} else if (*at == HOLDER_MEMBER_MARK && end != NULL) {
		read_blocks(at + 1, &blocks);
		tell_member(teller, &blocks);
	} else if (*at == HOLDER_GRAPH_MARK && end != NULL)
		tell_graph(teller, at);
	return end != NULL ? end + 1 : at + strlen(at);
}

/* A step without marks is an object of Python, or was left out. */
static void
begin_step(struct teller *teller)
{
	if (!teller->is_member)
		teller->leads = NULL;
	teller->is_member = teller->has_type = false;
	teller->table = 0;
}

char *
holder_words_told(struct process_modules *modules, const char *text, const struct symbol_type *leads)
{
	char *told;
	struct teller teller = { .modules = modules, .told = memory_stream(&told, NULL), .leads = leads };

	for (const char *at = text; *at != '\0';) {
		if (*at != HOLDER_TYPE_MARK && teller.names != 0) {
			(void)fputc(')', teller.told);
			teller.names = 0;
		}
		if (*at >= HOLDER_TYPE_MARK && *at <= HOLDER_GRAPH_MARK) {
			at = tell_mark(&teller, at);
			continue;
		}
		if (at[0] == '-' && at[1] == '>')
			begin_step(&teller);
		(void)fputc(*at++, teller.told);
	}
	if (teller.names != 0)
		(void)fputc(')', teller.told);
	memory_stream_close(teller.told);
	return told;
}
