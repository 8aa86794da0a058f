/*
 * test_call_stack.c - is one place in a program one stack, and another place another one?
 *
 * Without an interpreter: how Python frames are merged is tested with real interpreters in tests/python.
 */
#include "dive.h"
#include "unit.h"

#include <errno.h>

#include "capture/capture_file.h"
#include "kmem_format.h"
#include "sites/call_stack.h"
#include "unwind/native_stack.h"

#define NOINLINE __attribute__((noinline))
#define KEEP_FRAME() __asm__ volatile("" ::: "memory") // no tail call

static struct call_stack copy;

static NOINLINE void
hook(void)
{
	const struct call_stack *stack = call_stack_take(NULL, __builtin_frame_address(0), false);

	memcpy(&copy, stack, sizeof(copy));
	call_stack_give_back(NULL, stack);
	KEEP_FRAME();
}

DIVE(hook)

static NOINLINE void
other_way(void)
{
	hook();
	KEEP_FRAME();
}

TEST(one_place_is_one_stack)
{
	struct call_stack first;

	for (volatile unsigned i = 0; i < 3; i++) { // volatile: not unrolled, it is one place
		dive(3);
		if (i == 0)
			first = copy;
		assert_int_equal(copy.hash, first.hash);
		assert_int_equal(copy.frame_count, first.frame_count);
		assert_memory_equal(copy.frames, first.frames, first.frame_count * 8);
	}
	assert_int_not_equal(copy.hash, 0);
	assert_int_equal(copy.flags & (KMEM_STACK_TRUNCATED | KMEM_STACK_NO_STACK | KMEM_STACK_EVALUATOR_CUT), 0);
}

TEST(the_innermost_frame_is_the_caller_of_the_hook)
{
	other_way();
	uint64_t pc = copy.frames[0] & KMEM_FRAME_PC_MASK;
	assert_true(pc > (uint64_t)other_way && pc < (uint64_t)other_way + 64);
	pc = copy.frames[1] & KMEM_FRAME_PC_MASK;
	assert_true(pc > (uint64_t)the_innermost_frame_is_the_caller_of_the_hook);
	for (uint32_t i = 0; i < copy.frame_count; i++)
		assert_int_equal(copy.frames[i] & KMEM_FRAME_PYTHON, 0);
}

TEST(other_places_are_other_stacks)
{
	uint64_t hashes[5];

	for (unsigned i = 0; i < 3; i++) { // another depth of the same recursion
		dive(i);
		hashes[i] = copy.hash;
	}
	other_way();
	hashes[3] = copy.hash;
	other_way(); // another line
	hashes[4] = copy.hash;
	for (unsigned i = 0; i < 5; i++) {
		for (unsigned k = 0; k < i; k++)
			assert_int_not_equal(hashes[i], hashes[k]);
	}
}

TEST(of_a_deep_stack_both_ends_are_kept)
{
	static const struct {
		unsigned depth;
		bool is_whole;
	} cases[] = { { 128, true }, { 200, true }, { 230, false }, { 1000, false }, { 5000, false } };

	dive(0);
	uint64_t root = copy.frames[copy.frame_count - 1];
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		dive(cases[i].depth);
		assert_int_equal((copy.flags & KMEM_STACK_TRUNCATED) == 0, cases[i].is_whole);
		assert_int_equal(copy.omitted == 0, cases[i].is_whole);
		assert_true(copy.frame_count + copy.omitted > cases[i].depth + 1);
		assert_true(copy.frame_count <= CALL_STACK_FRAMES_MAX);
		assert_true(copy.frame_count > 128);
		assert_int_equal(copy.frames[copy.frame_count - 1], root); // where it began
		assert_int_equal(copy.omitted_at, cases[i].is_whole ? 0 : NATIVE_STACK_INNER);
	}
}

TEST(errno_is_left_alone)
{
	errno = 4711;
	dive(10);
	assert_int_equal(errno, 4711);
}

/* C1: as many threads inside as there are, each has a memory of its own or is told that there is none. */
enum { ROOMS_WANTED = 200 };

static const struct call_stack *taken[ROOMS_WANTED];

static void *
take_and_keep(void *slot)
{
	*(const struct call_stack **)slot = call_stack_take(NULL, __builtin_frame_address(0), false);
	return NULL;
}

TEST(C1_nobody_gets_a_memory_that_is_taken)
{
	uint64_t before = capture_file_header()->losses[KMEM_LOST_STACKS];
	unsigned without = 0;

	for (unsigned i = 0; i < ROOMS_WANTED; i++) {
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, take_and_keep, &taken[i]), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_non_null(taken[i]);
		if (taken[i]->flags & KMEM_STACK_NO_STACK) {
			assert_int_equal(taken[i]->frame_count, 0);
			assert_int_not_equal(taken[i]->hash, 0);
			without++;
			continue;
		}
		for (unsigned k = 0; k < i; k++)
			assert_ptr_not_equal(taken[i], taken[k]);
	}
	assert_true(without > 0 && without < ROOMS_WANTED - 8);
	assert_int_equal(capture_file_header()->losses[KMEM_LOST_STACKS] - before, without);
	for (unsigned i = 0; i < ROOMS_WANTED; i++)
		call_stack_give_back(NULL, taken[i]);
	dive(1);
	assert_int_equal(copy.flags & KMEM_STACK_NO_STACK, 0);
}

int
main(void)
{
	native_stack_start();
	return test_run(NULL, NULL, NULL, NULL);
}
