/*
 * heartbeat.c - how close to the limit was it (see heartbeat.h)?
 *
 * Invariant, tested in tests/unit/shim/periodic/test_heartbeat.c:
 *   H1  a beat's checksum is 0 while the beat is being written and stored last (release), so a reader takes whole beats only, and
 *       whoever is killed at any instruction leaves nothing that looks like damage.
 */
#include "periodic/heartbeat.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory_limits.h"
#include "base/raw_sys.h"
#include "base/thread_stack.h"
#include "capture/capture_file.h"
#include "kmem_words.h"
#include "periodic/inherited.h"
#include "periodic/resident.h"
#include "periodic/object_census.h"
#include "record/tracker.h"
#include "tables/peak.h"
#include "tables/pointer_map.h"
#include "unwind/unwind_copies.h"

#define STEP_MIN_BYTES ((uint64_t)1 << 20)
#define STEPS_PER_LIMIT 256
#define EVENTS_PER_LOOK 1024 // between two looks at the clock, per thread
#define PERIOD_NS UINT64_C(1000000000)

#define FALL_SHARE 4 // of what was live at the last beat
#define FALL_MIN_BYTES ((uint64_t)16 << 20)
#define RESIDENT_FIRST_BYTES ((uint64_t)16 << 20) // more than shells and tools take
#define RESIDENT_TICKS (UINT64_C(1) << 24)        // of the processor's clock: 4 to 16 ms

static _Atomic uint64_t next_bytes;
static _Atomic uint64_t next_resident_bytes;
static _Atomic uint64_t fallen_bytes; // so much or less is a fall; 0: there can be none
static _Atomic uint64_t next_ticks;   // of a look at resident memory
static _Atomic uint64_t next_ns;
static _Atomic uint64_t sequence;
static __thread unsigned events __attribute__((tls_model("initial-exec")));

/* The resident set beside the highest live bytes: of the last beat at which a domain stood at its peak. */
static void
note_peaks(uint64_t resident_bytes)
{
	for (unsigned i = 0; i <= KMEM_DOMAIN_CUDA_FIRST; i++) {
		struct kmem_domain_row *row = capture_file_domain(i < KMEM_DOMAIN_CUDA_FIRST ? i : KMEM_DOMAIN_LIBRARY);

		struct kmem_peak_word word = peak_load(&row->peak);

		if (kmem_peak_now_signed(word) >= (int64_t)kmem_peak_mark(word))
			atomic_store_explicit(&row->peak_resident_bytes, resident_bytes, memory_order_relaxed);
	}
}

/* relaxed: a live reader may look at any moment; whether what it saw is one beat, the checksum tells (H1). */
static void
set(uint64_t *field, uint64_t value)
{
	__atomic_store_n(field, value, __ATOMIC_RELAXED);
}

void
heartbeat_wait_for(uint64_t live_bytes)
{
	atomic_store_explicit(&next_bytes, live_bytes, memory_order_relaxed);
	atomic_store_explicit(&fallen_bytes, 0, memory_order_relaxed);
	atomic_store_explicit(&next_resident_bytes, RESIDENT_FIRST_BYTES, memory_order_relaxed);
	atomic_store_explicit(&next_ns, clock_now_ns() + PERIOD_NS, memory_order_relaxed);
}

void
heartbeat_take(uint64_t live_bytes)
{
	if (!thread_stack_has_room())
		return;
	if (lifecycle_needs_file != NULL)
		lifecycle_needs_file();

	uint64_t number = atomic_fetch_add_explicit(&sequence, 1, memory_order_relaxed) + 1;
	struct kmem_heartbeat *beat = &capture_file_heartbeats()[number % KMEM_HEARTBEATS_MAX];
	_Atomic uint32_t *checksum = &capture_file_header()->heartbeat_checksums[number % KMEM_HEARTBEATS_MAX];
	struct memory_limits_now now;
	uint64_t now_ns = clock_now_ns();
	uint32_t ended = KMEM_STATE_CLEAN_EXIT;
	int host_errno = errno;

	if (!raw_sys_may_call() && tracker_is_awake()) // what ended was a vfork child: lifecycle_end_at_once()
		(void)atomic_compare_exchange_strong_explicit(&capture_file_header()->state, &ended, KMEM_STATE_RUNNING,
		                                              memory_order_relaxed, memory_order_relaxed);
	memory_limits_read_now(&capture_file_header()->identity, &now);

	struct kmem_heartbeat fresh = {
		.monotonic_ns = now_ns,
		.live_bytes = live_bytes,
		.resident_bytes = now.resident_bytes,
		.cgroup_bytes = now.cgroup_bytes,
		.limit_bytes = now.limit_bytes,
		.available_bytes = now.available_bytes,
		.swap_free_bytes = now.swap_free_bytes,
	};

	atomic_store_explicit(checksum, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release); // the 0 before the new contents: H1
	atomic_store_explicit(&beat->sequence, number, memory_order_relaxed);
	set(&beat->monotonic_ns, fresh.monotonic_ns);
	set(&beat->live_bytes, fresh.live_bytes);
	set(&beat->resident_bytes, fresh.resident_bytes);
	set(&beat->cgroup_bytes, fresh.cgroup_bytes);
	set(&beat->limit_bytes, fresh.limit_bytes);
	set(&beat->available_bytes, fresh.available_bytes);
	set(&beat->swap_free_bytes, fresh.swap_free_bytes);
	atomic_store_explicit(checksum, kmem_heartbeat_checksum(&fresh, number), memory_order_release); // H1
	if (now.resident_bytes != 0)                                                                    // it could be read
		note_peaks(now.resident_bytes);

	uint64_t step = now.limit_bytes / STEPS_PER_LIMIT;
	if (step < STEP_MIN_BYTES || now.limit_bytes == UINT64_MAX)
		step = STEP_MIN_BYTES;
	atomic_store_explicit(&next_bytes, live_bytes + step, memory_order_relaxed);
	atomic_store_explicit(&next_resident_bytes, now.resident_bytes + step, memory_order_relaxed);
	atomic_store_explicit(&next_ns, now_ns + PERIOD_NS, memory_order_relaxed);

	uint64_t fall = live_bytes / FALL_SHARE > FALL_MIN_BYTES ? live_bytes / FALL_SHARE : FALL_MIN_BYTES;

	atomic_store_explicit(&fallen_bytes, live_bytes > fall ? live_bytes - fall : 0, memory_order_relaxed);
	object_census_take(false);
	pointer_map_beat(now_ns);
	unwind_copies_rest();
	if (number > 1) // the first one is the start
		resident_take(&now, live_bytes);
	inherited_sample(false);
	errno = host_errno;
}

/* One thread is told so. */
static bool
is_time(void)
{
	uint64_t due_ns = atomic_load_explicit(&next_ns, memory_order_relaxed);

	return clock_now_ns() >= due_ns && atomic_compare_exchange_strong_explicit(
										   &next_ns, &due_ns, UINT64_MAX, memory_order_relaxed, memory_order_relaxed);
}

/* Has resident memory grown by a step? One thread is told so. Asks the system once in a while. */
static bool
has_grown(void)
{
	uint64_t ticks = raw_sys_may_call() && raw_sys_has_clock() ? __builtin_ia32_rdtsc() : 0;
	uint64_t due = atomic_load_explicit(&next_ticks, memory_order_relaxed);
	uint64_t threshold;
	uint64_t resident_bytes;
	int host_errno = errno;

	if (ticks == 0) // it may not be asked, or the system
		return false;
	/* A clock that is behind is another processor's, or that of another machine before a migration. */
	if ((int64_t)(ticks - due) < 0 && due - ticks <= RESIDENT_TICKS)
		return false;
	if (!atomic_compare_exchange_strong_explicit(&next_ticks, &due, ticks + RESIDENT_TICKS, memory_order_relaxed,
	                                             memory_order_relaxed))
		return false;
	resident_bytes = memory_limits_resident(&capture_file_header()->identity);
	errno = host_errno;
	threshold = atomic_load_explicit(&next_resident_bytes, memory_order_relaxed);
	return resident_bytes >= threshold &&
	       atomic_compare_exchange_strong_explicit(&next_resident_bytes, &threshold, UINT64_MAX, memory_order_relaxed,
	                                               memory_order_relaxed);
}

bool
heartbeat_is_due(void)
{
	return ++events % EVENTS_PER_LOOK == 0 && (is_time() || has_grown());
}

void
heartbeat_sample(uint64_t live_bytes)
{
	if (is_time() || has_grown())
		heartbeat_take(live_bytes);
}

bool
heartbeat_has_fallen(uint64_t live_bytes)
{
	uint64_t threshold = atomic_load_explicit(&fallen_bytes, memory_order_relaxed);

	return threshold != 0 && live_bytes <= threshold;
}

void
heartbeat_after_release(uint64_t live_bytes)
{
	uint64_t threshold = atomic_load_explicit(&fallen_bytes, memory_order_relaxed);

	/* One thread is let through. */
	if (threshold != 0 && live_bytes <= threshold &&
	    atomic_compare_exchange_strong_explicit(&fallen_bytes, &threshold, 0, memory_order_relaxed,
	                                            memory_order_relaxed))
		heartbeat_take(live_bytes);
}

void
heartbeat_after(uint64_t live_bytes)
{
	/* relaxed: thresholds; the exchange lets one thread through, another beat at the same time would do no harm. */
	uint64_t threshold = atomic_load_explicit(&next_bytes, memory_order_relaxed);

	if (!thread_stack_has_room()) // the next event that has comes here, too
		return;
	if (live_bytes < threshold ? heartbeat_is_due() || has_grown()
	                           : atomic_compare_exchange_strong_explicit(&next_bytes, &threshold, UINT64_MAX,
	                                                                     memory_order_relaxed, memory_order_relaxed))
		heartbeat_take(live_bytes);
}
