/*
 * capture_exit.c - what did the program hold before its exit handlers ran (see capture_reader.h)?
 *
 * The records of a private copy are changed, so that nobody else needs to know of two moments. What held nothing then holds nothing:
 * what was made and kept since is counted among what was allocated, and as a whole.
 */
#include <string.h>

#include "base/items.h"
#include "base/memory.h"
#include "capture/capture_copy.h"
#include "capture/capture_held.h"
#include "capture/capture_reader.h"
#include "kmem_words.h"

#define TRIFLE_BYTES 65536 // what every Python program releases between its last line and the teardown

static int64_t
live_bytes(const struct kmem_site *site)
{
	return (int64_t)(COPY_OF(site->allocated_bytes) - COPY_OF(site->freed_bytes));
}

static int64_t
live_at_end(struct capture *capture)
{
	uint64_t sum = 0; // modulo 2^64, as all sums of records

	for (size_t i = 0; i < capture_site_count(capture); i++) {
		const struct kmem_site *site = capture_site_copy(capture, i);

		sum += kmem_domain_is_memory(site->domain) ? (uint64_t)live_bytes(site) : 0;
	}
	return (int64_t)sum;
}

/* Its lengths fit together and it names no site twice: whole, or not at all. */
static bool
is_possible(struct capture *capture, const struct kmem_exit *taken)
{
	return taken->clock != 0 && taken->clock <= COPY_OF(capture->header->generation_clock) &&
	       taken->volume_bytes <= COPY_OF(capture->header->volume_bytes) &&
	       capture_held_is_possible(capture, &taken->record, taken->sites, taken->site_count, taken->generation_count);
}

/*
 * Allocated outside any line of Python: as the program was read, whose text and tree are released when its last line is done. Not its
 * arenas, which hold what lines of Python made.
 */
static bool
is_interpreters(struct capture *capture, uint32_t number)
{
	struct capture_stack stack;

	if (capture_site_copy(capture, number - 1)->domain == KMEM_DOMAIN_PYTHON_ARENA)
		return false;
	uint32_t index = COPY_OF(capture_site_copy(capture, number - 1)->stack);

	if (index == 0 || !capture_stack(capture, index, "stack of a site", &stack))
		return false;
	return !ANY(frame, stack.frames, stack.frame_count, (*frame & KMEM_FRAME_PYTHON) != 0);
}

/* By lines of Python, less what they allocated since and kept. */
static int64_t
released_by_handlers(struct capture *capture, const struct kmem_exit *taken)
{
	uint64_t sum = 0; // modulo 2^64: a thread has a record of its own for what others allocated and it released
	uint32_t next = 0;

	for (uint32_t i = 1; i <= capture_site_count(capture); i++) {
		const struct kmem_exit_site *then = capture_held_next(taken->sites, taken->site_count, i, &next);
		uint64_t then_bytes = then != NULL ? (uint64_t)then->live_bytes : 0;
		const struct kmem_site *site = capture_site_copy(capture, i - 1);

		if (kmem_domain_is_memory(site->domain) && !is_interpreters(capture, i))
			sum += then_bytes - (uint64_t)live_bytes(site);
	}
	return (int64_t)sum;
}

static void
rewind_site(struct capture *capture, uint32_t number, const struct kmem_exit_site *then,
            const struct kmem_generations *copies)
{
	struct kmem_site *site = capture_site_copy(capture, number - 1);
	int64_t end_bytes = live_bytes(site);

	capture_held_set(capture, number, then, copies);
	capture->released_bytes[number - 1] = (int64_t)((uint64_t)live_bytes(site) - (uint64_t)end_bytes);
}

void
capture_exit_rewind(struct capture *capture)
{
	struct kmem_header *header = (struct kmem_header *)(void *)capture->head;
	uint32_t index = (uint32_t)COPY_OF(header->at_exit); // once of twice
	const struct kmem_exit *taken = capture->was_closed ? capture_held_record(capture, index, KMEM_RECORD_EXIT, false)
	                                                    : NULL;
	bool is_python = COPY_OF(header->is_finalizing) != 0;
	uint32_t next = 0;

	if (taken == NULL)
		return;
	if (!is_possible(capture, taken)) {
		capture_damaged(capture,
		                "section \"records\": the figures from the start of the exit contradict the others: left out");
		return;
	}
	if (live_at_end(capture) >= taken->live_bytes || (is_python && released_by_handlers(capture, taken) < TRIFLE_BYTES))
		return;

	const struct kmem_generations *copies = (const struct kmem_generations *)(const void *)&taken
	                                            ->sites[taken->site_count];

	capture->released_bytes = memory_zeroed(capture_site_count(capture), sizeof(*capture->released_bytes));
	for (uint32_t i = 1; i <= capture_site_count(capture); i++) {
		const struct kmem_exit_site *then = capture_held_next(taken->sites, taken->site_count, i, &next);

		if (!is_python || !is_interpreters(capture, i))
			rewind_site(capture, i, then, copies);
	}
	capture->after_exit_bytes = COPY_OF(header->volume_bytes) - taken->volume_bytes;
	SET(header->generation_clock, taken->clock);
	SET(header->volume_bytes, taken->volume_bytes);
}
