/*
 * frame_numbers.c - which number has a frame, in a file that lists each frame once (see frame_numbers.h)?
 *
 * When failing  without memory the command ends with a message (memory.h).
 */
#include "report/frame_numbers.h"

#include <stdlib.h>
#include <uthash.h>

#include "base/hash_free.h"
#include "base/memory.h"

struct frame_number {
	const void *identity;
	uint32_t number;
	UT_hash_handle hh;
};

uint32_t
frame_numbers_of(struct frame_numbers *numbers, const struct report_frame *frame)
{
	struct frame_number *found;

	HASH_FIND_PTR(numbers->by_identity, &frame->identity, found);
	if (found != NULL)
		return found->number;
	found = memory_zeroed(1, sizeof(*found));
	found->identity = frame->identity;
	found->number = (uint32_t)numbers->count;
	HASH_ADD_PTR(numbers->by_identity, identity, found);
	*MEMORY_NEXT(numbers->frames, numbers->count, numbers->room) = *frame;
	return found->number;
}

void
frame_numbers_free(struct frame_numbers *numbers)
{
	HASH_FREE(numbers->by_identity, free);
	free(numbers->frames);
	*numbers = (struct frame_numbers){ .by_identity = NULL };
}
