/*
 * test_site_table.c - does the same stack always lead to the same site, and another stack never?
 */
#include "unit.h"

#include <stdbool.h>
#include <string.h>

#include "capture_file.h"
#include "capture_life.h"
#include "kmem_words.h"
#include "settings.h"
#include "site_table.h"

#define PYTHON(number) (KMEM_FRAME_PYTHON | (number)) // no module is looked up for these

static int
start_empty(void **state)
{
	(void)state;
	capture_file_forked();
	site_table_clear();
	settings.sites_max = 1u << 20;
	return 0;
}

/* A stack of two frames. */
static const struct call_stack *
stack_of(uint64_t inner, uint64_t outer, uint64_t hash)
{
	static struct call_stack stack;

	memset(&stack, 0, sizeof(stack));
	stack.hash = hash;
	stack.frame_count = 2;
	stack.frames[0] = PYTHON(inner);
	stack.frames[1] = PYTHON(outer);
	return &stack;
}

static const struct kmem_stack *
stored(uint32_t site)
{
	return capture_file_at(KMEM_SECTION_RECORDS, site_table_at(site)->stack - 1);
}

static uint64_t
site_count(void)
{
	return capture_file_header()->used_bytes[KMEM_SECTION_SITES] / sizeof(struct kmem_site);
}

static void
T1_S1_S2_a_found_site_is_complete_and_stays_the_same(void **state)
{
	const uint32_t site = site_table_find(stack_of(1, 2, 3), KMEM_DOMAIN_MMAP, 9);
	struct kmem_site before;

	(void)state;
	assert_int_not_equal(site, 0);
	assert_int_not_equal(site_table_at(site)->stack, 0);
	assert_int_equal(site_table_at(site)->domain, KMEM_DOMAIN_MMAP);
	assert_int_equal(site_table_at(site)->first_epoch, 9);
	assert_int_equal(site_table_at(site)->allocated_count, 0);
	assert_int_equal(stored(site)->record.type, KMEM_RECORD_STACK);
	assert_int_equal(stored(site)->frame_count, 2);
	assert_int_equal(stored(site)->frames[0], PYTHON(1));
	assert_int_equal(stored(site)->frames[1], PYTHON(2));
	assert_int_equal(stored(site)->record.checksum,
	                 kmem_checksum(KMEM_CHECKSUM_START, (const char *)stored(site) + 4,
	                               stored(site)->record.bytes - 4));
	memcpy(&before, site_table_at(site), sizeof(before));
	for (uint8_t clock = 10; clock < 20; clock++)
		assert_int_equal(site_table_find(stack_of(1, 2, 3), KMEM_DOMAIN_MMAP, clock), site);
	assert_memory_equal(&before, site_table_at(site), sizeof(before));
	assert_int_equal(site_count(), 1);
}

static void
whatever_differs_makes_another_site(void **state)
{
	struct call_stack stack = *stack_of(1, 2, 3);
	uint32_t sites[8];
	size_t count = 0;

	(void)state;
	sites[count++] = site_table_find(&stack, 0, 1);
	sites[count++] = site_table_find(&stack, 1, 1); // domain
	stack.frames[1]++;                              // a frame, and the hash collides
	sites[count++] = site_table_find(&stack, 0, 1);
	stack.frames[1]--;
	stack.frame_count = 1;
	sites[count++] = site_table_find(&stack, 0, 1);
	stack.frame_count = 0;
	sites[count++] = site_table_find(&stack, 0, 1);
	stack.frame_count = 2;
	stack.flags = KMEM_STACK_TRUNCATED;
	sites[count++] = site_table_find(&stack, 0, 1);
	stack.omitted = 7;
	sites[count++] = site_table_find(&stack, 0, 1);
	for (size_t i = 0; i < count; i++) {
		assert_int_not_equal(sites[i], 0);
		for (size_t k = 0; k < i; k++)
			assert_int_not_equal(sites[i], sites[k]);
	}
	assert_int_equal(site_count(), count);
}

static void
a_hundred_thousand_sites_are_all_found_again(void **state)
{
	enum { COUNT = 100000 };
	static uint32_t sites[COUNT];

	(void)state;
	for (uint32_t i = 0; i < COUNT; i++) // hashes that differ little: 64 sites each share one
		sites[i] = site_table_find(stack_of(i, i, i / 64 + 1), i % 5, 1);
	assert_int_equal(site_count(), COUNT);
	for (uint32_t i = 0; i < COUNT; i++) {
		assert_int_equal(sites[i], i + 1);
		assert_int_equal(site_table_find(stack_of(i, i, i / 64 + 1), i % 5, 1), sites[i]);
	}
	assert_int_equal(capture_file_header()->losses[KMEM_LOST_SITES], 0);
}

static void
beyond_the_budget_one_folded_site_per_domain_stands_for_all(void **state)
{
	uint32_t folded[2];

	(void)state;
	settings.sites_max = 64;
	for (uint32_t i = 0; i < 64; i++)
		assert_int_equal(site_table_find(stack_of(i, i, i + 10), 0, 1), i + 1);
	folded[0] = site_table_find(stack_of(1000, 1, 5000), 0, 1);
	folded[1] = site_table_find(stack_of(1000, 1, 5000), 1, 1);
	for (uint32_t i = 0; i < 500; i++)
		assert_int_equal(site_table_find(stack_of(2000 + i, 1, 7000 + i), i % 2, 1), folded[i % 2]);
	assert_int_not_equal(folded[0], folded[1]);
	for (unsigned domain = 0; domain < 2; domain++) {
		assert_int_equal(stored(folded[domain])->record.flags, KMEM_STACK_FOLDED);
		assert_int_equal(stored(folded[domain])->frame_count, 0);
		assert_int_equal(site_table_at(folded[domain])->domain, domain);
	}
	assert_int_equal(capture_file_header()->losses[KMEM_LOST_SITES], 502); // events, not sites
	for (uint32_t i = 0; i < 64; i++) // those that have a place keep it
		assert_int_equal(site_table_find(stack_of(i, i, i + 10), 0, 1), i + 1);
	assert_int_equal(site_count(), 66);
}

static void
clear_forgets_everything(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 100; i++)
		site_table_find(stack_of(i, i, i + 10), 0, 1);
	capture_file_forked();
	site_table_clear();
	assert_int_equal(site_table_find(stack_of(50, 50, 60), 0, 1), 1);
	assert_int_equal(stored(1)->frames[0], PYTHON(50));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(T1_S1_S2_a_found_site_is_complete_and_stays_the_same, start_empty),
		cmocka_unit_test_setup(whatever_differs_makes_another_site, start_empty),
		cmocka_unit_test_setup(a_hundred_thousand_sites_are_all_found_again, start_empty),
		cmocka_unit_test_setup(beyond_the_budget_one_folded_site_per_domain_stands_for_all,
		                       start_empty),
		cmocka_unit_test_setup(clear_forgets_everything, start_empty),
	};

	return cmocka_run_group_tests_name("site_table", tests, NULL, NULL);
}
