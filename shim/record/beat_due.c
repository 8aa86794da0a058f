/*
 * beat_due.c - is a heartbeat due (see beat_due.h)?
 */
#include "record/beat_due.h"

#include <errno.h>
#include <stdatomic.h>

#include "base/arch.h"
#include "base/clock.h"
#include "base/memory_limits.h"
#include "base/raw_sys.h"
#include "base/thread_stack.h"
#include "capture/capture_file.h"
#include "moments/history.h"

#define STEP_MIN_BYTES ((uint64_t)1 << 20)
#define STEP_LEAST_BYTES ((uint64_t)256 << 10)
#define STEPS_PER_LIMIT 256
#define EVENTS_PER_LOOK 1024 // between two looks at the clock, per thread
#define PERIOD_NS UINT64_C(1000000000)

#define FALL_SHARE 4 // of what was live at the last beat
#define FALL_MIN_BYTES ((uint64_t)16 << 20)
#define RESIDENT_FIRST_BYTES ((uint64_t)16 << 20) // more than shells and tools take
#define FAULTED_MIN_BYTES ((uint64_t)4 << 20)
#define RESIDENT_TICKS (UINT64_C(1) << 24) // of the processor's clock: 4 to 16 ms

static _Atomic uint64_t next_bytes;
static _Atomic uint64_t next_resident_bytes;
static _Atomic uint64_t next_faulted_bytes; // of a forked child
static _Atomic uint64_t fallen_bytes;       // so much or less is a fall; 0: there can be none
static _Atomic uint64_t next_ticks;         // of a look at resident memory
static _Atomic uint64_t next_ns;
static __thread unsigned events __attribute__((tls_model("initial-exec")));

void
beat_due_wait_for(uint64_t live_bytes)
{
	atomic_store_explicit(&next_bytes, live_bytes, memory_order_relaxed);
	atomic_store_explicit(&fallen_bytes, 0, memory_order_relaxed);
	atomic_store_explicit(&next_resident_bytes, RESIDENT_FIRST_BYTES, memory_order_relaxed);
	atomic_store_explicit(&next_faulted_bytes, FAULTED_MIN_BYTES, memory_order_relaxed);
	atomic_store_explicit(&next_ns, clock_now_ns() + PERIOD_NS, memory_order_relaxed);
}

void
beat_due_restart(uint64_t live_bytes, uint64_t resident_bytes, uint64_t limit_bytes, uint64_t room_bytes,
                 uint64_t now_ns)
{
	uint64_t step = limit_bytes / STEPS_PER_LIMIT;
	const struct kmem_identity *identity = &capture_file_header()->identity;
	uint64_t fall = live_bytes / FALL_SHARE > FALL_MIN_BYTES ? live_bytes / FALL_SHARE : FALL_MIN_BYTES;

	if (step < STEP_MIN_BYTES || limit_bytes == UINT64_MAX)
		step = STEP_MIN_BYTES;
	if (room_bytes / 4 < step) // live bytes are not all that grows: malloc's own and ours come on top
		step = room_bytes / 4 > STEP_LEAST_BYTES ? room_bytes / 4 : STEP_LEAST_BYTES;
	atomic_store_explicit(&next_bytes, live_bytes + step, memory_order_relaxed);
	atomic_store_explicit(&next_resident_bytes, resident_bytes + step, memory_order_relaxed);
	if (identity->is_forked != 0) {
		uint64_t faulted = memory_limits_faulted(identity);
		uint64_t more = faulted / 4 > FAULTED_MIN_BYTES ? faulted / 4 : FAULTED_MIN_BYTES;

		atomic_store_explicit(&next_faulted_bytes, faulted + more, memory_order_relaxed);
	}
	atomic_store_explicit(&next_ns, now_ns + PERIOD_NS, memory_order_relaxed);
	atomic_store_explicit(&fallen_bytes, live_bytes > fall ? live_bytes - fall : 0, memory_order_relaxed);
}

void
beat_due_by(uint64_t at_ns)
{
	if (at_ns < atomic_load_explicit(&next_ns, memory_order_relaxed))
		atomic_store_explicit(&next_ns, at_ns, memory_order_relaxed);
}

/* Returns true to one thread. */
static bool
is_time(void)
{
	uint64_t due_ns = atomic_load_explicit(&next_ns, memory_order_relaxed);

	return clock_now_ns() >= due_ns && atomic_compare_exchange_strong_explicit(
										   &next_ns, &due_ns, UINT64_MAX, memory_order_relaxed, memory_order_relaxed);
}

/* Returns true to one thread. */
static bool
has_come_to(_Atomic uint64_t *next, uint64_t bytes)
{
	uint64_t threshold = atomic_load_explicit(next, memory_order_relaxed);

	return bytes >= threshold && atomic_compare_exchange_strong_explicit(next, &threshold, UINT64_MAX,
	                                                                     memory_order_relaxed, memory_order_relaxed);
}

/* Has resident memory grown by a step, or what a child may have copied by a quarter? True to one thread. Seldom asks the system. */
static bool
has_grown(void)
{
	const struct kmem_identity *identity = &capture_file_header()->identity;
	uint64_t ticks = raw_sys_may_call() && raw_sys_has_clock() ? arch_ticks() : 0;
	uint64_t due = atomic_load_explicit(&next_ticks, memory_order_relaxed);
	int host_errno = errno;

	if (ticks == 0) // it may not be asked, or the system
		return false;
	/* A clock that is behind is another processor's, or the clock before the machine was migrated. */
	if ((int64_t)(ticks - due) < 0 && due - ticks <= RESIDENT_TICKS)
		return false;
	if (!atomic_compare_exchange_strong_explicit(&next_ticks, &due, ticks + RESIDENT_TICKS, memory_order_relaxed,
	                                             memory_order_relaxed))
		return false;

	uint64_t resident_bytes = memory_limits_resident(identity);
	bool is_due = has_come_to(&next_resident_bytes, resident_bytes) ||
	              (identity->is_forked != 0 && has_come_to(&next_faulted_bytes, memory_limits_faulted(identity)));
	errno = host_errno;
	history_tick(resident_bytes);
	return is_due;
}

/* Returns true to one thread, which takes the beat. A thread without stack for a beat gets false: it could not take it. */
bool
beat_due_now(void)
{
	return thread_stack_has_room() && (is_time() || has_grown());
}

bool
beat_due_by_clock(void)
{
	return ++events % EVENTS_PER_LOOK == 0 && beat_due_now();
}

bool
beat_due_has_fallen(uint64_t live_bytes)
{
	uint64_t threshold = atomic_load_explicit(&fallen_bytes, memory_order_relaxed);

	return threshold != 0 && live_bytes <= threshold;
}

bool
beat_due_after_release(uint64_t live_bytes)
{
	uint64_t threshold = atomic_load_explicit(&fallen_bytes, memory_order_relaxed);

	return threshold != 0 && live_bytes <= threshold &&
	       atomic_compare_exchange_strong_explicit(&fallen_bytes, &threshold, 0, memory_order_relaxed,
	                                               memory_order_relaxed);
}

bool
beat_due_after(uint64_t live_bytes)
{
	/* relaxed: thresholds; the exchange lets one thread through, another beat at the same time would do no harm. */
	uint64_t threshold = atomic_load_explicit(&next_bytes, memory_order_relaxed);

	if (!thread_stack_has_room()) // the next event that has comes here, too
		return false;
	return live_bytes < threshold ? beat_due_by_clock() || has_grown()
	                              : atomic_compare_exchange_strong_explicit(&next_bytes, &threshold, UINT64_MAX,
	                                                                        memory_order_relaxed, memory_order_relaxed);
}
