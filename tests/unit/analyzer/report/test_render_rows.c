/*
 * test_render_rows.c - which lines get a row of the table of leaks, and what does a row say of its class? And a row of a check?
 */

#include "hand_model.h"

#include "gate/check_outputs.h"
#include "model/site_key.h"
#include "written.h"
#include "owned.h"

static struct hand_model hand;

static char *
leaks(uint64_t top)
{
	const struct report_options options = { .top = top };

	return written_part(&hand.model, &rank_leaks, &options, written_lines);
}

static void
tells(uint64_t top, const char *says)
{
	OWNED char *text = leaks(top);

	if (strstr(text, says) == NULL)
		fail_msg("wanted \"%s\" in:\n%s", says, text);
}

static struct model_site *
leak(uint32_t line, uint64_t bytes)
{
	struct model_site *site = hand_model_site(&hand, HEAP, line, bytes);

	hand_model_generations(site, 12, 12, 3, 3);
	return site;
}

/* Five small leaks before 800 MiB that are none: who sees the table must see these. */
TEST(the_largest_line_always_has_a_row)
{
	static const struct {
		uint64_t top;
		bool is_shown;
		unsigned leaks;
		const char *rest;
	} cases[] = {
		{ 3, true, 2, " 5.1 MiB  in 5 other lines\n" }, // two leaks, and the largest
		{ 5, true, 4, " 3.1 MiB  in 3 other lines\n" },
		{ 6, true, 5, " 2.1 MiB  in 2 other lines\n" },
		{ 1, false, 1, "  in 7 other lines\n" }, // one row is the first
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		hand_model_make(&hand);
		for (unsigned j = 0; j < 5; j++)
			(void)leak(10 + j, MIB);
		(void)leak(30, 100 * KIB); // less than a thousandth of the domain: summed up
		hand_model_site(&hand, HEAP, 20, 800 * MIB);
		hand_model_site(&hand, HEAP, 21, 2 * MIB);
		hand_model_site(&hand, RESERVED, 22, 8 * GIB); // larger, but no memory
		char *text = leaks(cases[i].top);
		assert_int_equal(strstr(text, "train.py:20 epoch") != NULL, cases[i].is_shown);
		for (unsigned j = 0; j < 5; j++) {
			const char *place = TEXT(32, "train.py:%u epoch", 10 + j);
			assert_int_equal(strstr(text, place) != NULL, j < cases[i].leaks);
		}
		free(text);
		tells(cases[i].top, cases[i].rest);
	}
}

TEST(a_line_of_which_a_part_leaks_says_which_part)
{
	static const struct {
		uint64_t steady_bytes;
		bool is_said;
	} cases[] = { { 0, false }, { 300 * KIB, false }, { 9 * MIB, true } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		hand_model_make(&hand);
		(void)leak(41, 3 * MIB);
		if (cases[i].steady_bytes != 0)
			hand_model_site(&hand, HEAP, 41, cases[i].steady_bytes);
		OWNED char *text = leaks(5);
		assert_int_equal(strstr(text, "                    leak 3.0 MiB of it\n") != NULL, cases[i].is_said);
	}
}

/* Hundreds of lines: figures are read at a glance, as in tables. */
TEST(large_counts_of_lines_are_grouped)
{
	static struct model_site many[1500];
	static struct model_frame frames[ARRAY_LEN(many)];
	static const struct model_frame *stacks[ARRAY_LEN(many)];

	hand_model_make(&hand);
	(void)leak(1, 3 * MIB);
	for (unsigned i = 0; i < ARRAY_LEN(many); i++) {
		many[i] = hand.sites[0];
		frames[i] = hand.frames[0][2];
		frames[i].line = i + 1;
		stacks[i] = &frames[i];
		many[i].where = &frames[i];
		many[i].frames = &stacks[i];
		many[i].frame_count = 1;
	}
	hand.model.sites = many;
	hand.model.site_count = ARRAY_LEN(many);
	tells(5, "  in 1,495 other lines\n");
}

/* It held most of what was allocated since it began: nobody can tell whether that will go on. */
TEST(what_may_be_a_data_set_has_a_question_mark)
{
	static const struct {
		uint64_t volume_bytes;
		bool has_paused;
		const char *says;
	} cases[] = {
		{ 0, false, " leak      12/12 " },             // not known
		{ 600 * MIB + 2, false, " leak      12/12 " }, // it did other work
		{ 600 * MIB, false, " leak?     12/12 " },
		{ 600 * MIB, true, " steady    12/12 " }, // it is over
		{ 600 * MIB + 2, true, " leak      12/12 " },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		hand_model_make(&hand);
		struct model_site *site = leak(41, 300 * MIB);
		site->volume_bytes = cases[i].volume_bytes;
		site->has_paused = cases[i].has_paused;
		tells(5, cases[i].says);
	}
}

/* A data set's blocks stand below several stacks: the first ones were booked without native frames. Its storage is another kind of memory. */
TEST(a_data_set_is_judged_as_a_line)
{
	static const struct {
		bool has_first_paused, has_storage_paused;
		const char *says;
	} cases[] = {
		{ true, true, " steady    12/12 " },
		{ false, true, " leak?     12/12 " },
		{ true, false, " leak?     12/12 " },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		hand_model_make(&hand);
		(void)leak(41, 10 * MIB);
		(void)leak(41, 190 * MIB);
		hand.sites[0].volume_bytes = hand.sites[1].volume_bytes = 240 * MIB;
		hand.sites[0].has_paused = cases[i].has_first_paused;
		hand.sites[1].has_paused = true;
		hand_model_site(&hand, MMAP, 41, MIB)->has_paused = cases[i].has_storage_paused;
		hand.sites[1].where = hand.sites[2].where = hand.sites[0].where;
		tells(5, cases[i].says);
	}
}

TEST(what_threads_start_in_is_no_caller)
{
	char *text;

	for (unsigned i = 0; i < 2; i++) {
		hand_model_make(&hand);
		(void)leak(41, MIB);
		hand.frames[0][3] = (struct model_frame){ .kind = MODEL_FRAME_PYTHON,
			                                      .function = "Thread.run",
			                                      .file = i == 0 ? "/usr/lib/python3.11/threading.py"
			                                                     : "/usr/lib/python3.11/concurrent/futures/thread.py",
			                                      .line = 975,
			                                      .module = "threading.py",
			                                      .module_path = "" };
		text = leaks(5);
		assert_non_null(strstr(text, "train.py:41 epoch\n                    via  fast/core.py:330 full\n"));
		assert_null(strstr(text, "from "));
		free(text);
		hand.frames[0][3].is_user = true; // a file of the program's own with that name
		tells(5, "from ");
	}
}

static struct baseline *
baseline_of(const char *domain, uint64_t bytes)
{
	struct baseline_builder *builder = baseline_begin();

	hand_model_make(&hand);
	hand_model_domain(&hand.domains[MMAP], domain);
	hand_model_generations(hand_model_site(&hand, MMAP, 41, bytes), 12, 12, 3, 3);
	site_key_assign(hand.sites, hand.model.site_count, hand.domains);
	rank_leaks_classify(&hand.model);
	baseline_add_run(builder, (struct finished_model){ &hand.model });
	return baseline_finish(builder);
}

TEST(a_check_says_what_arenas_need)
{
	static const struct {
		const char *before, *after, *place, *note;
	} cases[] = {
		{ "python/arena", "python/arena", "  train.py:41 epoch\n",
		  "\nnote: lines of small Python objects are not known in both: record both with KMEMSHIM_PYTHON_OBJECTS not set, or "
		  "both with --python-objects" },
		{ "python/arena", "heap", "  train.py:41 epoch\n                    new\n",
		  "\nnote: only the baseline has Python's arenas; the other was recorded with --python-objects or "
		  "PYTHONMALLOC=malloc" },
		{ "heap", "python/arena", "  train.py:41 epoch\n                    new\n",
		  "\nnote: only the new run has Python's arenas" },
		{ "heap", "heap", "  train.py:41 epoch\n", NULL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct check_tolerance usual = { .absolute_bytes = MIB, .relative_ppm = 50000 };
		OWNED_BY(baseline) struct baseline *before = baseline_of(cases[i].before, 20 * MIB);
		OWNED_BY(baseline) struct baseline *after = baseline_of(cases[i].after, 60 * MIB);
		OWNED_BY(check) struct check *check = check_compare(before, after, usual, NULL);
		char *text = NULL;
		size_t length = 0;
		FILE *stream = open_memstream(&text, &length);

		render_check_text(check, stream);
		assert_int_equal(fclose(stream), 0);
		if (strstr(text, cases[i].place) == NULL ||
		    (cases[i].note != NULL ? strstr(text, cases[i].note) == NULL : strstr(text, "note:") != NULL))
			fail_msg("%zu:\n%s", i, text);
		free(text);
	}
}

RUN_TESTS(NULL, NULL)
