/*
 * counter.h - adding to a counter that only its own thread changes.
 *
 * One instruction, which the compiler does not make of a relaxed load and a relaxed store. Not locked: a reader sees the old value or
 * the new one, as it would with those two.
 *
 * Safe from   anywhere.
 */
#ifndef COUNTER_H
#define COUNTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arch.h"

#if defined(__SANITIZE_THREAD__) || !ARCH_ADDS_TO_MEMORY // the sanitizer looks at no assembly
static inline void
counter_add_own(_Atomic uint64_t *counter, uint64_t value)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + value, memory_order_relaxed);
}

static inline void
counter_add_own32(_Atomic uint32_t *counter, uint32_t value)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + value, memory_order_relaxed);
}

static inline bool
counter_take(uint64_t *counter, uint64_t value)
{
	return __builtin_sub_overflow(*counter, value, counter);
}

static inline bool
counter_take32(uint32_t *counter, uint32_t value)
{
	return __builtin_sub_overflow(*counter, value, counter);
}
#else
/* Of what only one thread reads and writes. Returns whether there was less. */
static inline bool
counter_take(uint64_t *counter, uint64_t value)
{
	bool was_less;

	__asm__("subq %2, %0" : "+m"(*counter), "=@ccc"(was_less) : "er"(value));
	return was_less;
}

static inline bool
counter_take32(uint32_t *counter, uint32_t value)
{
	bool was_less;

	__asm__("subl %2, %0" : "+m"(*counter), "=@ccc"(was_less) : "ir"(value));
	return was_less;
}

static inline void
counter_add_own(_Atomic uint64_t *counter, uint64_t value)
{
	__asm__ volatile("addq %1, %0" : "+m"(*counter) : "er"(value) : "cc");
}

static inline void
counter_add_own32(_Atomic uint32_t *counter, uint32_t value)
{
	__asm__ volatile("addl %1, %0" : "+m"(*counter) : "ir"(value) : "cc");
}
#endif

#endif
