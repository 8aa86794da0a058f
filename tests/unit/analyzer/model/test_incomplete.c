/*
 * test_incomplete.c - what is said of a run of which the recorder had no room for all stacks, or of which records are lost?
 */
#include "hand_model.h"

static struct hand_model hand;

TEST(names_without_room_are_no_lines_either)
{
	hand_model_make(&hand);
	struct model_site *site = hand_model_site(&hand, HEAP, 41, 30 * MIB);
	hand.process.peak_bytes = 100 * MIB;
	hand.frames[0][3].file = "<name lost: no room in the capture>";
	assert_int_equal(rank_elsewhere_bytes(&hand.model, NULL), 0);
	hand.process.losses[KMEM_LOST_GROWTH] = 1;
	hand.process.losses[KMEM_LOST_PYTHON_TEXT] = 1;
	assert_int_equal(rank_elsewhere_bytes(&hand.model, NULL), 30 * MIB);
	assert_int_equal(rank_elsewhere_bytes(&hand.model, &hand.domains[HEAP]), 30 * MIB);
	assert_int_equal(rank_elsewhere_bytes(&hand.model, &hand.domains[MMAP]), 0);
	assert_int_equal(rank_elsewhere_worth_bytes(&hand.model), 30 * MIB);
	hand.process.peak_bytes = GIB;
	assert_int_equal(rank_elsewhere_worth_bytes(&hand.model), 0);
	hand.frames[0][3].file = "train.py";
	assert_int_equal(rank_elsewhere_bytes(&hand.model, NULL), 0);
	site->stack_flags = KMEM_STACK_ARENA; // whether an import made it, nobody can tell
	assert_int_equal(rank_elsewhere_bytes(&hand.model, NULL), 30 * MIB);
}

/* What is booked elsewhere, or lost, is no line to look at. */
TEST(where_lines_say_little_the_run_is_to_be_recorded_again)
{
	static const struct {
		uint64_t folded_bytes, growth, unlisted_bytes;
		const char *next;
	} cases[] = {
		{ 100 * MIB, 1, 0, "record it again with more room for stacks (the disk that holds captures, or ulimit -v)" },
		{ 100 * MIB, 0, 0, "record it again with more room for stacks (KMEMSHIM_SITES_MAX, KMEMSHIM_CAPTURE_MAX)" },
		{ 10 * MIB, 0, 0, "no action is needed" },
		{ 0, 0, 300 * MIB, "record it again, or copy the capture again" },
		{ 0, 0, 30 * MIB, "record it again where whole figures are needed" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct verdict verdict;

		hand_model_make(&hand);
		hand_model_generations(hand_model_site(&hand, HEAP, 41, 300 * MIB), 1, 12, 0, 3);
		hand_model_site(&hand, HEAP, 50, cases[i].folded_bytes)->stack_flags = KMEM_STACK_MERGED;
		hand.process.peak_bytes = 400 * MIB;
		hand.process.losses[KMEM_LOST_GROWTH] = cases[i].growth;
		hand.process.live_bytes = 400 * MIB;
		hand.model.needs_salvage = cases[i].unlisted_bytes != 0;
		hand.model.capture_damage_count = cases[i].unlisted_bytes != 0;
		hand.model.unlisted_bytes = cases[i].unlisted_bytes;
		hand_model_exited(&hand, 0);
		hand_model_decide(&hand, &verdict);
		if (strncmp(verdict.next, cases[i].next, strlen(cases[i].next)) != 0)
			fail_msg("%zu: %s", i, verdict.next);
		assert_true((strstr(verdict.text, "belongs to no line") != NULL) == (cases[i].unlisted_bytes != 0));
		assert_true((strstr(verdict.text, "no room for the stacks of 100 MiB") != NULL) ==
		            (cases[i].folded_bytes == 100 * MIB));
	}
}

RUN_TESTS(NULL, NULL)
