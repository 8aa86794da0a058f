/*
 * holder_roots.c - names of variables in libraries and threads (see holder_roots.h).
 */
#include "holders/holder_roots.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/place.h"
#include "holders/holder_members.h"

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
		holder_member_of_variable(modules, module, addr - process_module_bias(module) - offset, false, offset, member,
		                          leads);
		(void)snprintf(text, HOLDER_ROOT_BYTES, "static variable `%.80s%s` of %.60s", name, member,
		               place_base(module->path));
	} else
		(void)snprintf(text, HOLDER_ROOT_BYTES, "data of %.120s+0x%" PRIx64, place_base(module->path),
		               addr - module->start);
	return text;
}

static const char *
thread_local_text(struct process_modules *modules, const struct thread_areas *areas, const struct holder_node *node,
                  int thread, char text[HOLDER_ROOT_BYTES], const struct symbol_type **leads)
{
	const struct thread_area *area = thread_areas_at(areas, node->start);
	struct data_symbols *symbols = area != NULL ? process_module_symbols(modules, area->module) : NULL;
	const char *library = area != NULL ? place_base(area->module->path) : "";
	char member[SYMBOL_MEMBER_BYTES];
	const char *name;
	uint64_t offset;

	if (symbols != NULL &&
	    data_symbols_at(symbols, DATA_SYMBOL_THREAD_LOCAL, node->start - area->start, &name, &offset)) {
		holder_member_of_variable(modules, area->module, node->start - area->start - offset, true, offset, member,
		                          leads);
		(void)snprintf(text, HOLDER_ROOT_BYTES, "thread-local variable `%.80s%s` of %.60s in thread %d", name, member,
		               library, thread);
	} else if (area != NULL)
		(void)snprintf(text, HOLDER_ROOT_BYTES, "thread-local data of %.120s in thread %d", library, thread);
	else
		(void)snprintf(text, HOLDER_ROOT_BYTES, "thread-local memory of thread %d", thread);
	return text;
}

const char *
holder_root_text(const struct process_look *look, struct process_modules *modules, const struct thread_areas *areas,
                 const struct holder_node *node, char text[HOLDER_ROOT_BYTES], const struct symbol_type **leads)
{
	const int thread = node->thread < look->process.count ? (int)look->process.threads[node->thread].number : 0;

	*leads = NULL;
	switch (node->kind) {
	case HOLDER_STATE:
		(void)snprintf(text, HOLDER_ROOT_BYTES, "Python's state of a thread");
		return text;
	case HOLDER_STATIC:
		return static_text(modules, node->start, text, leads);
	case HOLDER_THREAD_LOCAL:
		return thread_local_text(modules, areas, node, thread, text, leads);
	case HOLDER_STACK:
		(void)snprintf(text, HOLDER_ROOT_BYTES, "the stack of thread %d", thread);
		return text;
	case HOLDER_REGISTER:
		(void)snprintf(text, HOLDER_ROOT_BYTES, "a register of thread %d", thread);
		return text;
	case HOLDER_MAPPING:
		(void)snprintf(text, HOLDER_ROOT_BYTES, "a mapping at 0x%" PRIx64, node->start & ~UINT64_C(0xfff));
		return text;
	case HOLDER_BLOCK:
	case HOLDER_SMALL:
	case HOLDER_FRAME:
	case HOLDER_KINDS:
		break;
	}
	(void)snprintf(text, HOLDER_ROOT_BYTES, "?");
	return text;
}
