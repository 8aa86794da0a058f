/*
 * call_clock.c - see call_clock.h.
 *
 * Not chosen  asking at the start of each process: in a virtual machine the answers take 14 µs, and few stacks are deep.
 */
#include "base/call_clock.h"

#include <cpuid.h>

#define LEAF_FREQUENCIES 0x16u
#define LEAF_COMMANDS 0x80000001u
#define LEAF_POWER 0x80000007u
#define HAS_RDTSCP (1u << 27)
#define HAS_STEADY_TICKS (1u << 8) // whatever the processor's clock does
#define MEGAHERTZ 0xffffu

_Atomic uint32_t call_clock_a_tick;

__attribute__((cold)) uint32_t
call_clock_find(void)
{
	unsigned base = 0;
	unsigned most = 0;
	unsigned c;
	unsigned d;
	uint32_t calls = CALL_CLOCK_NONE;

	if (__get_cpuid(LEAF_COMMANDS, &base, &most, &c, &d) != 0 && (d & HAS_RDTSCP) != 0 &&
	    __get_cpuid(LEAF_POWER, &base, &most, &c, &d) != 0 && (d & HAS_STEADY_TICKS) != 0) {
		calls = CALL_CLOCK_CALLS;
		/* Ticks come at the base frequency. */
		if (__get_cpuid(LEAF_FREQUENCIES, &base, &most, &c, &d) != 0 && (base & MEGAHERTZ) != 0 &&
		    (most & MEGAHERTZ) > CALL_CLOCK_CALLS * (base & MEGAHERTZ))
			calls = (most & MEGAHERTZ) / (base & MEGAHERTZ) + 1;
	}
	atomic_store_explicit(&call_clock_a_tick, calls, memory_order_relaxed);
	return calls;
}
