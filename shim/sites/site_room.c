/*
 * site_room.c - who may have another record when there are many (see site_room.h)?
 */
#include "sites/site_room.h"

#include <stdatomic.h>

#include "base/settings.h"
#include "capture/capture_file.h"
#include "tables/pointer_map.h"

size_t
site_room_spare_bytes(enum site_purpose purpose)
{
	if (purpose == SITE_FOR_STACK)
		return CAPTURE_FILE_SPARE_BYTES;
	if (purpose <= SITE_FOR_LAST_PARENT)
		return CAPTURE_FILE_SPARE_BYTES / 16 * (12 - (size_t)(purpose - SITE_FOR_PARENT));
	return purpose == SITE_FOR_RELEASE ? CAPTURE_FILE_SPARE_BYTES / 4 : 0;
}

static unsigned
eighths_beyond(enum site_purpose purpose)
{
	return purpose == SITE_FOR_STACK ? 0 : purpose < SITE_FOR_LAST_PARENT ? 1 : 2;
}

bool
site_room_has_budget(enum site_purpose purpose)
{
	uint64_t used = atomic_load_explicit(&capture_file_header()->used_bytes[KMEM_SECTION_SITES], memory_order_relaxed);
	uint64_t most = settings.sites_max;

	if (purpose <= SITE_FOR_LAST_PARENT && capture_file_is_large(eighths_beyond(purpose)))
		return false;
	if (purpose <= SITE_FOR_LAST_PARENT)
		most += most / 8 * eighths_beyond(purpose);
	else if (purpose == SITE_FOR_RELEASE) // else a site seems to keep what another thread gave back
		most *= 2;
	if (most > POINTER_MAP_SITES_MAX) // it would not fit a word of the map
		most = POINTER_MAP_SITES_MAX;
	return purpose == SITE_FOR_MERGED || used < most * sizeof(struct kmem_site);
}

/* Of the stack without its inner frames; a single frame is kept as the first one. */
static uint32_t
callers(uint32_t frame_count, bool is_first)
{
	return frame_count == 1 && is_first ? 1 : frame_count * 3 / 4;
}

bool
site_room_next_parent(const struct call_stack *stack, uint32_t *count, enum site_purpose *purpose,
                      struct stack_words *outer)
{
	bool is_first = *purpose == SITE_FOR_PARENT && *count == stack->frame_count;

	*count = callers(*count, is_first);
	if (*count == 0)
		return false;
	uint32_t dropped = stack->frame_count - *count;
	bool has_gap = stack->omitted != 0 && stack->omitted_at >= dropped;

	if (!is_first && *purpose < SITE_FOR_LAST_PARENT)
		(*purpose)++;
	if (*count == 1) // there are few outermost frames, and nothing but no stack comes after them
		*purpose = SITE_FOR_LAST_PARENT;
	*outer = (struct stack_words){
		.hash = 1,
		.frame_count = *count,
		.omitted = has_gap ? stack->omitted : 0,
		.omitted_at = has_gap ? stack->omitted_at - dropped : 0,
		.flags = stack->flags | KMEM_STACK_MERGED,
		.frames = stack->frames + dropped,
	};
	for (uint32_t i = 0; i < *count; i++)
		outer->hash = (outer->hash ^ outer->frames[i]) * UINT64_C(0x9e3779b97f4a7c15);
	return true;
}
