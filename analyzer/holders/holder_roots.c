/*
 * holder_roots.c - names of variables in libraries and threads (see holder_roots.h).
 */
#include "holders/holder_roots.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/place.h"
#include "base/text_start.h"
#include "holders/holder_ways.h"

#define MARK_BYTES 17u
#define TYPE_BYTES 64u // of a name that is told

static const char *
static_text(struct process_modules *modules, uint64_t addr, char text[HOLDER_ROOT_BYTES])
{
	struct process_module *module = process_modules_at(modules, addr);
	struct data_symbols *symbols = module != NULL ? process_module_symbols(modules, module) : NULL;
	const char *name;
	uint64_t offset;

	if (module == NULL)
		(void)snprintf(text, HOLDER_ROOT_BYTES, "data of the program at 0x%" PRIx64, addr);
	else if (symbols != NULL &&
	         data_symbols_at(symbols, DATA_SYMBOL_VARIABLE, addr - process_module_bias(module), &name, &offset))
		(void)snprintf(text, HOLDER_ROOT_BYTES, "static variable `%.120s` of %.80s", name, place_base(module->path));
	else
		(void)snprintf(text, HOLDER_ROOT_BYTES, "data of %.120s+0x%" PRIx64, place_base(module->path),
		               addr - module->start);
	return text;
}

/* Variables of the program itself lie right below the thread's control block; those of libraries below them. */
static const char *
thread_local_text(const struct process_look *look, struct process_modules *modules, const struct holder_node *node,
                  char text[HOLDER_ROOT_BYTES])
{
	const struct stopped_thread *thread = &look->process.threads[node->thread];
	struct process_module *program = modules->count != 0 ? process_modules_at(modules, look->program_addr) : NULL;
	struct data_symbols *symbols = program != NULL ? process_module_symbols(modules, program) : NULL;
	uint64_t bytes = symbols != NULL ? data_symbols_thread_local_bytes(symbols) : 0;
	uint64_t first = thread->thread_addr - bytes;
	const char *name;
	uint64_t offset;

	if (bytes != 0 && node->start - first < bytes &&
	    data_symbols_at(symbols, DATA_SYMBOL_THREAD_LOCAL, node->start - first, &name, &offset))
		(void)snprintf(text, HOLDER_ROOT_BYTES, "thread-local variable `%.120s` of thread %d", name,
		               (int)thread->number);
	else
		(void)snprintf(text, HOLDER_ROOT_BYTES, "thread-local memory of thread %d", (int)thread->number);
	return text;
}

const char *
holder_root_text(const struct process_look *look, struct process_modules *modules, const struct holder_node *node,
                 char text[HOLDER_ROOT_BYTES])
{
	const int thread = node->thread < look->process.count ? (int)look->process.threads[node->thread].number : 0;

	switch (node->kind) {
	case HOLDER_STATE:
		(void)snprintf(text, HOLDER_ROOT_BYTES, "Python's state of a thread");
		return text;
	case HOLDER_STATIC:
		return static_text(modules, node->start, text);
	case HOLDER_THREAD_LOCAL:
		return thread_local_text(look, modules, node, text);
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

/* "" = it is no table of virtual functions, or the library says no names. */
static void
type_text(struct process_modules *modules, uint64_t addr, char text[TYPE_BYTES])
{
	static const char prefix[] = "vtable for ";
	struct process_module *module = process_modules_at(modules, addr);
	struct data_symbols *symbols = module != NULL ? process_module_symbols(modules, module) : NULL;
	const char *name;
	uint64_t offset;

	text[0] = '\0';
	if (symbols == NULL ||
	    !data_symbols_at(symbols, DATA_SYMBOL_VARIABLE, addr - process_module_bias(module), &name, &offset) ||
	    !text_starts(name, prefix))
		return;
	name = without_namespaces(name + sizeof(prefix) - 1);
	(void)snprintf(text, TYPE_BYTES, "%s", name);
	if (strlen(name) >= TYPE_BYTES)
		memcpy(text + TYPE_BYTES - 4, "...", 4);
}

char *
holder_types_told(struct process_modules *modules, const char *text)
{
	char *told = memory_zeroed(strlen(text) * (TYPE_BYTES / MARK_BYTES + 1) + 4, 1);
	size_t used = 0;
	size_t names = 0; // in a row

	for (const char *at = text; *at != '\0';) {
		char name[TYPE_BYTES];
		char digits[MARK_BYTES];

		if (*at != HOLDER_TYPE_MARK) {
			if (names != 0)
				told[used++] = ')';
			names = 0;
			told[used++] = *at++;
			continue;
		}
		(void)snprintf(digits, sizeof(digits), "%s", at + 1);
		type_text(modules, strtoull(digits, NULL, 16), name);
		if (name[0] != '\0')
			used += (size_t)sprintf(told + used, "%s%s", names++ == 0 ? " (" : ", ", name);
		at += strnlen(at, MARK_BYTES);
	}
	if (names != 0)
		told[used++] = ')';
	return told;
}
