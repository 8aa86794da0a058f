/*
 * test_python_chain.c - is a digest that compares what it knows the one of a chain that is read for the first time?
 */
#include "unit.h"

#include "python/python_chain.h"

#define PLACES 64
#define DEEP_PLACES 1500

/* Frames at fixed places, as in the interpreter's stack of frames: another activation lies where one lay before. */
static struct frame {
	uint64_t code;
	uint64_t previous;
	uint64_t instruction;
} frames[DEEP_PLACES];

static struct python_layout layout = {
	.frame_code = offsetof(struct frame, code),
	.frame_previous = offsetof(struct frame, previous),
	.frame_instruction = offsetof(struct frame, instruction),
};
static struct python_chain kept;
static uint64_t random_state;

static uint64_t
random_next(uint64_t limit)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (random_state >> 33) % limit;
}

static uint64_t
address(unsigned depth)
{
	return depth == 0 ? 0 : (uint64_t)&frames[depth - 1];
}

static void
enter(unsigned depth)
{
	frames[depth].code = 0x1000 + random_next(3) * 0x100;
	frames[depth].previous = address(depth);
	frames[depth].instruction = frames[depth].code + random_next(3) * 2;
}

static uint64_t
digest(struct python_chain *chain, unsigned depth)
{
	uint64_t sum = 0;

	if (depth != 0)
		assert_true(python_chain_digest(chain, &layout, address(depth), &sum));
	return sum;
}

/* Programs run, return and call at random between two events; what is known may be of any moment before. */
static void
what_is_kept_changes_no_digest(void **state)
{
	static struct python_chain empty;
	unsigned depth = 0;

	layout.instruction = (uint8_t)(uintptr_t)*state;
	memset(&kept, 0, sizeof(kept));
	random_state = 7;
	for (unsigned event = 0; event < 200000; event++) {
		for (uint64_t steps = random_next(4); steps != 0; steps--) {
			switch (random_next(5)) {
			case 0:
			case 1:
				if (depth < PLACES)
					enter(depth++);
				break;
			case 2:
				depth -= depth != 0;
				break;
			case 3: // back to somewhere, and on from there
				depth = (unsigned)random_next(depth + 1);
				break;
			default:
				if (depth != 0)
					frames[depth - 1].instruction += 2;
			}
			if (depth != 0 && random_next(3) == 0)
				frames[depth - 1].instruction = frames[depth - 1].code + random_next(3) * 2;
		}
		empty.last_bytes = 0;
		assert_int_equal(digest(&kept, depth), digest(&empty, depth));
	}
}

/* The same frame at the top of another chain, and another frame below it, are other stacks. */
static void
a_change_anywhere_is_another_digest(void **state)
{
	uint64_t before;

	layout.instruction = (uint8_t)(uintptr_t)*state;
	for (unsigned depth = 1; depth <= 40; depth += 13) {
		for (unsigned at = 0; at < depth; at++) {
			memset(&kept, 0, sizeof(kept));
			for (unsigned i = 0; i < depth; i++)
				enter(i);
			before = digest(&kept, depth);
			assert_int_equal(digest(&kept, depth), before);
			frames[at].instruction += 2;
			assert_int_not_equal(digest(&kept, depth), before);
			frames[at].instruction -= 2;
			assert_int_equal(digest(&kept, depth), before);
			if (at != 0) {
				frames[at].previous = address(at - 1); // one frame less
				assert_int_not_equal(digest(&kept, depth), before);
			}
		}
	}
}

/*
 * Programs call deeper than is kept, and come back. Two stacks whose shown frames differ have different digests, whatever was kept; where
 * nothing happened the digest stays; and a chain that is short is as if it had never been long.
 */
static void
of_long_chains_what_is_shown_decides(void **state)
{
	static struct python_chain empty;
	static struct frame before[DEEP_PLACES];
	unsigned depth = 0;
	unsigned depth_before = 0;
	uint64_t sum_before = 0;

	layout.instruction = (uint8_t)(uintptr_t)*state;
	memset(&kept, 0, sizeof(kept));
	random_state = 11;
	for (unsigned event = 0; event < 20000; event++) {
		unsigned target = (unsigned)random_next(random_next(8) == 0 ? DEEP_PLACES : 12);

		if (random_next(2) == 0 && depth > 6)
			target = depth - (unsigned)random_next(6);
		else if (target < 12)
			target = depth + target < DEEP_PLACES ? depth + target : depth;
		if (target < depth)
			depth = target;
		while (depth < target)
			enter(depth++);
		if (depth != 0 && random_next(3) == 0)
			frames[depth - 1 - random_next(depth < 200 ? depth : 200)].instruction += 2;

		uint64_t sum = digest(&kept, depth);
		bool is_same = depth == depth_before;

		for (unsigned i = depth > PYTHON_CHAIN_DIGESTED ? depth - PYTHON_CHAIN_DIGESTED : 0; is_same && i < depth; i++)
			is_same = memcmp(&frames[i], &before[i], sizeof(frames[i])) == 0;
		if (!is_same && depth + depth_before != 0)
			assert_int_not_equal(sum, sum_before);
		assert_int_equal(digest(&kept, depth), sum);
		memset(&empty, 0, sizeof(empty));
		assert_int_equal(sum, digest(&empty, depth));
		memcpy(before, frames, sizeof(before));
		depth_before = depth;
		sum_before = sum;
	}
}

static void
broken_chains_are_told(void **state)
{
	static struct frame many[12];
	uint64_t sum;

	memset(&kept, 0, sizeof(kept));
	for (unsigned i = 1; i < 12; i++)
		many[i].previous = (uint64_t)&many[i - 1];
	assert_true(python_chain_digest(&kept, &layout, (uint64_t)&many[10], &sum));
	many[3].previous = 3; // no address
	assert_false(python_chain_digest(&kept, &layout, (uint64_t)&many[10], &sum));
	many[3].previous = (uint64_t)&many[5]; // a loop ends where the chain is cut off
	assert_true(python_chain_digest(&kept, &layout, (uint64_t)&many[10], &sum));
}

int
main(void)
{
	void *pointer = (void *)(uintptr_t)PYTHON_INSTRUCTION_POINTER;
	void *bytes = (void *)(uintptr_t)PYTHON_INSTRUCTION_BYTES;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(what_is_kept_changes_no_digest, pointer),
		cmocka_unit_test_prestate(what_is_kept_changes_no_digest, bytes),
		cmocka_unit_test_prestate(a_change_anywhere_is_another_digest, pointer),
		cmocka_unit_test_prestate(a_change_anywhere_is_another_digest, bytes),
		cmocka_unit_test_prestate(of_long_chains_what_is_shown_decides, pointer),
		cmocka_unit_test_prestate(of_long_chains_what_is_shown_decides, bytes),
		cmocka_unit_test(broken_chains_are_told),
	};

	return cmocka_run_group_tests_name("python_chain", tests, NULL, NULL);
}
