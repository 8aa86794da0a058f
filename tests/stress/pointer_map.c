/*
 * pointer_map.c - is every block found by whichever thread frees it, also beside others in its window (M2, M4)?
 *
 * The blocks that are too large for a word go through the address table, whose orders have their own program.
 *
 * Giving pages back (M5): without putting back what came meanwhile, and without the wait of a take that finds nothing, three of
 * three runs fail (two processors). GONE stored as 0 was not caught: its race is one instruction long. A mark of watched
 * blocks that is put after the word loses blocks in two of three runs, when something is done in between.
 */
#include "stress.h"

#include "tables/pointer_map.h"

#define ROUNDS 30000
#define MAIL 256

/* Windows are own: one block each, 16 bytes from its start. */
static bool is_own;

static _Atomic uint64_t mail[MAIL];
static _Atomic uint64_t put_count;
static _Atomic uint64_t taken_count;

static struct address_block
block_for(uint64_t addr)
{
	/* Every 16th is too large for a word. Where windows are not own, all others are small: eight bytes lie between two of them. */
	uint64_t bytes = is_own ? addr % 100000 : addr % (KMEM_DENSE_BYTES_MAX + 1);

	return (struct address_block){ (addr >> 3) % 16 == 0 ? addr : bytes, (uint32_t)(addr >> 3) % 1000 + 1,
		                           ((uint8_t)(addr >> 3) & POINTER_MAP_GENERATION_MASK) |
		                               ((addr >> 5) % 2 != 0 ? POINTER_MAP_WATCH : 0) };
}

static void
take_one(uint64_t addr)
{
	struct address_block block = { 0 };
	struct address_block wanted = block_for(addr);

	CHECK(pointer_map_take((void *)addr, &block));
	CHECK(block.bytes == wanted.bytes && block.site == wanted.site &&
	      block.generation == (wanted.generation & POINTER_MAP_GENERATION_MASK));
	atomic_fetch_add_explicit(&taken_count, 1, memory_order_relaxed);
}

static void
work(unsigned thread, uint64_t *random)
{
	for (uint64_t i = 0; i < ROUNDS; i++) {
		/* Neighbours in a window belong to different threads; now and then a leaf of which nobody has heard. */
		uint64_t place = i % 1000 * STRESS_THREADS + thread;
		uint64_t addr = 0x7f0000000000 + (i / 1000 << 26) + (is_own ? place * 32 + 16 : place * 8);
		struct address_block old;

		CHECK(pointer_map_put((void *)addr, block_for(addr), &old) == POINTER_MAP_STORED);
		atomic_fetch_add_explicit(&put_count, 1, memory_order_relaxed);
		stress_yield(random);
		uint64_t got = atomic_exchange_explicit(&mail[random_below(random, MAIL)], addr, memory_order_relaxed);
		if (got != 0)
			take_one(got);
	}
}

/*
 * M5: pages become empty all the time, and blocks come into them all the time, while thread 0 gives back what is empty until
 * the others are done. Two threads share each page, and few threads run: a race wants both of them running.
 */
#define TRIMMED_THREADS 3
static _Atomic size_t given_bytes;
static _Atomic unsigned done_count;

static void
work_while_trimming(unsigned thread, uint64_t *random)
{
	while (thread == 0 && atomic_load_explicit(&done_count, memory_order_relaxed) < TRIMMED_THREADS - 1)
		atomic_fetch_add_explicit(&given_bytes, pointer_map_trim(UINT64_MAX, SIZE_MAX), memory_order_relaxed);
	for (uint64_t i = 0; thread != 0 && i < ROUNDS * 50; i++) {
		uint64_t addr = 0x7e0000000000 + random_below(random, 8) * (512 * 32) + thread * 64;
		struct address_block old;
		unsigned pause = (unsigned)random_below(random, 100);

		CHECK(pointer_map_put((void *)addr, block_for(addr), &old) == POINTER_MAP_STORED);
		atomic_fetch_add_explicit(&put_count, 1, memory_order_relaxed);
		for (volatile unsigned spin = 0; spin < pause; spin++) // a trim comes in between
			;
		take_one(addr);
	}
	atomic_fetch_add_explicit(&done_count, 1, memory_order_relaxed);
}

static void
start(bool windows_are_own)
{
	is_own = windows_are_own;
	pointer_map_clear();
	pointer_map_start(windows_are_own);
	put_count = taken_count = 0;
}

static void
run_trimming(bool windows_are_own)
{
	given_bytes = 0;
	done_count = 0;
	start(windows_are_own);
	stress_run(TRIMMED_THREADS, work_while_trimming, random_seed());
	CHECK(put_count == taken_count);
	printf("trimmed %zu pages\n", given_bytes / 4096);
}

static void
run_mail(bool windows_are_own)
{
	start(windows_are_own);
	stress_run(STRESS_THREADS, work, random_seed());
	for (unsigned i = 0; i < MAIL; i++) {
		if (mail[i] != 0)
			take_one(atomic_exchange_explicit(&mail[i], 0, memory_order_relaxed));
	}
	CHECK(put_count == taken_count && put_count == (uint64_t)STRESS_THREADS * ROUNDS);
}

int
main(void)
{
	run_trimming(false); // first: as long as there are few leaves, a trim is quick; and this one makes the layers
	run_trimming(true);
	run_mail(false);
	run_mail(true);
	return 0;
}
