/*
 * phases.h - what was the highest in this part of the program's life?
 *
 * A phase begins when the program says so: a test, a cell of a notebook. From then on the peaks of domains and sites are those of the phase.
 * The peak of the process, with what each site held at it, is kept aside in the capture first, so that no report loses it.
 *
 * Context     inside the reentry guard, while recording is on.
 * Safe from   any hook on any thread; one thread begins a phase at a time. Others allocate meanwhile: each event is in the phase before or in
 *             the one after.
 * When failing  the phase of that domain goes on: a peak that cannot be kept aside is not given up.
 */
#ifndef PHASES_H
#define PHASES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "kmem_format.h"
#include "kmem_words.h"
#include "tables/peak.h"

/* What kmemshim_recorder_phase() gives, one row for each domain (include/kmemshim.h has the same). */
struct phases_row {
	uint64_t live_bytes;
	uint64_t peak_bytes; // the highest since the phase began
	uint64_t is_begun;   // 1: a new phase began here; 0: it could not, and the next peak_bytes is that of both
};

/* Ends the phase and begins the next one. False: somebody else is at it; no row is filled in. */
bool phases_next(struct peak_batch *heap, struct phases_row rows[KMEM_DOMAINS_MAX]);

/* The same figures, and the phase goes on: is_begun is 0. */
void phases_look(const struct peak_batch *heap, struct phases_row rows[KMEM_DOMAINS_MAX]);

/* relaxed: a figure that only grows; whoever sees an older one takes a peak for that of the process a moment longer. */
static inline uint64_t
phases_kept_bytes(const struct kmem_domain_row *row)
{
	return atomic_load_explicit(&row->kept_peak_bytes, memory_order_relaxed);
}

/* The highest of all phases, with this one. */
static inline uint64_t
phases_peak_bytes(const struct kmem_domain_row *row)
{
	uint64_t kept_bytes = phases_kept_bytes(row);
	uint64_t peak_bytes = kmem_domain_peak_bytes(peak_load(&row->peak));

	return kept_bytes > peak_bytes ? kept_bytes : peak_bytes;
}

#endif
