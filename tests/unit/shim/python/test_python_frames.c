/*
 * test_python_frames.c - what a walk shows of chains of made-up frames, as each kind of interpreter links them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <alloca.h>
#include <stdlib.h>

#include "base/thread_stack.h"
#include "python/fake_chain.h"
#include "python/python_code.h"
#include "python/python_frames.h"

static const uint32_t versions[] = { 0x0309, 0x030a, 0x030b, 0x030d };

#define EACH_VERSION \
	(void)unused;    \
	for (size_t v = 0; v < sizeof(versions) / sizeof(versions[0]); v++)

static uint32_t
walked(struct python_stack *stack)
{
	python_frames_walk(stack);
	return stack->count;
}

/* 160 are shown, the innermost ones; of more it is said that there are some. */
static void
inner_frames_are_shown(void **unused)
{
	static const unsigned lengths[] = { 1, PYTHON_FRAMES_MAX, PYTHON_FRAMES_MAX + 1, 1000, FRAMES };
	struct python_stack stack;

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
static void
chains_that_are_none(void **unused)
{
	struct python_stack stack;

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
static void
anchors_are_of_the_stack(void **unused)
{
	char *room = alloca(256);
	struct python_stack stack;

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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inner_frames_are_shown),
		cmocka_unit_test(chains_that_are_none),
		cmocka_unit_test(anchors_are_of_the_stack),
	};
	uint64_t on_stack[CFRAMES][4];

	cframes = on_stack;
	thread_stack_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
