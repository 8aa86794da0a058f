/*
 * test_python_frames.c - what a walk shows of chains of made-up frames, as each kind of interpreter links them.
 */
#include "test.h"

#include <alloca.h>

#include "base/thread_stack.h"
#include "python/fake_chain.h"
#include "python/python_frames.h"

static const uint32_t versions[] = { 0x0309, 0x030a, 0x030b, 0x030d };

#define EACH_VERSION for (size_t v = 0; v < sizeof(versions) / sizeof(versions[0]); v++)

static uint32_t
walked(struct python_stack *stack)
{
	python_frames_walk(stack);
	return stack->count;
}

/* 160 are shown, the innermost ones; of more it is said that there are some. */
TEST(inner_frames_are_shown)
{
	static const unsigned lengths[] = { 1, PYTHON_FRAMES_MAX, PYTHON_FRAMES_MAX + 1, 1000, FRAMES };
	static struct python_stack stack;

	EACH_VERSION
	{
		start(versions[v]);
		assert_int_equal(walked(&stack), 0);
		for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
			unsigned length = lengths[i];

			chain_of(length);
			assert_int_equal(walked(&stack), length < PYTHON_FRAMES_MAX ? length : PYTHON_FRAMES_MAX);
			assert_int_equal(stack.is_cut, length > PYTHON_FRAMES_MAX);
			for (uint32_t frame = 0; frame < stack.count; frame++) {
				assert_int_equal(stack.frames[frame].offset, 2 * ((length - 1 - frame) % 16));
				assert_int_equal(
					stack.frames[frame].code,
					python_code_find(&python_runtime.interpreter, (uint64_t)codes[(length - 1 - frame) % CODES].code)
						.index);
			}
		}
	}
}

/* A chain that breaks off shows what it had; a loop ends; at the interpreter's end there is none, but of the thread that ends it. */
TEST(chains_that_are_none)
{
	static struct python_stack stack;

	EACH_VERSION
	{
		start(versions[v]);
		chain_of(10);
		fake_put(frames[4].bytes, layout()->frame_code, 3);
		assert_int_equal(walked(&stack), 5);
		set_code(4, 4, 4);
		assert_int_equal(walked(&stack), 10);
		set_previous(0, 9);
		assert_int_equal(walked(&stack), PYTHON_FRAMES_MAX);
		assert_true(stack.is_cut);
		set_previous(0, -1);
		fake_put(runtime, layout()->runtime_finalizing, 8);
		assert_int_equal(walked(&stack), 0);
		fake_put(runtime, layout()->runtime_finalizing, (uint64_t)present_state);
		assert_int_equal(walked(&stack), 10);
	}
}

/* Which part of the C stack runs a frame. Below where the walk is, it is of no evaluator that runs. */
TEST(anchors_are_of_the_stack)
{
	char *room = alloca(256);
	static struct python_stack stack;

	EACH_VERSION
	{
		start(versions[v]);
		chain_of(5);
		if (layout()->chain == PYTHON_CHAIN_OBJECTS)
			continue;
		for (unsigned is_below = 0; is_below < 2; is_below++) {
			uint64_t anchor = (uint64_t)room;

			if (layout()->chain == PYTHON_CHAIN_SHIM && is_below != 0)
				break; // the frame itself is the anchor, and lies elsewhere then
			if (layout()->chain == PYTHON_CHAIN_SHIM) {
				memset(room, 0, 80);
				room[layout()->frame_owner] = 3;
				fake_put(frames[0].bytes, layout()->frame_previous, anchor);
			} else {
				anchor = is_below != 0 ? (uint64_t)heap_cframe : anchor;
				memset((void *)anchor, 0, sizeof(heap_cframe));
				fake_put((void *)anchor, layout()->cframe_frame, (uint64_t)&frames[4]);
				fake_put(state, layout()->tstate_cframe, anchor);
			}
			assert_int_equal(walked(&stack), 5);
			assert_int_equal(stack.frames[0].anchor_addr, is_below != 0 ? 0 : anchor);
		}
	}
}

static void
assert_is_at(const struct python_stack *stack, unsigned i, unsigned code, unsigned unit)
{
	const struct python_frame *frame = &stack->frames[stack->count - 1 - i];

	assert_int_equal(frame->offset, 2 * unit);
	assert_int_equal(frame->code, python_code_find(&python_runtime.interpreter, (uint64_t)codes[code].code).index);
}

/* What a frame showed in an earlier walk is asked for again when one of its words has changed. */
TEST(changed_frames_are_judged_anew)
{
	static struct python_stack stack;

	EACH_VERSION
	{
		start(versions[v]);
		chain_of(9);
		assert_int_equal(walked(&stack), 9);
		for (unsigned i = 0; i < 9; i++) {
			set_instruction(i, 15);
			assert_int_equal(walked(&stack), 9);
			assert_is_at(&stack, i, i, 15);
			set_code(i, 20, 15);
			assert_int_equal(walked(&stack), 9);
			assert_is_at(&stack, i, 20, 15);
			set_code(i, i, i);
			assert_int_equal(walked(&stack), 9);
			assert_is_at(&stack, i, i, i);
			if (layout()->frame_owner == 0)
				continue;
			set_owner(i, 3, false);
			assert_int_equal(walked(&stack), 8);
			set_owner(i, 0, false);
			assert_int_equal(walked(&stack), 9);
		}
		set_previous(8, 5);
		assert_int_equal(walked(&stack), 7);
		assert_is_at(&stack, 5, 5, 5);
	}
}

/* The same words can be another code object's, after a death; and another capture's, after a fork. */
TEST(deaths_and_forks_are_seen)
{
	static struct python_stack stack;

	EACH_VERSION
	{
		start(versions[v]);
		chain_of(9);
		assert_int_equal(walked(&stack), 9);
		uint32_t before = stack.frames[4].code;

		python_code_forget((uint64_t)codes[4].code);
		code_born(4);
		set_code(4, 4, 4);
		assert_int_equal(walked(&stack), 9);
		assert_int_not_equal(stack.frames[4].code, before);
		assert_is_at(&stack, 4, 4, 4);
		before = stack.frames[4].code;
		python_code_forked();
		assert_int_equal(walked(&stack), 9);
		assert_int_not_equal(stack.frames[4].code, before); // tables of a child are empty, its records new
		assert_is_at(&stack, 4, 4, 4);
	}
}

int
main(void)
{
	uint64_t on_stack[CFRAMES][4];

	cframes = on_stack;
	thread_stack_start();
	return test_run(NULL, NULL, NULL, NULL);
}
