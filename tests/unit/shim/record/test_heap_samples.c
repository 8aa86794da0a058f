/*
 * test_heap_samples.c - is each byte drawn alike, does a drawn block stand for what its size says, and do the books agree?
 */
#include "record/tracker_books.h"

#include <errno.h>

#include "base/settings.h"
#include "record/heap_samples.h"

#define MEAN (UINT64_C(512) << 10)

/* 1 - exp(-x), x up to 1. */
static double
probability(double x)
{
	double sum = 0;
	double term = -1;

	for (int i = 1; i < 30; i++) {
		term *= -x / i;
		sum += term;
	}
	return sum;
}

static uint64_t
live(unsigned domain)
{
	return kmem_peak_now(peak_word(domain));
}

SETUP(start_sampling)
{
	start_empty(NULL);
	settings.sample_bytes = settings.slow_below = MEAN;
	heap_samples_start(MEAN);
	heap_samples_forked();
}

SETUP(stop_sampling)
{
	settings.sample_bytes = settings.slow_below = 0;
	heap_samples_start(0);
}

TEST(where_each_block_is_recorded_none_passes)
{
	heap_samples_start(0);
	for (size_t bytes = 0; bytes < 100; bytes++)
		assert_false(heap_samples_passes(bytes));
	assert_false(heap_samples_is_unseen(at(4096)));
}

TEST(a_block_stands_for_its_bytes_over_its_probability)
{
	start_sampling(NULL);
	for (uint64_t bytes = 1; bytes < MEAN; bytes += 1 + bytes / 7) {
		double off = (double)heap_samples_weight(bytes) - (double)bytes / probability((double)bytes / (double)MEAN);

		assert_true((off < 0 ? -off : off) <= (double)MEAN * 1e-4 + 1);
	}
	heap_samples_start(UINT64_C(64) << 20);
	assert_int_equal(heap_samples_limit(), UINT64_C(1) << 20);
	stop_sampling(NULL);
}

/* H1. Six errors of the sum: less than one failure in a hundred million runs. */
TEST_WITH(estimates_of_all_sizes_are_unbiased, start_sampling, stop_sampling)
{
	static const uint64_t sizes[] = { 24, 1000, 30000, 200000, 500000 };

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		uint64_t count = 400 * MEAN / sizes[i];
		double truth = (double)(count * sizes[i]);
		double weight = (double)heap_samples_weight(sizes[i]);
		double p = (double)sizes[i] / weight;
		double off = -truth;

		for (uint64_t k = 0; k < count; k++)
			off += heap_samples_passes(sizes[i]) ? 0 : weight;
		assert_true(off * off < 36 * weight * weight * ((double)count * p * (1 - p) + 1));
	}
	assert_false(heap_samples_passes(heap_samples_limit())); // each one of these is recorded
}

TEST_WITH(a_thread_begins_with_no_draw_and_keeps_errno, start_sampling, stop_sampling)
{
	unsigned drawn = 0;

	for (unsigned i = 0; i < 4000; i++) {
		heap_samples_forked();
		errno = 7;
		drawn += !heap_samples_passes(24);
		assert_int_equal(errno, 7);
	}
	assert_in_range(drawn, 0, 6); // 0.18 on average
}

TEST_WITH(while_it_is_held_none_passes_and_the_countdown_stays, start_sampling, stop_sampling)
{
	(void)heap_samples_passes(24);
	int64_t before = heap_sampler.countdown;
	int64_t outer = heap_samples_hold();
	int64_t inner = heap_samples_hold();

	assert_false(heap_samples_passes(513));
	assert_false(heap_samples_passes(513));
	heap_samples_release(inner);
	assert_false(heap_samples_passes(513));
	heap_samples_release(outer);
	assert_int_equal(heap_sampler.countdown, before);
	(void)heap_samples_hold();
	heap_samples_hook_left(); // by a jump
	(void)heap_samples_passes(24);
	assert_in_range(heap_sampler.countdown, 0, 64 * MEAN);
}

/* H2. */
TEST_WITH(the_byte_of_a_block_counts_up_to_what_it_can, start_sampling, stop_sampling)
{
	assert_true(heap_samples_is_unseen(at(0x5000)));
	heap_samples_note(at(0x5000));
	heap_samples_note(at(0x5010)); // shares the byte
	assert_false(heap_samples_is_unseen(at(0x5000)));
	assert_true(heap_samples_is_unseen(at(0x5020)));
	heap_samples_forget(at(0x5000));
	assert_false(heap_samples_is_unseen(at(0x5010)));
	heap_samples_forget(at(0x5010));
	assert_true(heap_samples_is_unseen(at(0x5000)));
	for (unsigned i = 0; i < 300; i++)
		heap_samples_note(at(0x5000));
	for (unsigned i = 0; i < 300; i++)
		heap_samples_forget(at(0x5000));
	assert_false(heap_samples_is_unseen(at(0x5000))); // nobody knows how many there were
}

static NOINLINE void
allocate(uint64_t addr, size_t bytes)
{
	tracker_allocated(HERE, at(addr), bytes);
	KEEP_FRAME();
}

static void
release(uint64_t addr)
{
	if (!tracker_freed_fast(at(addr)))
		tracker_freed(__builtin_frame_address(0), at(addr));
}

TEST_WITH(the_books_have_what_a_sample_stands_for, start_sampling, stop_sampling)
{
	struct address_block block;
	uint64_t weight = heap_samples_weight(1000);
	uint64_t blocks = (weight + 500) / 1000;

	allocate(0x10000000, 1000);
	allocate(0x10000400, 1000);
	allocate(0x20002000, MEAN); // as it is
	assert_row(KMEM_DOMAIN_HEAP_SAMPLE, (struct totals){ 2 * weight, 0, 2 * blocks, 0, 2 * weight });
	assert_row(KMEM_DOMAIN_HEAP, (struct totals){ MEAN, 0, 1, 0, MEAN });
	assert_false(heap_samples_is_unseen(at(0x10000400)));
	assert_true(pointer_map_find(0x10000400, &block));
	assert_int_equal(block.bytes, 1000);

	release(0x10000400);
	release(0x20002000);
	release(0x30000000); // is in no sample: not unknown
	assert_true(heap_samples_is_unseen(at(0x10000400)));
	assert_true(heap_samples_is_unseen(at(0x20002000)));
	assert_row(KMEM_DOMAIN_HEAP_SAMPLE, (struct totals){ 2 * weight, weight, 2 * blocks, blocks, 2 * weight });
	assert_row(KMEM_DOMAIN_HEAP, (struct totals){ MEAN, MEAN, 1, 1, MEAN });
	assert_int_equal(capture_file_header()->losses[KMEM_LOST_UNKNOWN_FREES], 0);
	assert_int_equal(capture_file_header()->losses[KMEM_LOST_MISSED_FREES], 0);
}

static NOINLINE void
resize(uint64_t old, uint64_t addr, size_t bytes)
{
	tracker_resized(HERE, tracker_take(at(old)), at(addr), bytes);
	KEEP_FRAME();
}

/* Each way between a sample, a block that is recorded as it is, and one that is neither. */
TEST_WITH(resizing_goes_from_one_to_the_other, start_sampling, stop_sampling)
{
	uint64_t weight = heap_samples_weight(1000);
	uint64_t larger = heap_samples_weight(4000);

	resize(0, 0x10000000, 1000);
	resize(0x10000000, 0x10001000, 4000);
	assert_row(KMEM_DOMAIN_HEAP_SAMPLE,
	           (struct totals){ weight + larger, weight, (weight + 500) / 1000 + (larger + 2000) / 4000,
	                            (weight + 500) / 1000, larger });
	resize(0x10001000, 0x20002000, 2 * MEAN);
	assert_int_equal(live(KMEM_DOMAIN_HEAP_SAMPLE), 0);
	assert_int_equal(live(KMEM_DOMAIN_HEAP), 2 * MEAN);
	resize(0x20002000, 0x10000000, 1000);
	assert_int_equal(live(KMEM_DOMAIN_HEAP), 0);
	assert_int_equal(live(KMEM_DOMAIN_HEAP_SAMPLE), weight);
	resize(0x77777000, 0x10002000, 1000); // the old one was in no sample
	assert_int_equal(live(KMEM_DOMAIN_HEAP_SAMPLE), 2 * weight);
}

int
main(void)
{
	native_stack_start();
	thread_slot_start();
	return test_run(NULL, NULL, NULL, NULL);
}
