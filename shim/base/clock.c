/*
 * clock.c - see clock.h.
 */
#include "base/clock.h"

#include <stdatomic.h>
#include <time.h>

#include "base/raw_sys.h"

static _Atomic uint64_t last_ns;

uint64_t
clock_now_ns(void)
{
	struct timespec now;

	if (!raw_sys_clock(CLOCK_MONOTONIC, &now))
		return atomic_load_explicit(&last_ns, memory_order_relaxed);

	uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;

	atomic_store_explicit(&last_ns, now_ns, memory_order_relaxed);
	return now_ns;
}
