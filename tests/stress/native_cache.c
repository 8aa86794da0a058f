/*
 * native_cache.c - threads walk with a cache each while libraries are unloaded.
 *
 * No acquire and no release: a cache belongs to its thread, and the version of the rules is one relaxed word (see
 * unwind_rules.h). What the thread sanitizer must find here is nothing. Each walk is made without the cache too, and
 * both must agree.
 *
 * SEED seeds the random numbers; it is printed.
 */
#include <string.h>

#include "capture/capture_file.h"
#include "stress.h"
#include "unwind/native_cache.h"
#include "unwind/native_stack.h"

#define ROUNDS 3000u
#define DEPTH 40u
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

struct walker {
	struct native_cache cache;
	struct native_stack plain;
	struct native_stack stack;
	uint64_t kept;
};

static struct walker walkers[STRESS_THREADS];

static __attribute__((noinline)) void
take(struct walker *walker)
{
	native_stack_walk(NULL, __builtin_frame_address(0), 0, &walker->plain);
	native_stack_walk(&walker->cache, __builtin_frame_address(0), 0, &walker->stack);
	CHECK(walker->plain.count == walker->stack.count);
	CHECK(memcmp(walker->plain.pc, walker->stack.pc, walker->plain.count * sizeof(uint64_t)) == 0);
	walker->kept += walker->stack.kept;
}

static __attribute__((noinline)) void
dive(struct walker *walker, uint64_t depth, uint64_t *random)
{
	volatile uint64_t *room = __builtin_alloca(8 + 8 * random_below(random, 8));

	room[0] = depth;
	if (depth == 0 || random_below(random, 20) == 0)
		take(walker);
	if (depth != 0)
		dive(walker, depth - 1, random);
	KEEP_FRAME();
}

static void
walk(unsigned thread, uint64_t *random)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		if (thread == 0 && random_below(random, 4) == 0)
			native_stack_modules_changed();
		dive(&walkers[thread], random_below(random, DEPTH), random);
		stress_yield(random);
	}
}

int
main(void)
{
	uint64_t seed = random_seed();
	uint64_t kept = 0;

	native_stack_start();
	stress_run(4, walk, seed);
	for (unsigned i = 0; i < STRESS_THREADS; i++)
		kept += walkers[i].kept;
	CHECK(kept > ROUNDS);
	return 0;
}
