/*
 * test_rank.c - does the right line come first, and is a leak told from what only looks like one?
 */
#include "base/items.h"
#include "scene.h"

#include "owned.h"

static struct hand_model hand;

SETUP(make)
{
	hand_model_make(&hand);
}

static uint32_t
line_at(const struct ranked *ranked, size_t number)
{
	return ranked->lines[number].where->line;
}

/* The ranking of the scene's model; for rank_free(). */
static struct ranked *
ranked_by(const struct ranking *ranking, const char *scene)
{
	hand_model_make(&hand);
	scene_add(&hand, "%s", scene);
	rank_leaks_classify(&hand.model);
	return rank_run((struct finished_model){ &hand.model }, ranking, NULL);
}

/* --- classes --------------------------------------------------------------------------------------------------- */

struct class_case {
	const char *scene;
	enum model_leak_class wanted; // of its first site
	const char *why;
};

static void
check_classes(const struct class_case *cases, size_t count, const char *common)
{
	for (size_t i = 0; i < count; i++) {
		hand_model_make(&hand);
		scene_add(&hand, "%s%s", common, cases[i].scene);
		rank_leaks_classify(&hand.model);
		if (hand.sites[0].leak != cases[i].wanted)
			fail_msg("%s: %s: %u", cases[i].why, cases[i].scene, hand.sites[0].leak);
	}
}

TEST(classes_follow_the_surviving_generations)
{
	static const struct class_case cases[] = {
		{ "1M gens=12/12/3/3", MODEL_LEAK_LEAK, "every generation is alive" },
		{ "1M gens=12/12/2/3", MODEL_LEAK_BACKLOG, "67 % of the latest quarter: it slowed down" },
		{ "1M gens=12/12/0/3", MODEL_LEAK_STEADY, "nothing recent: it stopped" },
		{ "1M gens=2/23/1/6", MODEL_LEAK_STEADY, "bounded cache, measured 2/23" },
		{ "1M gens=4/27/1/7", MODEL_LEAK_STEADY, "sawtooth, measured 4/27" },
		{ "1G gens=1/28/0/7", MODEL_LEAK_STEADY, "one-time load, measured 1/28" },
		{ "1M gens=5/15/3/4", MODEL_LEAK_BACKLOG, "garbage cycles, measured 5/15" },
		{ "1M gens=9/23/4/6", MODEL_LEAK_BACKLOG, "draining queue, measured 9/23" },
		{ "0 gens=0/28/0/7 live_count=0", MODEL_LEAK_NONE, "everything was released" },
	};

	check_classes(cases, ARRAY_LEN(cases), "heap:41 ");
}

TEST(a_cache_that_fills_is_no_leak_and_says_where_it_ends)
{
	static const struct {
		struct class_case of;
		uint64_t filled_kib;
	} cases[] = {
		{ { "quarters=40/30/20/10", MODEL_LEAK_FILLING, "fewer and fewer: 70, 30, then 13 more, and 10 after these" },
		  1259 },
		{ { "quarters=60/36/4/0", MODEL_LEAK_FILLING, "it is nearly full" }, 1030 },
		{ { "quarters=25/25/25/25", MODEL_LEAK_LEAK, "as many in each" }, 0 },
		{ { "quarters=85/5/5/5", MODEL_LEAK_LEAK, "much at first, and it grows evenly since then" }, 0 },
		{ { "quarters=10/20/30/40", MODEL_LEAK_LEAK, "more and more" }, 0 },
		{ { "quarters=30/10/40/20", MODEL_LEAK_LEAK, "in bursts" }, 0 },
		{ { "quarters=40/30/20/10 samples=9", MODEL_LEAK_LEAK, "samples are too rough for it" }, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct rank_line line = { .telling = &hand.sites[0], .live_bytes = 1029 * KIB };

		check_classes(&cases[i].of, 1, "heap:41 1M leak live_count=100 allocated_count=100 ");
		assert_int_equal(rank_filled_bytes(&line) / KIB, cases[i].filled_kib);
	}
}

/* NumPy's shapes of arrays outlive the arrays. */
TEST(small_blocks_that_stay_make_no_queue_of_a_line)
{
	static const struct class_case cases[] = {
		{ "heap:41 100M gens=14/40/3/10; heap:41 300M gens=1/40/1/10", MODEL_LEAK_BACKLOG, "a third of the line" },
		{ "heap:41 100M-4 gens=14/40/3/10; heap:41 300M gens=1/40/1/10", MODEL_LEAK_STEADY, "less" },
		{ "heap:42 1M gens=14/40/3/10; heap:41 300M gens=1/40/1/10", MODEL_LEAK_BACKLOG, "another line" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		check_classes(&cases[i], 1, "");
		assert_int_equal(hand.sites[1].leak, MODEL_LEAK_STEADY);
	}
}

/* The first site of the line, and what the second one has, which appeared when so much of the volume was over. */
TEST(what_fills_is_asked_of_the_line_and_not_of_its_stack)
{
#define SECOND(line, count, volume) \
	"; heap:" line " 512K leak live_count=" count " allocated_count=" count " volume_bytes=" volume " quarters="
	static const struct class_case cases[] = {
		{ "30/25/10/0" SECOND("41", "28", "512K") "5/7/8/8", MODEL_LEAK_LEAK, "the line goes on at another site" },
		{ "30/25/10/0" SECOND("41", "28", "256K") "0/0/0/0", MODEL_LEAK_LEAK, "all of one tick" },
		{ "30/25/10/0" SECOND("41", "28", "0") "0/0/0/0", MODEL_LEAK_LEAK, "all of the last tick" },
		{ "30/25/10/0" SECOND("42", "28", "512K") "5/7/8/8", MODEL_LEAK_FILLING, "another line" },
		{ "30/20/10/5" SECOND("41", "65", "1M") "30/20/10/5", MODEL_LEAK_FILLING, "both fill" },
		{ "30/20/10/0" SECOND("41", "4", "512K") "1/1/1/1", MODEL_LEAK_FILLING, "the other one has few" },
		{ "30/25/10/0" SECOND("41", "28", "1M") "0/0/0/28 gens=1/12/1/3", MODEL_LEAK_FILLING,
		  "the other one is a queue" },
	};

	check_classes(cases, ARRAY_LEN(cases),
	              "heap:41 1M leak live_count=65 allocated_count=65 volume_bytes=1M quarters=");
}

/* A stack for each caller, which runs the line once: of the first ten ticks, or so. */
TEST(what_accumulates_is_asked_of_the_line_that_many_callers_run)
{
	static const struct {
		const char *text;
		unsigned stacks, from, every, line_every, callers;
		enum model_leak_class leak;
	} cases[] = {
		{ "each keeps its block", 12, 12, 1, 99, 12, MODEL_LEAK_LEAK },
		{ "it is the line of three of four callers", 12, 12, 1, 4, 12, MODEL_LEAK_LEAK },
		{ "six callers", 12, 12, 1, 99, 6, MODEL_LEAK_LEAK },
		{ "five: what each does may be a load", 12, 12, 1, 99, 5, MODEL_LEAK_STEADY },
		{ "every other caller has released it", 12, 12, 2, 99, 12, MODEL_LEAK_STEADY },
		{ "too few", 5, 19, 1, 99, 12, MODEL_LEAK_TOO_SHORT },
		{ "long ago", 12, 2, 1, 99, 12, MODEL_LEAK_STEADY },
		{ "other lines", 12, 12, 1, 1, 12, MODEL_LEAK_STEADY },
	};

	EACH (one, cases, ARRAY_LEN(cases)) {
		hand_model_make(&hand);
		for (unsigned i = 0; i < one->stacks; i++) {
			bool is_live = i % one->every == 0 || i == 0;

			scene_add(&hand, "heap:%u %u gens=1/%u/1/1 volume_bytes=%u live_count=%u tick=%u",
			          41 + (i % one->line_every == one->line_every - 1) * i, is_live * 100000, one->stacks,
			          (40 - i) * 1000000, is_live, one->from + i);
			hand.stacks[i][3] = &hand.frames[i % one->callers][3];
		}
		rank_leaks_classify(&hand.model);
		if (hand.sites[0].leak != one->leak)
			fail_msg("%s: %s", one->text, model_leak_name(hand.sites[0].leak));
	}
}

/* Until Python 3.11 it has a frame of its own. */
TEST(a_comprehension_is_a_part_of_its_line)
{
	for (unsigned is_of_it = 0; is_of_it <= 1; is_of_it++) {
		hand_model_make(&hand);
		scene_add(&hand, "heap:41 40M leak volume_bytes=100M; heap:41 20M leak volume_bytes=100M");
		hand.frames[1][2].function = "epoch.<locals>.<listcomp>";
		if (is_of_it)
			hand.stacks[1][3] = hand.stacks[0][2];
		rank_leaks_classify(&hand.model);
		assert_int_equal(rank_may_be_built_once(&hand.sites[0]), is_of_it);
		assert_int_equal(rank_may_be_built_once(&hand.sites[1]), is_of_it);
	}
}

/* A notebook's cell that runs again and again allocates little else. */
TEST(a_block_of_each_step_is_no_one_time_load)
{
	static const struct {
		enum kmem_step_source source;
		unsigned steps, blocks;
		bool is_once;
	} cases[] = {
		{ KMEM_STEPS_CELLS, 12, 12, false }, { KMEM_STEPS_PROGRAM, 100, 75, false }, { KMEM_STEPS_CELLS, 12, 8, true },
		{ KMEM_STEPS_LOOP, 12, 12, true },   { KMEM_STEPS_NONE, 0, 12, true },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		hand_model_make(&hand);
		hand.process.steps.source = cases[i].source;
		scene_add(&hand, "heap:41 12M leak volume_bytes=13M live_count=%u allocated_count=%u steps=%u", cases[i].blocks,
		          cases[i].blocks, cases[i].steps);
		rank_leaks_classify(&hand.model);
		assert_int_equal(hand.sites[0].leak, MODEL_LEAK_LEAK);
		assert_int_equal(rank_may_be_built_once(&hand.sites[0]), cases[i].is_once);
	}
}

/* It throws away three times what it keeps, in rounds of one call. Anyone else's rounds say nothing. */
TEST(what_a_constructor_makes_in_its_rounds_may_be_a_load)
{
	static const struct {
		enum kmem_step_source source;
		const char *function, *file;
		bool is_once;
	} cases[] = {
		{ KMEM_STEPS_LOOP, "Reviews.__init__", "/home/user/train.py", true },
		{ KMEM_STEPS_LOOP, "main", "/home/user/train.py", false },
		{ KMEM_STEPS_LOOP, "Reviews.__init__", "/home/user/other.py", false },
		{ KMEM_STEPS_CELLS, "Reviews.__init__", "/home/user/train.py", false },
		{ KMEM_STEPS_LOOP, "epoch.__init__", "/home/user/train.py", false },   // the line itself
		{ KMEM_STEPS_LOOP, "Reviews.__init__", "/home/user/train.py", false }, // much is done elsewhere
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct model_frame builder = { .kind = MODEL_FRAME_PYTHON,
			                           .file = cases[i].file,
			                           .function = cases[i].function };

		hand_model_make(&hand);
		hand.process.steps = (struct model_steps){ .source = cases[i].source, .where = &builder };
		scene_add(&hand, "heap:41 11M leak volume_bytes=48M allocated_bytes=%s", i == 5 ? "24M" : "48M");
		hand.frames[0][2].function = i == 4 ? "epoch.__init__" : "epoch";
		hand.frames[0][3].function = "Reviews.__init__";
		builder.file = i == 2 ? builder.file : hand.frames[0][3].file;
		rank_leaks_classify(&hand.model);
		assert_int_equal(hand.sites[0].leak, MODEL_LEAK_LEAK);
		assert_int_equal(rank_may_be_built_once(&hand.sites[0]), cases[i].is_once);
	}
}

/* Its pages are those of all that it ever had at once. */
TEST(what_grew_in_a_librarys_allocator_may_be_free)
{
	for (unsigned is_library = 0; is_library <= 1; is_library++) {
		hand_model_make(&hand);
		scene_add(&hand, "name mmap library; mmap:41 12M leak volume_bytes=48M%s", is_library ? " library=polars" : "");
		rank_leaks_classify(&hand.model);
		assert_int_equal(hand.sites[0].leak, MODEL_LEAK_LEAK);
		assert_int_equal(rank_may_be_built_once(&hand.sites[0]), is_library);
	}
}

/* Its pieces are joined when all are there: of as much as that is, nothing is about how they came. */
TEST(what_came_after_its_last_block_does_not_make_a_load_a_leak)
{
	static const struct {
		struct class_case of;
		bool is_once;
	} cases[] = {
		{ { "24M", MODEL_LEAK_LEAK, "half of it" }, true },
		{ { "24M has_paused=1", MODEL_LEAK_STEADY, "and it is over" }, true },
		{ { "25M has_paused=1", MODEL_LEAK_LEAK, "less than half" }, false },
		{ { "0 has_paused=1", MODEL_LEAK_LEAK, "not known" }, false },
		/* 1 of the 25 came in one go just now. */
		{ { "25M has_paused=1; heap:42 1M gens=1/1/1/1", MODEL_LEAK_STEADY, "with another line" }, true },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		check_classes(&cases[i].of, 1, "heap:41 12M leak volume_bytes=36M span_bytes=");
		assert_int_equal(rank_may_be_built_once(&hand.sites[0]) || hand.sites[0].may_be_built_once, cases[i].is_once);
	}
}

/* A third of what it took to make a table stays, from all generations: as a leak does. But a module's body runs once. */
TEST(a_table_that_an_import_makes_is_no_leak)
{
	static const struct {
		bool is_import, is_later_import;
		unsigned later_ms;
		enum model_leak_class wanted;
		bool is_once;
	} cases[] = {
		{ false, false, 200, MODEL_LEAK_LEAK, false },
		{ true, false, 50, MODEL_LEAK_LEAK, true }, // `python -c "import train"`: it may still go on
		{ true, false, 200, MODEL_LEAK_STEADY, true },
		{ true, true, 200, MODEL_LEAK_LEAK, true },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		hand_model_make(&hand);
		scene_add(&hand, "heap:41 12M leak volume_bytes=36M first_ms=100; heap:90 1M first_ms=%u", cases[i].later_ms);
		hand.frames[0][3].is_importlib = cases[i].is_import;
		hand.frames[0][3].is_user = !cases[i].is_import;
		hand.frames[1][3].is_importlib = cases[i].is_later_import;
		rank_leaks_classify(&hand.model);
		assert_int_equal(hand.sites[0].leak, cases[i].wanted);
		assert_int_equal(hand.sites[0].may_be_built_once, cases[i].is_once);
	}
}

/* While one body runs, the line that imports it does nothing else; other threads may. */
TEST(a_module_that_is_loaded_again_and_again_is_no_single_import)
{
	static const struct {
		unsigned first, last, other; // ticks
		bool is_importer;
		enum model_leak_class wanted;
	} cases[] = {
		{ 3, 20, 10, true, MODEL_LEAK_LEAK },   { 3, 20, 3, true, MODEL_LEAK_STEADY },
		{ 3, 20, 20, true, MODEL_LEAK_STEADY }, { 3, 20, 21, true, MODEL_LEAK_STEADY },
		{ 9, 10, 10, true, MODEL_LEAK_STEADY }, { 3, 20, 10, false, MODEL_LEAK_STEADY },
	};

	EACH (one, cases, ARRAY_LEN(cases)) {
		hand_model_make(&hand);
		scene_add(&hand, "heap:41 12M leak volume_bytes=36M first_ms=100; heap:90 1M first_ms=200 tick=%u", one->other);
		hand.sites[0].ticks.born[0] = UINT64_C(1) << one->first | UINT64_C(1) << one->last;
		hand.frames[0][3].is_importlib = true;
		hand.frames[0][3].is_user = false;
		hand.stacks[0][hand.sites[0].frame_count++] = one->is_importer ? hand.sites[1].where : &hand.frames[1][3];
		rank_leaks_classify(&hand.model);
		assert_int_equal(hand.sites[0].leak, one->wanted);
		assert_int_equal(hand.sites[0].may_be_built_once, one->wanted == MODEL_LEAK_STEADY);
		assert_ptr_equal(rank_loaded_again_at(&hand.model, &hand.sites[0]),
		                 one->wanted == MODEL_LEAK_LEAK ? hand.sites[1].where : NULL);
	}
}

/* Generations: of 400, and of the latest 100. */
TEST(what_stays_evenly_is_a_leak_whatever_comes_between)
{
	static const struct class_case cases[] = {
		{ "gens=250/400/94/100 quarters=40/41/39/40", MODEL_LEAK_LEAK, "evenly" },
		{ "gens=100/400/69/100 quarters=17/16/16/16", MODEL_LEAK_LEAK,
		  "one block in forty: a late generation may have none by chance" },
		{ "gens=100/400/50/100 quarters=17/16/16/16", MODEL_LEAK_LEAK, "half of them" },
		{ "gens=100/400/49/100 quarters=17/16/16/16", MODEL_LEAK_BACKLOG, "less" },
		{ "gens=1/400/1/100 quarters=375/375/375/375", MODEL_LEAK_STEADY,
		  "a queue, and one bucket for nearly all of the volume" },
		{ "gens=250/400/0/100 quarters=40/41/39/40", MODEL_LEAK_STEADY, "it allocates no more" },
		{ "gens=250/400/94/100 quarters=0/2/20/138", MODEL_LEAK_BACKLOG, "a cache" },
		{ "gens=250/400/94/100 quarters=0/0/0/160", MODEL_LEAK_BACKLOG, "a cache of the latest" },
		{ "gens=250/400/94/100 quarters=3/3/3/3", MODEL_LEAK_BACKLOG, "too few" },
	};

	check_classes(cases, ARRAY_LEN(cases), "heap:41 1M allocated_bytes=100M allocated_count=100000 live_count=1000 ");
}

/* An eighth of its blocks was released: those of the oldest generations, which are short. */
TEST(a_queue_that_lags_stays_evenly_but_for_its_oldest_blocks)
{
	static const struct class_case cases[] = {
		{ "950", MODEL_LEAK_BACKLOG, "an eighth" },
		{ "1671", MODEL_LEAK_BACKLOG, "half" },
		{ "1672", MODEL_LEAK_BACKLOG, "more: the first quarter has fewer than chance leaves" },
	};

	check_classes(cases, ARRAY_LEN(cases),
	              "heap:41 200M allocated_bytes=230M live_count=836 gens=24/51/13/13 quarters=120/238/239/239 "
	              "allocated_count=");
}

/* A site of few samples has few generations. */
TEST(what_is_too_new_to_judge_grows_with_the_leak_beside_it)
{
	static const struct {
		const char *scene;
		uint64_t wanted;
	} cases[] = {
		{ "heap:41 70M leak; heap:41 30M gens=4/4/1/1", 100 * MIB },
		{ "heap:41 70M leak; heap:41 30M gens=3/4/1/1", 70 * MIB }, // some of it was released
		{ "heap:41 70M leak; heap:42 30M gens=4/4/1/1", 70 * MIB }, // another line
		{ "heap:41 70M gens=4/4/1/1; heap:41 30M gens=4/4/1/1", 0 },
	};

	EACH (one, cases, ARRAY_LEN(cases)) {
		struct ranked *ranked = ranked_by(&rank_leaks, one->scene);

		assert_int_equal(ranked->lines[0].leaking_bytes, one->wanted);
		rank_free(ranked);
	}
}

TEST(many_small_sites_below_one_line_are_one_leak)
{
	static const struct class_case cases[] = {
		{ "heap:41 78K leak process_count=2 most_live_bytes=40K", MODEL_LEAK_STEADY, "two workers with 39 KiB each" },
		{ "heap:41 78K leak process_count=2 most_live_bytes=64K", MODEL_LEAK_LEAK, "one of them has enough" },
		{ "heap:41 20K leak; heap:41 20K leak; heap:41 20K leak; heap:41 20K leak; heap:42 20K leak; cuda0:41 20K leak",
		  MODEL_LEAK_LEAK, "four of one line" },
	};

	check_classes(cases, ARRAY_LEN(cases), "");
	for (unsigned i = 1; i < 4; i++)
		assert_int_equal(hand.sites[i].leak, MODEL_LEAK_LEAK);
	assert_int_equal(hand.sites[4].leak, MODEL_LEAK_STEADY); // another line
	assert_int_equal(hand.sites[5].leak, MODEL_LEAK_STEADY); // another domain

	hand_model_make(&hand); // what imports leave there comes in all generations, too
	scene_add(&hand, "name mmap python/arena; mmap:60 16M-1 leak");
	rank_leaks_classify(&hand.model);
	assert_int_equal(hand.sites[0].leak, MODEL_LEAK_TOO_SHORT);
	assert_false(rank_may_accumulate(&hand.sites[0])); // for want of bytes, not of generations
	hand.sites[0].live_bytes++;
	rank_leaks_classify(&hand.model);
	assert_int_equal(hand.sites[0].leak, MODEL_LEAK_LEAK);
}

TEST(what_a_line_only_works_with_is_no_growth)
{
	static const struct class_case cases[] = {
		{ "1053216 leak blocks=146 freed=212871296/347", MODEL_LEAK_STEADY,
		  "one array in use and 145 shapes of arrays, measured" },
		{ "221200 leak blocks=13821 freed=1152000000/4800", MODEL_LEAK_STEADY,
		  "shapes alone, beside large temporaries, measured" },
		{ "9M leak blocks=146 freed=347M/347", MODEL_LEAK_LEAK, "more than the temporaries explain" },
		{ "64K+512 leak blocks=1025 freed=64M/1048576", MODEL_LEAK_LEAK,
		  "objects of 64 bytes, of which one in a thousand stays" },
		{ "1M leak blocks=12", MODEL_LEAK_LEAK, "nothing was ever released" },
	};

	check_classes(cases, ARRAY_LEN(cases), "heap:41 ");
}

TEST(an_import_is_what_stands_between_the_block_and_the_users_code)
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

TEST(what_the_interpreter_starts_with_is_never_above_real_lines)
{
	struct ranked *ranked;

	for (size_t i = 0; i < ARRAY_LEN(start_cases); i++) {
		hand_model_make(&hand);
		struct model_site *site = hand_model_site(&hand, HEAP, 0, 2 * MIB);
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

TEST(leaks_come_before_what_is_larger_and_imports_last)
{
	static const uint32_t wanted[] = { 20, 50, 40, 10, 45, 30, 60 };
	/* Steady, leak, import, too short with all alive, too short, leak of address space, the same whose objects have rows. */
	OWNED_BY(ranked)
	struct ranked *ranked = ranked_by(
		&rank_leaks,
		"heap:10 900M; heap:20 2M leak; heap:30 5G import; heap:40 3M gens=3/3/1/1; heap:45 800M gens=2/2/1/1; "
		"reserved:50 9G leak; reserved:60 9G leak arena");

	assert_int_equal(ranked->line_count, ARRAY_LEN(wanted));
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		assert_int_equal(line_at(ranked, i), wanted[i]);
}

/* Too few generations to judge, nothing released: it stands with leaks of a sixteenth of what it holds. */
TEST(what_kept_all_and_cannot_be_judged_stands_by_a_part_of_its_bytes)
{
	static const struct {
		const char *scene;
		bool is_before; // a leak of 2 MiB
	} cases[] = {
		{ "heap:40 40M gens=1/1/1/1 live_count=40 allocated_count=40; heap:20 2M leak", true },
		{ "heap:40 40M gens=1/1/1/1 live_count=40 allocated_count=45; heap:20 2M leak", true },
		{ "heap:40 31M gens=1/1/1/1 live_count=40 allocated_count=40; heap:20 2M leak", false },
		{ "heap:40 40M gens=1/1/1/1 live_count=40 allocated_count=80; heap:20 2M leak", false },
		{ "heap:40 40M gens=1/1/1/1 live_count=2 allocated_count=2; heap:20 2M leak", false },
		{ "heap:40 40M gens=1/1/1/1 live_count=40 allocated_count=40 arena; heap:20 2M leak", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		OWNED_BY(ranked) struct ranked *ranked = ranked_by(&rank_leaks, cases[i].scene);

		assert_int_equal(hand.sites[0].leak, MODEL_LEAK_TOO_SHORT);
		assert_int_equal(line_at(ranked, 0), cases[i].is_before ? 40 : 20);
	}
}

TEST(lines_rank_by_their_sum_and_sites_stay_with_their_line)
{
	/* 10, 20, 30, 40 MiB in four stacks below line 20; the same line in another domain is another row. */
	OWNED_BY(ranked)
	struct ranked *ranked = ranked_by(&rank_peak,
	                                  "heap:10 50M; heap:20 10M; heap:20 20M; heap:20 30M; heap:20 40M; mmap:20 45M");

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
}

TEST(a_leak_counts_with_its_own_bytes_not_with_its_neighbours)
{
	/* The second is steady, below the same line. */
	OWNED_BY(ranked) struct ranked *ranked = ranked_by(&rank_leaks, "heap:10 1M leak; heap:10 800M; heap:20 3M leak");

	assert_int_equal(line_at(ranked, 0), 20);
	assert_int_equal(line_at(ranked, 1), 10);
	assert_int_equal(ranked->lines[1].leak, MODEL_LEAK_LEAK);
	assert_int_equal(ranked->lines[1].leaking_bytes, MIB);
	assert_int_equal(ranked->lines[1].live_bytes, 801 * MIB);
}

TEST(a_domain_is_a_name_or_the_beginning_of_one)
{
	assert_true(rank_domain_matches("heap", NULL));
	assert_true(rank_domain_matches("heap", "heap"));
	assert_false(rank_domain_matches("heap", "hea"));
	assert_true(rank_domain_matches("cuda:0", "cuda"));
	assert_true(rank_domain_matches("cuda/pinned", "cuda"));
	assert_true(rank_domain_matches("cuda:1/tensors", "cuda:1"));
	assert_false(rank_domain_matches("cuda:10", "cuda:1"));
}

RUN_TESTS(make, NULL)
