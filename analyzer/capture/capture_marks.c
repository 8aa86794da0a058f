/*
 * capture_marks.c - which moments were named, and what was held then (see capture_marks.h)?
 *
 * The records of a private copy are changed, as in capture_exit.c, so that nobody else needs to know of two moments.
 */
#include "capture/capture_marks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/order.h"
#include "capture/capture_guard.h"
#include "capture/capture_reader.h"
#include "kmem_words.h"

/* relaxed: a private copy that nobody else looks at */
#define COPY_OF(field) atomic_load_explicit(&(field), memory_order_relaxed)
#define SET(field, value) atomic_store_explicit(&(field), (value), memory_order_relaxed)
#define MOST (INT64_C(1) << 48) // of any sum

static const struct kmem_timeline *
timeline_of(const unsigned char *head)
{
	return (const struct kmem_timeline *)(const void *)(head + KMEM_TIMELINE_OFFSET);
}

const struct kmem_steps *
capture_steps(const struct capture *capture)
{
	return &timeline_of(capture->head)->steps;
}

static bool
is_source(uint32_t source)
{
	return source == KMEM_STEPS_NONE || source == KMEM_STEPS_CELLS || source == KMEM_STEPS_LOOP ||
	       source == KMEM_STEPS_PROGRAM;
}

/* Of one damaged word all steps are unknown: the rest leads nowhere without it. */
static void
settle_steps(struct capture *capture)
{
	struct kmem_timeline *timeline = (struct kmem_timeline *)(void *)(capture->head + KMEM_TIMELINE_OFFSET);
	struct kmem_steps *steps = &timeline->steps;
	uint64_t place = COPY_OF(steps->place);

	if (!kmem_twice_agrees(place)) {
		capture_damaged(capture,
		                "section \"head\": where the steps begin differs from its copy (0x%016" PRIx64
		                "): it is treated as unknown",
		                place);
		SET(steps->place, 0);
	}
	if (is_source(COPY_OF(steps->source)))
		return;
	capture_damaged(capture, "section \"head\": what the steps are (0x%08x) is not valid: they are left out",
	                COPY_OF(steps->source));
	SET(steps->source, KMEM_STEPS_NONE);
	SET(steps->count, 0);
	SET(steps->place, 0);
}

/* Nobody reads it afterwards; but the seal of the head leaves it out. */
static void
check_request(struct capture *capture, const unsigned char *before)
{
	static const struct kmem_request none;
	const struct kmem_request *request = &timeline_of(capture->head)->request;

	if (memcmp(request, &none, sizeof(none)) == 0 || request->checksum == kmem_request_checksum(request) ||
	    memcmp(request, &timeline_of(before)->request, sizeof(*request)) != 0)
		return;
	capture_damaged(capture, "section \"head\": the checksum of a command's request is wrong");
}

static bool
is_possible(const struct kmem_mark *mark)
{
	return mark->kind >= KMEM_MARK_PROGRAM && mark->kind <= KMEM_MARK_HIGH_WATER && mark->sequence != 0 &&
	       mark->clock != 0 && mark->clock <= KMEM_CLOCK_MAX && is_source(mark->step_source) &&
	       memchr(mark->name, '\0', sizeof(mark->name)) != NULL;
}

static int
compare_marks(const void *left, const void *right)
{
	return order_numbers(((const struct kmem_mark *)left)->sequence, ((const struct kmem_mark *)right)->sequence);
}

void
capture_marks_settle(struct capture *capture, const unsigned char *before)
{
	const struct kmem_mark *now = timeline_of(capture->head)->marks;
	const struct kmem_mark *earlier = timeline_of(before)->marks;

	settle_steps(capture);
	check_request(capture, before);
	capture->marks = memory_zeroed(KMEM_MARKS_MAX, sizeof(struct kmem_mark));
	for (unsigned i = 0; i < KMEM_MARKS_MAX; i++) {
		uint32_t checksum = COPY_OF(now[i].checksum);

		/* Without a checksum: none was, or the program died while it wrote it. */
		if (checksum == 0 || memcmp(&now[i], &earlier[i], sizeof(now[i])) != 0)
			continue;
		if (checksum != kmem_mark_checksum(&now[i]))
			capture_damaged(capture, "section \"head\": the checksum of mark %u is wrong: left out", i);
		else if (!is_possible(&now[i]))
			capture_damaged(capture, "section \"head\": mark %u contradicts itself: left out", i);
		else
			memcpy(&capture->marks[capture->mark_count++], &now[i], sizeof(now[i]));
	}
	qsort(capture->marks, capture->mark_count, sizeof(struct kmem_mark), compare_marks);
}

/* Of one record, on either side of 0: see struct kmem_exit_site. */
static bool
is_sum(int64_t number)
{
	return number > -MOST && number < MOST;
}

/* Its lengths fit together and it names no site twice. */
static bool
is_whole(const struct capture *capture, const struct kmem_snapshot *taken)
{
	uint64_t needed = sizeof(*taken) + taken->site_count * (uint64_t)sizeof(taken->sites[0]) +
	                  taken->generation_count * (uint64_t)sizeof(struct kmem_generations);
	uint32_t last = 0;

	if (needed > taken->record.bytes || !is_sum(taken->left_out_bytes))
		return false;
	for (uint32_t i = 0; i < taken->site_count; i++) {
		const struct kmem_exit_site *site = &taken->sites[i];

		if (!is_sum(site->live_bytes) || !is_sum(site->live_count) || site->site <= last ||
		    site->site > capture_site_count(capture) || site->generations > taken->generation_count)
			return false;
		last = site->site;
	}
	return true;
}

const struct kmem_snapshot *
capture_snapshot(struct capture *capture, const struct kmem_mark *mark, bool is_written)
{
	const struct kmem_snapshot *taken;

	if (mark->record == 0 || mark->kind == KMEM_MARK_GUARD)
		return NULL;
	taken = capture_snapshot_record(capture, mark->record, is_written);
	if (taken == NULL || (is_written && taken->sequence != mark->sequence))
		return NULL;
	if (taken->sequence == mark->sequence && is_whole(capture, taken))
		return taken;
	capture_damaged(capture, "section \"records\": what was held at mark %" PRIu64 " contradicts itself: left out",
	                mark->sequence);
	return NULL;
}

/* What held nothing then holds nothing. */
static void
rewind_site(struct kmem_site *site, const struct kmem_exit_site *then)
{
	SET(site->freed_bytes, COPY_OF(site->allocated_bytes) - (uint64_t)(then != NULL ? then->live_bytes : 0));
	SET(site->freed_count, COPY_OF(site->allocated_count) - (uint64_t)(then != NULL ? then->live_count : 0));
}

/* copy: NULL: no block of it was alive by generation. */
static void
rewind_generations(struct capture *capture, uint32_t site, const struct kmem_generations *copy)
{
	/* NULL: told of already. */
	struct kmem_generations *block = (struct kmem_generations *)(uintptr_t)capture_generations(capture, site - 1);

	if (block == NULL)
		return;
	for (unsigned i = 0; i < KMEM_GENERATION_BUCKETS; i++)
		SET(block->live_count[i], copy != NULL ? COPY_OF(copy->live_count[i]) : 0);
	if (copy != NULL)
		SET(block->births, COPY_OF(copy->births));
}

bool
capture_mark_rewind(struct capture *capture, const struct kmem_mark *mark, bool is_written)
{
	struct kmem_header *header = (struct kmem_header *)(void *)capture->head;
	const struct kmem_snapshot *taken;
	const struct kmem_generations *copies;
	uint32_t next = 0;

	if (mark->kind == KMEM_MARK_GUARD)
		return capture_guard_rewind_to(capture, mark->record);
	taken = capture_snapshot(capture, mark, is_written);
	if (taken == NULL)
		return false;
	copies = (const struct kmem_generations *)(const void *)&taken->sites[taken->site_count];
	for (uint32_t i = 1; i <= capture_site_count(capture); i++) {
		struct kmem_site *site = (struct kmem_site *)(void *)capture->sections[KMEM_SECTION_SITES].bytes + (i - 1);
		bool is_then = next < taken->site_count && taken->sites[next].site == i;
		const struct kmem_exit_site *then = is_then ? &taken->sites[next++] : NULL;

		rewind_site(site, then);
		if (taken->generation_count != 0 && COPY_OF(site->generations) != 0)
			rewind_generations(capture, i,
			                   then != NULL && then->generations != 0 ? &copies[then->generations - 1] : NULL);
	}
	if (taken->generation_count != 0 && mark->clock <= COPY_OF(header->generation_clock)) {
		SET(header->generation_clock, mark->clock);
		SET(header->volume_bytes, mark->volume_bytes);
	}
	return true;
}
