/*
 * site_table.c - when many threads bring the same new stacks at once, is there one site for each that all of them use?
 *
 * Weakened, one by one: the release of an entry's claim (T1) was reported in three of three runs, its acquire in four of six.
 * Not caught: the release of site->stack, whose partner is a reader in another process (in this one T1 covers it), and the
 * installation of the index, behind which are only atomics.
 */
#include "stress.h"

#include <string.h>

#include "capture_file.h"
#include "site_table.h"

#define STACKS 3000
#define FRAMES 5

static uint32_t found[STRESS_THREADS][STACKS];

static void
make_stack(struct call_stack *stack, uint64_t number)
{
	stack->hash = number / 3 + 1; // three stacks each collide
	stack->frame_count = FRAMES;
	stack->omitted = stack->omitted_at = 0;
	stack->flags = 0;
	for (uint64_t i = 0; i < FRAMES; i++)
		stack->frames[i] = KMEM_FRAME_PYTHON | number * FRAMES | i;
}

static void
work(unsigned thread, uint64_t *random)
{
	struct call_stack stack;

	for (unsigned i = 0; i < STACKS * 4; i++) {
		unsigned number = i < STACKS ? i : (unsigned)random_below(random, STACKS);

		make_stack(&stack, number);
		uint32_t site = site_table_find(&stack, number % 2, 1);
		CHECK(site != 0);
		CHECK(found[thread][number] == 0 || found[thread][number] == site);
		found[thread][number] = site;
		atomic_fetch_add_explicit(&site_table_at(site)->allocated_count, 1, memory_order_relaxed);
		if (i >= STACKS)
			stress_yield(random);
	}
}

int
main(void)
{
	uint64_t counted = 0;
	uint64_t sites;
	uint64_t used = 0;

	stress_run(STRESS_THREADS, work, random_seed());
	for (unsigned i = 0; i < STACKS; i++) {
		const struct kmem_site *site = site_table_at(found[0][i]);
		const struct kmem_stack *stack = capture_file_at(KMEM_SECTION_RECORDS, site->stack - 1);

		for (unsigned thread = 1; thread < STRESS_THREADS; thread++)
			CHECK(found[thread][i] == found[0][i]); // one entry wins (T2)
		CHECK(stack->frame_count == FRAMES && site->domain == i % 2);
		for (uint64_t f = 0; f < FRAMES; f++)
			CHECK(stack->frames[f] == (KMEM_FRAME_PYTHON | (uint64_t)i * FRAMES | f));
		CHECK(site->allocated_count != 0);
	}
	sites = capture_file_header()->used_bytes[KMEM_SECTION_SITES] / sizeof(struct kmem_site);
	for (uint32_t i = 1; i <= sites; i++) {
		counted += site_table_at(i)->allocated_count;
		used += site_table_at(i)->allocated_count != 0;
	}
	CHECK(used == STACKS); // those that lost a race have no counters, for good
	CHECK(counted == (uint64_t)STRESS_THREADS * STACKS * 4);
	CHECK(capture_file_header()->losses[KMEM_LOST_SITES] == 0);
	return 0;
}
