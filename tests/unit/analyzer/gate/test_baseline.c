/*
 * test_baseline.c - are runs reduced, kept and compared as check.h says?
 */

#include "base/machine.h"
#include "hand_model.h"

#include "model/site_key.h"
#include "gate/check_outputs.h"
#include "gate/check_words.h"
#include "scratch.h"
#include "owned.h"

static const struct check_tolerance usual = { .absolute_bytes = MIB, .relative_ppm = 50000 };

static struct hand_model hand;

#define YOUNG 99
#define FOLDED 98 // stands for others, and would be a leak
#define GROWN 97  // has allocated in 10 generations, of which none was released, and no more in the last 6
#define BUILT 96  // the same at one go

#define OBJECTS 95 // a domain: sampled small objects of Python

/* One site of one run. line 41 is function "epoch"; others get a function of their own, so a family of their own. */
struct held {
	uint32_t line;
	uint64_t live_bytes;
	uint32_t alive; // of 12 generations; 0, YOUNG = too few to judge, of which none was released; FOLDED
	bool is_import;
	unsigned domain;
};

static void
add_run(struct baseline_builder *builder, const struct held *held, size_t count)
{
	static const char *const functions[] = { "f0", "f1", "f2", "f3", "f4" };

	hand_model_make(&hand);
	for (size_t i = 0; i < count; i++) {
		bool is_sampled = held[i].domain == OBJECTS;

		if (is_sampled)
			hand_model_domain(&hand.domains[MMAP], "python/object");
		struct model_site *site = hand_model_site(&hand, is_sampled ? MMAP : held[i].domain, held[i].line,
		                                          held[i].live_bytes);

		site->samples = is_sampled ? held[i].live_bytes / KMEM_PYTHON_SAMPLE_BYTES : 0;

		hand.frames[i][2].function = held[i].line == 41 ? "epoch" : functions[held[i].line % 5];
		if (held[i].alive == YOUNG)
			hand_model_generations(site, 3, 3, 1, 1);
		else if (held[i].alive == FOLDED)
			hand_model_generations(site, 12, 12, 3, 3);
		else if (held[i].alive == GROWN || held[i].alive == BUILT)
			hand_model_generations(site, 10, 16, 0, 4);
		else if (held[i].alive != 0)
			hand_model_generations(site, held[i].alive, 12, held[i].alive / 4, 3);
		else
			hand_model_generations(site, 2, 2, 1, 1);
		if (held[i].alive == GROWN || held[i].alive == BUILT) {
			site->born_generations = 10;
			site->span_bytes = held[i].live_bytes * (held[i].alive == GROWN ? 3 : 1);
		}
		if (held[i].is_import)
			site->stack_flags = KMEM_STACK_IMPORT_CUT;
		if (held[i].alive == FOLDED)
			site->stack_flags = KMEM_STACK_MERGED;
	}
	site_key_assign(hand.sites, hand.model.site_count, hand.domains);
	rank_leaks_classify(&hand.model);
	baseline_add_run(builder, (struct finished_model){ &hand.model });
}

static struct baseline *
one_run(const struct held *held, size_t count)
{
	struct baseline_builder *builder = baseline_begin();

	add_run(builder, held, count);
	return baseline_finish(builder);
}

/* --- reducing -------------------------------------------------------------------------------------------------- */

TEST(figures_are_over_the_runs_and_zero_where_a_run_has_nothing)
{
	const struct held first[] = { { 41, 10 * MIB, 12, false, HEAP }, { 52, 4 * MIB, 1, false, HEAP } };
	const struct held second[] = { { 41, 30 * MIB, 12, false, HEAP } };
	const struct held third[] = { { 41, 20 * MIB, 12, false, HEAP } };
	struct baseline_builder *builder = baseline_begin();
	const struct baseline_site *rare = NULL;

	add_run(builder, first, 2);
	add_run(builder, second, 1);
	add_run(builder, third, 1);
	struct baseline *baseline = baseline_finish(builder);
	assert_int_equal(baseline->run_count, 3);
	assert_int_equal(baseline->site_count, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct baseline_site *site = &baseline->sites[i];

		if (site->run_count == 1) {
			rare = site;
			continue;
		}
		assert_int_equal(site->live_bytes.min, 10 * MIB);
		assert_int_equal(site->live_bytes.median, 20 * MIB);
		assert_int_equal(site->live_bytes.max, 30 * MIB);
		assert_string_equal(site->where, "train.py:41 epoch");
		assert_int_equal(site->leak, MODEL_LEAK_LEAK);
	}
	assert_non_null(rare);
	assert_int_equal(rare->live_bytes.min, 0);
	assert_int_equal(rare->live_bytes.max, 4 * MIB);
	assert_int_equal(baseline_find_domain(baseline, "heap")->live_bytes.max, 30 * MIB);
	assert_null(baseline_find_domain(baseline, "hea"));
	baseline_free(baseline);
}

TEST(siblings_are_one_row)
{
	const struct held held[] = { { 41, 3 * MIB, 1, false, HEAP }, { 41, 5 * MIB, 12, false, HEAP } };
	OWNED_BY(baseline) struct baseline *baseline = one_run(held, 2);

	assert_int_equal(baseline->site_count, 1);
	assert_int_equal(baseline->sites[0].live_bytes.max, 8 * MIB);
	assert_int_equal(baseline->sites[0].run_count, 1);
	assert_int_equal(baseline->sites[0].leak, MODEL_LEAK_LEAK);
}

TEST(a_run_without_anything_is_a_run)
{
	OWNED_BY(baseline) struct baseline *baseline = one_run(NULL, 0);

	assert_int_equal(baseline->run_count, 1);
	assert_int_equal(baseline->site_count, 0);
	assert_int_equal(baseline->domain_count, HAND_DOMAINS);
}

TEST(a_program_is_a_name_without_the_interpreters_version)
{
	static const char *const cases[][2] = { { "train.py", "train.py" },       { "python3.11", "python" },
		                                    { "python3", "python" },          { "python3.13t", "python" },
		                                    { "python-tool", "python-tool" }, { "a\nb", "a?b" } };
	char program[BASELINE_PROGRAM_BYTES];

	hand_model_make(&hand);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		hand.process.name = cases[i][0];
		assert_string_equal(baseline_program(&hand.model, program), cases[i][1]);
	}
}

/* --- the file -------------------------------------------------------------------------------------------------- */

static void
write_text(const char *text)
{
	FILE *stream = fopen(scratch_file, "w");

	assert_non_null(stream);
	assert_true(fputs(text, stream) >= 0);
	assert_int_equal(fclose(stream), 0);
}

TEST(a_baseline_survives_its_file)
{
	const struct held held[] = { { 41, 10 * MIB, 12, false, HEAP }, { 52, 4 * MIB, 1, false, CUDA0 } };
	struct baseline *written = one_run(held, 2);
	struct fail fail;

	written->domains[0].elsewhere_bytes = 7 * MIB;
	strcpy(written->sites[0].where, "\"quoted\\\xff\" \xe2\x82\xac");
	FILE *stream = fopen(scratch_file, "w");
	baseline_write(written, stream);
	assert_int_equal(fclose(stream), 0);
	struct baseline *read = baseline_read(scratch_file, &fail);
	assert_non_null(read);
	assert_int_equal(read->run_count, 1);
	assert_string_equal(read->python_version, "3.11.7");
	assert_string_equal(read->program, "train.py");
	assert_string_equal(read->platform, MACHINE_NAME "-python3.11");
	assert_int_equal(read->site_count, written->site_count);
	assert_int_equal(read->domain_count, written->domain_count);
	assert_int_equal(read->domains[0].elsewhere_bytes, 7 * MIB);
	assert_int_equal(read->domains[1].elsewhere_bytes, 0);
	assert_string_equal(read->sites[0].where, "\"quoted\\\xef\xbf\xbd\" \xe2\x82\xac");
	for (size_t i = 0; i < read->site_count; i++) {
		assert_int_equal(read->sites[i].family, written->sites[i].family);
		assert_string_equal(read->sites[i].domain, written->sites[i].domain);
		assert_int_equal(read->sites[i].leak, written->sites[i].leak);
		assert_memory_equal(read->sites[i].likeness, written->sites[i].likeness, sizeof(read->sites[i].likeness));
		assert_memory_equal(&read->sites[i].live_bytes, &written->sites[i].live_bytes, sizeof(struct baseline_figure));
	}
	baseline_free(written);
	baseline_free(read);
}

#define FIGURE "{\"min\": 1, \"median\": 2, \"max\": 3}"
#define HEAD "\"kind\": \"kmemshim-baseline\", \"schema\": 1, \"runs\": 1"
static const struct {
	const char *text;
	const char *says;
} bad_files[] = {
	{ "", "not JSON" },
	{ "{", "case.kmem:1:1: is not JSON" },
	{ "{\n\"kind\": x}", "case.kmem:2:9: is not JSON" },
	{ "[]", "not a baseline" },
	{ "{\"schema\": 1}", "not a baseline" },
	{ "{\"kind\": \"kmemshim-baseline\", \"schema\": 2}", "schema 2" },
	{ "{" HEAD "}", "is missing" },
	{ "{" HEAD ", \"domains\": [{\"domain\": 7}], \"sites\": []}", "domains[0]: \"domain\" is not" },
	{ "{" HEAD ", \"domains\": [{\"domain\": \"heap\", \"live_bytes\": {\"min\": 5, \"median\": 2, \"max\": 3}}], "
	  "\"sites\": []}",
	  "domains[0]: \"live_bytes\"" },
	{ "{" HEAD ", \"domains\": [], \"sites\": [{\"key\": \"xyz\"}]}", "sites[0]: \"key\"" },
	{ "{" HEAD ", \"domains\": [], \"sites\": [{\"key\": \"12\", \"n\": 1, \"domain\": \"heap\", \"where\": \"a\", "
	  "\"class\": \"odd\"}]}",
	  "sites[0]: \"class\"" },
	{ "{" HEAD ", \"domains\": [], \"sites\": [{\"key\": \"12\", \"n\": -1}]}", "sites[0]: \"n\"" },
	{ "{" HEAD ", \"domains\": [], \"sites\": [{\"key\": \"12\", \"n\": 1, \"like\": \"1 2\"}]}",
	  "sites[0]: \"like\"" },
	{ "{\"schema\": 1, \"schema\": 1}", "not JSON" },
};

TEST(bad_files_are_refused_with_their_place)
{
	struct fail fail;

	for (size_t i = 0; i < ARRAY_LEN(bad_files); i++) {
		write_text(bad_files[i].text);
		assert_null(baseline_read(scratch_file, &fail));
		assert_int_equal(fail.code, EXIT_USAGE);
		if (strstr(fail.text, bad_files[i].says) == NULL)
			print_error("%s: %s\n", bad_files[i].text, fail.text);
		assert_non_null(strstr(fail.text, bad_files[i].says));
	}
	assert_null(baseline_read("/nonexistent/base.json", &fail));
	assert_int_equal(fail.code, EXIT_USAGE);
	assert_null(baseline_read("/", &fail)); // captures, as a rule
	assert_int_equal(fail.code, EXIT_USAGE);
	assert_string_equal(fail.text, "/: is a folder: make a baseline of captures with kmemshim baseline / -o FILE");
}

/* --- comparing ------------------------------------------------------------------------------------------------- */

/* clang-format off */
#define IN(domain, line, mib, alive) { line, (mib) * MIB, alive, false, domain }
#define HELD(line, mib, alive) IN(HEAP, line, mib, alive)
#define BASE HELD(41, 100, 1)
#define END { .line = 0 }

/* Rows of a run end with a line 0. */
static const struct {
	const char *why;
	struct held before[3];
	struct held now[4];
	const char *result; // how many rules failed, and the first of them
} comparisons[] = {
	{ "the same", { BASE }, { BASE }, "ok" },
	{ "5 % more is tolerated", { BASE }, { HELD(41, 105, 1) }, "ok" },
	{ "6 % more is not: the line, and the domain's live and peak", { BASE }, { HELD(41, 106, 1) }, "3, line train.py:41 epoch" },
	{ "less is fine", { BASE }, { HELD(41, 1, 1) }, "ok" },
	{ "a new leak within the tolerance", { BASE }, { BASE, HELD(52, 1, 12) }, "ok" },
	{ "a new leak above it, though the domain tolerates the sum", { BASE }, { BASE, HELD(52, 2, 12) }, "1, leak train.py:52 f2" },
	{ "new, and too young to tell what it looks like", { BASE }, { BASE, HELD(52, 2, YOUNG) }, "1, line train.py:52 f2" },
	{ "new, and grew over much of the run before it stopped", { BASE }, { BASE, HELD(52, 2, GROWN) }, "1, grown train.py:52 f2" },
	{ "new, and built at one go", { BASE }, { BASE, HELD(52, 2, BUILT) }, "ok" },
	{ "new, and nothing to tell from", { BASE }, { BASE, HELD(52, 2, 0) }, "ok" },
	{ "a new pool is judged by the domain", { BASE }, { BASE, HELD(52, 2, 1) }, "ok" },
	{ "which names the line that grew", { BASE }, { BASE, HELD(52, 9, 1) }, "2, live train.py:52 f2" },
	{ "what an import left is no leak", { BASE }, { BASE, { 52, 3 * MIB, 12, true, HEAP } }, "ok" },
	{ "address space is not judged", { BASE }, { BASE, { 52, 9 * GIB, 12, false, RESERVED } }, "ok" },
	{ "a domain that the baseline does not know has 0 there", { BASE }, { BASE, IN(CUDA0, 52, 2, 1) }, "2, live train.py:52 f2" },
	/* Two estimates of 100 MiB differ by 14 MiB now and then: chance fails no gate. */
	{ "the same estimate", { IN(OBJECTS, 41, 100, 12) }, { IN(OBJECTS, 41, 100, 12) }, "ok" },
	{ "within its error", { IN(OBJECTS, 41, 100, 12) }, { IN(OBJECTS, 41, 119, 12) }, "ok" },
	{ "beyond it", { IN(OBJECTS, 41, 100, 12) }, { IN(OBJECTS, 41, 122, 12) }, "3, leak train.py:41 epoch" },
	{ "a new small estimate", { END }, { IN(OBJECTS, 41, 3, 12) }, "ok" },
	{ "a new large one", { END }, { IN(OBJECTS, 41, 10, 12) }, "3, leak train.py:41 epoch" },
	/* Where the recorder had no room for more stacks, what is booked at a line may be of others, and what is its own elsewhere. */
	{ "what it holds more may be of others", { BASE, HELD(52, 1, 1) }, { BASE, HELD(52, 4, FOLDED) }, "ok" },
	{ "the baseline may have had it elsewhere", { BASE, HELD(53, 4, FOLDED) }, { BASE, HELD(52, 4, 12) }, "ok, renamed" },
	{ "but not in another domain", { BASE, IN(CUDA0, 53, 4, FOLDED) }, { BASE, HELD(52, 4, 12) }, "1, leak train.py:52 f2" },
	{ "nor so much", { BASE, HELD(53, 2, FOLDED) }, { BASE, HELD(52, 4, 12) }, "1, leak train.py:52 f2" },
	{ "live and peak of the domain are whole", { BASE, HELD(52, 1, 1) }, { BASE, HELD(52, 9, FOLDED) }, "2, live train.py:52 f2" },
	/* A function that was renamed is known by its callers. */
	{ "another name, and all else the same", { BASE, HELD(52, 10, 12) }, { BASE, HELD(53, 10, 12) }, "ok, renamed" },
	{ "it holds a little less", { BASE, HELD(52, 10, 12) }, { BASE, HELD(53, 9, 12) }, "ok, renamed" },
	{ "it holds more than the old one was allowed", { BASE, HELD(52, 10, 12) }, { BASE, HELD(53, 12, 12) }, "1, leak train.py:53 f3" },
	{ "it holds much less: another thing", { BASE, HELD(52, 10, 12) }, { BASE, HELD(53, 3, 12) }, "1, leak train.py:53 f3" },
	{ "the old one did not leak", { BASE, HELD(52, 10, 1) }, { BASE, HELD(53, 10, 12) }, "1, leak train.py:53 f3" },
	{ "the old one is there", { BASE, HELD(52, 2, 12) }, { BASE, HELD(53, 2, 12), HELD(52, 2, 12) }, "1, leak train.py:53 f3" },
	{ "the old one was elsewhere", { BASE, IN(CUDA0, 52, 2, 12) }, { BASE, HELD(53, 2, 12) }, "1, leak train.py:53 f3" },
};
/* clang-format on */

static size_t
rows_of(const struct held *held)
{
	size_t count = 0;

	while (held[count].line != 0)
		count++;
	return count;
}

TEST(worse_is_above_the_tolerance)
{
	for (size_t i = 0; i < ARRAY_LEN(comparisons); i++) {
		OWNED_BY(baseline) struct baseline *good = one_run(comparisons[i].before, rows_of(comparisons[i].before));
		OWNED_BY(baseline) struct baseline *tested = one_run(comparisons[i].now, rows_of(comparisons[i].now));
		struct check *check = check_compare(good, tested, usual, NULL);

		char result[256] = "";

		if (check->failed_count != 0)
			(void)snprintf(result, sizeof(result), "%zu, %s %s", check->failed_count, check_rule_name(&check->rules[0]),
			               check->rules[0].where);
		else
			(void)snprintf(result, sizeof(result), "ok%s", check->renamed_count != 0 ? ", renamed" : "");
		if (strcmp(result, comparisons[i].result) != 0)
			fail_msg("%s: %s, wanted %s", comparisons[i].why, result, comparisons[i].result);
		check_free(check);
	}
}

static const struct {
	struct baseline_figure before;
	struct check_tolerance tolerance;
	uint64_t limit;
} limit_cases[] = {
	{ { 10, 10, 10 }, { 5, 50000, false }, 15 },
	{ { 1000, 1000, 1000 }, { 5, 50000, false }, 1050 },
	{ { 0, 0, 1000 }, { 5, 50000, false }, 1050 }, // how they differ is not asked
	{ { 0, 0, 1000 }, { 5, 10000, true }, 3000 },
	{ { 990, 1000, 1000 }, { 5, 10000, true }, 1020 },
	{ { 999, 1000, 1000 }, { 5, 10000, true }, 1010 },
	{ { 1000, 1000, 1000 }, { 500, 10000, true }, 1500 },
	{ { 0, 0, UINT64_MAX }, { 5, 10000, true }, UINT64_MAX },
	{ { 0, 0, UINT64_MAX / 2 }, { 5, 10000, true }, UINT64_MAX },
};

TEST(what_is_allowed_is_the_larger_of_noise_and_floor)
{
	for (size_t i = 0; i < ARRAY_LEN(limit_cases); i++)
		assert_true(check_limit(&limit_cases[i].before, limit_cases[i].tolerance) == limit_cases[i].limit);
}

/* "Allocated at free in arenas": that is no place. */
TEST(what_is_no_place_is_not_called_one)
{
	static const struct {
		const char *where;
		enum domain_kind kind;
		const char *end;
	} cases[] = {
		{ "train.py:41 epoch", DOMAIN_HEAP, ", allocated at train.py:41 epoch" },
		{ "arenas of small Python objects", DOMAIN_PYTHON_ARENA, "), in arenas of small Python objects" },
		{ "free in arenas of small Python objects", DOMAIN_PYTHON_ARENA, "), free in arenas of small Python objects" },
	};
	const struct check check = { .rule_count = 0 };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct check_rule rule = {
			.kind = CHECK_PEAK, .domain = "total", .where = cases[i].where, .where_kind = cases[i].kind
		};
		char message[CHECK_MESSAGE_BYTES];

		(void)check_message(&check, &rule, message);
		assert_non_null(strstr(message, "peak of total is 0 B"));
		assert_string_equal(message + strlen(message) - strlen(cases[i].end), cases[i].end);
	}
}

TEST(of_several_runs_the_least_leak_and_the_median_peak_count)
{
	const struct held low[] = { { 41, 100 * MIB, 1, false, HEAP } };
	const struct held high[] = { { 41, 200 * MIB, 1, false, HEAP } };
	OWNED_BY(baseline) struct baseline *good = one_run(low, 1);
	struct baseline_builder *builder = baseline_begin();

	add_run(builder, high, 1);
	add_run(builder, low, 1);
	add_run(builder, high, 1);
	OWNED_BY(baseline) struct baseline *tested = baseline_finish(builder);
	OWNED_BY(check) struct check *check = check_compare(good, tested, usual, NULL);
	assert_int_equal(check->failed_count, 1);
	assert_int_equal(check->rules[0].kind, CHECK_PEAK);
	assert_int_equal(check->rules[0].after_bytes, 200 * MIB);
	assert_string_equal(check->rules[0].where, "train.py:41 epoch");
}

/* The names of all test cases, in the order of the file. */
static void
junit_names(struct check *check, char *names, size_t room)
{
	char *text = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&text, &length);
	size_t cases = 0;

	render_check_junit(check, stream);
	assert_int_equal(fclose(stream), 0);
	names[0] = '\0';
	for (const char *at = text; (at = strstr(at, "<testcase classname=\"kmemshim\" name=\"")) != NULL; cases++) {
		size_t used = strlen(names);

		at += strlen("<testcase classname=\"kmemshim\" name=\"");
		(void)snprintf(names + used, room - used, "%.*s;", (int)strcspn(at, "\""), at);
	}
	const char *counted = TEXT(32, "tests=\"%zu\"", cases);
	assert_non_null(strstr(text, counted));
	free(text);
}

/* A CI system follows a test by its name: neither what fails nor what a run uses changes the list. */
TEST(junit_names_are_those_of_the_baseline)
{
	static const char *const wanted[] = { "program ended well;", "lines;",     "peak cuda:0;", "live cuda:0;",
		                                  "peak heap;",          "live heap;", "peak mmap;",   "live mmap;" };
	const struct held before[] = { { 41, 100 * MIB, 1, false, HEAP } };
	const struct held worse[] = { { 41, 300 * MIB, 1, false, HEAP }, { 52, 9 * MIB, 12, false, HEAP } };
	OWNED_BY(baseline) struct baseline *good = one_run(before, 1);
	OWNED_BY(baseline) struct baseline *bad = one_run(worse, 2);

	bad->domains[0] = bad->domains[1]; // by name: nothing but heap was used
	bad->domain_count = 1;
	for (unsigned round = 0; round < 3; round++) {
		OWNED_BY(check) struct check *check = check_compare(good, round == 0 ? good : bad, usual, NULL);
		size_t length = 0;
		char names[600];

		check->ended_badly = round == 2 ? "killed" : NULL;
		junit_names(check, names, sizeof(names));
		for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
			assert_non_null(strstr(names, wanted[i]));
			length += strlen(wanted[i]);
		}
		assert_int_equal(strlen(names), length);
	}
}

RUN_TESTS_IN(scratch_make, scratch_remove)
