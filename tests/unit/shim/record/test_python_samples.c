/*
 * test_python_samples.c - are the samples that are alive shown, each once?
 */
#include "record/tracker_books.h"

#include "record/python_samples.h"

static struct {
	unsigned count;
	uint64_t object_sum;
	uint64_t bytes;
} seen;

static void
see(uint64_t object, uint64_t bytes, uint32_t site)
{
	assert_int_equal(site_table_at(site)->domain, KMEM_DOMAIN_PYTHON_OBJECT);
	seen.count++;
	seen.object_sum += object;
	seen.bytes += bytes;
}

static void
see_all(void)
{
	memset(&seen, 0, sizeof(seen));
	python_samples_visit(see);
}

static NOINLINE void
sample(uint64_t block, uint64_t object, size_t bytes)
{
	python_samples_note(at(block), at(object));
	tracker_sampled(HERE, at(block), bytes);
	KEEP_FRAME();
}

static int
start(void **state)
{
	python_samples_clear();
	return start_empty(state);
}

TEST_WITH(each_living_sample_is_shown_once, start, NULL)
{
	for (uint64_t i = 0; i < 1000; i++)
		sample(0x10000000 + i * 528, 0x10000000 + i * 528 + i % 3 * 16, i % 512 + 1);
	see_all();
	assert_in_range(seen.count, 990, 1000); // a line may be full
	for (uint64_t i = 0; i < 1000; i += 2)
		tracker_freed(__builtin_frame_address(0), at(0x10000000 + i * 528));
	see_all();
	assert_in_range(seen.count, 495, 500);

	/* At an address that was used before: not twice. */
	tracker_freed(__builtin_frame_address(0), at(0x10000000 + 528));
	sample(0x10000000 + 528, 0x10000000 + 528 + 32, 7);
	see_all();
	assert_in_range(seen.count, 495, 500);
}

TEST_WITH(it_is_shown_where_the_object_begins, start, NULL)
{
	sample(0x10000000, 0x10000020, 100);
	see_all();
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.object_sum, 0x10000020);
	assert_int_equal(seen.bytes, 100);
	tracker_freed(__builtin_frame_address(0), at(0x10000000));
	tracker_allocated(__builtin_frame_address(0), at(0x10000000), 50); // a block of the heap there
	see_all();
	assert_int_equal(seen.count, 0);
}

TEST_WITH(more_than_there_is_room_for_push_older_ones_out, start, NULL)
{
	for (uint64_t i = 0; i < 100000; i++)
		sample(0x10000000 + i * 544, 0x10000000 + i * 544, 100);
	see_all();
	assert_in_range(seen.count, 16000, 16384);
}

TEST(the_number_of_objects_that_a_sample_stands_for)
{
	static const uint64_t cases[][2] = { { 1, 262144 }, { 16, 16384 }, { 100, 2621 }, { 300, 874 }, { 512, 512 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(python_samples_objects(cases[i][0]), cases[i][1]);
	assert_int_equal(python_samples_objects(0), 262144);
}

int
main(void)
{
	native_stack_start();
	thread_slot_start();
	return test_run(NULL, NULL, NULL, NULL);
}
