/*
 * library_due.h - is it time to ask what libraries' own allocators hold (tracker_library.h)?
 *
 * Apart from that file, because the tracker asks at each event.
 *
 * Safe from   any hook; no call.
 */
#ifndef LIBRARY_DUE_H
#define LIBRARY_DUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arch.h"
#include "base/raw_sys.h"
#include "tables/library_map.h"

#define LIBRARY_DUE_TICKS (UINT64_C(1) << 17) // of the processor's clock, between two questions: 30 to 120 us

/*
 * When to ask next. A line that calls into the library does not wait as long as others: its pools may work for long without a question,
 * or with questions that only know the line before. relaxed: guards nothing; a thread that sees an old value asks once more.
 */
extern _Atomic uint64_t library_due_next_ticks __attribute__((visibility("hidden")));
extern _Atomic uint64_t library_due_next_switch_ticks __attribute__((visibility("hidden")));

/* Is it time to ask? One load where there are no such reservations. A program that forbade reading the clock is asked at samples only. */
static inline bool
library_due_is_at(const _Atomic uint64_t *next_ticks)
{
	if (__builtin_expect(!atomic_load_explicit(&library_map_is_any, memory_order_relaxed), 1))
		return false;
	if (!raw_sys_may_call() || !raw_sys_has_clock())
		return false;
	/* A clock that is far behind is that of another machine. */
	return (int64_t)(arch_ticks() - atomic_load_explicit(next_ticks, memory_order_relaxed)) >= 0;
}

static inline bool
library_due_is(void)
{
	return library_due_is_at(&library_due_next_ticks);
}

/* At places where the interpreter's lock is given or taken. */
static inline bool
library_due_is_switch(void)
{
	return library_due_is_at(&library_due_next_switch_ticks);
}

#endif
