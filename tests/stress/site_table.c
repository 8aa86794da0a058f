/*
 * site_table.c - when many threads bring the same new stacks at once, is there one site for each that all of them use (T2)?
 *
 * The release of site->stack is hidden here by T1: published_site.c is about that.
 */
#include "stress.h"

#include <string.h>

#include "capture/capture_file.h"
#include "sites/site_table.h"

#define STACKS 3000
#define FRAMES 5

static uint32_t found[STRESS_THREADS][STACKS];
static struct site_owner owners[STRESS_THREADS];
static _Atomic uint32_t last[STACKS]; // record of the thread that used it last
static _Atomic uint64_t released;

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
	struct site_owner *owner = thread % 4 == 0 ? NULL : &owners[thread]; // some threads have no slot
	struct call_stack stack;

	if (owner != NULL)
		owner->slot = (uint16_t)(thread + 1);
	for (unsigned i = 0; i < STACKS * 4; i++) {
		unsigned number = i < STACKS ? i : (unsigned)random_below(random, STACKS);

		make_stack(&stack, number);
		uint32_t site = site_table_find(owner, &stack, number % 2, 1);
		CHECK(site != 0 && site_table_at(site)->slot == (owner != NULL ? owner->slot : 0));
		CHECK(owner == NULL || found[thread][number] == 0 || found[thread][number] == site); // T2
		found[thread][number] = site;
		atomic_fetch_add_explicit(&site_table_at(site)->allocated_count, 1, memory_order_relaxed);
		if (i >= STACKS) { // what another thread allocated there is released in a record of this thread
			/* acquire: as a program hands a block over to the thread that frees it */
			uint32_t theirs = atomic_load_explicit(&last[number], memory_order_acquire);

			if (theirs != 0) {
				uint32_t own = site_table_own(owner, theirs, 1);

				CHECK(own != 0 && site_table_at(own)->slot == site_table_at(site)->slot);
				atomic_fetch_add_explicit(&site_table_at(own)->freed_count, 1, memory_order_relaxed);
				atomic_fetch_add_explicit(&released, 1, memory_order_relaxed);
			}
			stress_yield(random);
		}
		atomic_store_explicit(&last[number], site, memory_order_release);
	}
}

int
main(void)
{
	uint64_t counted = 0;
	uint64_t freed = 0;

	stress_run(STRESS_THREADS, work, random_seed());
	for (unsigned i = 0; i < STACKS; i++) {
		const struct kmem_site *site = site_table_at(found[0][i]);
		const struct kmem_stack *stack = capture_file_item(KMEM_SECTION_RECORDS, site->stack);

		for (unsigned thread = 1; thread < STRESS_THREADS; thread++) // T3: one ring has them all
			CHECK(site_table_own(thread % 4 == 0 ? NULL : &owners[thread], found[0][i], 1) == found[thread][i] ||
			      thread % 4 == 0);
		CHECK(stack->frame_count == FRAMES && site->domain == i % 2);
		for (uint64_t f = 0; f < FRAMES; f++)
			CHECK(f >= stack->own_count || stack->frames[f] == (KMEM_FRAME_PYTHON | (uint64_t)i * FRAMES | f));
		CHECK(site->allocated_count != 0);
	}
	uint64_t sites = capture_file_header()->used_bytes[KMEM_SECTION_SITES] / sizeof(struct kmem_site);
	for (uint32_t i = 1; i <= sites; i++) {
		counted += site_table_at(i)->allocated_count;
		freed += site_table_at(i)->freed_count;
	}
	CHECK(freed == released);
	CHECK(counted == (uint64_t)STRESS_THREADS * STACKS * 4);
	CHECK(capture_file_header()->losses[KMEM_LOST_SITES] == 0);
	return 0;
}
