/*
 * exit_figures.c - what did the program hold when it began to exit (see exit_figures.h)?
 *
 * One record, behind which the header leads: an entry for each record of a site that holds anything, or whose counters by generation do, and
 * copies of these counters, since a release changes them where they stand.
 *
 * Not chosen  to stop booking, as the teardown of Python does: a program may do all its work in an exit handler, and what it holds
 *             at its peak may be held there.
 */
#include "moments/exit_figures.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "capture/capture_file.h"
#include "kmem_words.h"
#include "moments/held_sites.h"
#include "tables/generations.h"

#define HELD_FLOOR_BYTES 65536 // less is not worth a person's time

void
exit_figures_take(void)
{
	struct kmem_header *header = capture_file_header();
	struct held_sites found;
	struct kmem_exit *to = NULL;
	uint32_t index;

	held_sites_measure(true, &found);

	uint64_t bytes = sizeof(*to) + held_sites_bytes(&found);

	if (found.live_bytes < HELD_FLOOR_BYTES || atomic_load_explicit(&header->at_exit, memory_order_relaxed) != 0)
		return;
	if (bytes < UINT32_MAX && !capture_file_is_large(0))
		to = capture_file_append(KMEM_SECTION_RECORDS, bytes, &index);
	if (to == NULL)
		return;
	to->monotonic_ns = clock_now_ns();
	to->volume_bytes = atomic_load_explicit(&header->volume_bytes, memory_order_relaxed);
	to->clock = generations_clock();

	struct held_written done = held_sites_write(&found, to->sites, bytes - sizeof(*to));

	to->site_count = done.sites;
	to->generation_count = done.generations;
	to->live_bytes = done.live_bytes;
	to->record.type = KMEM_RECORD_EXIT;
	to->record.bytes = (uint32_t)bytes;
	capture_file_seal_record(&to->record);
	/* release: the record before what leads to it (F1). */
	atomic_store_explicit(&header->at_exit, kmem_twice(index + 1), memory_order_release);
}

bool
exit_figures_stand(void)
{
	// of this thread, or of one before
	uint64_t index = atomic_load_explicit(&capture_file_header()->at_exit, memory_order_relaxed);
	const struct kmem_exit *taken = index != 0 ? capture_file_item(KMEM_SECTION_RECORDS, (uint32_t)index) : NULL;

	return taken != NULL && held_sites_live_bytes() <= taken->live_bytes;
}
