/*
 * heap_samples.h - KMEMSHIM_SAMPLE: which blocks of the heap are in the sample, and how much does each stand for?
 *
 * Each byte that is asked for is drawn with the same probability, one in settings.sample_bytes on average. So a block of n bytes is in the
 * sample with p = 1 - exp(-n / settings.sample_bytes), and stands for n / p bytes: heap_samples_weight(). Blocks of heap_samples_from bytes and
 * more are recorded each, as they are. All others are served without a look: a subtraction in the thread, and one byte of a table at
 * their release.
 *
 * Safe from   any thread and signal handler; no allocation, no lock.
 * When full   the pointer map's table for few addresses; what finds no room is lost, and counted.
 */
#ifndef HEAP_SAMPLES_H
#define HEAP_SAMPLES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/settings.h"

#define HEAP_SAMPLES_FROM_MAX (UINT64_C(1) << 20)
#define HEAP_SAMPLES_FILTER_BITS 17
#define HEAP_SAMPLES_UNIT_LOG2 5 // addresses closer than that share a byte

/*
 * Set once, by heap_samples_start(); 0 before, and where every block is recorded. relaxed: a thread that is between its question and its
 * books just then books one block as a sample that was none.
 */
extern _Atomic size_t heap_samples_from __attribute__((visibility("hidden")));

static inline size_t
heap_samples_limit(void)
{
	return atomic_load_explicit(&heap_samples_from, memory_order_relaxed);
}

struct heap_sampler {
	int64_t countdown; // bytes until the next draw; below HEAP_SAMPLES_HELD: none passes, and none is drawn
	uint64_t random;   // 0 = this thread has not drawn yet
};
#define HEAP_SAMPLES_HELD (INT64_MIN / 4)
extern __thread struct heap_sampler heap_sampler __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* How many recorded blocks begin in addresses that share the byte; 255 = and more. relaxed: who releases an address got it from who put it. */
extern _Atomic uint8_t heap_samples_filter[1u << HEAP_SAMPLES_FILTER_BITS] __attribute__((visibility("hidden")));

/*
 * When recording has started; 0: every block is recorded. Of a process with an interpreter only when its allocators are known, which is at
 * the first stack with frames of Python: until then each block is recorded, and counted in the filter.
 */
void heap_samples_start(uint64_t mean_bytes);
void heap_samples_forked(void);    // forked child: one thread
void heap_samples_anew(void);      // this thread: else all children of a process would draw the same
void heap_samples_hook_left(void); // by a jump, perhaps while it held

/* The countdown has fallen below 0: is this request drawn? Keeps errno. */
bool heap_samples_is_drawn(void) __attribute__((noinline, cold));

/* Is this request one that is served without a look? To be asked once for each. False where every block is recorded. */
static inline __attribute__((always_inline)) bool
heap_samples_passes(size_t bytes)
{
	return __builtin_expect(bytes < heap_samples_limit(), 0) &&
	       (__builtin_expect((heap_sampler.countdown -= (int64_t)bytes) >= 0, 1) || !heap_samples_is_drawn());
}

static inline _Atomic uint8_t *
heap_samples_byte(const void *addr)
{
	return &heap_samples_filter[(uintptr_t)addr >> HEAP_SAMPLES_UNIT_LOG2 & ((1u << HEAP_SAMPLES_FILTER_BITS) - 1)];
}

/* Is the release of this block one that nothing has to be booked for? False where every block is recorded. */
static inline __attribute__((always_inline)) bool
heap_samples_is_unseen(const void *addr)
{
	return __builtin_expect(heap_samples_limit() != 0, 0) &&
	       __builtin_expect(atomic_load_explicit(heap_samples_byte(addr), memory_order_relaxed) == 0, 1);
}

/* A block is in the map from now on (by 1), or is no more (by -1). */
void heap_samples_count(const void *addr, int by) __attribute__((noinline, cold));

static inline void
heap_samples_note(const void *addr)
{
	if (__builtin_expect(settings.sample_bytes != 0, 0))
		heap_samples_count(addr, 1);
}

static inline void
heap_samples_forget(const void *addr)
{
	if (__builtin_expect(settings.sample_bytes != 0, 0))
		heap_samples_count(addr, -1);
}

/*
 * Until the release all requests of this thread are recorded as if there were no sample (which a hook inside the guard then does not).
 * Returns what the release is to be given. One store each: a signal handler sees the one or the other.
 */
static inline int64_t
heap_samples_hold(void)
{
	int64_t before = heap_sampler.countdown;

	*(volatile int64_t *)&heap_sampler.countdown = INT64_MIN / 2;
	return before;
}

static inline void
heap_samples_release(int64_t before)
{
	*(volatile int64_t *)&heap_sampler.countdown = before;
}

/* What a block of so many bytes, fewer than heap_samples_from, stands for. */
uint64_t heap_samples_weight(uint64_t bytes);

#endif
