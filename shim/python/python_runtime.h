/*
 * python_runtime.h - is there an interpreter in this process, and is it one that we understand?
 *
 * At the start all loaded objects are looked at; one that comes later (an application that embeds Python, perhaps for itself
 * alone) when the first stack leads into it.
 *
 * Safe from   any hook, if not said otherwise.
 * When failing  not found: other objects may come. Not understood: one note in the capture, and never again.
 */
#ifndef PYTHON_RUNTIME_H
#define PYTHON_RUNTIME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/elf_symbols.h"
#include "python/python_layout.h"

enum python_runtime_state {
	PYTHON_RUNTIME_NEVER_LOOKED,
	PYTHON_RUNTIME_BUSY, // a thread is looking
	PYTHON_RUNTIME_NOT_FOUND,
	PYTHON_RUNTIME_REFUSED, // no table for it, or a check failed
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

/* A function of the interpreter's, as addresses; 0, 0 = it has none. */
struct python_function {
	uint64_t start;
	uint64_t end;
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

/* Functions of the interpreter's for who holds its lock, and is in no allocator of it. Results are objects. */
struct python_objects {
	void *(*modules)(void);                             // borrowed
	void *(*item)(void *dictionary, const char *key);   // borrowed; NULL: there is none, and no error
	void *(*attribute)(void *object, const char *name); // the caller's; NULL: there is none, and an error
	void (*release)(void *object);
	void *(*has_error)(void); // borrowed
	void (*clear_error)(void);
	uint64_t module; // addresses of types
	uint64_t method_descriptor;
	bool is_complete;
};

static inline bool
python_allocator_is(const struct python_allocator *one, const struct python_allocator *other)
{
	return one->context == other->context && one->malloc == other->malloc && one->calloc == other->calloc &&
	       one->realloc == other->realloc && one->free == other->free;
}

/* Written by one thread while the state is BUSY, constant once it is FOUND. */
struct python_runtime {
	_Atomic int state; // release and acquire: everything below before FOUND or REFUSED
	_Atomic bool is_pinned;
	// loaded after the start: a thread's first look at its variables calls malloc, perhaps under a lock
	bool is_late;
	const char *path; // of its object, the loader's own text; "" = the main program
	struct python_interpreter interpreter;
	void *(*current_state)(void); // of the thread that holds the lock (3.12: of this thread, attached)
	void *(*thread_state)(void);  // of this thread, attached or not
	void (*code_dealloc)(void *code);
	struct python_allocators allocators;
	struct python_objects objects;
	uint64_t addr;      // of _PyRuntime
	uint64_t end;       // of the same
	uint64_t text_addr; // the interpreter's executable segment
	uint64_t text_end;
	uint64_t evaluator_addr; // _PyEval_EvalFrameDefault; 0 = it is not known
	uint64_t evaluator_end;
	// they run a program and then its exit handlers; one may have become part of another
	struct python_function runners[3];

	/* Not 0 from the beginning of the finalisation until the next initialisation; a word of ours until an interpreter is found. */
	const _Atomic uint64_t *_Atomic finalizing_word;
};

/* Two in one process is all that we read. */
extern struct python_runtime python_runtime;
extern struct python_runtime python_runtime_second; // is looked at only when there is a first one

/* Called with each code object of the first one that dies, before its memory is freed; outside any hook. NULL = by nobody. */
extern void (*python_runtime_on_death)(uint64_t code);

/* Is this address in one of the first one's runners? */
bool python_runtime_runs_programs(uint64_t pc);

/* Has the interpreter begun to finalise, and has none been initialised since? relaxed, both: nothing is read through the word. */
static inline bool
python_runtime_is_finalizing(void)
{
	return atomic_load_explicit(atomic_load_explicit(&python_runtime.finalizing_word, memory_order_relaxed),
	                            memory_order_relaxed) != 0;
}

/* Is there an interpreter that was initialised and not deleted? With a runtime that was found. */
bool python_runtime_has_interpreter(void);

/* Looks at all objects that are loaded now. Asks the loader: not from a hook. */
void python_runtime_find(void);

/* Is there an interpreter in this object, which has just been seen for the first time? From any hook. `path` is the loader's. */
void python_runtime_look_at(const struct elf_object *object, const char *path);

/* Something may be unloaded next: what we point into must stay. Asks the loader: not from a hook that may hold its locks. */
void python_runtime_pin(void);

/* In a forked child: version and notes into its own capture. */
void python_runtime_forked(void);

#endif
