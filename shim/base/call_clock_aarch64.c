/*
 * call_clock_aarch64.c - see call_clock.h.
 *
 * The counter turns seldom (24 MHz to 1 GHz), and nothing says how often the processor's clock turns meanwhile: there is no bound.
 */
#include "base/call_clock.h"

_Atomic uint32_t call_clock_a_tick;

__attribute__((cold)) uint32_t
call_clock_find(void)
{
	atomic_store_explicit(&call_clock_a_tick, CALL_CLOCK_NONE, memory_order_relaxed);
	return CALL_CLOCK_NONE;
}
