/*
 * published_site.c - does who finds a site by its number, as a reader of the capture does, find its stack whole (S1, F1)?
 *
 * Readers go through all records while writers add some, with no order between them but site->stack: the index, by which this process
 * finds its sites, is not asked.
 */
#include "stress.h"

#include "capture/capture_file.h"
#include "sites/site_table.h"

#define STACKS 4000
#define FRAMES 4
#define WRITERS 3

static struct site_owner owners[WRITERS];
static _Atomic unsigned writers_left = WRITERS;

static void
write_sites(unsigned thread, uint64_t *random)
{
	struct call_stack stack = { .frame_count = FRAMES };

	owners[thread].slot = (uint16_t)(thread + 1);
	for (uint64_t i = 0; i < STACKS; i++) {
		stack.hash = i * WRITERS + thread + 1;
		for (uint64_t f = 0; f < FRAMES; f++)
			stack.frames[f] = KMEM_FRAME_PYTHON | stack.hash * FRAMES | f;
		CHECK(site_table_find(&owners[thread], &stack, thread, 1) != 0);
		stress_yield(random);
	}
	atomic_fetch_sub_explicit(&writers_left, 1, memory_order_relaxed);
}

static void
read_sites(uint64_t *random)
{
	uint32_t first = 1;

	do {
		uint32_t count = capture_file_count(KMEM_SECTION_SITES);

		for (uint32_t i = first; i <= count; i++) {
			const struct kmem_site *site = site_table_at(i);
			/* acquire: pairs with store_site(), as in the analyzer and in object_census.c. */
			uint32_t index = atomic_load_explicit(&site->stack, memory_order_acquire);
			const struct kmem_stack *stack = index != 0 ? capture_file_item(KMEM_SECTION_RECORDS, index) : NULL;

			if (stack == NULL)
				continue;
			CHECK(site->domain < WRITERS && site->slot == site->domain + 1);
			CHECK(stack->frame_count == FRAMES && stack->own_count == FRAMES);
			for (uint64_t f = 0; f < FRAMES; f++)
				CHECK((stack->frames[f] & 3) == f && stack->frames[f] >> 2 == stack->frames[0] >> 2);
		}
		stress_yield(random);
		first = count > 200 ? count - 200 : 1;
	} while (atomic_load_explicit(&writers_left, memory_order_relaxed) != 0);
}

static void
work(unsigned thread, uint64_t *random)
{
	if (thread < WRITERS)
		write_sites(thread, random);
	else
		read_sites(random);
}

int
main(void)
{
	stress_run(WRITERS + 2, work, random_seed());
	return 0;
}
