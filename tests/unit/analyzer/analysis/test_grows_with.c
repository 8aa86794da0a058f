/*
 * test_grows_with.c - which lines are said to leak together?
 */
#include "hand_model.h"

#include "analysis/grows_with.h"

static struct hand_model hand;
static struct rank_line first;
static struct rank_line second;

/* Two lines, each with a block of each of so many calls; the same call, of line 95, made both. */
static void
make(uint64_t count, uint64_t other_count)
{
	struct rank_line *lines[] = { &first, &second };
	uint64_t counts[] = { count, other_count };

	hand_model_make(&hand);
	for (unsigned i = 0; i < 2; i++) {
		struct model_site *site = hand_model_site(&hand, HEAP, 41 + i, 100 * MIB);

		site->live_count = counts[i];
		hand.stacks[i][3] = &hand.frames[0][3]; // as of a capture: equal frames are one object
		hand.frames[1][2].function = "step";
		*lines[i] = (struct rank_line){
			.where = site->where, .leak = MODEL_LEAK_LEAK, .telling = site, .largest = site
		};
	}
}

TEST(as_many_blocks_of_the_same_call)
{
	make(160, 160);
	assert_true(lines_grow_together(&first, &second));
	make(2400, 2250); // a sixteenth less
	assert_true(lines_grow_together(&first, &second));
	assert_true(lines_grow_together(&second, &first));
	make(2400, 2249);
	assert_false(lines_grow_together(&first, &second));
	make(16, 16);
	assert_true(lines_grow_together(&first, &second));
	make(15, 15);
	assert_false(lines_grow_together(&first, &second));
}

TEST(of_samples_about_as_many)
{
	static const struct {
		uint64_t samples, count;
		bool is_together;
	} cases[] = { { 64, 4000, true }, { 63, 4000, false }, { 64, 3999, false } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		make(6000, cases[i].count);
		hand.sites[1].samples = cases[i].samples;
		assert_int_equal(lines_grow_together(&first, &second), cases[i].is_together);
		hand.sites[0].samples = cases[i].samples; // both are
		assert_int_equal(lines_grow_together(&second, &first), cases[i].is_together);
	}
}

TEST(of_other_calls_or_processes_they_are_two)
{
	make(160, 160);
	hand.stacks[1][3] = &hand.frames[1][3]; // another line called
	assert_false(lines_grow_together(&first, &second));
	hand.stacks[1][3] = hand.stacks[0][2]; // the first line itself called it: an object, and what its constructor made
	assert_true(lines_grow_together(&first, &second));
	assert_true(lines_grow_together(&second, &first));
	make(160, 160);
	hand.sites[0].frame_count = hand.sites[1].frame_count = 3; // nobody called: the body of a script
	assert_false(lines_grow_together(&first, &second));
	make(160, 160);
	hand.sites[1].process = 1;
	assert_false(lines_grow_together(&first, &second));
	make(160, 160);
	hand.sites[1].process_count = 2;
	assert_false(lines_grow_together(&first, &second));
}

TEST(what_does_not_leak_grows_with_nothing)
{
	make(160, 160);
	second.leak = MODEL_LEAK_STEADY;
	assert_false(lines_grow_together(&first, &second));
	make(160, 160);
	second.is_import = true;
	assert_false(lines_grow_together(&first, &second));
	make(160, 160);
	second.where = first.where; // another kind of its memory
	assert_false(lines_grow_together(&first, &second));
	make(160, 160);
	second.where = NULL;
	assert_false(lines_grow_together(&first, &second));
}

TEST(the_first_of_them_tells_of_all)
{
	struct rank_line lines[65];
	struct ranked ranked = { .line_count = ARRAY_LEN(lines), .lines = lines };

	make(160, 160);
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		lines[i] = first;
		lines[i].leak = MODEL_LEAK_STEADY;
	}
	lines[2] = first;
	lines[5] = second;
	lines[5].live_bytes = 3;
	struct grows_with found = grows_with_of(&ranked, &lines[2]);
	assert_true(found.first == NULL && found.others == 1 && found.other_bytes == 3);
	found = grows_with_of(&ranked, &lines[5]);
	assert_true(found.first == &lines[2] && found.others == 0);
	found = grows_with_of(&ranked, &lines[1]);
	assert_true(found.first == NULL && found.others == 0);
	lines[63] = second; // the 64th is looked at, others are not
	assert_int_equal(grows_with_of(&ranked, &lines[2]).others, 2);
	lines[64] = second;
	assert_int_equal(grows_with_of(&ranked, &lines[2]).others, 2);
}

RUN_TESTS(NULL, NULL)
