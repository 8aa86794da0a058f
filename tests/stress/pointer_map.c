/*
 * pointer_map.c - is every block found by whichever thread frees it, also beside others in its window (M2, M4)?
 *
 * Regions get more words and fewer all the time (M5), beside blocks that come and go.
 */
#include "stress.h"

#include "tables/pointer_map.h"

#define ROUNDS 30000
#define MAIL 256

/* As over glibc: 32 bytes apart. */
static bool is_own;

static _Atomic uint64_t mail[MAIL];
static _Atomic uint64_t put_count;
static _Atomic uint64_t taken_count;

static struct address_block
block_for(uint64_t addr)
{
	/* One in 16 KiB is too large for a word. */
	return (struct address_block){ addr % (1u << KMEM_LARGE_LOG2) == 0 ? addr : addr % (POINTER_MAP_BYTES_MAX + 1),
		                           (uint32_t)(addr >> 3) % 1000 + 1,
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
 * M5: each thread's blocks become many and few again, in regions that it shares with the others, while thread 0 gives back what is empty
 * until the others are done. Few threads run: a race wants all of them running.
 */
#define TRIMMED_THREADS 3
#define HELD_MAX 3000
#define PLACES 32768u
#define PLACES_ADDR UINT64_C(0x7e0000000000)
static _Atomic size_t given_bytes;
static _Atomic unsigned done_count;

static void
work_while_trimming(unsigned thread, uint64_t *random)
{
	static uint64_t held[TRIMMED_THREADS][HELD_MAX];
	static bool is_held[PLACES]; // the odd ones are the odd threads'
	uint64_t *own = held[thread];
	uint32_t wanted = 0;
	uint32_t count = 0;

	while (thread == 0 && atomic_load_explicit(&done_count, memory_order_relaxed) < TRIMMED_THREADS - 1)
		atomic_fetch_add_explicit(&given_bytes, pointer_map_trim(UINT64_MAX, SIZE_MAX), memory_order_relaxed);
	for (uint64_t i = 0; thread != 0 && i < ROUNDS * 20; i++) {
		if (i % 4000 == 0)
			wanted = i / 4000 % 2 != 0 ? (uint32_t)random_below(random, HELD_MAX) : 0;
		if (count > wanted || count == HELD_MAX || (count != 0 && random_below(random, 4) == 0)) {
			uint64_t at = random_below(random, count);

			take_one(own[at]);
			is_held[(own[at] - PLACES_ADDR) / 32] = false;
			own[at] = own[--count];
			continue;
		}
		uint64_t place = random_below(random, PLACES / 2) * 2 + thread % 2;
		uint64_t addr = PLACES_ADDR + place * 32;
		struct address_block old;

		if (is_held[place])
			continue;
		is_held[place] = true;
		CHECK(pointer_map_put((void *)addr, block_for(addr), &old) == POINTER_MAP_STORED);
		atomic_fetch_add_explicit(&put_count, 1, memory_order_relaxed);
		own[count++] = addr;
	}
	while (count != 0) {
		take_one(own[--count]);
		is_held[(own[count] - PLACES_ADDR) / 32] = false;
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
	run_trimming(false); // first: as long as there are few leaves, a trim is quick
	run_trimming(true);
	run_mail(false);
	run_mail(true);
	return 0;
}
