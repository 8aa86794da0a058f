/*
 * test_teardown.c - does recording stop with Python's teardown, and go on when the program does?
 *
 * A made-up runtime says whether it finalises and whether it has an interpreter.
 */
#include "unit.h"

#include <sys/resource.h>

#include "base/capture_life.h"
#include "capture/capture_file.h"
#include "python/python_runtime.h"
#include "record/teardown.h"
#include "sites/thread_slot.h"

#define FINALIZING 16
#define INTERPRETERS 24

static _Atomic uint64_t runtime[8];
static _Atomic uint32_t booked;

static void
runtime_is(uint64_t finalizing, uint64_t interpreters)
{
	atomic_store(&runtime[FINALIZING / 8], finalizing);
	atomic_store(&runtime[INTERPRETERS / 8], interpreters);
}

SETUP(setup)
{
	capture_file_forked();
	teardown_forked();
	python_runtime.addr = (uint64_t)runtime;
	python_runtime.interpreter.layout.runtime_interpreters = INTERPRETERS;
	atomic_store(&python_runtime.finalizing_word, (const _Atomic uint64_t *)&runtime[FINALIZING / 8]);
	runtime_is(0, 1);
}

static uint64_t
lost(void)
{
	return atomic_load(&capture_file_header()->losses[KMEM_LOST_TEARDOWN_EVENTS]);
}

static uint64_t
missed(void)
{
	return atomic_load(&capture_file_header()->losses[KMEM_LOST_MISSED_FREES]);
}

/* As the tracker does it. Returns whether this call ended the teardown. */
static bool
event(uint64_t bytes)
{
	struct teardown_release release;

	if (teardown_ask(bytes) != TEARDOWN_OVER)
		return false;
	for (uint32_t i = 0; teardown_released(i, &release); i++)
		booked += release.block.site != 0;
	teardown_done();
	return true;
}

static void
keep(unsigned count)
{
	for (unsigned i = 1; i <= count; i++)
		teardown_keep((struct address_block){ .bytes = i, .site = i, .generation = 3 }, i % 2 != 0);
}

TEST(nothing_is_asked_while_python_runs)
{
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(teardown_ask(1 << 20), TEARDOWN_NO);
	assert_int_equal(lost(), 0);
	assert_int_equal(atomic_load(&capture_file_header()->is_finalizing), 0);
}

TEST(a_program_that_ends_is_left_as_it_was)
{
	runtime_is(7, 1);
	assert_int_equal(teardown_ask(100), TEARDOWN_YES);
	assert_int_equal(teardown_ask(64 << 20), TEARDOWN_YES); // the teardown itself may ask for much
	assert_int_equal(atomic_load(&capture_file_header()->is_finalizing), KMEM_YES);
	runtime_is(7, 0);
	assert_int_equal(teardown_ask((1 << 20) - 1), TEARDOWN_YES);
	assert_int_equal(lost(), 3);
	assert_int_equal(atomic_load(&capture_file_header()->is_finalizing), KMEM_YES);
}

/* The first test that keeps anything: the list stays once it is there. */
TEST(what_found_no_room_is_lost_when_it_goes_on)
{
	struct rlimit before;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	print_message("the sanitizer reserves terabytes: address space cannot be limited under it\n");
	skip();
#endif
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	struct rlimit spent = { 1 << 20, before.rlim_max };

	runtime_is(7, 1);
	assert_false(event(0));
	assert_int_equal(setrlimit(RLIMIT_AS, &spent), 0);
	keep(1500);
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	keep(1000); // 548 of them before it is tried again
	assert_int_equal(missed(), 0);
	booked = 0;
	runtime_is(0, 1);
	assert_true(event(0));
	assert_int_equal(booked, 452);
	assert_int_equal(missed(), 2048);
	runtime_is(7, 1);
	assert_false(event(0));
	keep(3);
	runtime_is(0, 1);
	assert_true(event(0));
	assert_int_equal(booked, 455);
	assert_int_equal(missed(), 2048);
}

TEST(D2_what_was_released_is_booked_once_when_it_goes_on)
{
	struct teardown_release release;

	runtime_is(7, 1);
	assert_false(event(0));
	keep(1000);
	assert_true(teardown_released(6, &release));
	assert_int_equal(release.block.bytes, 7);
	assert_int_equal(release.block.site, 7);
	assert_int_equal(release.block.generation, 3);
	assert_true(release.is_whole);
	assert_false(teardown_released(1000, &release));
	runtime_is(7, 0);
	booked = 0;
	for (unsigned i = 0; i < 15; i++)
		assert_false(event(1 << 16));
	assert_true(event(1 << 16));
	assert_int_equal(booked, 1000);
	assert_false(teardown_released(0, &release));
	assert_int_equal(atomic_load(&capture_file_header()->is_finalizing), 0);
	assert_int_equal(teardown_ask(10), TEARDOWN_NO); // though the word still says "finalising"
	runtime_is(0, 1);
	assert_int_equal(teardown_ask(10), TEARDOWN_NO);
	runtime_is(7, 1); // a second life ends
	assert_int_equal(teardown_ask(10), TEARDOWN_YES);
	assert_int_equal(atomic_load(&capture_file_header()->is_finalizing), KMEM_YES);
}

TEST(a_new_interpreter_ends_it_at_once)
{
	runtime_is(7, 1);
	assert_false(event(0));
	keep(3);
	booked = 0;
	runtime_is(0, 1);
	assert_true(event(0));
	assert_int_equal(booked, 3);
	assert_int_equal(teardown_ask(0), TEARDOWN_NO);
}

TEST(a_forked_child_starts_anew)
{
	struct teardown_release release;

	runtime_is(7, 1);
	assert_false(event(0));
	keep(5);
	teardown_forked();
	assert_false(teardown_released(0, &release));
	runtime_is(0, 1);
	assert_int_equal(teardown_ask(0), TEARDOWN_NO);
}

static _Atomic uint32_t endings;

static void *
end_it(void *unused)
{
	for (unsigned i = 0; i < 100; i++)
		endings += event(1 << 14);
	return unused;
}

TEST(D1_one_thread_alone_ends_it)
{
	pthread_t threads[4];

	for (unsigned round = 0; round < 50; round++) {
		setup(NULL);
		runtime_is(7, 1);
		assert_false(event(0));
		keep(20);
		runtime_is(7, 0);
		endings = booked = 0;
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, end_it, NULL), 0);
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(endings, 1);
		assert_int_equal(booked, 20);
	}
}

int
main(void)
{
	thread_slot_start();
	return test_run(NULL, NULL, setup, NULL);
}
