/*
 * test_in_memory.c - what was asked for and never touched holds nothing: who comes first, and what do the rows say?
 */
#include "scene.h"
#include "analysis/model_finish.h"

#include "written.h"
#include "owned.h"

static struct hand_model hand;

SETUP(make)
{
	hand_model_make(&hand);
}

static void
untouched(struct model_site *site, uint64_t bytes)
{
	site->large_bytes = site->live_bytes;
	site->large_resident_bytes = site->live_bytes - bytes;
	scene_untouched(&hand, site, bytes);
}

/* np.zeros() of 2 GiB, of which one page was written, and 300 MiB that are all there. */
TEST(what_was_never_touched_comes_last)
{
	const struct ranking *const all[] = { &rank_leaks, &rank_peak, &rank_sites };

	untouched(hand_model_site(&hand, HEAP, 2, 2 * GIB), 2 * GIB - 4 * KIB);
	(void)hand_model_site(&hand, HEAP, 6, 300 * MIB);
	rank_leaks_classify(&hand.model);
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		OWNED_BY(ranked) struct ranked *ranked = rank_run((struct finished_model){ &hand.model }, all[i], NULL);

		assert_int_equal(ranked->line_count, 2);
		assert_int_equal(ranked->lines[0].where->line, 6);
		assert_int_equal(ranked->lines[1].untouched_bytes, 2 * GIB - 4 * KIB);
	}
}

/* Of one line: what it asked for later, and did not touch, was not there at the peak, and takes nothing from what was. */
TEST(what_came_after_the_peak_takes_nothing_from_it)
{
	hand_model_site(&hand, HEAP, 2, 300 * MIB)->peak_bytes = 0;
	scene_untouched(&hand, &hand.sites[0], 300 * MIB);
	(void)hand_model_site(&hand, HEAP, 2, 100 * MIB);
	hand.domains[HEAP].peak_bytes = 100 * MIB;
	OWNED_BY(ranked) struct ranked *ranked = rank_run(model_finish(&hand.model, &hand_model_now), &rank_peak, NULL);

	assert_int_equal(ranked->lines[0].peak_bytes - ranked->lines[0].peak_untouched_bytes, 100 * MIB);
	assert_int_equal(hand.domains[HEAP].peak_untouched_bytes, 0);
}

TEST(a_row_says_how_much_of_it_is_in_memory)
{
	const struct report_options options = { .top = 5 };

	untouched(hand_model_site(&hand, HEAP, 2, 2 * GIB), 2 * GIB - 4 * KIB);
	untouched(hand_model_site(&hand, HEAP, 6, 300 * MIB), 8 * MIB); // too little to tell
	char *text = written_part(&hand.model, &rank_leaks, &options, written_lines);
	assert_non_null(strstr(text, "train.py:2 epoch\n                    4.0 KiB of it in memory\n"));
	assert_null(strstr(text, "292 MiB"));
	free(text);
	text = written_part(&hand.model, &rank_peak, &options, written_lines);
	assert_non_null(strstr(text, "train.py:2 epoch\n                    4.0 KiB of it in memory\n"));
	free(text);
	text = written_part(&hand.model, &rank_leaks, &options, render_totals);
	assert_non_null(strstr(text, "  292 MiB of it in memory\n"));
	free(text);
}

TEST(the_largest_row_is_the_one_that_is_in_memory)
{
	const struct report_options options = { .top = 1 };

	untouched(hand_model_site(&hand, HEAP, 2, 2 * GIB), 2 * GIB - 4 * KIB);
	(void)hand_model_site(&hand, HEAP, 6, 300 * MIB);
	OWNED char *text = written_part(&hand.model, &rank_leaks, &options, written_lines);
	assert_non_null(strstr(text, "train.py:6 epoch"));
	assert_null(strstr(text, "train.py:2 epoch"));
}

TEST(a_librarys_own_allocator_is_named_as_an_estimate)
{
	const struct report_options options = { .top = 5 };

	hand_model_domain(&hand.domains[HEAP], "library");
	struct model_site *site = hand_model_site(&hand, HEAP, 18, 812 * MIB);
	site->library = "polars";
	char *text = written_part(&hand.model, &rank_leaks, &options, written_lines);
	assert_non_null(strstr(
		text, "train.py:18 epoch\n                    in the allocator of polars, which grew here (estimated)\n"));
	free(text);
	text = written(&hand.model, &rank_leaks, &options, render_json);
	assert_non_null(strstr(text, "\"library\": \"polars\""));
	free(text);
}

RUN_TESTS(make, NULL)
