/*
 * capture_phase.c - what was held at the highest peak of the phases before this one (see capture_phase.h)?
 */
#include "capture/capture_phase.h"

#include "capture/capture_copy.h"
#include "capture/capture_held.h"
#include "capture/capture_reader.h"
#include "kmem_words.h"

/* Its lengths fit together and it names no site twice. */
static bool
is_possible(const struct capture *capture, const struct kmem_kept_peak *kept)
{
	uint32_t last = 0;

	if (sizeof(*kept) + kept->site_count * (uint64_t)sizeof(kept->sites[0]) > kept->record.bytes)
		return false;
	for (uint32_t i = 0; i < kept->site_count; i++) {
		if (kept->sites[i].site <= last || kept->sites[i].site > capture_site_count(capture) ||
		    kept->sites[i].peak_bytes > KMEM_PEAK_BYTES_MASK)
			return false;
		last = kept->sites[i].site;
	}
	return true;
}

const struct kmem_kept_peak *
capture_kept_peak(struct capture *capture, bool is_written)
{
	const struct kmem_timeline *timeline = (const struct kmem_timeline *)(const void *)(capture->head +
	                                                                                    KMEM_TIMELINE_OFFSET);
	const struct kmem_kept_peak *kept = capture_held_record(capture, (uint32_t)COPY_OF(timeline->kept_peak),
	                                                        KMEM_RECORD_KEPT_PEAK, is_written);

	if (kept == NULL || is_possible(capture, kept))
		return kept;
	if (!is_written)
		capture_damaged(
			capture, "section \"records\": what was held at the peak of earlier phases contradicts itself: left out");
	return NULL;
}

/* The first of equal maxima counts. */
static bool
is_higher(const struct kmem_domain_row *row)
{
	uint64_t kept_bytes = COPY_OF(row->kept_peak_bytes);

	return kept_bytes != 0 && kept_bytes <= KMEM_PEAK_BYTES_MASK >> 1 &&
	       kept_bytes >= kmem_domain_peak_bytes(row->peak);
}

/* A record that cannot be read was told of already. */
static void
tell_missing(struct capture *capture)
{
	const struct kmem_timeline *timeline = (const struct kmem_timeline *)(const void *)(capture->head +
	                                                                                    KMEM_TIMELINE_OFFSET);

	for (unsigned i = 0; i < KMEM_DOMAINS_MAX && COPY_OF(timeline->kept_peak) == 0; i++) {
		if (COPY_OF(capture_domain(capture, i)->kept_peak_bytes) != 0)
			capture_damaged(capture, "section \"domains\": domain %u names a peak of earlier phases, and there is none",
			                i);
	}
}

void
capture_phase_join(struct capture *capture, bool is_written)
{
	const struct kmem_kept_peak *kept = capture_kept_peak(capture, is_written);
	struct kmem_domain_row *rows = (struct kmem_domain_row *)(void *)(capture->head + KMEM_DOMAINS_OFFSET);
	bool is_joined[KMEM_DOMAINS_MAX];
	uint32_t next = 0;

	if (kept == NULL) {
		tell_missing(capture);
		return;
	}
	for (unsigned i = 0; i < KMEM_DOMAINS_MAX; i++)
		is_joined[i] = is_higher(&rows[i]);
	for (uint32_t i = 1; i <= capture_site_count(capture); i++) {
		struct kmem_site *site = capture_site_copy(capture, i - 1);
		bool was_held = next < kept->site_count && kept->sites[next].site == i;
		uint64_t bytes = was_held ? kept->sites[next++].peak_bytes : 0;

		if (site->domain < KMEM_DOMAINS_MAX && is_joined[site->domain])
			site->peak = kmem_peak_pack(kmem_peak_now(site->peak), bytes, kmem_peak_epoch(rows[site->domain].peak));
	}
	for (unsigned i = 0; i < KMEM_DOMAINS_MAX; i++) {
		struct kmem_peak_word word = rows[i].peak;

		if (is_joined[i])
			rows[i].peak = kmem_peak_pack(kmem_peak_now(word), COPY_OF(rows[i].kept_peak_bytes), kmem_peak_epoch(word));
	}
}
