/*
 * stack_store.h - the stacks of a capture: is this one stored there, and where?
 *
 * A stack is a record of its frames. It may share its outer frames with the one that the same thread stored before: then it leads to
 * that record and holds its own frames alone.
 *
 * Context     inside the reentry guard.
 * Safe from   any thread and signal handler; lock-free; no allocation.
 * When full   0: the stack has no record.
 */
#ifndef STACK_STORE_H
#define STACK_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kmem_format.h"
#include "sites/stack_frames.h"

/* A stack, or the outer part of one. */
struct stack_words {
	uint64_t hash;
	uint32_t frame_count;
	uint32_t omitted;
	uint32_t omitted_at;
	uint16_t flags;
	const uint64_t *frames;
};

static inline struct stack_words
stack_words_of(const struct call_stack *stack)
{
	return (struct stack_words){ stack->hash,       stack->frame_count, stack->omitted,
		                         stack->omitted_at, stack->flags,       stack->frames };
}

/* The stack that a thread stored last; zeroed: none. */
struct stack_store_last {
	uint32_t stack; // index + 1
	uint32_t module_version;
	uint32_t count;
	uint64_t frames[KMEM_STACK_FRAMES_MAX];
};

/* Are these the words of the record at `stack_index` (index + 1), whatever lay at these addresses then? */
bool stack_store_has(uint32_t stack_index, const struct stack_words *stack);

/* The same words are another stack when they lead into another library now. */
bool stack_store_is_over(uint32_t stack_index, const struct stack_words *stack);

/*
 * Writes the stack's record.
 *
 * last         of this thread; NULL: it has none
 * spare_bytes  what is to stay free of a capture that cannot grow
 * returns      index + 1; 0 = no room
 */
uint32_t stack_store_add(struct stack_store_last *last, const struct stack_words *stack, size_t spare_bytes);

#endif
