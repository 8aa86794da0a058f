/*
 * call_clock.h - how many calls can this thread have made since then, at most?
 *
 * A call takes a turn of the processor's clock at least. So the time between two looks at its counter bounds the number of functions
 * that were entered: what lies further out on the stack than that many frames was there before.
 *
 * Safe from   anywhere: one instruction, no system call.
 * When failing  without a steady counter, on another processor than before, or when the counter went back: any number of calls.
 * Not chosen  CLOCK_MONOTONIC: twice the instructions, and it hides on which processor it was read.
 */
#ifndef CALL_CLOCK_H
#define CALL_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/arch.h"
#include "base/raw_sys.h"

/*
 * Calls in a tick, at most. Entering a frame takes a turn of the processor's clock at least, and where the frames of before were returned
 * from, and not left at once (longjmp), two. The clock turns up to twice a tick, or as the processor says (slow ticks and a high turbo);
 * processors that turn faster and do not say so need two turns to enter a frame. Frames that are copied into place, as some libraries for
 * coroutines do, come no faster: each is at least 16 bytes. The ticks that the hook itself takes are counted, too.
 */
#define CALL_CLOCK_CALLS UINT32_C(2)
#define CALL_CLOCK_NONE UINT32_MAX // there is no steady counter
#define CALL_CLOCK_MORE UINT64_C(64)
#define CALL_CLOCK_TICKS_MAX UINT64_C(0xffffffff) // more ticks than that: any number

struct call_time {
	uint64_t ticks; // 0 = not known
	uint32_t cpu;
};

extern _Atomic uint32_t call_clock_a_tick; // calls; 0 = not asked yet. relaxed: everybody finds the same

uint32_t call_clock_find(void); // what the processor has: no system call, but some microseconds in a virtual machine

static inline uint32_t
call_clock_rate(void)
{
	uint32_t calls = atomic_load_explicit(&call_clock_a_tick, memory_order_relaxed);

	return __builtin_expect(calls == 0, 0) ? call_clock_find() : calls;
}

static inline struct call_time
call_clock_now(void)
{
	struct call_time now = { .ticks = 0 };

	if (raw_sys_has_clock() && call_clock_rate() != CALL_CLOCK_NONE)
		now.ticks = arch_ticks_of_cpu(&now.cpu);
	return now;
}

/* Calls that come after it are made after call_clock_now(): processors work ahead. */
static inline void
call_clock_fence(void)
{
	arch_fence_ticks();
}

/* UINT64_MAX = nobody knows. */
static inline uint64_t
call_clock_calls_since(struct call_time then)
{
	struct call_time now = call_clock_now();
	uint64_t ticks = now.ticks - then.ticks; // when it went back: many

	if (then.ticks == 0 || now.ticks == 0 || now.cpu != then.cpu || ticks > CALL_CLOCK_TICKS_MAX)
		return UINT64_MAX;
	return ticks * call_clock_rate() + CALL_CLOCK_MORE;
}

#endif
