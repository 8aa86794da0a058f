/*
 * phases.c - when phases begin while other threads allocate, is the peak of the process kept, and is no event lost (P4)?
 *
 * Proven by beginning a phase with two plain stores: reported in three of three runs.
 */
#include "stress.h"

#include "capture/capture_file.h"
#include "kmem_words.h"
#include "moments/phases.h"
#include "record/tracker.h"
#include "sites/site_table.h"
#include "sites/thread_slot.h"
#include "tables/pointer_map.h"
#include "unwind/native_stack.h"

#define EVENTS 4000
#define PHASES 400
#define HELD_MAX 64
#define HERE __builtin_frame_address(0)

static _Atomic uint64_t next_addr = 0x100000000;
static _Atomic unsigned ended_count; // threads that allocated, and do no more
static _Atomic uint64_t begun_count;
static uint64_t highest; // of the phases that have ended; of thread 0

static void
hook_free(uint64_t addr)
{
	if (!tracker_freed_fast((void *)addr))
		tracker_freed(__builtin_frame_address(0), (void *)addr);
}

__attribute__((noinline)) static void
place_a(uint64_t addr, size_t bytes)
{
	tracker_allocated(HERE, (void *)addr, bytes);
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void
place_b(uint64_t addr, size_t bytes)
{
	tracker_allocated(HERE, (void *)addr, bytes);
	__asm__ volatile("" ::: "memory");
}

static void
begin_phases(uint64_t *random)
{
	const struct kmem_domain_row *row = capture_file_domain(KMEM_DOMAIN_HEAP);
	bool has_ended = false;

	for (unsigned i = 0; i < PHASES || !has_ended; i++) {
		struct phases_row rows[KMEM_DOMAINS_MAX];

		has_ended = atomic_load_explicit(&ended_count, memory_order_relaxed) == STRESS_THREADS - 1;
		stress_yield(random);
		CHECK(phases_next(NULL, rows));
		if (rows[KMEM_DOMAIN_HEAP].is_begun == 0)
			continue;
		begun_count++;
		if (rows[KMEM_DOMAIN_HEAP].peak_bytes > highest)
			highest = rows[KMEM_DOMAIN_HEAP].peak_bytes;
		CHECK(phases_kept_bytes(row) >= highest); // N1
	}
}

static void
work(unsigned thread, uint64_t *random)
{
	uint64_t held[HELD_MAX];
	unsigned count = 0;

	if (thread == 0) {
		begin_phases(random);
		return;
	}
	for (unsigned i = 0; i < EVENTS; i++) {
		if (count == 0 || (count < HELD_MAX && random_below(random, 2) == 0)) {
			uint64_t addr = atomic_fetch_add_explicit(&next_addr, 4096, memory_order_relaxed);
			bool is_large = addr % (1u << KMEM_LARGE_LOG2) == 0 &&
			                random_below(random, 3) == 0; // as a real heap: they do not overlap
			size_t bytes = is_large ? 100000 : random_below(random, 2000);

			if (random_below(random, 2) == 0)
				place_a(addr, bytes);
			else
				place_b(addr, bytes);
			held[count++] = addr;
		} else {
			hook_free(held[--count]);
		}
		stress_yield(random);
	}
	while (count > 0)
		hook_free(held[--count]);
	atomic_fetch_add_explicit(&ended_count, 1, memory_order_relaxed);
}

int
main(void)
{
	const struct kmem_domain_row *row = capture_file_domain(KMEM_DOMAIN_HEAP);
	const struct kmem_kept_peak *kept;
	struct phases_row rows[KMEM_DOMAINS_MAX];
	uint64_t sum = 0;
	uint64_t now = 0;

	native_stack_start();
	thread_slot_start();
	pointer_map_start(true);
	stress_run(STRESS_THREADS, work, random_seed());
	CHECK(begun_count > 0 && highest > 0);

	/* All is quiet: the records' words add up, and so does what is kept. */
	CHECK(phases_next(NULL, rows));
	CHECK(rows[KMEM_DOMAIN_HEAP].is_begun == 1);
	for (uint32_t i = 1; i <= capture_file_count(KMEM_SECTION_SITES); i++) {
		const struct kmem_site *site = site_table_at(i);

		CHECK(kmem_peak_now(site->peak) == ((site->allocated_bytes - site->freed_bytes) & KMEM_PEAK_BYTES_MASK));
		now += kmem_peak_now(site->peak);
	}
	CHECK((now & KMEM_PEAK_BYTES_MASK) == 0);
	kept = capture_file_item(KMEM_SECTION_RECORDS, (uint32_t)capture_file_timeline()->kept_peak);
	CHECK(kept->record.checksum == kmem_record_checksum(&kept->record, 0));
	for (uint32_t i = 0; i < kept->site_count; i++) {
		CHECK(i == 0 || kept->sites[i].site > kept->sites[i - 1].site);
		sum += kept->sites[i].peak_bytes;
	}
	sum &= KMEM_PEAK_BYTES_MASK;
	/* But for what threads held back, or had under way, when the maximum was seen. */
	CHECK(sum + STRESS_THREADS * UINT64_C(110000) >= row->kept_peak_bytes);
	CHECK(sum <= row->kept_peak_bytes + STRESS_THREADS * UINT64_C(110000));
	return 0;
}
