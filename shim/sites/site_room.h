/*
 * site_room.h - is there room for one more record, and what stands for a stack that has none?
 *
 * Beyond the budget, of sites or of bytes, and when the capture cannot grow, a new stack is merged into its callers: the inner frames
 * are left out until a place is found. What the capture keeps for that (CAPTURE_FILE_SPARE_BYTES) are some hundred places.
 *
 * Safe from   any thread and signal handler: reads counters.
 */
#ifndef SITE_ROOM_H
#define SITE_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sites/stack_store.h"

/*
 * For whom a new record is. Those later in the list may go beyond the budget, parents by an eighth, outermost ones by a quarter: so that
 * what it does to the others stays small.
 */
enum site_purpose {
	SITE_FOR_STACK,
	SITE_FOR_PARENT,
	SITE_FOR_LAST_PARENT = SITE_FOR_PARENT + 8,
	SITE_FOR_RELEASE,
	SITE_FOR_MERGED,
};

/* What a new record leaves of a capture that cannot grow. Outer callers take what closer ones left: they stand for more. */
size_t site_room_spare_bytes(enum site_purpose purpose);

bool site_room_has_budget(enum site_purpose purpose);

/*
 * The outer part of a stack that is to stand for it, with fewer inner frames left out than the next one. `count` is how many frames the
 * last one had, at first those of the stack; 0 afterwards: there is none any more. `purpose` starts as SITE_FOR_PARENT.
 */
bool site_room_next_parent(const struct call_stack *stack, uint32_t *count, enum site_purpose *purpose,
                           struct stack_words *outer);

#endif
