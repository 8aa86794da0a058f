/*
 * call_stack.h - who asked for this memory? One merged stack of native and Python frames.
 *
 * Context     inside the reentry guard, on the thread whose stack it is.
 * Safe from   any hook; no allocation, no lock, no loader call. The frames are gathered in memory of the thread, not on the
 *             program's stack: that may be a signal stack of 8 KiB.
 * When failing  a shorter stack with the flag that says so; errno is left alone.
 */
#ifndef CALL_STACK_H
#define CALL_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "python/python_frames.h"
#include "sites/stack_frames.h"
#include "unwind/native_cache.h"
#include "unwind/native_stack.h"

/* Without Python frames, and none that were given, all is whole. */
enum call_stack_extent {
	CALL_STACK_WHOLE,       // native frames too, as far as KMEMSHIM_NATIVE says
	CALL_STACK_PYTHON_ONLY, // Python frames stand for all native paths: KMEM_STACK_PYTHON_ONLY
	CALL_STACK_PYTHON,      // Python frames say all
	CALL_STACK_ARENA,       // the interpreter's allocator grows: who imports, or none (KMEM_STACK_ARENA)
};

/* Where a thread gathers its frames, and what it remembers of its last walks. Zeroed is empty; never used by two at once. */
struct call_stack_memory {
	struct call_stack stack;
	struct native_stack native;
	struct native_caches caches; // what the last native walks found
	struct python_stack python;
	bool is_library_only;        // it has Python frames, and none of the user's own
	bool is_repeatable;          // the stack is a function of what event_cache.h looks at
	struct native_cache *walked; // the cache of its native part; NULL = it has none
};

/*
 * Takes the stack of the function that called a hook.
 *
 * memory      of this thread; NULL: one of a few that threads without one share
 * hook_frame  __builtin_frame_address(0) of the hook: its saved frame pointer, with the return address
 *             above it; not used for CALL_STACK_ARENA
 * extent      which native frames, if there are Python frames
 * returns     the stack, to be given back soon by call_stack_give_back(); never NULL: without free memory it is an
 *             empty one with KMEM_STACK_NO_STACK, and KMEM_LOST_STACKS is raised
 */
const struct call_stack *call_stack_take(struct call_stack_memory *memory, const void *hook_frame,
                                         enum call_stack_extent extent);
void call_stack_give_back(const struct call_stack_memory *memory, const struct call_stack *stack);

/* What the stack's `hash` must be after frames or flags were changed. */
uint64_t call_stack_hash(const struct call_stack *stack);

#endif
