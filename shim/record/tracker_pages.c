/*
 * tracker_pages.c - what of a mapping became memory, and what of it was given back? (see tracker.h)
 *
 * Context     after the real call and inside the reentry guard. Calls that touch nothing we know cost
 *             one lookup in the map: interpreters that compile change the protection of their code all
 *             the time.
 */
#include <stdatomic.h>

#include "capture/capture_file.h"
#include "record/site_table.h"
#include "record/tracker.h"
#include "record/tracker_library.h"
#include "record/tracker_parts.h"
#include "tables/range_map.h"

/* What is known of [*at, end), the next range of it; *at goes behind it. */
static bool
next_within(uint64_t *at, uint64_t end, struct range *part)
{
	if (*at >= end)
		return false;
	if (!range_map_next(*at, part)) {
		lose_event(0);
		return false;
	}
	if (part->site == 0 || part->start >= end)
		return false;
	if (part->start < *at)
		part->start = *at;
	if (part->end > end)
		part->end = end;
	*at = part->end;
	return true;
}

static unsigned
domain_of(const struct range *range)
{
	return site_table_at(range->site)->domain;
}

void
tracker_writable(const void *hook_frame, void *addr, size_t bytes)
{
	uint64_t at = (uint64_t)addr;
	uint64_t end = at + bytes;
	struct range_pieces taken;
	struct range part;

	while (next_within(&at, end, &part)) {
		if (domain_of(&part) != KMEM_DOMAIN_RESERVED || library_map_covers(part.start)) // what could be written before
			continue;
		tracker_unmap_begin((void *)part.start, part.end - part.start, &taken);
		if (taken.count == 0) // it stays what it was; begin has counted that
			continue;
		tracker_unmap_end(&taken, true);
		tracker_extended(hook_frame, (void *)part.start, part.end - part.start);
	}
}

void
tracker_returned(void *addr, size_t bytes)
{
	uint64_t at = (uint64_t)addr;
	uint64_t end = at + bytes;
	struct range part;

	while (next_within(&at, end, &part)) {
		/* relaxed: a counter of its own */
		if (domain_of(&part) != KMEM_DOMAIN_FILE)
			atomic_fetch_add_explicit(&capture_file_domain(domain_of(&part))->returned_bytes, part.end - part.start,
			                          memory_order_relaxed);
	}
}

void
tracker_detach_begin(void *addr, struct range_pieces *taken)
{
	struct range_pieces more;
	bool was_had = range_map_take_mapping((uint64_t)addr, taken);

	/* As when a range is unmapped: only the first set can be put back. */
	for (more = *taken; was_had && more.is_more;) {
		was_had = range_map_take_slow(&more);
		if (was_had)
			tracker_unmap_end(&more, true);
	}
	if (!was_had)
		lose_event(0);
}
