/*
 * capture_history.c - what was held over time (see capture_history.h)?
 */
#include "capture/capture_history.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/order.h"
#include "capture/capture_reader.h"
#include "kmem_words.h"

/* relaxed: a private copy that nobody else looks at */
#define COPY_OF(field) atomic_load_explicit(&(field), memory_order_relaxed)
#define MOST (INT64_C(1) << 48) // of any sum

/* NULL: there is no such part, or it cannot be read. */
static const struct kmem_history *
part_at(struct capture *capture, unsigned part, bool is_written)
{
	const struct capture_section *section = &capture->sections[KMEM_SECTION_RECORDS];
	uint64_t twice = COPY_OF(capture->header->history[part]);
	uint64_t index = (uint32_t)twice - UINT64_C(1);
	const struct kmem_history *found;

	if (twice == 0)
		return NULL;
	if (!kmem_twice_agrees(twice)) {
		if (!is_written)
			capture_damaged(capture,
			                "section \"head\": where part %u of the history is differs from its copy: left out", part);
		return NULL;
	}
	if (index * 8 > section->size_bytes || section->size_bytes - index * 8 < sizeof(*found)) {
		if (!is_written) // it came after the section was read
			capture_damaged(capture, "section \"records\": part %u of the history is beyond the end: left out", part);
		return NULL;
	}
	found = (const struct kmem_history *)(const void *)(section->bytes + index * 8);
	if (found->record.type == KMEM_RECORD_HISTORY && found->record.bytes == sizeof(*found) &&
	    found->record.checksum == kmem_history_head_checksum(&found->record))
		return found;
	if (!is_written)
		capture_damaged(capture, "section \"records\": part %u of the history is not one: left out", part);
	return NULL;
}

static bool
is_possible(const struct capture *capture, const struct kmem_history_point *point)
{
	if (point->number == 0 || point->domain_count > KMEM_HISTORY_DOMAINS || point->site_count > KMEM_HISTORY_SITES)
		return false;
	for (unsigned i = 0; i < point->domain_count; i++) {
		if (point->domains[i] >= KMEM_DOMAINS_MAX || point->domain_bytes[i] <= -MOST || point->domain_bytes[i] >= MOST)
			return false;
	}
	for (unsigned i = 0; i < point->site_count; i++) {
		if (point->sites[i] == 0 || point->sites[i] > capture_site_count(capture) || point->site_bytes[i] <= 0 ||
		    point->site_bytes[i] >= MOST)
			return false;
	}
	return true;
}

ORDER_OF(compare_points, struct kmem_history_point, order_numbers(a->number, b->number))

/* Without a checksum: none was, or it is given up, or the program died while it wrote it. */
static bool
is_whole(struct capture *capture, const struct kmem_history_point *point, bool is_written)
{
	uint32_t checksum = COPY_OF(point->checksum);

	if (checksum == 0)
		return false;
	if (checksum != kmem_history_checksum(point)) {
		if (!is_written)
			capture_damaged(capture, "section \"records\": the checksum of a point of the history is wrong: left out");
		return false;
	}
	if (is_possible(capture, point))
		return true;
	if (!is_written) // a site may be newer than what was read of them
		capture_damaged(capture, "section \"records\": point %" PRIu64 " of the history contradicts itself: left out",
		                point->number);
	return false;
}

struct kmem_history_point *
capture_history(struct capture *capture, bool is_written, size_t *count)
{
	struct kmem_history_point *points = NULL;

	*count = 0;
	for (unsigned i = 0; i < KMEM_HISTORY_PARTS; i++) {
		const struct kmem_history *part = part_at(capture, i, is_written);

		for (unsigned k = 0; part != NULL && k < KMEM_HISTORY_PART_POINTS; k++) {
			if (!is_whole(capture, &part->points[k], is_written))
				continue;
			memcpy(MEMORY_NEXT(points, *count), &part->points[k], sizeof(*points));
		}
	}
	SORT(points, *count, compare_points);
	return points;
}
