/*
 * holder_roots.c - names of variables in libraries and threads (see holder_roots.h).
 */
#include "holders/holder_roots.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/place.h"

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

static void
member_of_variable(struct process_modules *modules, struct process_module *module, uint64_t address,
                   bool is_thread_local, uint64_t offset, char member[SYMBOL_MEMBER_BYTES],
                   const struct symbol_type **leads)
{
	struct symbolizer_file *types = process_module_types(modules, module);
	const struct symbol_type *type = types != NULL
	                                     ? symbolizer_variable(modules->symbolizer, types, address, is_thread_local)
	                                     : NULL;

	member_of_type(type, offset, member, leads);
}

static const char *
static_text(struct process_modules *modules, uint64_t addr, char text[HOLDER_ROOT_BYTES],
            const struct symbol_type **leads)
{
	char member[SYMBOL_MEMBER_BYTES];
	struct process_module *module = process_modules_at(modules, addr);
	struct data_symbols *symbols = module != NULL ? process_module_symbols(modules, module) : NULL;
	const char *name;
	uint64_t offset;

	if (module == NULL)
		(void)snprintf(text, HOLDER_ROOT_BYTES, "data of the program at 0x%" PRIx64, addr);
	else if (symbols != NULL &&
	         data_symbols_at(symbols, DATA_SYMBOL_VARIABLE, addr - process_module_bias(module), &name, &offset)) {
		member_of_variable(modules, module, addr - process_module_bias(module) - offset, false, offset, member, leads);
		(void)snprintf(text, HOLDER_ROOT_BYTES, "static variable `%.80s%s` of %.60s", name, member,
		               place_base(module->path));
	} else
		(void)snprintf(text, HOLDER_ROOT_BYTES, "data of %.120s+0x%" PRIx64, place_base(module->path),
		               addr - module->start);
	return text;
}

static const char *
thread_local_text(const struct holder_search *search, const struct holder_node *node, int thread,
                  char text[HOLDER_ROOT_BYTES], const struct symbol_type **leads)
{
	const struct thread_area *area = thread_areas_at(search->areas, node->start);
	struct data_symbols *symbols = area != NULL ? process_module_symbols(search->modules, area->module) : NULL;
	const char *library = area != NULL ? place_base(area->module->path) : "";
	char member[SYMBOL_MEMBER_BYTES];
	const char *name;
	uint64_t offset;

	if (symbols != NULL &&
	    data_symbols_at(symbols, DATA_SYMBOL_THREAD_LOCAL, node->start - area->start, &name, &offset)) {
		member_of_variable(search->modules, area->module, node->start - area->start - offset, true, offset, member,
		                   leads);
		(void)snprintf(text, HOLDER_ROOT_BYTES, "thread-local variable `%.80s%s` of %.60s in thread %d", name, member,
		               library, thread);
	} else if (area != NULL)
		(void)snprintf(text, HOLDER_ROOT_BYTES, "thread-local data of %.120s in thread %d", library, thread);
	else
		(void)snprintf(text, HOLDER_ROOT_BYTES, "thread-local memory of thread %d", thread);
	return text;
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

	if (is_of_stack(node) && way->begin == NULL)
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

static const char *
local_text(const struct symbol_local *local, char text[HOLDER_ROOT_BYTES], const struct symbol_type **leads)
{
	size_t length = strlen(local->function);
	char member[SYMBOL_MEMBER_BYTES];

	member_of_type(local->type, local->offset, member, leads);
	(void)snprintf(text, HOLDER_ROOT_BYTES, "local `%.80s%s` of %.80s%s", local->name, member, local->function,
	               length != 0 && local->function[length - 1] == ')' ? "" : "()");
	if (local->file[0] != '\0' && local->line != 0)
		(void)snprintf(text + strlen(text), HOLDER_ROOT_BYTES - strlen(text), " (%.40s:%u)", place_base(local->file),
		               local->line);
	return text;
}

const char *
holder_root_text(const struct holder_search *search, const struct holder_way *way, struct stack_locals *locals,
                 char text[HOLDER_ROOT_BYTES], const struct symbol_type **leads)
{
	const struct stopped_process *process = &search->look->process;
	const struct holder_node *node = &search->nodes[way->root];
	const int thread = node->thread < process->count ? (int)process->threads[node->thread].number : 0;
	const struct symbol_local *local = is_of_stack(node) ? outermost_local(search, way, locals) : NULL;

	*leads = NULL;
	if (local != NULL)
		return local_text(local, text, leads);
	switch (node->kind) {
	case HOLDER_STATE:
		return memory_text_in(text, HOLDER_ROOT_BYTES, "Python's state of a thread");
	case HOLDER_STATIC:
		return static_text(search->modules, node->start, text, leads);
	case HOLDER_THREAD_LOCAL:
		return thread_local_text(search, node, thread, text, leads);
	case HOLDER_STACK:
		return memory_text_in(text, HOLDER_ROOT_BYTES, "the stack of thread %d", thread);
	case HOLDER_REGISTER:
		return memory_text_in(text, HOLDER_ROOT_BYTES, "a register of thread %d", thread);
	case HOLDER_MAPPING:
		return memory_text_in(text, HOLDER_ROOT_BYTES, "a mapping at 0x%" PRIx64, node->start & ~UINT64_C(0xfff));
	case HOLDER_BLOCK:
	case HOLDER_SMALL:
	case HOLDER_FRAME:
	case HOLDER_KINDS:
		break;
	}
	return memory_text_in(text, HOLDER_ROOT_BYTES, "?");
}
