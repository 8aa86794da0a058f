/*
 * model_resident.c - how much of what each line holds is in memory?
 *
 * A block or mapping is in memory only where it was touched. The last look at the resident set says how much of each record's large ones
 * is; small ones count as memory, but where a sample showed that most are untouched. The look is older than the end. So a site never has more untouched than it still holds; and where
 * memory grew by more than was allocated since the look, the difference is taken to be untouched memory that was touched meanwhile.
 *
 * Context     after the sites were merged.
 * When failing  what cannot be is left out and told; then everything that was asked for counts as memory.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "capture/capture_copy.h"
#include "kmem_words.h"
#include "model/model_build.h"

#define MOST_BYTES (UINT64_C(1) << 48) // of any sum

/* One site of the model in this capture. */
struct look_sum {
	uint64_t live_bytes; // modulo 2^64 until all records are added
	uint64_t large_bytes;
	uint64_t large_resident_bytes;
	uint64_t pinned_bytes;
	uint64_t untouched_bytes;
	uint64_t before_bytes; // untouched at the look before
};

/* Can memory of this domain be asked for without being there? What is shared another process may have written: this one does not see it. */
static bool
can_be_untouched(const struct build *build, unsigned domain)
{
	return kmem_domain_is_private(domain) || (domain == KMEM_DOMAIN_SHARED && build->capture_count == 1);
}

static bool
is_heap_possible(const struct kmem_resident_lines *lines)
{
	return lines->heap_bytes < MOST_BYTES && lines->heap_empty_bytes <= lines->heap_bytes &&
	       lines->heap_sparse_bytes <= lines->heap_bytes - lines->heap_empty_bytes &&
	       lines->heap_sparse_live_bytes < MOST_BYTES && lines->left_out_bytes < MOST_BYTES &&
	       lines->left_out_resident_bytes <= lines->left_out_bytes;
}

/* While a capture is being written, a record may be newer than what was read of it. */
static bool
is_line_possible(const struct capture *capture, const struct kmem_resident_line *line)
{
	return (line->site <= capture_site_count(capture) || !capture->is_still ||
	        capture->sections[KMEM_SECTION_SITES].is_cut) &&
	       line->large_bytes < MOST_BYTES && line->large_resident_bytes <= line->large_bytes &&
	       line->pinned_bytes < MOST_BYTES;
}

static bool
are_possible(struct capture *capture, const struct kmem_resident_lines *lines)
{
	if (!is_heap_possible(lines)) {
		capture_damaged(
			capture,
			"section \"head\": the sample has more pages of malloc's heap than there were: the lines' resident bytes are left out");
		return false;
	}
	for (unsigned i = 0; i < KMEM_RESIDENT_LINES_MAX && lines->lines[i].site != 0; i++) {
		if (is_line_possible(capture, &lines->lines[i]))
			continue;
		capture_damaged(capture,
		                "section \"head\": the resident bytes of site %" PRIu32
		                " of %zu are not possible: those of all lines are left out",
		                lines->lines[i].site, capture_site_count(capture));
		return false;
	}
	return true;
}

/* The last heartbeat that was written before the look, or the first one. */
static const struct kmem_heartbeat *
beat_at(const struct model_process *process, uint64_t monotonic_ns)
{
	const struct kmem_heartbeat *found = process->heartbeats;

	for (size_t i = 1; i < process->heartbeat_count && process->heartbeats[i].monotonic_ns <= monotonic_ns; i++)
		found = &process->heartbeats[i];
	return found;
}

static uint64_t
grown(uint64_t before, uint64_t after)
{
	return after > before ? after - before : 0;
}

/*
 * At least so much of what the look found untouched was touched until the last heartbeat. What is allocated takes half as much again:
 * malloc's own words, and what recording remembers of each block. When the interpreter began to end, the figures were frozen with the look.
 */
static uint64_t
touched_since(const struct model_process *process, const struct kmem_resident *look)
{
	const struct kmem_heartbeat *last = model_last_beat(process);

	if (last == NULL || last->monotonic_ns <= look->monotonic_ns || process->is_finalizing)
		return 0;
	uint64_t allocated_bytes = grown(beat_at(process, look->monotonic_ns)->live_bytes, last->live_bytes);

	return grown(allocated_bytes + allocated_bytes / 2, grown(look->resident_bytes, last->resident_bytes));
}

static void
add_records(struct build *build, struct capture *capture, const uint32_t *sites,
            const struct kmem_resident_lines *lines, const struct kmem_resident_lines *before, struct look_sum *sums)
{
	for (size_t i = 0; i < capture_site_count(capture); i++) {
		const struct kmem_site *stored = capture_site(capture, i);

		if (sites[i] != 0)
			sums[sites[i] - 1].live_bytes += COPY_OF(stored->allocated_bytes) - COPY_OF(stored->freed_bytes);
	}
	for (unsigned i = 0; i < KMEM_RESIDENT_LINES_MAX && lines->lines[i].site != 0; i++) {
		const struct kmem_resident_line *line = &lines->lines[i];
		uint32_t site = line->site <= capture_site_count(capture) ? sites[line->site - 1] : 0;

		if (site == 0)
			continue;
		sums[site - 1].large_bytes += line->large_bytes;
		sums[site - 1].large_resident_bytes += line->large_resident_bytes;
		sums[site - 1].pinned_bytes += line->pinned_bytes;
		if (can_be_untouched(build, capture_site(capture, line->site - 1)->domain))
			sums[site - 1].untouched_bytes += line->large_bytes - line->large_resident_bytes;
	}
	for (unsigned i = 0; before != NULL && i < KMEM_RESIDENT_LINES_MAX && before->lines[i].site != 0; i++) {
		const struct kmem_resident_line *line = &before->lines[i];
		uint32_t site = line->site <= capture_site_count(capture) ? sites[line->site - 1] : 0;

		if (site != 0 && is_line_possible(capture, line))
			sums[site - 1].before_bytes += line->large_bytes - line->large_resident_bytes;
	}
	for (size_t i = 0; i < build->site_count; i++) {
		if (sums[i].live_bytes > MOST_BYTES) // less than nothing
			sums[i].live_bytes = 0;
		if (sums[i].untouched_bytes > sums[i].live_bytes)
			sums[i].untouched_bytes = sums[i].live_bytes;
	}
}

static void
take_heap(struct model_process *process, const struct kmem_resident_lines *lines)
{
	process->heap_sample = (struct model_heap_sample){
		.sampled_pages = lines->sampled_pages,
		.bytes = lines->heap_bytes,
		.empty_bytes = lines->heap_empty_bytes,
		.sparse_bytes = lines->heap_sparse_bytes,
		.sparse_live_bytes = lines->heap_sparse_live_bytes < lines->heap_sparse_bytes ? lines->heap_sparse_live_bytes
		                                                                              : lines->heap_sparse_bytes,
	};
}

/* The lines of the newer look or, when the program died between the two, of the older one. NULL: none. *before: the look before; NULL. */
static const struct kmem_resident_lines *
lines_of(const struct capture *capture, const struct kmem_resident **look, const struct kmem_resident_lines **before)
{
	const struct kmem_resident *looks = capture->header->resident;
	unsigned newer = COPY_OF(looks[1].sequence) > COPY_OF(looks[0].sequence);
	const struct kmem_resident_lines *lines = capture_resident_lines(capture, COPY_OF(looks[newer].sequence));

	*look = &looks[newer];
	*before = capture_resident_lines(capture, COPY_OF(looks[!newer].sequence));
	if (lines != NULL)
		return lines;
	*look = &looks[!newer];
	lines = *before;
	*before = NULL;
	return lines;
}

void
model_add_resident(struct build *build, struct capture *capture, const uint32_t *sites)
{
	struct model_process *process = &build->processes[build->process_count - 1];
	const struct kmem_resident *look;
	const struct kmem_resident_lines *before;
	const struct kmem_resident_lines *lines = lines_of(capture, &look, &before);
	uint64_t untouched_bytes = 0;
	OWNED struct look_sum *sums = NULL;

	if (lines == NULL || !are_possible(capture, lines))
		return;
	take_heap(process, lines);
	sums = memory_zeroed(build->site_count, sizeof(*sums));
	add_records(build, capture, sites, lines, before, sums);
	for (size_t i = 0; i < build->site_count; i++)
		untouched_bytes += sums[i].untouched_bytes;

	uint64_t left_bytes = grown(touched_since(process, look), untouched_bytes);
	double part = untouched_bytes != 0 ? (double)left_bytes / (double)untouched_bytes : 0;

	for (size_t i = 0; i < build->site_count; i++) {
		struct model_site *site = &build->sites[i];
		uint64_t bytes = (uint64_t)((double)sums[i].untouched_bytes * part);

		bytes = bytes < sums[i].untouched_bytes ? bytes : sums[i].untouched_bytes;
		site->large_bytes += sums[i].large_bytes;
		site->large_resident_bytes += sums[i].large_resident_bytes;
		site->pinned_bytes += sums[i].pinned_bytes;
		site->untouched_bytes += bytes;
		process->untouched_bytes += bytes;
		site->new_untouched_bytes += grown(sums[i].before_bytes, bytes);
		process->new_untouched_bytes += grown(sums[i].before_bytes, bytes);
		if (bytes != 0)
			build->domains[site->domain].untouched_bytes += bytes;
	}
}
