/*
 * stack_frames.h - one merged stack of native and Python frames: what of it is stored.
 *
 * Apart from call_stack.h, which takes it from a thread: who stores or extends a stack walks none.
 */
#ifndef STACK_FRAMES_H
#define STACK_FRAMES_H

#include <stdint.h>

#include "kmem_format.h"
#include "python/python_frames.h"

#define CALL_STACK_FRAMES_MAX KMEM_STACK_FRAMES_MAX

static inline uint64_t
call_stack_python_frame(const struct python_frame *frame)
{
	return KMEM_FRAME_PYTHON | (uint64_t)frame->code |
	       (uint64_t)(frame->offset & KMEM_FRAME_OFFSET_MASK) << KMEM_FRAME_OFFSET_SHIFT;
}

struct call_stack {
	uint64_t hash; // of frames[] and flags; never 0
	uint32_t frame_count;
	uint32_t omitted; // as in struct kmem_stack
	uint32_t omitted_at;
	uint16_t flags;                         // enum kmem_stack_flags
	uint64_t frames[CALL_STACK_FRAMES_MAX]; // the whole stack as in struct kmem_stack, innermost first
};

#endif
