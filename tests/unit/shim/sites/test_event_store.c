/*
 * test_event_store.c - is what is found what was put, however many there are?
 */
#include "unit.h"

#include <sys/resource.h>

#include "base/raw_sys.h"
#include "random.h"
#include "sites/event_store.h"

static struct event_store store;

SETUP(start_empty)
{
	event_store_release(&store);
}

static uint64_t
key_of(uint64_t number)
{
	return (number + 1) * UINT64_C(0xff51afd7ed558ccd);
}

static unsigned
count_found(uint32_t count)
{
	unsigned found = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t site = event_store_find(&store, key_of(i));

		assert_true(site == 0 || site == i + 1); // O1
		found += site != 0;
	}
	return found;
}

/* A loop of so many keys: what is not found is put. How many are not found in the round after some. */
static unsigned
missed_of_a_loop(uint32_t count)
{
	unsigned missed = 0;

	for (unsigned round = 0; round < 6; round++) {
		missed = 0;
		for (uint32_t i = 0; i < count; i++) {
			uint32_t site = event_store_follow(&store, i % EVENT_STORE_SEQUENCES, key_of(i));

			assert_true(site == 0 || site == i + 1);
			if (site == 0)
				event_store_put(&store, key_of(i), i + 1, i + 1, 1);
			missed += site == 0;
		}
	}
	return missed;
}

TEST(O1_a_loop_of_any_length_is_found)
{
	static const uint32_t counts[] = { 1, 100, 321, 5000, 20000, 300000 };

	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		assert_in_range(missed_of_a_loop(counts[i]), 0, counts[i] / 200); // too many of one line
		assert_true(store.count <= 64 || store.count <= counts[i]);       // at least one key a line
	}
}

TEST(nothing_is_reserved_until_something_is_put)
{
	assert_int_equal(event_store_find(&store, key_of(1)), 0);
	assert_null(store.lines);
	event_store_put(&store, key_of(1), 5, 5, 1);
	assert_non_null(store.lines);
	assert_int_equal(event_store_find(&store, key_of(1)), 5);
	event_store_put(&store, key_of(1), 6, 6, 1);
	assert_int_equal(event_store_find(&store, key_of(1)), 6); // O1
	assert_int_equal(store.used, 1);
}

TEST(it_grows_with_the_sites)
{
	for (uint32_t i = 0; i < 100000; i++)
		event_store_put(&store, key_of(i), i + 1, 500, 1);
	assert_in_range(store.count, 1000, 2000); // of at most four keys
	assert_int_equal(event_store_find(&store, key_of(99999)), 100000);
	event_store_put(&store, key_of(0), 1, 25000, 1);
	for (uint32_t i = 0; i < 100000; i++)
		event_store_put(&store, key_of(i), i + 1, 500, 1);
	assert_true(store.count > 40000);
}

TEST(it_is_emptied_when_it_would_grow_with_what_is_void)
{
	for (uint32_t i = 0; i < 10000; i++) {
		event_store_put(&store, key_of(i), i + 1, i + 1, 1);
		if (i == 149)
			assert_true(count_found(150) > 140); // it grew, and the first version is one
	}
	assert_true(count_found(10000) > 9000);
	for (uint32_t i = 0; i < 200000; i++) // each in a version of its own
		event_store_put(&store, key_of(i), i + 1, i + 1, 2 + i);
	assert_in_range(store.count, 64, 64);
}

/* A hook that was left with longjmp() may have moved a part of a line: keys behind the lines that count. */
TEST(O2_keys_behind_the_lines_do_no_harm)
{
	for (uint32_t i = 0; i < 1000; i++)
		event_store_put(&store, key_of(i), i + 1, i + 1, 1);
	uint32_t half = UINT32_C(1) << (31 - __builtin_clz(store.count));

	store.lines[store.count] = store.lines[store.count - half];
	assert_in_range(missed_of_a_loop(5000), 0, 10);
}

TEST(a_limit_of_addresses_leaves_a_small_one)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip(); // the sanitizer has terabytes of addresses
#endif
	struct rlimit old;
	struct rlimit low = { .rlim_cur = UINT64_C(1) << 30, .rlim_max = RLIM_INFINITY };

	assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
	low.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_AS, &low), 0);
	(void)missed_of_a_loop(600000);
	assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
	assert_int_equal(store.room * sizeof(store.lines[0]), 16 << 20);
	assert_int_equal(store.count, store.room);
	assert_true(count_found(600000) > 500000);
}

RUN_TESTS(start_empty, NULL)
