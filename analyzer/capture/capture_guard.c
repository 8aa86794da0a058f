/*
 * capture_guard.c - what did the program hold when it passed its guard (see capture_guard.h)?
 *
 * The records of a private copy are changed, as in capture_exit.c, so that nobody else needs to know of two moments.
 */
#include "capture/capture_copy.h"
#include "capture/capture_guard.h"
#include "capture/capture_held.h"

/* Its lengths fit together and it names no site twice. */
static bool
is_possible(struct capture *capture, const struct kmem_guard *taken)
{
	const struct kmem_guard_passing *passing = &taken->passing;

	return passing->number != 0 && passing->action <= KMEM_GUARD_EXEC && passing->outcome <= KMEM_GUARD_NOBODY &&
	       passing->limit_bytes != 0 && passing->guard_bytes <= passing->limit_bytes &&
	       capture_held_is_possible(capture, &taken->record, taken->sites, passing->site_count, 0);
}

static const struct kmem_guard *
guard_at(struct capture *capture, uint32_t index_plus_one)
{
	const struct kmem_guard *taken = capture_held_record(capture, index_plus_one, KMEM_RECORD_GUARD, false);

	if (taken == NULL || is_possible(capture, taken))
		return taken;
	capture_damaged(capture, "section \"records\": what was held at the guard contradicts itself: left out");
	return NULL;
}

const struct kmem_guard *
capture_guard_newest(struct capture *capture)
{
	return guard_at(capture, (uint32_t)COPY_OF(capture->header->guard)); // once of twice
}

bool
capture_guard_rewind(struct capture *capture)
{
	return capture_guard_rewind_to(capture, (uint32_t)COPY_OF(capture->header->guard));
}

bool
capture_guard_rewind_to(struct capture *capture, uint32_t index_plus_one)
{
	const struct kmem_guard *taken = guard_at(capture, index_plus_one);

	if (taken == NULL)
		return false;
	capture_held_rewind(capture, taken->sites, taken->passing.site_count, NULL);
	capture->rewound_ns = taken->passing.monotonic_ns;
	return true;
}
