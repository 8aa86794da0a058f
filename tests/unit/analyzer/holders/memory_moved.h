/*
 * memory_moved.h - a test has changed what a process holds: what was read of it before is forgotten.
 */
#ifndef MEMORY_MOVED_H
#define MEMORY_MOVED_H

#include <stdlib.h>

#include "holders/process_memory.h"

static inline void
memory_moved(struct process_memory *memory)
{
	free(memory->pages);
	memory->pages = NULL;
}

#endif
