/*
 * effort.h - what does recording do beyond the fast way of an event, and how long did that take at most?
 *
 * Counted where a slower way begins, for what struct kmem_efforts says. The counters lie in the capture as soon as there is one. Those that
 * may be in the way of many events are added up by each thread first: threads do not wait for each other's cache lines.
 *
 * Safe from   anywhere, handlers too: no system call, no lock.
 * Not chosen  a row of counters for each thread, in the capture: 200 bytes a thread, and a limit to how many.
 */
#ifndef EFFORT_H
#define EFFORT_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/arch.h"
#include "base/raw_sys.h"

extern struct kmem_efforts *effort_kept __attribute__((visibility("hidden"))); // never NULL
extern __thread uint32_t effort_pending[KMEM_EFFORTS_BATCHED]
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

extern _Atomic uint64_t effort_calls __attribute__((visibility("hidden")));

void effort_add(enum kmem_effort what, uint32_t count); // at once

static inline void
effort_count_many(enum kmem_effort what, uint32_t count)
{
	if (what >= KMEM_EFFORTS_BATCHED) {
		effort_add(what, count);
		return;
	}
	count += effort_pending[what];
	if (__builtin_expect(count < KMEM_EFFORT_BATCH, 1)) {
		effort_pending[what] = count;
		return;
	}
	effort_pending[what] = 0;
	effort_add(what, count);
}

static inline void
effort_count(enum kmem_effort what)
{
	effort_count_many(what, 1);
}

/*
 * A call of the system: in the capture as soon as something else is counted. It touches no file: a handler that puts memory in the place of
 * a file that was cut makes calls, and so does a child that still has its parent's.
 */
static inline void
effort_count_call(void)
{
	/* relaxed: a statistic */
	atomic_fetch_add_explicit(&effort_calls, 1, memory_order_relaxed);
}

/* All threads', without what they have not added yet. */
static inline uint64_t
effort_sum(enum kmem_effort what)
{
	return atomic_load_explicit(&effort_kept->counts[what], memory_order_relaxed);
}

void effort_thread_ends(void); // or the process: what the calling thread has not added yet

/* Before what may take long. 0: nothing is timed. */
static inline uint64_t
effort_begin(void)
{
	return raw_sys_has_clock() ? arch_ticks() : 0;
}

/* After it; `what` it was. */
void effort_end(uint64_t begun, enum kmem_effort what);

/* One thread, both. */
void effort_keep_in(struct kmem_efforts *kept); // zeroed; what was counted so far goes there
void effort_forked(void);                       // in a child: nothing was done yet, and it is kept nowhere

#endif
