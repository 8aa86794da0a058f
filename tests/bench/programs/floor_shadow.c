/*
 * floor_shadow.c - the floor of exact tracking: an address shadow that remembers each block's size, and one counter.
 *
 * No stack, no site, no file: what remains when all of that is free. 8 bytes for each 32 of address space, under a
 * radix top; the counters belong to their thread and are summed by who asks. bench.py also learns from it how many
 * allocations a workload makes.
 *
 * Safe from   any thread.
 * When full   an address above 47 bits, or no memory for the shadow: the block is not counted.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

#include "floor.h"

#define GRANULE_SHIFT 5
#define REGION_SHIFT 32
#define REGIONS (1u << (47 - REGION_SHIFT))
#define REGION_BYTES ((size_t)8 << (REGION_SHIFT - GRANULE_SHIFT))
#define THREADS_MAX 4096

/* F1  Only the owner writes; threads beyond THREADS_MAX share the last one and may lose counts. */
struct counter {
	_Alignas(64) _Atomic uint64_t made;
	_Atomic uint64_t live_bytes;
};

static _Atomic(uint64_t *) regions[REGIONS];
static struct counter counters[THREADS_MAX];
static _Atomic unsigned counters_taken;
static __thread struct counter *own __attribute__((tls_model("initial-exec")));

EXPORT unsigned long long bench_allocations(void);

static __attribute__((noinline)) uint64_t *
region_make(_Atomic(uint64_t *) *place)
{
	void *fresh = mmap(NULL, REGION_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t *old = NULL;

	if (fresh == MAP_FAILED)
		return NULL;
	// release: pairs with the acquire in entry_of()
	if (atomic_compare_exchange_strong_explicit(place, &old, fresh, memory_order_release, memory_order_acquire))
		return fresh;
	(void)munmap(fresh, REGION_BYTES);
	return old;
}

static inline uint64_t *
entry_of(void *block)
{
	uintptr_t address = (uintptr_t)block;
	uint64_t *region;

	if (address >> 47 != 0)
		return NULL;
	region = atomic_load_explicit(&regions[address >> REGION_SHIFT], memory_order_acquire);
	if (__builtin_expect(region == NULL, 0)) {
		region = region_make(&regions[address >> REGION_SHIFT]);
		if (region == NULL)
			return NULL;
	}
	return &region[(address & ((1ull << REGION_SHIFT) - 1)) >> GRANULE_SHIFT];
}

static inline struct counter *
counter_own(void)
{
	if (__builtin_expect(own == NULL, 0)) {
		unsigned index = atomic_fetch_add_explicit(&counters_taken, 1, memory_order_relaxed); // only uniqueness matters

		own = &counters[index < THREADS_MAX ? index : THREADS_MAX - 1];
	}
	return own;
}

/* relaxed: one writer (F1), and the reader wants a number, not an order. */
static inline void
add(_Atomic uint64_t *counter, uint64_t amount)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + amount, memory_order_relaxed);
}

static inline void
floor_made(void *block, size_t bytes)
{
	struct counter *counter = counter_own();
	uint64_t *entry;

	if (block == NULL || (entry = entry_of(block)) == NULL)
		return;
	*entry = bytes;
	add(&counter->made, 1);
	add(&counter->live_bytes, bytes);
}

static inline void
floor_gone(void *block)
{
	uint64_t *entry;

	if (block == NULL || (entry = entry_of(block)) == NULL)
		return;
	add(&counter_own()->live_bytes, -*entry);
	*entry = 0;
}

unsigned long long
bench_allocations(void)
{
	unsigned long long sum = 0;

	for (unsigned i = 0; i < THREADS_MAX; i++)
		sum += atomic_load_explicit(&counters[i].made, memory_order_relaxed);
	return sum;
}
