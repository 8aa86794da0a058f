/*
 * device_snapshot.c - what was alive on a device when it refused a request (see device_snapshot.h)?
 *
 * relaxed, everywhere: counters of other threads, which go on meanwhile.
 */
#include "moments/device_snapshot.h"

#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/turn.h"
#include "capture/capture_file.h"
#include "kmem_words.h"
#include "sites/callbacks.h"
#include "sites/site_table.h"
#include "tables/generations.h"

#define SPENT_FREELY_NS UINT64_C(50000000)
#define SPENT_PART 50
#define SIZES 64

static struct turn sampling;
static uint64_t spent_ns; // whose turn it is

/* -1: not of one device. */
static int
device_of(unsigned domain)
{
	if (domain >= KMEM_DOMAIN_CUDA_FIRST && domain <= KMEM_DOMAIN_CUDA_LAST)
		return (int)(domain - KMEM_DOMAIN_CUDA_FIRST);
	if (domain >= KMEM_DOMAIN_TENSORS_FIRST && domain <= KMEM_DOMAIN_TENSORS_LAST)
		return (int)(domain - KMEM_DOMAIN_TENSORS_FIRST);
	return -1;
}

static bool
is_of_all_devices(unsigned domain)
{
	return domain == KMEM_DOMAIN_CUDA_PINNED || domain == KMEM_DOMAIN_CUDA_MANAGED;
}

bool
device_snapshot_has(unsigned domain)
{
	return device_of(domain) >= 0 || is_of_all_devices(domain);
}

static int64_t
live_bytes(const struct kmem_site *site)
{
	return (int64_t)(atomic_load_explicit(&site->allocated_bytes, memory_order_relaxed) -
	                 atomic_load_explicit(&site->freed_bytes, memory_order_relaxed));
}

static int32_t
live_count(const struct kmem_site *site)
{
	return (int32_t)(atomic_load_explicit(&site->allocated_count, memory_order_relaxed) -
	                 atomic_load_explicit(&site->freed_count, memory_order_relaxed));
}

static bool
is_meant(const struct kmem_site *site, int device)
{
	return is_of_all_devices(site->domain) || (device >= 0 && device_of(site->domain) == device);
}

/* 0 for the largest. */
static unsigned
size_of(int64_t bytes)
{
	return (unsigned)__builtin_clzll((uint64_t)(bytes < 0 ? -bytes : bytes));
}

/* Where the records of each size go: places[size] to places[size + 1]. Returns the number of records without a place. */
static uint32_t
measure(struct kmem_device_snapshot *to, unsigned domain, uint32_t count, uint32_t places[SIZES + 1],
        uint64_t *allocated_count)
{
	int device = device_of(domain);
	uint32_t counts[SIZES] = { 0 }, at = 0;

	*allocated_count = 0;
	for (uint32_t i = 1; i <= count; i++) {
		const struct kmem_site *site = site_table_at(i);
		int64_t bytes = live_bytes(site);

		if (!site_table_is_complete(site))
			continue;
		to->live_bytes[site->domain % KMEM_DOMAINS_MAX] += bytes;
		if (site->domain == domain)
			*allocated_count += atomic_load_explicit(&site->allocated_count, memory_order_relaxed);
		if (bytes != 0 && is_meant(site, device))
			counts[size_of(bytes)]++;
	}
	for (unsigned size = 0; size < SIZES; size++) {
		places[size] = at < KMEM_DEVICE_SNAPSHOT_MAX ? at : KMEM_DEVICE_SNAPSHOT_MAX;
		at += counts[size];
	}
	places[SIZES] = at < KMEM_DEVICE_SNAPSHOT_MAX ? at : KMEM_DEVICE_SNAPSHOT_MAX;
	return at - places[SIZES];
}

static void
fill(struct kmem_device_snapshot *to, unsigned domain, uint32_t count, const uint32_t places[SIZES + 1])
{
	int device = device_of(domain);
	uint32_t next[SIZES];

	memcpy(next, places, sizeof(next));
	for (uint32_t i = 1; i <= count; i++) {
		const struct kmem_site *site = site_table_at(i);
		int64_t bytes = site_table_is_complete(site) && is_meant(site, device) ? live_bytes(site) : 0;
		unsigned size = bytes != 0 ? size_of(bytes) : SIZES;

		if (size == SIZES || next[size] >= places[size + 1]) // none, or it has grown since
			continue;
		to->sites[next[size]++] = (struct kmem_snapshot_site){ .site = i,
			                                                   .live_count = live_count(site),
			                                                   .live_bytes = bytes };
	}
}

static void
fill_generations(struct kmem_device_snapshot *to)
{
	uint32_t filled = 0;

	for (uint32_t i = 0; i < KMEM_DEVICE_SNAPSHOT_MAX && filled < KMEM_DEVICE_SNAPSHOT_GENERATIONS; i++) {
		const struct kmem_site *site = to->sites[i].site != 0 ? site_table_at(to->sites[i].site) : NULL;
		/* acquire: the block is its site's. Pairs with generations_born(). */
		uint32_t block = site != NULL ? atomic_load_explicit(&site->generations, memory_order_acquire) : 0;

		if (block != 0)
			generations_copy(&to->generations[filled++], capture_file_item(KMEM_SECTION_GENERATIONS, block));
	}
}

static struct kmem_device_snapshot *
room(uint32_t *record)
{
	struct kmem_device_snapshot *device_snapshot;
	uint32_t index;

	if (*record != 0)
		return capture_file_item(KMEM_SECTION_RECORDS, *record);
	device_snapshot = capture_file_append(KMEM_SECTION_RECORDS, sizeof(*device_snapshot), &index);
	if (device_snapshot != NULL)
		*record = index + 1;
	return device_snapshot;
}

static bool
take(uint32_t *record, unsigned domain, uint64_t sequence, uint64_t *allocated_count)
{
	struct kmem_device_snapshot *device_snapshot = room(record);
	uint32_t count = capture_file_count(KMEM_SECTION_SITES);
	uint32_t places[SIZES + 1];

	if (device_snapshot == NULL)
		return false;
	memset(device_snapshot, 0, sizeof(*device_snapshot));
	device_snapshot->record.type = KMEM_RECORD_DEVICE_SNAPSHOT;
	device_snapshot->record.bytes = sizeof(*device_snapshot);
	device_snapshot->clock = generations_clock();
	device_snapshot->left_out = measure(device_snapshot, domain, count, places, allocated_count);
	fill(device_snapshot, domain, count, places);
	fill_generations(device_snapshot);
	record_callbacks.tensors_kept(device_snapshot, domain);
	device_snapshot->sequence = sequence;
	capture_file_seal_record(&device_snapshot->record);
	return true;
}

bool
device_snapshot_take(uint32_t *record, unsigned domain, uint64_t sequence, uint64_t *allocated_count)
{
	uint64_t start_ns = clock_now_ns();
	uint64_t age_ns = start_ns - capture_file_header()->identity.start_monotonic_ns;
	bool is_taken = false;

	if (!turn_take(&sampling))
		return false;
	if (spent_ns <= SPENT_FREELY_NS + age_ns / SPENT_PART) {
		is_taken = take(record, domain, sequence, allocated_count);
		spent_ns += clock_now_ns() - start_ns;
	}
	turn_give(&sampling);
	return is_taken;
}

void
device_snapshot_forked(void)
{
	spent_ns = 0;
}
