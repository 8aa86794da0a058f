/*
 * capture_marks.c - which moments were named, and which steps were made (see capture_marks.h)?
 */
#include "capture/capture_marks.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/order.h"
#include "capture/capture_copy.h"
#include "kmem_words.h"

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

ORDER_OF(compare_marks, struct kmem_mark, order_numbers(a->sequence, b->sequence))

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
	SORT(capture->marks, capture->mark_count, compare_marks);
}
