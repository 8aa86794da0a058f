/*
 * frame_numbers.c - which number has a frame, in a file that lists each frame once (see frame_numbers.h)?
 *
 * When failing  without memory the command ends with a message (memory.h).
 */
#include "report/frame_numbers.h"

#include <stdlib.h>
#include <uthash.h>

#include "base/hash.h"
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

	if (!HASH_MADE(numbers->by_identity, identity, frame->identity, found))
		return found->number;
	found->number = (uint32_t)numbers->count;
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
