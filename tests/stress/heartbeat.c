/*
 * heartbeat.c - does a reader that follows H1 ever take half a beat?
 *
 * Storing the 0 after the contents, or not at all, is caught by the check of the times. The fence, weakened, is not: the fields are atomic,
 * so the sanitizer has nothing to report, and x86 keeps the order of stores.
 */
#include "stress.h"

#include "base/clock.h"
#include "capture/capture_file.h"
#include "periodic/heartbeat.h"

#define BEATS 2500
#define WRITERS 2

static _Atomic unsigned working = WRITERS;
static _Atomic uint64_t read_count;
static _Atomic uint64_t beats; // taken so far

/*
 * The writers say as live bytes what time it is, and the beat's own time is taken after that: a beat whose time is before its
 * live bytes is made of two.
 */
static void
read_beats(uint64_t *random)
{
	while (atomic_load_explicit(&working, memory_order_relaxed) != 0) {
		/* The place that is about to be written, or near it. */
		uint64_t next = atomic_load_explicit(&beats, memory_order_relaxed) + 1 + random_below(random, 2);
		struct kmem_heartbeat *beat = &capture_file_heartbeats()[next % KMEM_HEARTBEATS_MAX];
		_Atomic uint32_t *checksum = &capture_file_header()->heartbeat_checksums[next % KMEM_HEARTBEATS_MAX];
		/* acquire: pairs with the last store in heartbeat_take(). */
		uint32_t before = atomic_load_explicit(checksum, memory_order_acquire);
		uint64_t number = __atomic_load_n(&beat->sequence, __ATOMIC_ACQUIRE);
		/* The order of reading in which a half beat shows: its time is written first. acquire: as a fence would. */
		uint64_t time_ns = __atomic_load_n(&beat->monotonic_ns, __ATOMIC_ACQUIRE);
		if (random_below(random, 2) == 0)
			sched_yield();
		uint64_t live_bytes = __atomic_load_n(&beat->live_bytes, __ATOMIC_ACQUIRE);
		uint32_t after = atomic_load_explicit(checksum, memory_order_relaxed);

		if (before == 0 || before != after)
			continue;
		CHECK(number % KMEM_HEARTBEATS_MAX == (uint64_t)(beat - capture_file_heartbeats()));
		CHECK(time_ns >= live_bytes);
		atomic_fetch_add_explicit(&read_count, 1, memory_order_relaxed);
	}
}

static void
work(unsigned thread, uint64_t *random)
{
	if (thread >= WRITERS) {
		read_beats(random);
		return;
	}
	for (unsigned i = 0; i < BEATS; i++) {
		heartbeat_take(clock_now_ns());
		atomic_fetch_add_explicit(&beats, 1, memory_order_relaxed);
	}
	atomic_fetch_sub_explicit(&working, 1, memory_order_relaxed);
}

int
main(void)
{
	uint64_t newest = 0;

	capture_file_header()->identity.page_bytes = 4096;
	stress_run(WRITERS + 2, work, random_seed());
	for (unsigned i = 0; i < KMEM_HEARTBEATS_MAX; i++) {
		uint64_t sequence = capture_file_heartbeats()[i].sequence;

		newest = sequence > newest ? sequence : newest;
	}
	CHECK(newest == (uint64_t)WRITERS * BEATS);
	CHECK(read_count > 0);
	return 0;
}
