/*
 * history.h - what was held over time?
 *
 * A point is the time, the resident set, live bytes by domain, and those of the call sites that hold most. It is taken at heartbeats, each time
 * that a 16th more was allocated in all, and each few milliseconds while the program allocates; once the ring is full, no closer together than
 * the points that stay. Whoever takes one reads all records of sites: about 1/256 of the time at most goes into that.
 *
 * Context     inside the reentry guard, while recording is on.
 * Safe from   any hook on any thread; one takes a point at a time, others go without.
 * When full   every second point is given up. Where the capture cannot grow the ring is smaller, or there is none.
 */
#ifndef HISTORY_H
#define HISTORY_H

#include <stdatomic.h>
#include <stdint.h>

#include "capture/capture_file.h"

/* At a heartbeat; resident_bytes 0 = unknown, limit_bytes UINT64_MAX = none. The first one begins. */
void history_beat(uint64_t live_bytes, uint64_t resident_bytes, uint64_t limit_bytes, uint64_t now_ns);

/* A few milliseconds have passed, and the resident set was asked for. */
void history_tick(uint64_t resident_bytes);

/* The program begins to exit: a point, whatever the distance. */
void history_exit(void);

/* relaxed: a threshold; UINT64_MAX before the first heartbeat. */
extern _Atomic uint64_t history_next_volume;
__attribute__((noinline, cold)) void history_volume(void);

/* Now and then, from a slow path: one compare. */
static inline void
history_look(void)
{
	uint64_t volume = atomic_load_explicit(&capture_file_header()->volume_bytes, memory_order_relaxed);

	if (__builtin_expect(volume >= atomic_load_explicit(&history_next_volume, memory_order_relaxed), 0))
		history_volume();
}

void history_forked(void); // forked child: one thread, an empty capture

#endif
