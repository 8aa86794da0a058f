/*
 * exit_figures.c - what did the program hold when it began to exit (see exit_figures.h)?
 *
 * One record, behind which the header leads: an entry for each record of a site that holds anything, or whose counters by generation do, and
 * copies of these counters, since a release changes them where they stand.
 *
 * Not chosen  to stop booking, as the teardown of Python does: a program may do all its work in an exit handler, and what it holds
 *             at its peak may be held there.
 */
#include "record/exit_figures.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "capture/capture_file.h"
#include "kmem_words.h"
#include "record/site_table.h"
#include "tables/generations.h"

#define HELD_FLOOR_BYTES 65536 // less is not worth a person's time

struct count {
	uint32_t sites;
	uint32_t generations;
	int64_t live_bytes;
};

static struct kmem_exit_site
entry_of(uint32_t number, const struct kmem_site *site)
{
	/* relaxed: counters, which may go on meanwhile. */
	return (struct kmem_exit_site){
		.site = number,
		.live_bytes = (int64_t)(atomic_load_explicit(&site->allocated_bytes, memory_order_relaxed) -
		                        atomic_load_explicit(&site->freed_bytes, memory_order_relaxed)),
		.live_count = (int64_t)(atomic_load_explicit(&site->allocated_count, memory_order_relaxed) -
		                        atomic_load_explicit(&site->freed_count, memory_order_relaxed)),
	};
}

/* NULL: it has none. */
static const struct kmem_generations *
generations_of(const struct kmem_site *site)
{
	uint32_t index = atomic_load_explicit(&site->generations, memory_order_acquire); // pairs with generations_born()

	return index != 0 ? capture_file_at(KMEM_SECTION_GENERATIONS, index - 1) : NULL;
}

static bool
has_counted(const struct kmem_generations *block)
{
	for (unsigned i = 0; block != NULL && i < KMEM_GENERATION_BUCKETS; i++) {
		if (atomic_load_explicit(&block->live_count[i], memory_order_relaxed) != 0)
			return true;
	}
	return false;
}

static struct count
measure(uint32_t count)
{
	struct count sum = { 0 };

	for (uint32_t i = 1; i <= count; i++) {
		const struct kmem_site *site = site_table_at(i);
		struct kmem_exit_site entry = entry_of(i, site);
		bool has_generations = has_counted(generations_of(site));

		sum.sites += entry.live_bytes != 0 || entry.live_count != 0 || has_generations;
		sum.generations += has_generations;
		sum.live_bytes += kmem_domain_is_memory(site->domain) ? entry.live_bytes : 0;
	}
	return sum;
}

static int64_t
live_now(void)
{
	uint32_t count = capture_file_count(KMEM_SECTION_SITES);
	int64_t sum = 0;

	for (uint32_t i = 1; i <= count; i++) {
		const struct kmem_site *site = site_table_at(i);

		sum += kmem_domain_is_memory(site->domain) ? entry_of(i, site).live_bytes : 0;
	}
	return sum;
}

/* What came to hold something since it was measured has no place, and is in none of the figures. */
static void
fill(struct kmem_exit *to, uint32_t count, struct count room)
{
	struct kmem_generations *copies = (struct kmem_generations *)(void *)&to->sites[room.sites];

	for (uint32_t i = 1; i <= count && to->site_count < room.sites; i++) {
		const struct kmem_site *site = site_table_at(i);
		const struct kmem_generations *block = generations_of(site);
		struct kmem_exit_site entry = entry_of(i, site);

		if (has_counted(block) && to->generation_count < room.generations) {
			generations_copy(&copies[to->generation_count], block);
			entry.generations = ++to->generation_count;
		}
		if (entry.live_bytes == 0 && entry.live_count == 0 && entry.generations == 0)
			continue;
		to->sites[to->site_count++] = entry;
		to->live_bytes += kmem_domain_is_memory(site->domain) ? entry.live_bytes : 0;
	}
	/* The copies follow the entries. */
	if (to->site_count < room.sites)
		memmove(&to->sites[to->site_count], copies, to->generation_count * sizeof(*copies));
}

void
exit_figures_take(void)
{
	struct kmem_header *header = capture_file_header();
	uint32_t count = capture_file_count(KMEM_SECTION_SITES);
	struct count room = measure(count);
	size_t bytes = sizeof(struct kmem_exit) + room.sites * sizeof(struct kmem_exit_site) +
	               room.generations * sizeof(struct kmem_generations);
	struct kmem_exit *to = NULL;
	uint32_t index;

	if (room.live_bytes < HELD_FLOOR_BYTES || atomic_load_explicit(&header->at_exit, memory_order_relaxed) != 0)
		return;
	if (bytes < UINT32_MAX && !capture_file_is_large(0))
		to = capture_file_append(KMEM_SECTION_RECORDS, bytes, &index);
	if (to == NULL)
		return;
	to->monotonic_ns = clock_now_ns();
	to->volume_bytes = atomic_load_explicit(&header->volume_bytes, memory_order_relaxed);
	to->clock = generations_clock();
	fill(to, count, room);
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
	const struct kmem_exit *taken = index != 0 ? capture_file_record((uint32_t)index) : NULL;

	return taken != NULL && live_now() <= taken->live_bytes;
}
