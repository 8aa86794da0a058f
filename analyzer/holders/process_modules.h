/*
 * process_modules.h - which variable of which library is at this address of a process?
 *
 * A file is opened at the first address that is asked for, through /proc/PID/root where the process is: it may see other files.
 *
 * When failing  no name.
 */
#ifndef PROCESS_MODULES_H
#define PROCESS_MODULES_H

#include <sys/types.h>

#include "base/text_pool.h"
#include "holders/process_memory.h"
#include "symbols/data_symbols.h"
#include "symbols/symbolizer.h"

struct process_module {
	const char *path; // of the regions
	uint64_t start;   // the first of its mappings
	uint64_t end;     // behind the last, with its zeroed data
	bool was_opened;
	struct data_symbols *symbols;
	struct symbolizer_file *types; // NULL until they are asked for
};

struct process_modules {
	pid_t pid; // 0 = of a core: paths as they are, of files that are the same still
	struct process_memory *memory;
	struct text_pool *pool;
	struct symbolizer *symbolizer; // for debug information; NULL until it is asked for
	size_t count;
	struct process_module *modules; // by address
};

/* The regions must outlive it. */
void process_modules_make(struct process_memory *memory, pid_t pid, struct text_pool *pool,
                          struct process_modules *modules);
void process_modules_free(struct process_modules *modules);

/* NULL = it is in none. */
struct process_module *process_modules_at(struct process_modules *modules, uint64_t addr);

/* Opens it, once. NULL = it cannot be read. */
struct data_symbols *process_module_symbols(struct process_modules *modules, struct process_module *module);

/* Its debug information, for types: symbolizer_variable(), symbolizer_class(). NULL = it cannot be read. Takes long: not while the process stands still. */
struct symbolizer_file *process_module_types(struct process_modules *modules, struct process_module *module);

/* To be added to an address of the file's symbol tables. */
uint64_t process_module_bias(const struct process_module *module);

/* Address in the process of a variable of this name; 0 = none. */
uint64_t process_module_named(struct process_modules *modules, struct process_module *module, const char *name);

#endif
