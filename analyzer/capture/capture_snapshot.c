/*
 * capture_snapshot.c - what did the program hold at a mark (see capture_snapshot.h)?
 *
 * The records of a private copy are changed, as in capture_exit.c, so that nobody else needs to know of two moments.
 */
#include "capture/capture_snapshot.h"

#include <inttypes.h>

#include "capture/capture_copy.h"
#include "capture/capture_guard.h"
#include "capture/capture_held.h"
#include "capture/capture_reader.h"

/* Its lengths fit together and it names no site twice. */
static bool
is_whole(const struct capture *capture, const struct kmem_snapshot *taken)
{
	return capture_is_sum(taken->left_out_bytes) &&
	       capture_held_is_possible(capture, &taken->record, taken->sites, taken->site_count, taken->generation_count);
}

const struct kmem_snapshot *
capture_snapshot(struct capture *capture, const struct kmem_mark *mark, bool is_written)
{
	if (mark->kind == KMEM_MARK_GUARD)
		return NULL;

	const struct kmem_snapshot *taken = capture_held_record(capture, mark->record, KMEM_RECORD_SNAPSHOT, is_written);

	if (taken == NULL || (is_written && taken->sequence != mark->sequence))
		return NULL;
	if (taken->sequence == mark->sequence && is_whole(capture, taken))
		return taken;
	capture_damaged(capture, "section \"records\": what was held at mark %" PRIu64 " contradicts itself: left out",
	                mark->sequence);
	return NULL;
}

bool
capture_mark_rewind(struct capture *capture, const struct kmem_mark *mark, bool is_written)
{
	struct kmem_header *header = (struct kmem_header *)(void *)capture->head;

	if (mark->kind == KMEM_MARK_GUARD)
		return capture_guard_rewind_to(capture, mark->record);

	const struct kmem_snapshot *taken = capture_snapshot(capture, mark, is_written);

	if (taken == NULL)
		return false;

	const struct kmem_generations *copies = (const struct kmem_generations *)(const void *)&taken
	                                            ->sites[taken->site_count];

	capture_held_rewind(capture, taken->sites, taken->site_count, taken->generation_count != 0 ? copies : NULL);
	capture->is_rewound = true;
	capture->rewound_ns = mark->monotonic_ns;
	if (taken->generation_count != 0 && mark->clock <= COPY_OF(header->generation_clock)) {
		SET(header->generation_clock, mark->clock);
		SET(header->volume_bytes, mark->volume_bytes);
	}
	return true;
}
