/*
 * test_process_memory.c - does a scan show each word that is wanted, and read pages of data once?
 */
#include "test.h"

#include <string.h>

#include "holders/process_memory.h"

#define START UINT64_C(0x7f0000000000)
#define PAGES 200u // of which the last is not there
#define WORDS (PROCESS_MEMORY_PAGE / 8)

static uint64_t image[PAGES * WORDS];
static uint64_t fetched;
static struct memory_region region = { .start = START, .end = START + sizeof(image), .is_readable = true };
static struct process_memory memory;

static size_t
fetch(void *context, uint64_t addr, void *to, size_t bytes)
{
	size_t until = sizeof(image) - PROCESS_MEMORY_PAGE;
	size_t offset = addr - START;

	(void)context;
	if (offset >= until)
		return 0;
	bytes = bytes < until - offset ? bytes : until - offset;
	memcpy(to, (const char *)image + offset, bytes);
	fetched += bytes;
	return bytes;
}

/* Numbers as of data, and pointers in the pages 3, 64 and 150; of the last two at their ends. */
static int
make(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(image); i++)
		image[i] = i % 3 == 0 ? UINT64_C(0x3ff0000000000000) + i : i % 3 == 1 ? i : UINT64_MAX - i;
	image[3 * WORDS + 7] = START + 100;
	image[64 * WORDS] = START + 200;
	image[150 * WORDS + WORDS - 1] = START + 300;
	memory = (struct process_memory){ .region_count = 1, .regions = &region, .fetch = fetch };
	fetched = 0;
	return 0;
}

static int
end(void **state)
{
	(void)state;
	process_memory_close(&memory);
	return 0;
}

static uint64_t seen[8];
static size_t seen_count;
static size_t seen_most;

static bool
see(void *context, uint64_t at, uint64_t word)
{
	(void)context;
	assert_int_equal(image[(at - START) / 8], word);
	seen[seen_count++] = at;
	return seen_count < seen_most;
}

/* Returns how many words were shown. */
static size_t
scan(uint64_t from, uint64_t to, struct word_range wanted)
{
	seen_count = 0;
	seen_most = ARRAY_LEN(seen);
	(void)process_memory_scan(&memory, from, to, wanted, see, NULL);
	return seen_count;
}

TEST(pages_without_a_pointer_are_read_once)
{
	const struct word_range all = { START, START + 1000 };
	const struct word_range one = { START + 150, START + 250 };

	process_memory_stands_still(&memory);
	assert_int_equal(scan(START, region.end, all), 3);
	assert_int_equal(fetched, sizeof(image) - PROCESS_MEMORY_PAGE);
	for (unsigned i = 0; i < 2; i++) {
		fetched = 0;
		assert_int_equal(scan(START, region.end, all), 3);
		assert_int_equal(seen[0], START + (3 * WORDS + 7) * 8);
		assert_int_equal(seen[2], START + (150 * WORDS + WORDS - 1) * 8);
		assert_int_equal(fetched, 3 * PROCESS_MEMORY_PAGE);
	}
	assert_int_equal(scan(START, region.end, one), 1); // what is not wanted is not shown
	assert_int_equal(seen[0], START + 64 * WORDS * 8);
}

/* A part of a page says nothing of the page. */
TEST(what_was_not_read_whole_is_read_again)
{
	const struct word_range all = { START, START + 1000 };

	process_memory_stands_still(&memory);
	assert_int_equal(scan(START, START + 3 * PROCESS_MEMORY_PAGE + 16, all), 0);
	assert_int_equal(scan(START + 5 * PROCESS_MEMORY_PAGE + 8, START + 150 * PROCESS_MEMORY_PAGE, all), 1);
	assert_int_equal(scan(START, region.end, all), 3);
}

TEST(without_a_stop_or_where_no_addresses_are_wanted_all_is_read)
{
	const struct word_range all = { START, START + 1000 };
	const struct word_range high = { UINT64_MAX - 2, 0 }; // wraps
	const struct word_range numbers = { UINT64_C(0x3ff0000000000000), UINT64_C(0x3ff0000000000000) + 7 };

	for (unsigned i = 0; i < 2; i++) {
		fetched = 0;
		assert_int_equal(scan(START, region.end, all), 3);
		assert_int_equal(fetched, sizeof(image) - PROCESS_MEMORY_PAGE);
	}
	process_memory_stands_still(&memory);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(scan(START, region.end, numbers), 3); // 0, 3 and 6
		assert_int_equal(scan(START, region.end, high), 1);    // UINT64_MAX - 2
		assert_int_equal(scan(START, region.end, all), 3);
	}
}

TEST(the_visitor_may_end_it)
{
	const struct word_range all = { START, START + 1000 };

	for (unsigned i = 0; i < 2; i++) {
		seen_count = 0;
		seen_most = 1;
		assert_false(process_memory_scan(&memory, START, region.end, all, see, NULL));
		assert_int_equal(seen_count, 1);
		process_memory_stands_still(&memory);
	}
}

TEST(nothing_is_scanned_when_time_is_over)
{
	const struct word_range all = { START, START + 1000 };

	memory.deadline_ns = 1;
	seen_most = ARRAY_LEN(seen);
	assert_false(process_memory_scan(&memory, START, region.end, all, see, NULL));
	assert_int_equal(fetched, 0);
}

RUN_TESTS(make, end)
