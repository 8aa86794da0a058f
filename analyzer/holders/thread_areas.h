/*
 * thread_areas.h - where are the thread-local variables of each library, in each thread?
 *
 * As glibc has it: the loader's list of libraries with such variables, and the table of each thread (dtv) where they do not lie beside its
 * control block. Where the loader keeps these, glibc tells debuggers (_thread_db_...), and so us.
 *
 * When failing  no areas, or fewer: what is there is told as memory of the thread, or as a block.
 */
#ifndef THREAD_AREAS_H
#define THREAD_AREAS_H

#include "holders/process_memory.h"
#include "holders/process_modules.h"
#include "holders/stopped_process.h"

struct thread_area {
	uint64_t start;
	uint64_t end;
	struct process_module *module;
	uint32_t thread; // index in the process's threads
};

struct thread_areas {
	size_t count;
	struct thread_area *areas; // by address
};

/* The process stands still. modules: must outlive it. */
void thread_areas_find(struct process_memory *memory, const struct stopped_process *process,
                       struct process_modules *modules, struct thread_areas *areas);
void thread_areas_free(struct thread_areas *areas);

/* NULL = it is in none. */
const struct thread_area *thread_areas_at(const struct thread_areas *areas, uint64_t addr);

#endif
