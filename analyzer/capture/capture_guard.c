/*
 * capture_guard.c - what did the program hold when it passed its guard (see capture_guard.h)?
 *
 * The records of a private copy are changed, as in capture_exit.c, so that nobody else needs to know of two moments.
 */
#include "capture/capture_copy.h"
#include "capture/capture_guard.h"


/* Its lengths fit together and it names no site twice. */
static bool
is_possible(struct capture *capture, const struct kmem_guard *taken)
{
	const struct kmem_guard_passing *passing = &taken->passing;
	uint64_t needed = sizeof(*taken) + passing->site_count * (uint64_t)sizeof(taken->sites[0]);
	uint32_t last = 0;

	if (needed > taken->record.bytes || passing->number == 0 || passing->action > KMEM_GUARD_EXEC ||
	    passing->outcome > KMEM_GUARD_NOBODY || passing->limit_bytes == 0 ||
	    passing->guard_bytes > passing->limit_bytes)
		return false;
	for (uint32_t i = 0; i < passing->site_count; i++) {
		const struct kmem_exit_site *site = &taken->sites[i];

		if (!capture_is_sum(site->live_bytes) || !capture_is_sum(site->live_count) || site->site <= last ||
		    site->site > capture_site_count(capture))
			return false;
		last = site->site;
	}
	return true;
}

static const struct kmem_guard *
guard_at(struct capture *capture, uint32_t index_plus_one)
{
	const struct kmem_guard *taken = index_plus_one != 0 ? capture_guard(capture, index_plus_one) : NULL;

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
	uint32_t next = 0;

	if (taken == NULL)
		return false;
	for (uint32_t i = 1; i <= capture_site_count(capture); i++) {
		struct kmem_site *site = (struct kmem_site *)(void *)capture->sections[KMEM_SECTION_SITES].bytes + (i - 1);
		bool is_then = next < taken->passing.site_count && taken->sites[next].site == i;
		const struct kmem_exit_site *then = is_then ? &taken->sites[next++] : &(struct kmem_exit_site){ 0 };

		SET(site->freed_bytes, COPY_OF(site->allocated_bytes) - (uint64_t)then->live_bytes);
		SET(site->freed_count, COPY_OF(site->allocated_count) - (uint64_t)then->live_count);
	}
	capture->rewound_ns = taken->passing.monotonic_ns;
	return true;
}
