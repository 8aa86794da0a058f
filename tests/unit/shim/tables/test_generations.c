/*
 * test_generations.c - do the buckets of a site count exactly the blocks that survive, by the time they were born?
 */
#include "unit.h"

#include "base/capture_life.h"
#include "capture/capture_file.h"
#include "random.h"
#include "tables/generations.h"

static struct kmem_site *site;
static uint32_t site_index;
static uint64_t block_bytes; // of every block

SETUP(start_empty)
{
	capture_file_forked();
	capture_file_header()->generation_clock = 1;
	site = capture_file_append(KMEM_SECTION_SITES, sizeof(*site), &site_index);
	assert_non_null(site);
	site->first_generation = 1;
	site_index++;
	block_bytes = GENERATIONS_MIN_BYTES;
}

static struct kmem_generations *
block(void)
{
	return capture_file_item(KMEM_SECTION_GENERATIONS, site->generations);
}

/* One allocation, as the tracker books it. */
static uint8_t
born(uint8_t clock)
{
	uint8_t generation = generations_born(site, site_index, clock);

	site->allocated_count++;
	site->allocated_bytes += block_bytes;
	return generation;
}

static void
died(uint8_t generation)
{
	generations_died(site, site_index, generation);
	site->freed_count++;
	site->freed_bytes += block_bytes;
}

TEST(the_clock_ticks_by_64_kib_then_eight_times_per_doubling)
{
	static const struct {
		uint64_t volume_bytes;
		uint8_t clock;
	} cases[] = {
		{ 0, 1 },
		{ 65535, 1 },
		{ 65536, 2 },
		{ 7 * 65536, 8 },
		{ 8 * 65536 - 1, 8 },
		{ 8 * 65536, 9 },
		{ 9 * 65536, 10 },
		{ 15 * 65536, 16 },
		{ 16 * 65536, 17 },
		{ 17 * 65536, 17 },
		{ 18 * 65536, 18 },
		{ 32 * 65536, 25 },
		{ UINT64_C(1) << 30, 9 + 8 * 11 },
		{ UINT64_C(1) << 40, 9 + 8 * 21 },
		{ UINT64_MAX, 255 },
	};
	uint64_t volume = 1;
	uint8_t last = 0;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(kmem_clock_at(cases[i].volume_bytes), cases[i].clock);
	for (; volume < UINT64_MAX / 2; volume += volume / 64 + 1) { // it never goes back and never skips
		uint8_t clock = kmem_clock_at(volume);

		assert_true(clock == last || clock == last + 1);
		last = clock;
	}
}

TEST(ticks_follow_the_volume_of_all_threads_in_batches)
{
	uint64_t volume = 0;

	for (unsigned i = 0; i < 5000; i++) {
		uint8_t clock = generations_tick(1000, 1);

		volume += 1000;
		/* A batch of 64 KiB and one event may be missing. */
		assert_true(clock <= kmem_clock_at(volume + 65536));
		assert_true(clock >= kmem_clock_at(volume > 66536 ? volume - 66536 : 0));
	}
	assert_int_equal(generations_clock(), capture_file_header()->generation_clock);
	assert_int_equal(generations_clock(), kmem_clock_at(capture_file_header()->generation_clock_bytes));
}

/* Whatever was allocated before, in whatever order. */
TEST(one_event_moves_the_clock_by_one_tick_at_most)
{
	uint64_t random = random_seed();
	uint64_t volume = 0;

	generations_tick(65536, 0); // what this thread had not booked yet
	volume = capture_file_header()->volume_bytes;
	for (unsigned i = 0; i < 3000; i++) {
		uint64_t bytes = random_below(&random, UINT64_C(1) << (16 + random_below(&random, 24))) + 65536;
		uint8_t before = generations_clock();
		uint8_t clock = generations_tick(bytes, 1);

		volume += bytes;
		assert_true(clock == before || clock == before + 1);
		assert_int_equal(clock, kmem_clock_at(capture_file_header()->generation_clock_bytes));
		assert_int_equal(capture_file_header()->volume_bytes, volume);
		if (clock != before)
			assert_int_equal(capture_file_header()->volume_at[clock], kmem_rough(volume));
	}
}

/* The larger part decides: a pool, or gigabytes in large buffers, do not stop the clock for what comes in small blocks. */
TEST(the_clock_follows_what_grows_faster)
{
	static const struct {
		uint64_t bytes, times; // allocated before, each 1
		unsigned ticks;        // at least, for 40,000 blocks of 1,000 bytes afterwards
		unsigned most;
	} cases[] = {
		{ 65536, 0, 50, 70 },                // nothing: the volume of 40 MB
		{ UINT64_C(2) << 30, 1, 50, 70 },    // one pool
		{ UINT64_C(64) << 20, 400, 18, 40 }, // 25 GiB: the blocks, from 400 to 40,000
		// the same kind of work, three times as much before: less than a doubling of it
		{ 65536, 4000, 0, 8 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		start_empty(test_state);
		for (uint64_t k = 0; k < cases[i].times; k++)
			generations_tick(cases[i].bytes, 1);
		for (unsigned k = 0; cases[i].times == 4000 && k < 40000; k++)
			generations_tick(1000, 1);
		uint8_t before = generations_clock();
		for (unsigned k = 0; k < 40000; k++)
			generations_tick(1000, 1);
		assert_in_range(generations_clock() - before, cases[i].ticks, cases[i].most);
	}
}

TEST(S5_a_site_without_object_census_gets_no_counters)
{
	for (uint8_t clock = 1; clock < 100; clock++) {
		uint8_t generation = born(clock);

		assert_int_equal(generation, 0);
		died(generation);
	}
	assert_int_equal(site->generations, 0);
	assert_int_equal(capture_file_header()->used_bytes[KMEM_SECTION_GENERATIONS], 0);
}

TEST(S5_a_site_that_holds_little_gets_no_counters)
{
	block_bytes = GENERATIONS_MIN_BYTES / 64;
	for (uint8_t clock = 1; clock <= 64; clock++)
		assert_int_equal(born(clock), 0);
	assert_int_equal(site->generations, 0);
	assert_int_equal(born(65), 5);
	assert_int_equal(born(66), 6);
}

TEST(S5_counters_come_with_the_first_survivor_of_an_older_tick_and_stay)
{
	assert_int_equal(born(1), 0);
	assert_int_equal(born(1), 0); // same tick as the site: nothing to tell apart yet
	assert_int_equal(site->generations, 0);
	assert_int_equal(born(3), 3);
	uint32_t claimed = site->generations;
	assert_int_not_equal(claimed, 0);
	assert_int_equal(block()->site, site_index);
	assert_int_equal(block()->births, 3 << 16 | 3 << 8 | 3);
	assert_int_equal(block()->born, 1 << 2);
	assert_int_equal(block()->live_count[2], 1);
	for (unsigned clock = 4; clock < 60; clock++)
		assert_int_equal(born((uint8_t)clock), clock);
	assert_int_equal(site->generations, claimed);
}

TEST(a_generation_is_a_tick_in_which_the_site_allocated)
{
	static const struct {
		uint8_t clock;
		uint8_t generation;
	} cases[] = { { 10, 10 }, { 10, 10 }, { 11, 11 }, { 90, 30 }, { 90, 30 }, { 89, 30 }, { 200, 20 }, { 1, 20 } };

	born(1);
	died(born(10)); // claims
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint8_t generation = born(cases[i].clock);

		assert_int_equal(generation, cases[i].generation);
		for (unsigned b = 0; b < KMEM_GENERATION_BUCKETS; b++)
			assert_int_equal(block()->live_count[b], b == cases[i].generation - 1u);
		died(generation);
	}
	died(0); // born before there were counters
	for (unsigned b = 0; b < KMEM_GENERATION_BUCKETS; b++)
		assert_int_equal(block()->live_count[b], 0);
}

/* What is left of the ticks before keeps its place, and is of nobody. */
TEST(buckets_go_round_and_those_of_ticks_without_births_are_of_nobody)
{
	static const struct {
		uint8_t clock, bucket;
		uint64_t born;
	} cases[] = {
		{ 2, 2, 1 << 1 },
		{ 3, 3, 1 << 1 | 1 << 2 },
		{ 5, 5, 1 << 1 | 1 << 2 | 1 << 4 },
		{ 60, 60, 1 << 1 | 1 << 2 | 1 << 4 | UINT64_C(1) << 59 },
		{ 61, 1, 1 << 0 | 1 << 1 | 1 << 2 | 1 << 4 | UINT64_C(1) << 59 },
		{ 63, 3, 1 << 0 | 1 << 2 | 1 << 4 | UINT64_C(1) << 59 }, // 62 had none, nor has its bucket now
		{ 122, 2, 1 << 1 | 1 << 2 },
		{ 182, 2, 1 << 1 },
		{ 255, 15, 1 << 14 },
	};

	born(1);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(born(cases[i].clock), cases[i].bucket);
		assert_int_equal(block()->births, cases[i].clock << 16 | cases[i].clock << 8 | cases[i].bucket);
		assert_true(block()->born == cases[i].born);
	}
	assert_int_equal(block()->live_count[1], 3);
}

static uint8_t
born_sample(uint8_t clock)
{
	uint8_t generation = generations_born_sample(site, site_index, clock);

	site->allocated_bytes += 4096;
	site->allocated_count++;
	return generation;
}

/* The clock of the latest stands there all the same: it says whether the line has paused. */
TEST(a_generation_of_samples_has_eight_at_least)
{
	born_sample(1);
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(born_sample((uint8_t)(2 + i)), 2);
		assert_int_equal(block()->births, (i + 1) << 24 | (2 + i) << 16 | 2 << 8 | 2);
	}
	assert_int_equal(born_sample(9), 2); // the clock has not moved
	assert_int_equal(born_sample(10), 10);
	assert_int_equal(block()->births, 1 << 24 | 10 << 16 | 10 << 8 | 10);
	assert_int_equal(block()->born, 1 << 1 | 1 << 9); // in between one went on
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(born_sample(10), 10);
	assert_int_equal(block()->births, 255u << 24 | 10 << 16 | 10 << 8 | 10);
	assert_int_equal(born_sample(200), 20);
	assert_int_equal(block()->live_count[1], 9);
	assert_int_equal(block()->live_count[9], 1001);
	assert_int_equal(block()->live_count[19], 1);
}

TEST(random_work_agrees_with_a_ledger)
{
	enum { BLOCKS = 500 };
	static uint8_t generation[BLOCKS];
	static bool is_live[BLOCKS];
	uint64_t random = random_seed();
	uint8_t clock = 1;
	uint32_t counted = 0;
	uint32_t sum = 0;

	memset(is_live, 0, sizeof(is_live));
	for (unsigned i = 0; i < 50000; i++) {
		unsigned at = (unsigned)random_below(&random, BLOCKS);

		clock += clock < 255 && random_below(&random, 200) == 0;
		if (is_live[at])
			died(generation[at]);
		else
			generation[at] = born(clock);
		is_live[at] = !is_live[at];
	}
	for (unsigned i = 0; i < BLOCKS; i++)
		counted += is_live[i] && generation[i] != 0;
	for (unsigned b = 0; b < KMEM_GENERATION_BUCKETS; b++)
		sum += block()->live_count[b];
	assert_int_equal(sum, counted);
}

/* Each of these functions looks at the word twice, or a caller did so before: in between the capture was given up, and all words are 0. */
static int
goes_on_without_counters(void *unused)
{
	CHECK_IN_CHILD(generations_is_counted(site, 1) && block()->born != 0);
	CHECK_IN_CHILD(capture_file_abandon());
	CHECK_IN_CHILD(site->generations == 0);
	for (uint8_t i = 1; i <= KMEM_GENERATION_BUCKETS; i++)
		generations_died_own(site, i);
	CHECK_IN_CHILD(generations_born_own(site, site_index) == 0);
	return 0;
}

TEST(S5_what_is_under_way_when_the_capture_is_given_up_touches_no_other_memory)
{
	while (site->generations == 0)
		born(++capture_file_header()->generation_clock & 0xff);
	born((uint8_t)capture_file_header()->generation_clock);
	assert_int_equal(in_child(goes_on_without_counters, NULL), 0);
}

RUN_TESTS(start_empty, NULL)
