/*
 * tracker.c - when threads allocate at the same sites, free each other's blocks, come and go, does every byte stay in the books?
 *
 * Proven by giving every thread slot 1: reported in three of three runs.
 */
#include "stress.h"

#include "capture/capture_file.h"
#include "kmem_words.h"
#include "record/tracker.h"
#include "sites/site_table.h"
#include "sites/thread_slot.h"
#include "tables/pointer_map.h"
#include "unwind/native_stack.h"

#define ROUNDS 6
#define EVENTS 8000
#define MAIL 256
#define HERE __builtin_frame_address(0)

static _Atomic uint64_t mail[MAIL]; // address of a block on its way
static _Atomic uint64_t next_addr = 0x100000000;
static _Atomic uint64_t given_bytes;
static _Atomic uint64_t given_count;
static _Atomic uint64_t back_count;
static unsigned round_number;

static void
hook_free(void *addr)
{
	if (!tracker_freed_fast(addr))
		tracker_freed(__builtin_frame_address(0), addr);
}

__attribute__((noinline)) static void
hook_malloc(uint64_t addr, size_t bytes)
{
	tracker_allocated(HERE, (void *)addr, bytes);
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void
place_a(uint64_t addr, size_t bytes)
{
	hook_malloc(addr, bytes);
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void
place_b(uint64_t addr, size_t bytes)
{
	hook_malloc(addr, bytes);
	__asm__ volatile("" ::: "memory");
}

static void
work(unsigned thread, uint64_t *random)
{
	if (thread > round_number + 2) // another number of threads each time
		return;
	for (unsigned i = 0; i < EVENTS; i++) {
		uint64_t addr = atomic_fetch_add_explicit(&next_addr, 4096, memory_order_relaxed);
		bool is_large = addr % (1u << KMEM_LARGE_LOG2) == 0 &&
		                random_below(random, 25) == 0; // as a real heap: they do not overlap
		size_t bytes = is_large ? 100000 : random_below(random, 200);

		if (random_below(random, 2) == 0)
			place_a(addr, bytes);
		else
			place_b(addr, bytes);
		atomic_fetch_add_explicit(&given_bytes, bytes, memory_order_relaxed);
		atomic_fetch_add_explicit(&given_count, 1, memory_order_relaxed);
		/* acq_rel: as a program hands a block over. */
		uint64_t other = atomic_exchange_explicit(&mail[random_below(random, MAIL)], addr, memory_order_acq_rel);
		if (other != 0) {
			hook_free((void *)other);
			atomic_fetch_add_explicit(&back_count, 1, memory_order_relaxed);
		}
		stress_yield(random);
	}
}

static uint64_t
lost(enum kmem_loss loss)
{
	return capture_file_header()->losses[loss];
}

int
main(void)
{
	struct site_totals totals[KMEM_DOMAINS_MAX];
	uint64_t random = random_seed();

	native_stack_start();
	thread_slot_start();
	pointer_map_start(true); // tracker_fast.c
	for (round_number = 0; round_number < ROUNDS; round_number++)
		stress_run(STRESS_THREADS, work, random + round_number * 100);
	site_table_totals(totals);
	struct site_totals heap = totals[KMEM_DOMAIN_HEAP];
	// R4: on a slow machine the file grows too late
	CHECK(heap.allocated_count + lost(KMEM_LOST_EVENTS) == given_count);
	CHECK(heap.live_count == given_count - back_count - lost(KMEM_LOST_EVENTS) + lost(KMEM_LOST_UNKNOWN_FREES));
	for (unsigned i = 0; i < MAIL; i++) {
		if (mail[i] != 0)
			hook_free((void *)mail[i]);
	}
	site_table_totals(totals);
	CHECK(totals[KMEM_DOMAIN_HEAP].live_count == 0);
	CHECK(totals[KMEM_DOMAIN_HEAP].live_bytes == 0);
	CHECK(lost(KMEM_LOST_UNKNOWN_FREES) == lost(KMEM_LOST_EVENTS));
	CHECK(lost(KMEM_LOST_MISSED_FREES) == 0 && lost(KMEM_LOST_STACKS) == 0 && lost(KMEM_LOST_REENTRANT) == 0);

	/* The records' words agree with their counters: no update was lost. */
	uint64_t sum = 0;
	uint64_t given = 0;
	for (uint32_t i = 1; i <= capture_file_count(KMEM_SECTION_SITES); i++) {
		const struct kmem_site *site = site_table_at(i);

		CHECK(kmem_peak_now(site->peak) == ((site->allocated_bytes - site->freed_bytes) & KMEM_PEAK_BYTES_MASK));
		sum += kmem_peak_now(site->peak);
		given += site->allocated_bytes;
	}
	CHECK((sum & KMEM_PEAK_BYTES_MASK) == 0);
	CHECK(given + lost(KMEM_LOST_EVENT_BYTES) == given_bytes);
	return 0;
}
