/*
 * call_stack.h - who asked for this memory? One merged stack of native and Python frames.
 *
 * Called by   tracker.c, inside the reentry guard, on the thread whose stack it is.
 * Safe from   any hook; no allocation, no lock, no loader call; about 14 KiB of stack.
 * When failing  a shorter stack with the flag that says so; errno is left alone.
 */
#ifndef CALL_STACK_H
#define CALL_STACK_H

#include <stdbool.h>
#include <stdint.h>

#define CALL_STACK_FRAMES_MAX 384 // words kept of one merged stack

struct call_stack {
	uint64_t hash;            // of frames[] and flags; never 0
	uint32_t frame_count;
	uint32_t omitted;         // as in struct kmem_stack
	uint32_t omitted_at;
	uint16_t flags;           // enum kmem_stack_flags
	uint64_t frames[CALL_STACK_FRAMES_MAX]; // as in struct kmem_stack, innermost first
};

/*
 * Takes the stack of the function that called a hook.
 *
 * hook_frame  __builtin_frame_address(0) of the hook: its saved frame pointer, with the return address
 *             above it
 * stack       filled in; owned by the caller
 */
void call_stack_take(const void *hook_frame, struct call_stack *stack);

#endif
