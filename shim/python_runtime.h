/*
 * python_runtime.h - is there an interpreter in this process, and is it one that we understand?
 *
 * Called by   python_frames.c.
 * Safe from   python_runtime_find(): outside any hook's critical part, any thread, as often as one likes: it asks
 *             the loader. The rest: any hook.
 * When failing  not found: asked again next time. Not understood: one note in the capture, and never again.
 */
#ifndef PYTHON_RUNTIME_H
#define PYTHON_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "python_layout.h"

enum python_runtime_state {
	PYTHON_RUNTIME_NEVER_LOOKED,
	PYTHON_RUNTIME_BUSY,      // a thread is looking
	PYTHON_RUNTIME_NOT_FOUND,
	PYTHON_RUNTIME_REFUSED,   // no table for it, or a check failed
	PYTHON_RUNTIME_FOUND,
};

/* The interpreter's PyMemAllocatorEx and PyObjectArenaAllocator, the same in every version. */
struct python_allocator {
	void *context;
	void *(*malloc)(void *context, size_t bytes);
	void *(*calloc)(void *context, size_t count, size_t bytes);
	void *(*realloc)(void *context, void *old, size_t bytes);
	void (*free)(void *context, void *addr);
};

struct python_arena_allocator {
	void *context;
	void *(*allocate)(void *context, size_t bytes);
	void (*free)(void *context, void *addr, size_t bytes);
};

enum python_allocator_domain { PYTHON_ALLOCATOR_MEM = 1, PYTHON_ALLOCATOR_OBJ = 2 };

/* The interpreter's functions that get and set them; NULL where one is not exported. */
struct python_allocators {
	void (*get)(int domain, struct python_allocator *allocator);
	void (*set)(int domain, const struct python_allocator *allocator);
	void (*get_arena)(struct python_arena_allocator *allocator);
	void (*set_arena)(const struct python_arena_allocator *allocator);
	const char *(*name)(void); // "pymalloc", "mimalloc_debug"; NULL: of none that it knows
};

/* Written by one thread while the state is BUSY, constant once it is FOUND. */
struct python_runtime {
	_Atomic int state;            // release and acquire: everything below before FOUND or REFUSED
	struct python_interpreter interpreter;
	void *(*current_state)(void); // of the thread that holds the lock (3.12: of this thread, attached)
	void *(*thread_state)(void);  // of this thread, attached or not
	void (*code_dealloc)(void *code);
	struct python_allocators allocators;
	uint64_t addr;                // of _PyRuntime
	uint64_t text_addr;           // the interpreter's executable segment
	uint64_t text_end;
	uint64_t evaluator_addr;      // _PyEval_EvalFrameDefault, where the scan of the stack needs it
	uint64_t evaluator_end;
};

extern struct python_runtime python_runtime;

/* Looks once; does nothing when an interpreter was found or refused before. */
void python_runtime_find(void);

/* In a forked child: version and note into its own capture. */
void python_runtime_forked(void);

#endif
