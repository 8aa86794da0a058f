/*
 * test_exit_figures.c - is it written down what each record holds when the program begins to exit, and when does it count?
 */
#include "unit.h"

#include "base/capture_life.h"
#include "capture/capture_file.h"
#include "moments/exit_figures.h"
#include "tables/generations.h"

#define SITES 5

static struct kmem_site *sites[SITES];

SETUP(start_empty)
{
	uint32_t index;

	capture_file_forked();
	capture_file_header()->generation_clock = 7;
	for (unsigned i = 0; i < SITES; i++) {
		sites[i] = capture_file_append(KMEM_SECTION_SITES, sizeof(*sites[i]), &index);
		assert_non_null(sites[i]);
		sites[i]->domain = KMEM_DOMAIN_HEAP;
		sites[i]->slot = 1;
		sites[i]->first_generation = 1;
	}
}

static void
hold(unsigned site, uint64_t bytes, uint64_t freed_bytes)
{
	sites[site]->allocated_bytes = bytes;
	sites[site]->allocated_count = bytes / 100;
	sites[site]->freed_bytes = freed_bytes;
	sites[site]->freed_count = freed_bytes / 100;
}

static const struct kmem_exit *
taken(void)
{
	uint64_t index = capture_file_header()->at_exit;

	assert_true(kmem_twice_agrees(index));
	return index != 0 ? capture_file_item(KMEM_SECTION_RECORDS, (uint32_t)index) : NULL;
}

TEST(what_each_record_holds_is_written_down)
{
	hold(0, 100000, 0);
	hold(2, 0, 400); // released here, allocated by another thread
	hold(3, 500, 500);
	hold(4, 70000, 0);
	sites[4]->domain = KMEM_DOMAIN_RESERVED;
	assert_int_equal(generations_born(sites[0], 1, 5), 5);
	exit_figures_take();
	const struct kmem_exit *exit = taken();
	assert_non_null(exit);
	assert_int_equal(exit->record.type, KMEM_RECORD_EXIT);
	assert_int_equal(exit->record.checksum, kmem_record_checksum(&exit->record, 0));
	assert_int_equal(exit->clock, 7);
	assert_int_equal(exit->live_bytes, 99600); // address space is none of it
	assert_int_equal(exit->site_count, 3);
	assert_int_equal(exit->generation_count, 1);
	assert_int_equal(exit->sites[0].site, 1);
	assert_int_equal(exit->sites[0].live_bytes, 100000);
	assert_int_equal(exit->sites[0].live_count, 1000);
	assert_int_equal(exit->sites[0].generations, 1);
	assert_int_equal(exit->sites[1].site, 3);
	assert_int_equal(exit->sites[1].live_bytes, -400);
	assert_int_equal(exit->sites[1].live_count, -4);
	assert_int_equal(exit->sites[1].generations, 0);
	assert_int_equal(exit->sites[2].site, 5);
	const struct kmem_generations *copy = (const struct kmem_generations *)(const void *)&exit->sites[3];
	assert_int_equal(copy->live_count[4], 1);
	assert_int_equal(copy->births, 5 << 16 | 5 << 8 | 5);
	assert_int_equal(copy->born, 1 << 4);
}

TEST(it_counts_while_no_more_is_live)
{
	assert_false(exit_figures_stand());
	hold(0, 100000, 0);
	exit_figures_take();
	const struct kmem_exit *first = taken();
	assert_true(exit_figures_stand());
	hold(0, 100000, 60000);
	assert_true(exit_figures_stand());
	hold(1, 61000, 0);
	assert_false(exit_figures_stand());
	exit_figures_take(); // once
	assert_ptr_equal(taken(), first);
}

TEST(who_holds_next_to_nothing_has_none)
{
	hold(0, 65000, 0);
	exit_figures_take();
	assert_null(taken());
	assert_int_equal(capture_file_header()->used_bytes[KMEM_SECTION_RECORDS], 0);
}

RUN_TESTS(start_empty, NULL)
