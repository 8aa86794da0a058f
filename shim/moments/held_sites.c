/*
 * held_sites.c - what does each record of a site hold, at about this moment (see held_sites.h)?
 *
 * relaxed, everywhere: counters of other threads, which go on meanwhile.
 */
#include "moments/held_sites.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "capture/capture_file.h"
#include "kmem_words.h"
#include "sites/site_table.h"
#include "tables/generations.h"

static struct kmem_exit_site
entry_of(uint32_t number, const struct kmem_site *site)
{
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

	return index != 0 ? capture_file_item(KMEM_SECTION_GENERATIONS, index) : NULL;
}

/* relaxed: who holds something was written before; of others it does not matter. */
static bool
is_memory(const struct kmem_site *site)
{
	return kmem_domain_is_memory(__atomic_load_n(&site->domain, __ATOMIC_RELAXED));
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

static unsigned
size_of(int64_t bytes)
{
	return bytes == 0 ? HELD_SITES_SIZES - 1 : (unsigned)__builtin_clzll((uint64_t)(bytes < 0 ? -bytes : bytes));
}

void
held_sites_measure(bool wants_generations, struct held_sites *found)
{
	*found = (struct held_sites){ .records = capture_file_count(KMEM_SECTION_SITES) };
	for (uint32_t i = 1; i <= found->records; i++) {
		const struct kmem_site *site = site_table_at(i);
		struct kmem_exit_site entry = entry_of(i, site);
		bool has_generations = wants_generations && has_counted(generations_of(site));
		bool is_held = entry.live_bytes != 0 || entry.live_count != 0 || has_generations;

		found->sites += is_held;
		found->generations += has_generations;
		found->by_size[size_of(entry.live_bytes)] += is_held;
		found->live_bytes += is_memory(site) ? entry.live_bytes : 0;
	}
}

uint64_t
held_sites_bytes(const struct held_sites *found)
{
	return found->sites * (uint64_t)sizeof(struct kmem_exit_site) +
	       found->generations * (uint64_t)sizeof(struct kmem_generations);
}

/* The last size of which all have room; -1: none. */
static int
last_size(const struct held_sites *found, uint32_t room)
{
	uint32_t sum = 0;
	int last = -1;

	for (int size = 0; size < HELD_SITES_SIZES; size++) {
		sum += found->by_size[size];
		if (sum > room)
			break;
		last = size;
	}
	return last;
}

struct held_written
held_sites_write(const struct held_sites *found, struct kmem_exit_site *to, uint64_t room_bytes)
{
	bool is_whole = held_sites_bytes(found) <= room_bytes;
	uint64_t most = room_bytes / sizeof(*to);
	uint32_t room = is_whole ? found->sites : most < found->sites ? (uint32_t)most : found->sites;
	uint32_t copies_room = is_whole ? found->generations : 0;
	int last = is_whole ? HELD_SITES_SIZES : last_size(found, room);
	struct kmem_generations *copies = (struct kmem_generations *)(void *)&to[room];
	struct held_written done = { 0 };

	for (uint32_t i = 1; i <= found->records; i++) {
		const struct kmem_site *site = site_table_at(i);
		struct kmem_exit_site entry = entry_of(i, site);
		const struct kmem_generations *block = copies_room != 0 ? generations_of(site) : NULL;
		bool is_held = entry.live_bytes != 0 || entry.live_count != 0;
		bool has_copy = done.generations < copies_room && done.sites < room && has_counted(block);

		if (!is_held && !has_copy)
			continue;
		if (done.sites == room || (int)size_of(entry.live_bytes) > last) {
			done.left_out++;
			done.left_out_bytes += entry.live_bytes;
			continue;
		}
		if (has_copy) {
			generations_copy(&copies[done.generations], block);
			entry.generations = ++done.generations;
		}
		to[done.sites++] = entry;
		done.live_bytes += is_memory(site) ? entry.live_bytes : 0;
	}
	/* The copies follow the entries. */
	if (done.sites < room && done.generations != 0)
		memmove(&to[done.sites], copies, done.generations * sizeof(*copies));
	return done;
}

int64_t
held_sites_live_bytes(void)
{
	uint32_t count = capture_file_count(KMEM_SECTION_SITES);
	int64_t sum = 0;

	for (uint32_t i = 1; i <= count; i++) {
		const struct kmem_site *site = site_table_at(i);

		sum += is_memory(site) ? entry_of(i, site).live_bytes : 0;
	}
	return sum;
}
