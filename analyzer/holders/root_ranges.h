/*
 * root_ranges.h - which memory of a process holds on to blocks, and which is the allocator's?
 *
 * Roots are read as they are: a word in a root keeps the block alive that it points to. Memory of the allocator counts only where a live
 * block is: what is between blocks was given back. Not read: memory shared with other processes, the recorder's own memory, the free
 * part of stacks, stacks whose threads are gone.
 */
#ifndef ROOT_RANGES_H
#define ROOT_RANGES_H

#include "holders/live_blocks.h"
#include "holders/process_memory.h"
#include "holders/stopped_process.h"

enum root_kind {
	ROOT_STATIC,       // data of the program and its libraries
	ROOT_STACK,        // the used part of a thread's stack
	ROOT_THREAD_LOCAL, // the rest of such a mapping: the thread's control block, and thread-local variables below it
	ROOT_MAPPING,      // mappings of the program's own; small objects of Python lie there
	ROOT_HEAP,         // no root: the allocator's, where live blocks are
};

struct root_range {
	uint64_t start;
	uint64_t end;
	enum root_kind kind;
	uint32_t thread; // index in the process's threads: of stacks and thread-local memory
};

struct root_ranges {
	size_t count;
	struct root_range *at; // by address, disjoint
	uint64_t shared_bytes; // with other processes, but for the recorder's: may lead to blocks, and is not looked at
};

void root_ranges_find(struct process_memory *memory, const struct stopped_process *process, struct live_blocks *blocks,
                      struct root_ranges *ranges);
void root_ranges_free(struct root_ranges *ranges);

/* NULL = it is in none. */
const struct root_range *root_ranges_at(const struct root_ranges *ranges, uint64_t addr);

#endif
