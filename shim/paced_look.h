/*
 * paced_look.h - may this thread take a look now, that costs as much as the heap is large?
 *
 * One look at a time, and the next one only after so many times as long as it took: looks take no more than that part of the
 * time, whatever they look at. An urgent one may come sooner; how many of those there are, its caller bounds.
 *
 * Called by   resident.c, survivors.c.
 * Safe from   any hook on any thread: a flag that is tried once, never waited for.
 */
#ifndef PACED_LOOK_H
#define PACED_LOOK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "heartbeat.h"

struct paced_look {
	uint64_t period_ns;          // the least from one to the next
	uint64_t period_part;        // that times the duration of one, too
	uint64_t urgent_part;        // the same for one that is urgent; 0 = none is
	uint64_t pressing_part;      // and for one that is wanted before it is too late
	atomic_flag is_looking;      // acquire and release: all that is looked at is under it
	_Atomic uint64_t next_ns;    // relaxed: guards nothing
	_Atomic uint64_t urgent_ns;  // the same for an urgent one
	_Atomic uint64_t pressing_ns;
	uint64_t begin_ns;           // under the flag
};

/* PACED_DUE: whatever the time. */
enum paced_reason { PACED_USUAL, PACED_URGENT, PACED_PRESSING, PACED_DUE };

/* When true, paced_look_end() is to follow. */
static inline bool
paced_look_begin(struct paced_look *look, enum paced_reason reason)
{
	uint64_t now_ns = heartbeat_now_ns();
	_Atomic uint64_t *from_ns = reason == PACED_URGENT     ? &look->urgent_ns
	                            : reason == PACED_PRESSING ? &look->pressing_ns
	                                                       : &look->next_ns;

	if ((reason != PACED_DUE && now_ns < atomic_load_explicit(from_ns, memory_order_relaxed)) ||
	    atomic_flag_test_and_set_explicit(&look->is_looking, memory_order_acquire))
		return false;
	look->begin_ns = now_ns;
	return true;
}

static inline void
paced_look_end(struct paced_look *look)
{
	uint64_t end_ns = heartbeat_now_ns();
	uint64_t took_ns = end_ns - look->begin_ns;
	uint64_t pause_ns = look->period_part * took_ns;

	atomic_store_explicit(&look->urgent_ns, end_ns + look->urgent_part * took_ns, memory_order_relaxed);
	atomic_store_explicit(&look->pressing_ns, end_ns + look->pressing_part * took_ns, memory_order_relaxed);
	atomic_store_explicit(&look->next_ns, end_ns + (pause_ns < look->period_ns ? look->period_ns : pause_ns),
	                      memory_order_relaxed);
	atomic_flag_clear_explicit(&look->is_looking, memory_order_release);
}

/* In a forked child: the thread that looked is not here. */
static inline void
paced_look_forked(struct paced_look *look)
{
	atomic_flag_clear_explicit(&look->is_looking, memory_order_relaxed);
}

#endif
