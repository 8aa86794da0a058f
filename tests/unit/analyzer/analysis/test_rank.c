/*
 * test_rank.c - does the right line come first, and is a leak told from what only looks like one?
 */
#include "hand_model.h"

#include "model/site_key.h"

static struct hand_model hand;

static int
make(void **state)
{
	hand_model_make(&hand);
	return 0;
}

static uint32_t
line_at(const struct ranked *ranked, size_t number)
{
	return ranked->lines[number].where->line;
}

/* --- classes --------------------------------------------------------------------------------------------------- */

static const struct {
	uint32_t alive, total, recent, recent_total;
	uint64_t live_bytes;
	enum model_leak_class wanted;
	const char *why;
} class_cases[] = {
	{ 12, 12, 3, 3, MIB, MODEL_LEAK_LEAK, "every generation is alive" },
	{ 9, 12, 3, 3, MIB, MODEL_LEAK_LEAK, "three quarters are enough" },
	{ 8, 12, 3, 3, MIB, MODEL_LEAK_BACKLOG, "less than three quarters are not" },
	{ 12, 12, 2, 3, MIB, MODEL_LEAK_BACKLOG, "67 % of the latest quarter: it slowed down" },
	{ 12, 12, 0, 3, MIB, MODEL_LEAK_STEADY, "nothing recent: it stopped" },
	{ 6, 6, 1, 1, MIB, MODEL_LEAK_LEAK, "six generations can be judged" },
	{ 5, 5, 1, 1, MIB, MODEL_LEAK_TOO_SHORT, "five cannot" },
	{ 12, 12, 3, 3, 64 * KIB, MODEL_LEAK_LEAK, "the floor itself" },
	{ 12, 12, 3, 3, 64 * KIB - 1, MODEL_LEAK_STEADY, "below the floor" },
	{ 2, 23, 1, 6, MIB, MODEL_LEAK_STEADY, "bounded cache, measured 2/23" },
	{ 4, 27, 1, 7, MIB, MODEL_LEAK_STEADY, "sawtooth, measured 4/27" },
	{ 1, 28, 0, 7, GIB, MODEL_LEAK_STEADY, "one-time load, measured 1/28" },
	{ 5, 15, 3, 4, MIB, MODEL_LEAK_BACKLOG, "garbage cycles, measured 5/15" },
	{ 9, 23, 4, 6, MIB, MODEL_LEAK_BACKLOG, "draining queue, measured 9/23" },
	{ 0, 28, 0, 7, 0, MODEL_LEAK_NONE, "everything was released" },
};

TEST_WITH(classes_follow_the_surviving_generations, make, NULL)
{
	for (size_t i = 0; i < ARRAY_LEN(class_cases); i++) {
		struct model_site *site;

		hand_model_make(&hand);
		site = hand_model_site(&hand, HEAP, 41, class_cases[i].live_bytes);
		site->live_count = class_cases[i].live_bytes != 0;
		hand_model_generations(site, class_cases[i].alive, class_cases[i].total, class_cases[i].recent,
		                       class_cases[i].recent_total);
		rank_leaks_classify(&hand.model);
		if (site->leak != class_cases[i].wanted)
			print_error("%s\n", class_cases[i].why);
		assert_int_equal(site->leak, class_cases[i].wanted);
	}
}

TEST_WITH(a_cache_that_fills_is_no_leak_and_says_where_it_ends, make, NULL)
{
	static const struct {
		uint64_t quarters[SURVIVAL_QUARTERS];
		uint64_t samples;
		enum model_leak_class wanted;
		uint64_t filled_kib;
		const char *why;
	} cases[] = {
		{ { 40, 30, 20, 10 },
		  0,
		  MODEL_LEAK_FILLING,
		  1254,
		  "fewer and fewer: 70, 30, then 13 more, and 10 after these" },
		{ { 60, 36, 4, 0 }, 0, MODEL_LEAK_FILLING, 1025, "it is nearly full" },
		{ { 25, 25, 25, 25 }, 0, MODEL_LEAK_LEAK, 0, "as many in each" },
		{ { 85, 5, 5, 5 }, 0, MODEL_LEAK_LEAK, 0, "much at first, and it grows evenly since then" },
		{ { 10, 20, 30, 40 }, 0, MODEL_LEAK_LEAK, 0, "more and more" },
		{ { 30, 10, 40, 20 }, 0, MODEL_LEAK_LEAK, 0, "in bursts" },
		{ { 40, 30, 20, 10 }, 9, MODEL_LEAK_LEAK, 0, "samples are too rough for it" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct model_site *site;

		hand_model_make(&hand);
		site = hand_model_site(&hand, HEAP, 41, 1024 * KIB);
		site->live_count = site->allocated_count = 100;
		site->samples = cases[i].samples;
		hand_model_generations(site, 12, 12, 3, 3);
		memcpy(site->quarters, cases[i].quarters, sizeof(site->quarters));
		rank_leaks_classify(&hand.model);
		if (site->leak != cases[i].wanted)
			print_error("%s\n", cases[i].why);
		assert_int_equal(site->leak, cases[i].wanted);
		struct rank_line line = { .telling = site, .live_bytes = site->live_bytes + 5 * KIB };

		assert_int_equal(rank_filled_bytes(&line) / KIB, cases[i].filled_kib + (cases[i].filled_kib != 0 ? 5 : 0));
	}
}

/* NumPy's shapes of arrays outlive the arrays. */
TEST(small_blocks_that_stay_make_no_queue_of_a_line)
{
	static const struct {
		uint64_t bytes;
		uint32_t line;
		enum model_leak_class wanted;
	} cases[] = {
		{ 100 * MIB, 41, MODEL_LEAK_BACKLOG },
		{ 100 * MIB - 4, 41, MODEL_LEAK_STEADY },
		{ 1 * MIB, 42, MODEL_LEAK_BACKLOG },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct model_site *site;

		hand_model_make(&hand);
		hand_model_generations(hand_model_site(&hand, HEAP, 41, 300 * MIB), 1, 40, 1, 10);
		site = hand_model_site(&hand, HEAP, cases[i].line, cases[i].bytes);
		hand_model_generations(site, 14, 40, 3, 10);
		rank_leaks_classify(&hand.model);
		assert_int_equal(hand.sites[0].leak, MODEL_LEAK_STEADY);
		assert_int_equal(site->leak, cases[i].wanted);
	}
}

/* The first site of the line, and what the second one has, which appeared when so much of the volume was over. */
TEST_WITH(what_fills_is_asked_of_the_line_and_not_of_its_stack, make, NULL)
{
	static const struct {
		uint64_t first[SURVIVAL_QUARTERS], second[SURVIVAL_QUARTERS];
		uint64_t second_count, second_volume_kib;
		unsigned second_line, second_alive; // generations of twelve
		enum model_leak_class wanted;
		const char *why;
	} cases[] = {
		{ { 30, 25, 10, 0 }, { 5, 7, 8, 8 }, 28, 512, 41, 12, MODEL_LEAK_LEAK, "the line goes on at another site" },
		{ { 30, 25, 10, 0 }, { 0, 0, 0, 0 }, 28, 256, 41, 12, MODEL_LEAK_LEAK, "all of one tick" },
		{ { 30, 25, 10, 0 }, { 0, 0, 0, 0 }, 28, 0, 41, 12, MODEL_LEAK_LEAK, "all of the last tick" },
		{ { 30, 25, 10, 0 }, { 5, 7, 8, 8 }, 28, 512, 42, 12, MODEL_LEAK_FILLING, "another line" },
		{ { 30, 20, 10, 5 }, { 30, 20, 10, 5 }, 65, 1024, 41, 12, MODEL_LEAK_FILLING, "both fill" },
		{ { 30, 20, 10, 0 }, { 1, 1, 1, 1 }, 4, 512, 41, 12, MODEL_LEAK_FILLING, "the other one has few" },
		{ { 30, 25, 10, 0 }, { 0, 0, 0, 28 }, 28, 1024, 41, 1, MODEL_LEAK_FILLING, "the other one is a queue" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct model_site *first;
		struct model_site *second;

		hand_model_make(&hand);
		first = hand_model_site(&hand, HEAP, 41, 1024 * KIB);
		first->live_count = first->allocated_count = 65;
		first->volume_bytes = 1024 * KIB;
		hand_model_generations(first, 12, 12, 3, 3);
		memcpy(first->quarters, cases[i].first, sizeof(first->quarters));
		second = hand_model_site(&hand, HEAP, cases[i].second_line, 512 * KIB);
		second->live_count = second->allocated_count = cases[i].second_count;
		second->volume_bytes = cases[i].second_volume_kib * KIB;
		hand_model_generations(second, cases[i].second_alive, 12, cases[i].second_alive < 3 ? cases[i].second_alive : 3,
		                       3);
		memcpy(second->quarters, cases[i].second, sizeof(second->quarters));
		rank_leaks_classify(&hand.model);
		if (first->leak != cases[i].wanted)
			print_error("%s\n", cases[i].why);
		assert_int_equal(first->leak, cases[i].wanted);
	}
}

/* A notebook's cell that runs again and again allocates little else. */
TEST_WITH(a_block_of_each_step_is_no_one_time_load, make, NULL)
{
	static const struct {
		enum kmem_step_source source;
		uint64_t steps, blocks;
		bool has_paused, is_once;
	} cases[] = {
		{ KMEM_STEPS_CELLS, 12, 12, false, false }, { KMEM_STEPS_PROGRAM, 100, 75, false, false },
		{ KMEM_STEPS_CELLS, 12, 8, false, true },   { KMEM_STEPS_LOOP, 12, 12, false, true },
		{ KMEM_STEPS_NONE, 0, 12, false, true },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct model_site *site;

		hand_model_make(&hand);
		hand.process.steps.source = cases[i].source;
		site = hand_model_site(&hand, HEAP, 41, 12 * MIB);
		hand_model_generations(site, 12, 12, 3, 3);
		site->process_count = 1;
		site->volume_bytes = 13 * MIB;
		site->live_count = site->allocated_count = cases[i].blocks;
		site->steps = cases[i].steps;
		site->has_paused = cases[i].has_paused;
		rank_leaks_classify(&hand.model);
		assert_int_equal(site->leak, MODEL_LEAK_LEAK);
		assert_int_equal(rank_may_be_built_once(site), cases[i].is_once);
	}
}

/* Its pieces are joined when all are there: of as much as that is, nothing is about how they came. */
TEST_WITH(what_came_after_its_last_block_does_not_make_a_load_a_leak, make, NULL)
{
	static const struct {
		uint64_t span_mib;
		bool has_paused, is_once;
		enum model_leak_class wanted;
	} cases[] = {
		{ 24, false, true, MODEL_LEAK_LEAK },
		{ 24, true, true, MODEL_LEAK_STEADY },
		{ 25, true, false, MODEL_LEAK_LEAK },
		{ 0, true, false, MODEL_LEAK_LEAK }, // not known
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct model_site *site;

		hand_model_make(&hand);
		site = hand_model_site(&hand, HEAP, 41, 12 * MIB);
		hand_model_generations(site, 12, 12, 3, 3);
		site->volume_bytes = 36 * MIB;
		site->span_bytes = cases[i].span_mib * MIB;
		site->has_paused = cases[i].has_paused;
		rank_leaks_classify(&hand.model);
		assert_int_equal(rank_may_be_built_once(site) || site->may_be_built_once, cases[i].is_once);
		assert_int_equal(site->leak, cases[i].wanted);
		if (i != 2)
			continue;
		hand_model_generations(hand_model_site(&hand, HEAP, 42, MIB), 1, 1, 1,
		                       1); // 1 of the 25 came in one go just now
		rank_leaks_classify(&hand.model);
		assert_int_equal(site->leak, MODEL_LEAK_STEADY);
	}
}

/* A third of what it took to make a table stays, from all generations: as a leak does. But a module's body runs once. */
TEST_WITH(a_table_that_an_import_makes_is_no_leak, make, NULL)
{
	static const struct {
		bool is_import, has_later_line, is_later_import;
		enum model_leak_class wanted;
		bool is_once;
	} cases[] = {
		{ false, true, false, MODEL_LEAK_LEAK, false },
		{ true, false, false, MODEL_LEAK_LEAK, true }, // `python -c "import train"`: it may still go on
		{ true, true, false, MODEL_LEAK_STEADY, true },
		{ true, true, true, MODEL_LEAK_LEAK, true },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct model_site *site;
		struct model_site *later;

		hand_model_make(&hand);
		site = hand_model_site(&hand, HEAP, 41, 12 * MIB);
		hand_model_generations(site, 12, 12, 3, 3);
		site->volume_bytes = 36 * MIB;
		site->first_ms = 100;
		hand.frames[0][3].is_importlib = cases[i].is_import;
		hand.frames[0][3].is_user = !cases[i].is_import;
		later = hand_model_site(&hand, HEAP, 90, MIB);
		later->first_ms = cases[i].has_later_line ? 200 : 50;
		hand.frames[1][3].is_importlib = cases[i].is_later_import;
		rank_leaks_classify(&hand.model);
		assert_int_equal(site->leak, cases[i].wanted);
		assert_int_equal(site->may_be_built_once, cases[i].is_once);
	}
}

TEST_WITH(what_stays_evenly_is_a_leak_whatever_comes_between, make, NULL)
{
	static const struct {
		uint64_t quarters[SURVIVAL_QUARTERS];
		uint32_t alive, recent_alive; // of 400, and of 100
		enum model_leak_class wanted;
	} cases[] = {
		{ { 40, 41, 39, 40 }, 250, 94, MODEL_LEAK_LEAK },
		{ { 17, 16, 16, 16 },
		  100,
		  69,
		  MODEL_LEAK_LEAK }, // one block in forty: a late generation may have none by chance
		{ { 17, 16, 16, 16 }, 100, 50, MODEL_LEAK_LEAK },
		{ { 17, 16, 16, 16 }, 100, 49, MODEL_LEAK_BACKLOG },
		{ { 375, 375, 375, 375 }, 1, 1, MODEL_LEAK_STEADY }, // a queue, and one bucket for nearly all of the volume
		{ { 40, 41, 39, 40 }, 250, 0, MODEL_LEAK_STEADY },   // it allocates no more
		{ { 0, 2, 20, 138 }, 250, 94, MODEL_LEAK_BACKLOG },  // a cache
		{ { 0, 0, 0, 160 }, 250, 94, MODEL_LEAK_BACKLOG },
		{ { 3, 3, 3, 3 }, 250, 94, MODEL_LEAK_BACKLOG }, // too few
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct model_site *site;

		hand_model_make(&hand);
		site = hand_model_site(&hand, HEAP, 41, MIB);
		site->allocated_bytes = 100 * MIB;
		site->allocated_count = 100000;
		site->live_count = 1000;
		hand_model_generations(site, cases[i].alive, 400, cases[i].recent_alive, 100);
		memcpy(site->quarters, cases[i].quarters, sizeof(site->quarters));
		rank_leaks_classify(&hand.model);
		assert_int_equal(site->leak, cases[i].wanted);
	}
}

/* An eighth of its blocks was released: those of the oldest generations, which are short. */
TEST_WITH(a_queue_that_lags_stays_evenly_but_for_its_oldest_blocks, make, NULL)
{
	static const struct {
		uint64_t allocated_count;
		enum model_leak_class wanted;
	} cases[] = { { 950, MODEL_LEAK_BACKLOG }, { 1671, MODEL_LEAK_BACKLOG }, { 1672, MODEL_LEAK_LEAK } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct model_site *site;

		hand_model_make(&hand);
		site = hand_model_site(&hand, HEAP, 41, 200 * MIB);
		site->allocated_bytes = 230 * MIB;
		site->live_count = 836;
		site->allocated_count = cases[i].allocated_count;
		hand_model_generations(site, 24, 51, 13, 13);
		memcpy(site->quarters, (const uint64_t[]){ 120, 238, 239, 239 }, sizeof(site->quarters));
		rank_leaks_classify(&hand.model);
		assert_int_equal(site->leak, cases[i].wanted);
	}
}

TEST_WITH(many_small_sites_below_one_line_are_one_leak, make, NULL)
{
	for (unsigned i = 0; i < 4; i++)
		hand_model_generations(hand_model_site(&hand, HEAP, 41, 20 * KIB), 12, 12, 3, 3);
	hand_model_generations(hand_model_site(&hand, HEAP, 42, 20 * KIB), 12, 12, 3, 3);
	hand_model_generations(hand_model_site(&hand, CUDA0, 41, 20 * KIB), 12, 12, 3, 3);
	rank_leaks_classify(&hand.model);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(hand.sites[i].leak, MODEL_LEAK_LEAK);
	assert_int_equal(hand.sites[4].leak, MODEL_LEAK_STEADY); // another line
	assert_int_equal(hand.sites[5].leak, MODEL_LEAK_STEADY); // another domain

	hand_model_make(&hand); // two workers of a data loader with 39 KiB each
	hand_model_generations(hand_model_site(&hand, HEAP, 41, 78 * KIB), 12, 12, 3, 3);
	hand.sites[0].process_count = 2;
	hand.sites[0].most_live_bytes = 40 * KIB;
	rank_leaks_classify(&hand.model);
	assert_int_equal(hand.sites[0].leak, MODEL_LEAK_STEADY);
	hand.sites[0].most_live_bytes = 64 * KIB;
	rank_leaks_classify(&hand.model);
	assert_int_equal(hand.sites[0].leak, MODEL_LEAK_LEAK);

	hand_model_make(&hand);
	hand_model_domain(&hand.domains[MMAP], "python/arena"); // what imports leave there comes in all generations, too
	hand_model_generations(hand_model_site(&hand, MMAP, 60, 16 * MIB - 1), 12, 12, 3, 3);
	rank_leaks_classify(&hand.model);
	assert_int_equal(hand.sites[0].leak, MODEL_LEAK_TOO_SHORT);
	assert_false(rank_may_accumulate(&hand.sites[0])); // for want of bytes, not of generations
	hand.sites[0].live_bytes++;
	rank_leaks_classify(&hand.model);
	assert_int_equal(hand.sites[0].leak, MODEL_LEAK_LEAK);
}

static const struct {
	uint64_t live_bytes, live_count, released_bytes, released_count;
	enum model_leak_class wanted;
	const char *why;
} growth_cases[] = {
	{ 1053216, 146, 212871296, 347, MODEL_LEAK_STEADY, "one array in use and 145 shapes of arrays, measured" },
	{ 221200, 13821, 1152000000, 4800, MODEL_LEAK_STEADY, "shapes alone, beside large temporaries, measured" },
	{ 9 * MIB, 146, 347 * MIB, 347, MODEL_LEAK_LEAK, "more than the temporaries explain" },
	{ 8 * MIB + 64 * KIB - 1, 146, 347 * MIB, 347, MODEL_LEAK_STEADY, "what they leave is below the floor" },
	{ 8 * MIB + 64 * KIB, 146, 347 * MIB, 347, MODEL_LEAK_LEAK, "the floor itself" },
	{ 64 * KIB + 512, 1025, 64 * MIB, 1048576, MODEL_LEAK_LEAK,
	  "objects of 64 bytes, of which one in a thousand stays" },
	{ MIB, 12, 0, 0, MODEL_LEAK_LEAK, "nothing was ever released" },
};

TEST_WITH(what_a_line_only_works_with_is_no_growth, make, NULL)
{
	for (size_t i = 0; i < ARRAY_LEN(growth_cases); i++) {
		struct model_site *site;

		hand_model_make(&hand);
		site = hand_model_site(&hand, HEAP, 41, growth_cases[i].live_bytes);
		site->live_count = growth_cases[i].live_count;
		site->allocated_bytes = growth_cases[i].live_bytes + growth_cases[i].released_bytes;
		site->allocated_count = growth_cases[i].live_count + growth_cases[i].released_count;
		hand_model_generations(site, 12, 12, 3, 3);
		rank_leaks_classify(&hand.model);
		if (site->leak != growth_cases[i].wanted)
			print_error("%s\n", growth_cases[i].why);
		assert_int_equal(site->leak, growth_cases[i].wanted);
	}
}

TEST_WITH(an_import_is_what_stands_between_the_block_and_the_users_code, make, NULL)
{
	struct model_site *library = hand_model_site(&hand, HEAP, 1, MIB);
	struct model_site *own = hand_model_site(&hand, HEAP, 2, MIB);
	struct model_site *cut = hand_model_site(&hand, HEAP, 3, MIB);
	struct model_site *foreign = hand_model_site(&hand, HEAP, 4, MIB);

	hand.frames[0][1].is_importlib = true; // the library's body, imported at the user's line
	hand.frames[1][3].is_importlib = true; // the user's own module, whose body allocates
	hand.frames[1][3].is_user = false;
	cut->stack_flags = KMEM_STACK_IMPORT_CUT;
	hand.frames[3][2].is_user = hand.frames[3][3].is_user = false;
	hand.frames[3][3].is_importlib = true; // start-up of the interpreter: nothing of the user's at all
	assert_true(rank_is_import(library));
	assert_false(rank_is_import(own));
	assert_true(rank_is_import(cut));
	assert_true(rank_is_import(foreign));
}

/* A native stack, innermost first, of one site; ends with NULL. */
static const struct {
	const char *functions[6];
	bool is_start_up;
	const char *why;
	uint64_t samples;
	bool has_paused;
} start_cases[] = {
	{ { "PyList_New", "Py_InitializeFromConfig", "Py_BytesMain", "main", "__libc_start_main", "_start" },
	  true,
	  "the interpreter sets itself up",
	  0,
	  false },
	{ { "_PyObject_GC_New", "pymain_init", "pymain_main", "Py_BytesMain", "main" },
	  true,
	  "the same, with more names",
	  0,
	  false },
	{ { "PyList_New", "_PyEval_EvalFrameDefault", "Py_InitializeFromConfig", "Py_BytesMain" },
	  true,
	  "its own frozen modules, before their frame is there",
	  0,
	  false },
	{ { "PyList_New", "_PyEval_EvalFrameDefault", "Py_RunMain", "Py_BytesMain" },
	  false,
	  "the script, whose Python frames could not be read",
	  0,
	  false },
	{ { "PyList_New", "work", "start_thread" }, false, "a thread of a library", 0, false },
	{ { "PyList_New" }, false, "a stack that ends early", 0, false },
	{ { NULL }, true, "small objects, before there was any code of Python", 4, true },
	{ { NULL }, false, "a program that embeds Python, and goes on", 4, false },
	{ { NULL }, false, "a stack that was lost", 0, true },
};

TEST_WITH(what_the_interpreter_starts_with_is_never_above_real_lines, make, NULL)
{
	struct ranked *ranked;

	for (size_t i = 0; i < ARRAY_LEN(start_cases); i++) {
		struct model_site *site;

		hand_model_make(&hand);
		site = hand_model_site(&hand, HEAP, 0, 2 * MIB);
		site->frame_count = 0;
		for (unsigned j = 0; j < ARRAY_LEN(start_cases[i].functions) && start_cases[i].functions[j] != NULL; j++) {
			hand.frames[0][j] = (struct model_frame){ .kind = MODEL_FRAME_NATIVE,
				                                      .file = "",
				                                      .module = "python3.11",
				                                      .function = start_cases[i].functions[j],
				                                      .module_path = "/usr/bin/python3.11" };
			hand.stacks[0][j] = &hand.frames[0][j];
			site->frame_count++;
		}
		site->where = &hand.frames[0][0];
		site->samples = start_cases[i].samples;
		site->has_paused = start_cases[i].has_paused;
		hand_model_site(&hand, HEAP, 41, KIB);
		if (rank_is_start_up(site) != start_cases[i].is_start_up)
			print_error("%s\n", start_cases[i].why);
		assert_int_equal(rank_is_start_up(site), start_cases[i].is_start_up);
		rank_leaks_classify(&hand.model);
		assert_int_equal(site->leak == MODEL_LEAK_IMPORT, start_cases[i].is_start_up);
		ranked = rank_run((struct finished_model){ &hand.model }, &rank_peak, NULL);
		assert_int_equal(line_at(ranked, 0), start_cases[i].is_start_up ? 41 : 0);
		rank_free(ranked);
		site->omitted = 3; // an evaluator may be among what was left out
		assert_false(rank_is_start_up(site));
	}
	hand_model_make(&hand);
	assert_false(rank_is_start_up(hand_model_site(&hand, HEAP, 41, MIB)));
}

/* --- order ----------------------------------------------------------------------------------------------------- */

TEST_WITH(leaks_come_before_what_is_larger_and_imports_last, make, NULL)
{
	struct ranked *ranked;

	hand_model_site(&hand, HEAP, 10, 900 * MIB);                                         // steady
	hand_model_generations(hand_model_site(&hand, HEAP, 20, 2 * MIB), 12, 12, 3, 3);     // leak
	hand_model_site(&hand, HEAP, 30, 5 * GIB)->stack_flags = KMEM_STACK_IMPORT_CUT;      // import
	hand_model_generations(hand_model_site(&hand, HEAP, 40, 3 * MIB), 3, 3, 1, 1);       // too short, all alive
	hand_model_generations(hand_model_site(&hand, HEAP, 45, 800 * MIB), 2, 2, 1, 1);     // too short
	hand_model_generations(hand_model_site(&hand, RESERVED, 50, 9 * GIB), 12, 12, 3, 3); // leak of address space
	hand_model_generations(hand_model_site(&hand, RESERVED, 60, 9 * GIB), 12, 12, 3, 3); // its objects have rows
	hand.sites[6].stack_flags = KMEM_STACK_ARENA;
	rank_leaks_classify(&hand.model);
	ranked = rank_run((struct finished_model){ &hand.model }, &rank_leaks, NULL);
	{
		static const uint32_t wanted[] = { 20, 50, 40, 10, 45, 30, 60 };

		assert_int_equal(ranked->line_count, ARRAY_LEN(wanted));
		for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
			assert_int_equal(line_at(ranked, i), wanted[i]);
	}
	rank_free(ranked);
}

/* Too few generations to judge, nothing released: it stands with leaks of a sixteenth of what it holds. */
TEST_WITH(what_kept_all_and_cannot_be_judged_stands_by_a_part_of_its_bytes, make, NULL)
{
	static const struct {
		uint64_t live_bytes;
		uint64_t live_count;
		uint64_t allocated_count;
		uint16_t flags;
		bool is_before; // a leak of 2 MiB
	} cases[] = {
		{ 40 * MIB, 40, 40, 0, true },  { 40 * MIB, 40, 45, 0, true }, { 31 * MIB, 40, 40, 0, false },
		{ 40 * MIB, 40, 80, 0, false }, { 40 * MIB, 2, 2, 0, false },  { 40 * MIB, 40, 40, KMEM_STACK_ARENA, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ranked *ranked;
		struct model_site *site;

		hand_model_make(&hand);
		hand_model_generations(hand_model_site(&hand, HEAP, 20, 2 * MIB), 12, 12, 3, 3);
		site = hand_model_site(&hand, HEAP, 40, cases[i].live_bytes);
		hand_model_generations(site, 1, 1, 1, 1);
		site->live_count = cases[i].live_count;
		site->allocated_count = cases[i].allocated_count;
		site->stack_flags = cases[i].flags;
		rank_leaks_classify(&hand.model);
		assert_int_equal(site->leak, MODEL_LEAK_TOO_SHORT);
		ranked = rank_run((struct finished_model){ &hand.model }, &rank_leaks, NULL);
		assert_int_equal(line_at(ranked, 0), cases[i].is_before ? 40 : 20);
		rank_free(ranked);
	}
}

TEST_WITH(lines_rank_by_their_sum_and_sites_stay_with_their_line, make, NULL)
{
	struct ranked *ranked;

	hand_model_site(&hand, HEAP, 10, 50 * MIB);
	for (unsigned i = 0; i < 4; i++) // 10, 20, 30, 40 MiB in four stacks below line 20
		hand_model_site(&hand, HEAP, 20, (i + 1) * 10 * MIB);
	hand_model_site(&hand, MMAP, 20, 45 * MIB); // the same line in another domain is another row
	rank_leaks_classify(&hand.model);
	ranked = rank_run((struct finished_model){ &hand.model }, &rank_peak, NULL);
	assert_int_equal(ranked->line_count, 3);
	assert_int_equal(ranked->site_count, 6);
	assert_int_equal(line_at(ranked, 0), 20);
	assert_int_equal(ranked->lines[0].peak_bytes, 100 * MIB);
	assert_int_equal(ranked->lines[0].site_count, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(ranked->sites[i]->peak_bytes, (4 - i) * 10 * MIB);
	assert_int_equal(line_at(ranked, 1), 10);
	assert_int_equal(ranked->lines[1].first_site, 4);
	assert_int_equal(ranked->lines[2].domain, MMAP);
	rank_free(ranked);
}

TEST_WITH(a_leak_counts_with_its_own_bytes_not_with_its_neighbours, make, NULL)
{
	struct ranked *ranked;

	hand_model_generations(hand_model_site(&hand, HEAP, 10, MIB), 12, 12, 3, 3);
	hand_model_site(&hand, HEAP, 10, 800 * MIB); // steady, below the same line
	hand_model_generations(hand_model_site(&hand, HEAP, 20, 3 * MIB), 12, 12, 3, 3);
	rank_leaks_classify(&hand.model);
	ranked = rank_run((struct finished_model){ &hand.model }, &rank_leaks, NULL);
	assert_int_equal(line_at(ranked, 0), 20);
	assert_int_equal(line_at(ranked, 1), 10);
	assert_int_equal(ranked->lines[1].leak, MODEL_LEAK_LEAK);
	assert_int_equal(ranked->lines[1].leaking_bytes, MIB);
	assert_int_equal(ranked->lines[1].live_bytes, 801 * MIB);
	rank_free(ranked);
}

TEST_WITH(a_domain_is_a_name_or_the_beginning_of_one, make, NULL)
{
	assert_true(rank_domain_matches("heap", NULL));
	assert_true(rank_domain_matches("heap", "heap"));
	assert_false(rank_domain_matches("heap", "hea"));
	assert_true(rank_domain_matches("cuda:0", "cuda"));
	assert_true(rank_domain_matches("cuda/pinned", "cuda"));
	assert_true(rank_domain_matches("cuda:1/tensors", "cuda:1"));
	assert_false(rank_domain_matches("cuda:10", "cuda:1"));
}

/* --- keys ------------------------------------------------------------------------------------------------------ */

static uint64_t
key_of(void (*change)(struct hand_model *))
{
	hand_model_make(&hand);
	hand_model_site(&hand, HEAP, 41, MIB);
	if (change != NULL)
		change(&hand);
	site_key_assign(hand.sites, 1, hand.domains);
	return hand.sites[0].key;
}

static void
change_line(struct hand_model *to)
{
	to->frames[0][2].line = 57;
}
static void
change_folder(struct hand_model *to)
{
	to->frames[0][2].file = "/ci/build/77/train.py";
}
static void
change_version(struct hand_model *to)
{
	to->frames[0][0].module = "libfast-99887766.so.3";
}
static void
change_address(struct hand_model *to)
{
	to->frames[0][0].module_offset = 4096;
}
static void
change_suffix(struct hand_model *to)
{
	to->frames[0][0].function = "alloc.part.0";
}
static void
change_prefix(struct hand_model *to)
{
	to->frames[0][1].file = "/venv/lib/python3.12/site-packages/fast/core.py";
}
static void
change_recursion(struct hand_model *to)
{
	to->stacks[0][4] = to->stacks[0][3];
	to->stacks[0][3] = to->stacks[0][2];
	to->sites[0].frame_count = 5;
}
static void
change_function(struct hand_model *to)
{
	to->frames[0][2].function = "validate";
}
static void
change_file(struct hand_model *to)
{
	to->frames[0][2].file = "/data/someone/project/test.py";
}
static void
change_callee(struct hand_model *to)
{
	to->frames[0][0].function = "realloc_all";
}
static void
change_domain(struct hand_model *to)
{
	to->sites[0].domain = MMAP;
}

TEST_WITH(keys_survive_what_does_not_change_the_code, make, NULL)
{
	static void (*const same[])(
		struct hand_model *) = { change_line,   change_folder, change_version,   change_address,
		                         change_suffix, change_prefix, change_recursion, change_callee };
	static void (*const other[])(struct hand_model *) = { change_function, change_file, change_domain };
	uint64_t key = key_of(NULL);

	assert_int_not_equal(key, 0);
	for (size_t i = 0; i < ARRAY_LEN(same); i++)
		assert_int_equal(key_of(same[i]), key);
	for (size_t i = 0; i < ARRAY_LEN(other); i++)
		assert_int_not_equal(site_key_family(key_of(other[i])), site_key_family(key));
}

TEST_WITH(siblings_share_a_family_and_are_numbered_by_line, make, NULL)
{
	hand_model_site(&hand, HEAP, 60, MIB);
	hand_model_site(&hand, HEAP, 41, MIB);
	site_key_assign(hand.sites, 2, hand.domains);
	assert_int_equal(site_key_family(hand.sites[0].key), site_key_family(hand.sites[1].key));
	assert_int_equal(hand.sites[1].key & 0xffff, 0);
	assert_int_equal(hand.sites[0].key & 0xffff, 1);
}

RUN_TESTS(NULL, NULL)
