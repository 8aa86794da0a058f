/*
 * native_frames.h - what did a walk of the native stack find?
 */
#ifndef NATIVE_FRAMES_H
#define NATIVE_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/checked_memory.h"

/*
 * Recursion: of more than NATIVE_STACK_RUN frames in a row that are in the same function, the innermost and the outermost one are given,
 * and the innermost one has KMEM_FRAME_REPEATED. How many there were is not told: stacks that differ in nothing else are one.
 */
#define NATIVE_STACK_RUN 2u
// calls that are further apart are not taken for those of one function
#define NATIVE_STACK_CALL_SPAN (UINT64_C(64) << 10)

/* Kept of a longer stack: the innermost and the outermost ones. */
#define NATIVE_STACK_INNER 160
#define NATIVE_STACK_OUTER 64
#define NATIVE_STACK_MAX (NATIVE_STACK_INNER + NATIVE_STACK_OUTER)
#define NATIVE_STACK_VISITS_MAX 16384 // a walk never takes more steps than this

/*
 * What a walk found. pc and sp_offsets lead into the cache of the walk or to own_pc, so a copy of the struct is
 * no copy of the stack, and the next walk with either of the two changes it.
 */
struct native_stack {
	uint32_t count; // frames, innermost first
	// frames left out after the first NATIVE_STACK_INNER; what a recursion leaves out is not counted
	uint32_t omitted;
	uint32_t kept;      // so many outermost ones that were walked, shown or not, are as the cache had them before
	bool is_complete;   // the outermost frame, or stop_sp, was reached
	bool is_alternate;  // the stack pointer is not in the thread's own stack
	bool is_remembered; // the cache holds this walk now; else it is as it was
	const uint64_t *pc; // as frame words: KMEM_FRAME_EXACT set where the address is exact
	const uint32_t *sp_offsets; // NULL: own_sp
	uint64_t sp_base;
	uint64_t own_pc[NATIVE_STACK_MAX];
	uint64_t own_sp[NATIVE_STACK_MAX];
	uint64_t numbers[NATIVE_STACK_MAX]; // of a walk that is not remembered: how many frames were walked before that one
	struct checked_span span;           // of the walk, on a stack that is not known; here because that may be small
};

/* Stack pointer in frame i, at the call: that frame spans from there to the one of frame i + 1. */
static inline uint64_t
native_stack_sp(const struct native_stack *stack, uint32_t i)
{
	return stack->sp_offsets != NULL ? stack->sp_base + stack->sp_offsets[i] : stack->own_sp[i];
}

/* Is it worth asking? */
static inline bool
native_stack_may_be_same_function(uint64_t one, uint64_t other)
{
	return one - other + NATIVE_STACK_CALL_SPAN <= 2 * NATIVE_STACK_CALL_SPAN;
}

#endif
