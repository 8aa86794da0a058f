/*
 * process_modules.c - libraries of a process and their symbols (see process_modules.h).
 */
#include "holders/process_modules.h"

#include <elf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/amount.h"
#include "base/items.h"
#include "base/memory.h"
#include "base/regular_file.h"
#include "holders/core_file.h"

#define PAGE_UP(addr) (((addr) + PROCESS_MEMORY_PAGE - 1) & ~(uint64_t)(PROCESS_MEMORY_PAGE - 1))

/* Where the headers say that zeroed data ends: a mapping without a name behind that may be the heap, or anything. 0 = not known. */
static uint64_t
end_by_headers(struct process_memory *memory, uint64_t start)
{
	uint64_t first = UINT64_MAX;
	uint64_t end = 0;
	Elf64_Phdr part;

	for (unsigned i = 0; process_memory_header(memory, start, i, &part); i++) {
		if (part.p_type != PT_LOAD)
			continue;
		first = amount_lesser(part.p_vaddr, first);
		end = amount_greater(part.p_vaddr + part.p_memsz, end);
	}
	return end > first ? start + PAGE_UP(end) - (first & ~(uint64_t)(PROCESS_MEMORY_PAGE - 1)) : 0;
}

static void
trim_ends(struct process_memory *memory, struct process_modules *modules)
{
	for (size_t i = 0; i < modules->count; i++) {
		uint64_t end = end_by_headers(memory, modules->modules[i].start);

		if (end > modules->modules[i].start && end < modules->modules[i].end)
			modules->modules[i].end = end;
	}
}

/* Mappings of one file follow each other; a mapping without a name that follows at once is the file's zeroed data. */
void
process_modules_make(struct process_memory *memory, pid_t pid, struct text_pool *pool, struct process_modules *modules)
{
	*modules = (struct process_modules){ .pid = pid, .memory = memory, .pool = pool };
	for (size_t i = 0; i < memory->region_count; i++) {
		const struct memory_region *region = &memory->regions[i];
		struct process_module *last = modules->count != 0 ? &modules->modules[modules->count - 1] : NULL;
		bool is_next = last != NULL && last->end == region->start;

		if (region->path[0] == '/' && last != NULL && strcmp(last->path, region->path) == 0)
			last->end = region->end;
		else if (region->path[0] == '\0' && is_next && region->is_writable && i != 0 &&
		         memory->regions[i - 1].path[0] == '/')
			last->end = region->end;
		else if (region->path[0] == '/' && region->offset == 0 && !region->is_shared) {
			*MEMORY_NEXT(modules->modules, modules->count) = (struct process_module){ .path = region->path,
				                                                                      .start = region->start,
				                                                                      .end = region->end };
		}
	}
	trim_ends(memory, modules);
}

void
process_modules_free(struct process_modules *modules)
{
	for (size_t i = 0; i < modules->count; i++)
		data_symbols_close(modules->modules[i].symbols);
	free(modules->modules);
	symbolizer_free(modules->symbolizer);
	*modules = (struct process_modules){ 0 };
}

struct process_module *
process_modules_at(struct process_modules *modules, uint64_t addr)
{
	return FIRST(module, modules->modules, modules->count, addr - module->start < module->end - module->start);
}

/* A core may name any file. */
static bool
may_open(const struct process_modules *modules, const struct process_module *module)
{
	unsigned char head[PROCESS_MEMORY_PAGE];
	OWNED_FILE int fd = -1;

	return modules->pid != 0 || (process_memory_read(modules->memory, module->start, head, sizeof(head)) &&
	                             core_file_is_image(head, module->path, &fd));
}

struct data_symbols *
process_module_symbols(struct process_modules *modules, struct process_module *module)
{
	char path[PATH_MAX];

	if (module->was_opened)
		return module->symbols;
	module->was_opened = true;
	if (!may_open(modules, module))
		return NULL;
	(void)snprintf(path, sizeof(path), "/proc/%d/root%s", (int)modules->pid, module->path);
	if (modules->pid != 0)
		module->symbols = data_symbols_open(path, modules->pool);
	if (module->symbols == NULL)
		module->symbols = data_symbols_open(module->path, modules->pool);
	return module->symbols;
}

struct symbolizer_file *
process_module_types(struct process_modules *modules, struct process_module *module)
{
	struct data_symbols *symbols = process_module_symbols(modules, module);
	struct symbolizer_identity identity = { 0 };
	char root[64];
	size_t bytes;

	if (symbols == NULL || module->types != NULL)
		return module->types;
	(void)snprintf(root, sizeof(root), "/proc/%d/root", (int)modules->pid);
	if (modules->symbolizer == NULL)
		modules->symbolizer = symbolizer_new(modules->pool, modules->pid != 0 ? root : NULL);
	identity.path = text_pool_add_text(modules->pool, module->path);
	identity.build_id = data_symbols_build_id(symbols, &bytes);
	identity.build_id_bytes = (uint32_t)bytes;
	identity.size_bytes = data_symbols_file_bytes(symbols);
	return module->types = symbolizer_file(modules->symbolizer, &identity);
}

uint64_t
process_module_bias(const struct process_module *module)
{
	return module->start - (module->symbols != NULL ? data_symbols_first_addr(module->symbols) : 0);
}

uint64_t
process_module_named(struct process_modules *modules, struct process_module *module, const char *name)
{
	struct data_symbols *symbols = process_module_symbols(modules, module);
	uint64_t addr = symbols != NULL ? data_symbols_named(symbols, name) : 0;

	return addr != 0 ? addr + process_module_bias(module) : 0;
}
