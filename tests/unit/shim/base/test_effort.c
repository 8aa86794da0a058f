/*
 * test_effort.c - is what recording does counted, once each, and the longest pause kept?
 */
#include "unit.h"

#include "base/arch.h"
#include "base/effort.h"

#define OFTEN KMEM_EFFORT_SUCCESSORS
#define SELDOM KMEM_EFFORT_NEW_STACKS

static struct kmem_efforts kept;

SETUP(begin)
{
	memset(&kept, 0, sizeof(kept));
	effort_forked();
	effort_keep_in(&kept);
}

TEST(what_is_seldom_counts_at_once)
{
	effort_count(SELDOM);
	assert_int_equal(effort_sum(SELDOM), 1);
	assert_int_equal(kept.counts[SELDOM], 1);
}

TEST(what_is_frequent_counts_in_batches_and_the_rest_when_the_thread_ends)
{
	for (unsigned i = 1; i < KMEM_EFFORT_BATCH; i++)
		effort_count(OFTEN);
	assert_int_equal(effort_sum(OFTEN), 0);
	effort_count(OFTEN);
	assert_int_equal(effort_sum(OFTEN), KMEM_EFFORT_BATCH);
	effort_count_many(OFTEN, 1000);
	assert_int_equal(effort_sum(OFTEN), KMEM_EFFORT_BATCH + 1000);
	effort_count_many(OFTEN, 7);
	effort_thread_ends();
	assert_int_equal(effort_sum(OFTEN), KMEM_EFFORT_BATCH + 1007);
	effort_thread_ends();
	assert_int_equal(effort_sum(OFTEN), KMEM_EFFORT_BATCH + 1007);
}

TEST(a_call_touches_no_capture_before_something_else_counts)
{
	effort_count_call();
	effort_count_call();
	assert_int_equal(effort_sum(KMEM_EFFORT_SYSTEM_CALLS), 0);
	effort_count(SELDOM);
	assert_int_equal(effort_sum(KMEM_EFFORT_SYSTEM_CALLS), 2);
	effort_count_call();
	effort_thread_ends();
	assert_int_equal(effort_sum(KMEM_EFFORT_SYSTEM_CALLS), 3);
}

static void *
count_in_thread(void *unused)
{
	for (unsigned i = 0; i < 12345; i++) {
		effort_count(OFTEN);
		effort_count(SELDOM);
	}
	effort_thread_ends();
	return unused;
}

TEST(threads_lose_nothing_of_each_other)
{
	pthread_t threads[4];

	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, count_in_thread, NULL), 0);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(effort_sum(OFTEN), 4 * 12345);
	assert_int_equal(effort_sum(SELDOM), 4 * 12345);
}

TEST(what_was_counted_before_there_was_a_capture_is_in_it)
{
	static struct kmem_efforts later;

	effort_forked();
	effort_count(SELDOM);
	assert_int_equal(kept.counts[SELDOM], 0);
	effort_keep_in(&later);
	assert_int_equal(later.counts[SELDOM], 1);
}

TEST(a_child_begins_at_0)
{
	effort_count(SELDOM);
	effort_count(OFTEN);
	effort_forked();
	effort_thread_ends();
	assert_int_equal(effort_sum(SELDOM), 0);
	assert_int_equal(effort_sum(OFTEN), 0);
	assert_int_equal(kept.counts[SELDOM], 1); // its parent's
}

static const struct {
	int64_t ticks;
	enum kmem_effort what;
	enum kmem_effort wanted;
	const char *why;
} pauses[] = {
	{ 1000000, KMEM_EFFORT_WALKS, KMEM_EFFORT_WALKS, "the first is the longest" },
	{ 1000, KMEM_EFFORT_NEW_STACKS, KMEM_EFFORT_WALKS, "a shorter one" },
	{ 2000000000, KMEM_EFFORT_HEARTBEATS, KMEM_EFFORT_HEARTBEATS, "a longer one" },
	{ -1000000000, KMEM_EFFORT_GROWTHS, KMEM_EFFORT_HEARTBEATS, "of a processor whose clock is behind" },
};

TEST(the_longest_pause_is_kept)
{
	effort_end(0, KMEM_EFFORT_WALKS); // nobody could look at the clock
	assert_int_equal(kept.longest_pause, 0);
	for (size_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++) {
		uint64_t before = kept.longest_pause >> KMEM_PAUSE_NS_SHIFT;

		effort_end(arch_ticks() - (uint64_t)pauses[i].ticks, pauses[i].what);
		if ((kept.longest_pause & 255) != pauses[i].wanted)
			fail_msg("%s: %u", pauses[i].why, (unsigned)(kept.longest_pause & 255));
		assert_true(kept.longest_pause >> KMEM_PAUSE_NS_SHIFT >= before);
	}
	effort_forked();
	effort_keep_in(&kept);
	kept.longest_pause = 0;
	effort_end(arch_ticks() - 1000, KMEM_EFFORT_WALKS);
	assert_int_equal(kept.longest_pause & 255, KMEM_EFFORT_WALKS); // a child has its own longest one
}

RUN_TESTS(begin, NULL)
