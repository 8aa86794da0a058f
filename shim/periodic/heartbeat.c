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

#include "base/clock.h"
#include "base/effort.h"
#include "base/memory_limits.h"
#include "base/raw_sys.h"
#include "base/thread_stack.h"
#include "capture/capture_file.h"
#include "kmem_words.h"
#include "moments/history.h"
#include "moments/marks.h"
#include "moments/phases.h"
#include "periodic/inherited.h"
#include "periodic/launcher_pipe.h"
#include "periodic/memory_guard.h"
#include "periodic/object_census.h"
#include "periodic/resident.h"
#include "record/beat_due.h"
#include "record/tracker.h"
#include "sites/callbacks.h"
#include "tables/peak.h"
#include "tables/pointer_map.h"
#include "unwind/unwind_copies.h"

static _Atomic uint64_t sequence;

/* Remembers the resident set of the last beat at which a domain stood at its peak. */
static void
note_peaks(uint64_t resident_bytes)
{
	for (unsigned i = 0; i <= KMEM_DOMAIN_CUDA_FIRST; i++) {
		struct kmem_domain_row *row = capture_file_domain(i < KMEM_DOMAIN_CUDA_FIRST ? i : KMEM_DOMAIN_LIBRARY);

		struct kmem_peak_word word = peak_load(&row->peak);

		if (kmem_peak_now_signed(word) >= (int64_t)kmem_peak_high(word) &&
		    kmem_domain_peak_bytes(word) >= phases_kept_bytes(row))
			atomic_store_explicit(&row->peak_resident_bytes, resident_bytes, memory_order_relaxed);
	}
}

/* relaxed: a live reader may look at any moment; by the checksum it knows whether what it saw is one beat (H1). */
static void
set(uint64_t *field, uint64_t value)
{
	__atomic_store_n(field, value, __ATOMIC_RELAXED);
}

void
heartbeat_take(uint64_t live_bytes)
{
	if (!thread_stack_has_room())
		return;
	uint64_t begun = effort_begin();

	effort_count(KMEM_EFFORT_HEARTBEATS);
	record_callbacks.needs_file();

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
	if (raw_sys_may_call() && memory_limits_follow(&capture_file_header()->identity, now_ns))
		capture_file_note(KMEM_NOTE_MOVED ": limits are of that one since then");
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

	marks_beat(live_bytes, now.resident_bytes, now_ns);
	history_beat(live_bytes, now.resident_bytes, now.limit_bytes, now_ns);
	enum memory_guard_due due = memory_guard_judge(&now, live_bytes);
	launcher_pipe_beat(&now, live_bytes);
	beat_due_restart(live_bytes, now.resident_bytes, now.limit_bytes, memory_guard_room(), now_ns);
	object_census_take(false);
	pointer_map_beat(now_ns);
	unwind_copies_rest();
	if (number > 1) // the first one is the start
		resident_take(&now, live_bytes);
	beat_due_by(inherited_sample(false));
	errno = host_errno;
	effort_end(begun, KMEM_EFFORT_HEARTBEATS);
	memory_guard_do(due);
}
