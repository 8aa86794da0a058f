/*
 * heap_samples.c - which blocks of the heap are in the sample (see heap_samples.h)?
 *
 * Invariants, tested in tests/unit/shim/record/test_heap_samples.c and tests/preload/test_sample.py:
 *   H1  a block of n bytes is drawn with 1 - exp(-n / mean), whatever the thread and whatever came before.
 *   H2  the byte of a block that is in the map is not 0.
 */
#include "record/heap_samples.h"

#include <errno.h>
#include <string.h>

#include "base/chance.h"

_Atomic size_t heap_samples_from;
__thread struct heap_sampler heap_sampler;
_Alignas(64) _Atomic uint8_t heap_samples_filter[1u << HEAP_SAMPLES_FILTER_BITS];

void
heap_samples_start(uint64_t mean_bytes)
{
	atomic_store_explicit(&heap_samples_from, mean_bytes < HEAP_SAMPLES_FROM_MAX ? mean_bytes : HEAP_SAMPLES_FROM_MAX,
	                      memory_order_relaxed);
}

void
heap_samples_anew(void)
{
	heap_sampler = (struct heap_sampler){ 0 };
}

void
heap_samples_hook_left(void)
{
	if (heap_sampler.countdown < HEAP_SAMPLES_HELD)
		heap_samples_anew();
}

void
heap_samples_forked(void)
{
	heap_samples_anew();
	if (settings.sample_bytes != 0)
		memset((void *)heap_samples_filter, 0, sizeof(heap_samples_filter));
}

bool
heap_samples_is_drawn(void)
{
	if (heap_sampler.countdown < HEAP_SAMPLES_HELD)
		return true;
	if (heap_sampler.random == 0) { // no draw: the thread's countdown begins now
		int host_errno = errno;

		heap_sampler.random = chance_seed(&heap_sampler);
		errno = host_errno;
		heap_sampler.countdown += chance_draw(&heap_sampler.random, settings.sample_bytes);
		if (heap_sampler.countdown >= 0)
			return false;
	}
	heap_sampler.countdown = chance_draw(&heap_sampler.random, settings.sample_bytes); // without memory
	return true;
}

/* One that counts as many as it can says no more how many there are. */
void
heap_samples_count(const void *addr, int by)
{
	_Atomic uint8_t *byte = heap_samples_byte(addr);
	uint8_t count = atomic_load_explicit(byte, memory_order_relaxed);

	while ((count != 0 || by > 0) && count != UINT8_MAX &&
	       !atomic_compare_exchange_weak_explicit(byte, &count, (uint8_t)(count + by), memory_order_relaxed,
	                                              memory_order_relaxed))
		continue;
}

/* n / (1 - exp(-n / mean)), by the series of x / (1 - exp(-x)), x up to 1: off by less than 1e-4. No floating point: it may trap. */
uint64_t
heap_samples_weight(uint64_t bytes)
{
	uint64_t square = bytes * bytes / settings.sample_bytes; // of x, times the mean; at most a MiB

	return settings.sample_bytes + (bytes + square / 6) / 2 - square * square / settings.sample_bytes / 720;
}
