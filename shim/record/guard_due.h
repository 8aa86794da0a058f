/*
 * guard_due.h - is a request so large that the guard is to be asked before it is made (periodic/memory_guard.h)?
 *
 * Safe from   any hook; no call.
 */
#ifndef GUARD_DUE_H
#define GUARD_DUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Requests of so many bytes and more; UINT64_MAX: none. relaxed: half of the room at the last beat, so it need not be exact. */
extern _Atomic uint64_t guard_due_bytes;

static inline bool
guard_due_is(uint64_t bytes)
{
	return bytes >= atomic_load_explicit(&guard_due_bytes, memory_order_relaxed);
}

#endif
