/*
 * test_pointer_map_trim.c - does the map give its pages back by itself, and slowly enough (M5)?
 */
#include "unit.h"

#include "base/turn.h"
#include "left_at.h"
#include "tables/pointer_map.h"

#define SECOND_NS UINT64_C(1000000000)
#define MINUTE_NS (60 * SECOND_NS)
#define GIB (UINT64_C(1) << 30)
#define PAGES 3000 // three seconds' worth
#define PAGES_BYTES ((size_t)PAGES * 4096)

/* A page for each region in which a block was and is no more. */
SETUP(leave_empty_pages)
{
	pointer_map_clear();
	pointer_map_start(true);
	for (uint64_t page = 0; page < PAGES; page++) {
		const void *at = (const void *)(0x320000000010 + (page << POINTER_MAP_REGION_LOG2)); // never followed
		struct address_block block = { 5, 5, 5 };
		struct address_block old;

		assert_int_equal(pointer_map_put(at, block, &old), POINTER_MAP_STORED);
		assert_true(pointer_map_take(at, &block));
	}
}

/* Goes on until nothing is due, a second at a time; the bytes that went. */
static size_t
trim(uint64_t live_bytes, uint64_t start_ns)
{
	size_t before = resident_bytes();

	for (uint64_t second = 1; pointer_map_is_trim_due(live_bytes); second++) {
		size_t held = resident_bytes();

		pointer_map_trim_step(start_ns + second * SECOND_NS + 1);
		pointer_map_trim_step(start_ns + second * SECOND_NS + 2);   // too early
		assert_true((int64_t)(held - resident_bytes()) <= 5 << 20); // it may have grown for other reasons
		assert_true(second < 10000);
	}
	return before - resident_bytes();
}

/* Some pages a second, until all leaves were gone through; then no more, until it shrinks again. */
TEST(M5_a_heap_that_shrank_is_trimmed)
{
	assert_false(pointer_map_is_trim_due(GIB));
	assert_false(pointer_map_is_trim_due(GIB / 4 * 3 + 1));
	pointer_map_trim_step(1);
	assert_true(trim(GIB / 2, 0) > PAGES_BYTES / 2);
	assert_false(pointer_map_is_trim_due(GIB / 2));
	assert_true(pointer_map_is_trim_due(0));
}

/* Blocks that come and go elsewhere leave a page each; the heap stays as large. */
TEST(M5_a_heap_that_moves_about_is_trimmed_once_a_minute)
{
	const uint64_t start_ns = 20000 * SECOND_NS;

	pointer_map_beat(start_ns);
	pointer_map_beat(start_ns + MINUTE_NS - 1);
	assert_false(pointer_map_is_trim_due(GIB));
	pointer_map_beat(start_ns + MINUTE_NS);
	assert_true(trim(GIB, start_ns + MINUTE_NS) > PAGES_BYTES / 2);
	pointer_map_beat(start_ns + 2 * MINUTE_NS - 1);
	assert_false(pointer_map_is_trim_due(GIB));
}

/* What is left of each region lies side by side: fewer words have no room for it. The work for that is bounded as well, and ends. */
TEST(M5_regions_that_cannot_shrink_are_gone_through_once)
{
	enum { REGIONS = 150, BLOCKS = 8192, LEFT = 600 };
	struct address_block block = { 5, 5, 5 };
	struct address_block old;

	for (uint64_t i = 0; i < (uint64_t)REGIONS * BLOCKS; i++)
		assert_int_equal(pointer_map_put((const void *)(0x350000000010 + i * 32), block, &old), POINTER_MAP_STORED);
	for (uint64_t i = 0; i < (uint64_t)REGIONS * BLOCKS; i++) {
		if (i % BLOCKS >= LEFT)
			assert_true(pointer_map_take((const void *)(0x350000000010 + i * 32), &block));
	}
	assert_false(pointer_map_is_trim_due(GIB));
	(void)pointer_map_is_trim_due(0);
	(void)trim(0, 40000 * SECOND_NS);
	for (uint64_t i = 0; i < (uint64_t)REGIONS * BLOCKS; i++)
		assert_int_equal(pointer_map_take((const void *)(0x350000000010 + i * 32), &block), i % BLOCKS < LEFT);
}

static const void *
at_page(uint64_t page)
{
	return (const void *)(0x320000000010 + (page << POINTER_MAP_REGION_LOG2)); // never followed
}

static void
trim_all(void)
{
	(void)pointer_map_trim(UINT64_MAX, SIZE_MAX);
}

static const void *
last_of_first_page(void)
{
	return (const char *)at_page(1) - 32 - 16;
}

static void
put_last_of_first_page(void)
{
	struct address_block block = { 6, 6, 6 };
	struct address_block old;

	assert_int_equal(pointer_map_put(last_of_first_page(), block, &old), POINTER_MAP_STORED);
}

/* Wherever a trim was left, a block that was put meanwhile is found once, and the next trim goes on. */
TEST(M5_a_trim_that_was_left_is_completed)
{
	enum { SEEN = 7000, STEP = 97 }; // instructions: until the first page has gone, and some that are as good as others

	left_at_halfway = put_last_of_first_page;
	for (unsigned instruction = 0; instruction < SEEN; instruction += STEP) {
		struct address_block block = { 5, 5, 5 };
		struct address_block old;

		pointer_map_clear();
		assert_int_equal(pointer_map_put(at_page(0), block, &old), POINTER_MAP_STORED);
		assert_true(pointer_map_take(at_page(0), &block));
		assert_int_equal(pointer_map_put(at_page(1), block, &old), POINTER_MAP_STORED);
		assert_true(left_at(instruction, trim_all));
		turn_left();
		assert_true(pointer_map_take(at_page(1), &block));
		assert_true(pointer_map_take(last_of_first_page(), &block));
		assert_int_equal(block.bytes, 6);
		assert_false(pointer_map_take(last_of_first_page(), &block));
		assert_true(pointer_map_trim(UINT64_MAX, SIZE_MAX) > 0);
	}
	left_at_halfway = NULL;
}

RUN_TESTS(leave_empty_pages, NULL)
