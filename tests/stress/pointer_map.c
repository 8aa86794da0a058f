/*
 * pointer_map.c - is every block found by whichever thread frees it, also beside others in its window?
 *
 * The acquire and release with which top table and leaves are installed, weakened to relaxed, are not caught: behind them are
 * only atomics and memory that the kernel zeroed. The blocks that are too large for a word go through the address table,
 * whose orders have their own program.
 */
#include "stress.h"

#include "pointer_map.h"

#define ROUNDS 30000
#define MAIL 256

static _Atomic uint64_t mail[MAIL];
static _Atomic uint64_t put_count;
static _Atomic uint64_t taken_count;

static struct address_block
block_for(uint64_t addr)
{
	/* Every 16th is too large for a word. */
	return (struct address_block){ (addr >> 3) % 16 == 0 ? addr : addr % 100000,
		                           (uint32_t)(addr >> 3) % 1000 + 1, (uint8_t)(addr >> 3) };
}

static void
take_one(uint64_t addr)
{
	struct address_block block = { 0 };
	struct address_block wanted = block_for(addr);

	CHECK(pointer_map_take((void *)addr, &block));
	CHECK(block.bytes == wanted.bytes && block.site == wanted.site &&
	      block.generation == wanted.generation);
	atomic_fetch_add_explicit(&taken_count, 1, memory_order_relaxed);
}

static void
work(unsigned thread, uint64_t *random)
{
	for (uint64_t i = 0; i < ROUNDS; i++) {
		/* Neighbours in a window belong to different threads; now and then a leaf of which nobody has heard. */
		uint64_t addr =
			0x7f0000000000 + (i / 1000 << 26) + (i % 1000 * STRESS_THREADS + thread) * 8;
		struct address_block old;
		uint64_t got;

		CHECK(pointer_map_put((void *)addr, block_for(addr), &old) == POINTER_MAP_STORED);
		atomic_fetch_add_explicit(&put_count, 1, memory_order_relaxed);
		stress_yield(random);
		got =
			atomic_exchange_explicit(&mail[random_below(random, MAIL)], addr, memory_order_relaxed);
		if (got != 0)
			take_one(got);
	}
}

int
main(void)
{
	stress_run(STRESS_THREADS, work, random_seed());
	for (unsigned i = 0; i < MAIL; i++) {
		if (mail[i] != 0)
			take_one(mail[i]);
	}
	CHECK(put_count == taken_count && put_count == (uint64_t)STRESS_THREADS * ROUNDS);
	return 0;
}
