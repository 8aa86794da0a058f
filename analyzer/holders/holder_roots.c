/*
 * holder_roots.c - names of variables in libraries and threads (see holder_roots.h).
 */
#include "holders/holder_roots.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/place.h"
#include "base/text_pool.h"

#define NAME_BYTES (80 + SYMBOL_MEMBER_BYTES)

/* member: out, ".entries"; "" = not known, or all of it. leads: out, the type of what the word points to; NULL = not known. */
static void
member_of_type(const struct symbol_type *type, uint64_t offset, char member[SYMBOL_MEMBER_BYTES],
               const struct symbol_type **leads)
{
	member[0] = '\0';
	*leads = NULL;
	if (type != NULL)
		(void)symbolizer_member(type, (int64_t)offset, member, leads);
}

static struct way_step
step_of(enum way_step_kind kind, struct text_pool *texts, const char *name, const char *of)
{
	return model_way_step(kind, text_pool_add_text(texts, name), text_pool_add_text(texts, of));
}

/* addr: as in the file's tables; thread-local: from the beginning of its part. False: the file has no name for it. */
static bool
name_variable(struct process_modules *modules, struct process_module *module, enum data_symbol_kind kind, uint64_t addr,
              struct text_pool *texts, const struct symbol_type **leads, struct way_step *step)
{
	const bool is_thread_local = kind == DATA_SYMBOL_THREAD_LOCAL;
	struct data_symbols *symbols = process_module_symbols(modules, module);
	char member[SYMBOL_MEMBER_BYTES];
	const char *name;
	uint64_t offset;

	if (symbols == NULL || !data_symbols_at(symbols, kind, addr, &name, &offset))
		return false;

	struct symbolizer_file *types = process_module_types(modules, module);

	member_of_type(types != NULL ? symbolizer_variable(modules->symbolizer, types, addr - offset, is_thread_local)
	                             : NULL,
	               offset, member, leads);
	*step = step_of(is_thread_local ? WAY_THREAD_LOCAL : WAY_STATIC, texts, TEXT(NAME_BYTES, "%.80s%s", name, member),
	                TEXT(64, "%.60s", place_base(module->path)));
	return true;
}

static struct way_step
static_step(struct process_modules *modules, uint64_t addr, struct text_pool *texts, const struct symbol_type **leads)
{
	struct process_module *module = process_modules_at(modules, addr);
	struct way_step step;

	if (module == NULL)
		return step_of(WAY_DATA, texts, "", TEXT(64, "the program at 0x%" PRIx64, addr));
	(void)process_module_symbols(modules, module); // they know where it lies
	if (name_variable(modules, module, DATA_SYMBOL_VARIABLE, addr - process_module_bias(module), texts, leads, &step))
		return step;
	return step_of(WAY_DATA, texts, "", TEXT(160, "%.120s+0x%" PRIx64, place_base(module->path), addr - module->start));
}

static struct way_step
thread_local_step(const struct holder_search *search, const struct holder_node *node, struct text_pool *texts,
                  const struct symbol_type **leads)
{
	const struct thread_area *area = thread_areas_at(search->areas, node->start);
	struct way_step step;

	if (area == NULL)
		return step_of(WAY_THREAD_MEMORY, texts, "", "");
	if (name_variable(search->modules, area->module, DATA_SYMBOL_THREAD_LOCAL, node->start - area->start, texts, leads,
	                  &step))
		return step;
	return step_of(WAY_THREAD_DATA, texts, "", TEXT(128, "%.120s", place_base(area->module->path)));
}

static bool
is_of_stack(const struct holder_node *node)
{
	return node->kind == HOLDER_STACK || node->kind == HOLDER_REGISTER;
}

void
holder_root_copy(const struct holder_search *search, const struct holder_way *way, struct stack_locals *locals)
{
	const struct holder_node *node = &search->nodes[way->root];

	if (is_of_stack(node) && way->begins == HOLDER_BEGINS_AT_ROOT)
		stack_locals_copy(locals, search->look, node->thread);
}

static const struct symbol_local *
local_of(const struct holder_search *search, const struct holder_node *node, struct stack_locals *locals, size_t *depth)
{
	bool is_register = node->kind == HOLDER_REGISTER;

	return stack_locals_at(locals, search->look, search->modules, node->thread,
	                       is_register ? (int)(node->start % MACHINE_REGISTERS) : -1, is_register ? 0 : node->start,
	                       depth);
}

/* Several words of stacks may lead to one block, as arguments and saved registers do: the local of the outermost function is told. */
static const struct symbol_local *
outermost_local(const struct holder_search *search, const struct holder_way *way, struct stack_locals *locals)
{
	const struct holder_edge *best = way->root_edge;
	const struct symbol_local *found = NULL;
	size_t found_depth = 0;

	for (size_t i = 0; i < search->edge_count; i++) {
		const struct holder_edge *edge = &search->edges[i];
		const struct holder_node *node = &search->nodes[edge->from];
		size_t depth;

		if (edge->to != best->to || edge->value != best->value || edge->is_gone || !is_of_stack(node))
			continue;

		const struct symbol_local *local = local_of(search, node, locals, &depth);

		if (local == NULL || depth <= found_depth)
			continue;
		found = local;
		found_depth = depth;
	}
	return found;
}

static struct way_step
local_step(const struct symbol_local *local, struct text_pool *texts, const struct symbol_type **leads)
{
	size_t length = strlen(local->function);
	char member[SYMBOL_MEMBER_BYTES];
	char of[160];

	member_of_type(local->type, local->offset, member, leads);
	(void)memory_text_in(of, sizeof(of), "%.80s%s", local->function,
	                     length != 0 && local->function[length - 1] == ')' ? "" : "()");
	if (local->file[0] != '\0' && local->line != 0)
		TEXT_ADD(of, " (%.40s:%u)", place_base(local->file), local->line);
	return step_of(WAY_LOCAL, texts, TEXT(NAME_BYTES, "%.80s%s", local->name, member), of);
}

struct way_step
holder_root_step(const struct holder_search *search, const struct holder_way *way, struct stack_locals *locals,
                 struct text_pool *texts, const struct symbol_type **leads)
{
	static const enum way_step_kind kinds[HOLDER_KINDS] = { [HOLDER_STATE] = WAY_STATE,
		                                                    [HOLDER_STACK] = WAY_STACK,
		                                                    [HOLDER_REGISTER] = WAY_REGISTER,
		                                                    [HOLDER_MAPPING] = WAY_MAPPING };
	const struct stopped_process *process = &search->look->process;
	const struct holder_node *node = &search->nodes[way->root];
	const struct symbol_local *local = is_of_stack(node) ? outermost_local(search, way, locals) : NULL;
	struct way_step step;

	*leads = NULL;
	step = local != NULL                 ? local_step(local, texts, leads)
	       : node->kind == HOLDER_STATIC ? static_step(search->modules, node->start, texts, leads)
	       : node->kind == HOLDER_THREAD_LOCAL
	           ? thread_local_step(search, node, texts, leads)
	           : step_of(kinds[node->kind], texts, "", TEXT(32, "0x%" PRIx64, node->start & ~UINT64_C(0xfff)));
	if (step.kind != WAY_LOCAL && step.kind != WAY_STATIC && step.kind != WAY_DATA)
		step.count = node->thread < process->count ? (uint64_t)process->threads[node->thread].number : 0;
	return step;
}
