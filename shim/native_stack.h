/*
 * native_stack.h - the native frames of this thread, from unwind tables, without frame pointers.
 *
 * Called by   call_stack.c, inside the reentry guard.
 * Safe from   any hook on any thread. Per-PC rules (unwind_rules.h) carry the walk; libunwind
 *             (unwind_libunwind.h) is the fallback for what they cannot express, and the oracle of
 *             KMEMSHIM_VERIFY.
 * When failing  the frames found so far, and `is_complete` false.
 */
#ifndef NATIVE_STACK_H
#define NATIVE_STACK_H

#include <stdbool.h>
#include <stdint.h>

/* Kept of a longer stack: the innermost and the outermost ones. */
#define NATIVE_STACK_INNER 160
#define NATIVE_STACK_OUTER 64
#define NATIVE_STACK_MAX (NATIVE_STACK_INNER + NATIVE_STACK_OUTER)
#define NATIVE_STACK_VISITS_MAX 16384 // a walk never takes more steps than this

struct native_stack {
	uint32_t count;            // entries below, innermost first
	uint32_t omitted;          // frames left out after the first NATIVE_STACK_INNER
	bool is_complete;          // the outermost frame, or stop_sp, was reached
	bool is_alternate;         // the stack pointer is not in the thread's own stack
	uint64_t pc[NATIVE_STACK_MAX]; // as frame words: KMEM_FRAME_EXACT set where the address is exact
	uint64_t sp[NATIVE_STACK_MAX]; // stack pointer in that frame, at the call: frame i spans sp[i] to sp[i + 1]
};

/*
 * hook_frame  __builtin_frame_address(0) of the hook; the first frame given is its caller
 * stop_sp     end before the first frame whose extent [sp, CFA) contains this stack address (that frame is left
 *             out); 0 = go to the end
 */
void native_stack_walk(const void *hook_frame, uint64_t stop_sp, struct native_stack *stack);

/* Once, before the first walk, outside any hook: reads settings. */
void native_stack_start(void);

/* After something was unloaded: what is remembered of code addresses is void. A fork needs no call. */
void native_stack_modules_changed(void);

#endif
