/*
 * generations.c - when threads race for a site's counters and free each other's blocks, is every survivor counted once?
 */
#include "stress.h"

#include "capture/capture_file.h"
#include "tables/generations.h"

#define SITES 200
#define EVENTS 20000
#define MAIL 64

static struct kmem_site *sites[SITES];
static uint32_t first_index;
static _Atomic uint32_t mail[MAIL]; // (site << 8 | generation) + 1 of a block on its way; 0 = none
static _Atomic uint64_t live[SITES];

static void
work(unsigned thread, uint64_t *random)
{
	for (unsigned i = 0; i < EVENTS; i++) {
		uint32_t which = i * SITES / EVENTS; // all threads meet at a site that has no counters yet
		uint8_t clock = (uint8_t)(2 + i * 200 / EVENTS);
		uint8_t generation = generations_born(sites[which], first_index + which + 1, clock);

		atomic_fetch_add_explicit(&sites[which]->allocated_count, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&sites[which]->allocated_bytes, GENERATIONS_MIN_BYTES, memory_order_relaxed);
		if (generation != 0)
			atomic_fetch_add_explicit(&live[which], 1, memory_order_relaxed);
		stress_yield(random);
		uint32_t got = atomic_exchange_explicit(&mail[random_below(random, MAIL)], (which << 8 | generation) + 1,
		                                        memory_order_relaxed);
		if (got == 0 || random_below(random, 3) == 0)
			continue; // survives
		which = (got - 1) >> 8;
		generation = (uint8_t)(got - 1);
		generations_died(sites[which], first_index + which + 1, generation);
		atomic_fetch_add_explicit(&sites[which]->freed_count, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&sites[which]->freed_bytes, GENERATIONS_MIN_BYTES, memory_order_relaxed);
		if (generation != 0)
			atomic_fetch_sub_explicit(&live[which], 1, memory_order_relaxed);
	}
}

int
main(void)
{
	for (uint32_t i = 0; i < SITES; i++) {
		uint32_t index;

		sites[i] = capture_file_append(KMEM_SECTION_SITES, sizeof(*sites[i]), &index);
		CHECK(sites[i] != NULL);
		sites[i]->first_generation = 1;
		first_index = index - i;
	}
	stress_run(STRESS_THREADS, work, random_seed());
	for (uint32_t i = 0; i < SITES; i++) {
		uint32_t index = sites[i]->generations;
		uint64_t sum = 0;

		CHECK(index != 0);
		struct kmem_generations *block = capture_file_item(KMEM_SECTION_GENERATIONS, index);
		CHECK(block->site == first_index + i + 1);
		for (unsigned b = 0; b < KMEM_GENERATION_BUCKETS; b++) {
			CHECK(block->live_count[b] < UINT32_MAX / 2); // never below 0
			sum += block->live_count[b];
		}
		CHECK(sum == live[i]);
	}
	return 0;
}
