/*
 * test_config.c - is .kmemshim.yml read as docs/ci.md says, and is what is wrong in it told with its place?
 */
#include "test.h"

#include <fcntl.h>

#include "base/regular_file.h"
#include "base/yaml_read.h"
#include "gate/pattern.h"
#include "scratch.h"
#include "owned.h"

#define MIB (UINT64_C(1) << 20)

static void
write_bytes(const char *path, const char *text, size_t bytes)
{
	FILE *stream = fopen(path, "w");

	assert_non_null(stream);
	assert_int_equal(fwrite(text, 1, bytes, stream), bytes);
	assert_int_equal(fclose(stream), 0);
}

static struct config *
read_text(const char *text, struct fail *fail)
{
	write_bytes(scratch_file, text, strlen(text));
	return config_read(scratch_file, "2026-11-23", fail);
}

TEST(what_is_written_is_read)
{
	struct fail fail = { .text = "" };
	OWNED_BY(config)
	struct config *config = read_text("budgets:\n"
	                                  "  total: {peak: 500 MiB, live: +5 %}\n"
	                                  "  domains:\n"
	                                  "    cuda:0:\n"
	                                  "      peak: +1.5 %\n"
	                                  "  lines:\n"
	                                  "    \"a:*\": {live: 0, per_step: 1 KiB}\n"
	                                  "suppressions:\n"
	                                  "  - {leak: libfoo.so, reason: known, expires: 2026-11-23}\n"
	                                  "  - {leak: old, reason: gone, expires: 2026-11-22}\n"
	                                  "run: {min_steps: 9, too_short: skip, unmatched: fail, retries: 0}\n"
	                                  "tolerance: {absolute: 2 MiB, relative: 7%}\n",
	                                  &fail);
	const struct config_budget *budgets;

	if (config == NULL)
		fail_msg("%s", fail.text);
	budgets = config->budgets;
	assert_int_equal(config->budget_count, 3);
	assert_int_equal(budgets[0].scope, CONFIG_TOTAL);
	assert_int_equal(budgets[0].amounts[CONFIG_PEAK].bytes, 500 * MIB);
	assert_false(budgets[0].amounts[CONFIG_PEAK].is_growth);
	assert_true(budgets[0].amounts[CONFIG_LIVE].is_growth && budgets[0].amounts[CONFIG_LIVE].is_share);
	assert_int_equal(budgets[0].amounts[CONFIG_LIVE].ppm, 50000);
	assert_int_equal(budgets[0].amounts[CONFIG_LIVE].line, 2);
	assert_false(budgets[0].amounts[CONFIG_PER_STEP].is_given);
	assert_string_equal(budgets[1].name, "cuda:0");
	assert_int_equal(budgets[1].amounts[CONFIG_PEAK].ppm, 15000);
	assert_int_equal(budgets[1].amounts[CONFIG_PEAK].line, 5);
	assert_string_equal(budgets[2].name, "a:*");
	assert_int_equal(budgets[2].scope, CONFIG_LINES);
	assert_true(budgets[2].amounts[CONFIG_LIVE].is_given && budgets[2].amounts[CONFIG_LIVE].bytes == 0);
	assert_int_equal(budgets[2].amounts[CONFIG_PER_STEP].bytes, 1024);
	assert_true(config_has_steps(config));
	assert_int_equal(config->suppression_count, 2);
	assert_string_equal(config->suppressions[0].reason, "known");
	assert_int_equal(config->suppressions[0].line, 9);
	assert_false(config->suppressions[0].is_expired); // the last day is one
	assert_true(config->suppressions[1].is_expired);
	assert_int_equal(config_suppressed_by(config, "/usr/lib/libfoo.so.1"), 0);
	assert_true(config_suppressed_by(config, "old") == SIZE_MAX);
	assert_int_equal(config->min_steps, 9);
	assert_int_equal(config->too_short, CONFIG_SKIP);
	assert_int_equal(config->unmatched, CONFIG_FAIL);
	assert_int_equal(config->retries, 0);
	assert_int_equal(config->absolute_bytes, 2 * MIB);
	assert_int_equal(config->relative_ppm, 70000);
}

/* A file that says nothing, and the one that --init writes: what holds without one. */
TEST(the_template_changes_nothing)
{
	static const char *const nothing[] = { "", "# nothing\n", "budgets:\n", "budgets:\n  lines:\nsuppressions: ~\n" };
	struct fail fail = { .text = "" };
	FILE *stream = fopen(scratch_file, "w");
	struct config *config;

	config_template(stream);
	assert_int_equal(fclose(stream), 0);
	for (size_t i = 0; i <= ARRAY_LEN(nothing); i++) {
		config = i == 0 ? config_read(scratch_file, "2026-11-23", &fail) : read_text(nothing[i - 1], &fail);
		if (config == NULL)
			fail_msg("%s", fail.text);
		assert_int_equal(config->budget_count, 0);
		assert_int_equal(config->suppression_count, 0);
		assert_int_equal(config->min_steps, CONFIG_MIN_STEPS);
		assert_int_equal(config->retries, CONFIG_RETRIES);
		assert_int_equal(config->too_short, CONFIG_FAIL);
		assert_int_equal(config->unmatched, CONFIG_PASS);
		assert_false(config->has_absolute || config->has_relative);
		config_free(config);
	}
}

/* Each of its comments that is an example is one that can be read. */
TEST(the_examples_of_the_template_can_be_read)
{
	struct fail fail = { .text = "" };
	char *text = NULL;
	size_t bytes = 0;
	FILE *stream = open_memstream(&text, &bytes);

	config_template(stream);
	assert_int_equal(fclose(stream), 0);
	for (char *at = text; (at = strchr(at, '#')) != NULL; at++) {
		if ((at == text || at[-1] == '\n' || at[-1] == ' ') && at[1] != '\n' && (at[1] != ' ' || at[2] == ' '))
			memmove(at, at + 1, strlen(at)); // "#total:", "#  absolute: 1 MiB"
	}
	OWNED_BY(config) struct config *config = read_text(text, &fail);
	if (config == NULL)
		fail_msg("%s\n%s", fail.text, text);
	assert_int_equal(config->budget_count, 4);
	assert_int_equal(config->suppression_count, 1);
	assert_true(config->has_absolute && config->has_relative);
	free(text);
}

static const struct {
	const char *text;
	const char *says; // behind the file's name
} bad_files[] = {
	{ "budgets: [", ":2:1: is not YAML" },
	{ "budgets:\n\ttotal:\n", ":2:1: is not YAML" },
	{ "budget:\n",
	  ":1:1: unknown name \"budget\": expected budgets, suppressions, suppression_files, run or tolerance" },
	{ "- budgets\n", ":1:1: expected budgets" },
	{ "budgets:\n  total:\n    peak: 500\n", ":3:11: \"500\" has no unit" },
	{ "budgets:\n  total:\n    peak: 5 %\n",
	  ":3:11: \"5 %\": a percentage is of the baseline, so it needs a plus: +5 %" },
	{ "budgets:\n  total:\n    peak: much\n", ":3:11: \"much\": expected a size with its unit" },
	{ "budgets:\n  total:\n    peak: -1 MiB\n", ":3:11: \"-1 MiB\"" },
	{ "budgets:\n  total:\n    peak: ~\n", ":3:11: \"\": expected a size" },
	{ "budgets:\n  total:\n    peak: [1]\n", ":3:11: expected a size" },
	{ "budgets:\n  total:\n    per_step: +5 %\n", ":3:15: \"+5 %\": expected a size with its unit, such as 1 KiB" },
	{ "budgets:\n  total:\n    peek: 1 MiB\n", ":3:5: unknown name \"peek\": expected peak, live or per_step" },
	{ "budgets:\n  total: 1 MiB\n", ":2:10: expected peak, live or per_step" },
	{ "budgets:\n  total:\n", ":2:9: \"\": expected peak, live or per_step below it" },
	{ "budgets:\n  total:\n    peak: 1 MiB\n    peak: 2 MiB\n",
	  ":4:5: \"peak\" is there twice: the first one is in line 3" },
	{ "budgets:\n  domains: heap\n", ":2:12: \"heap\": expected names of domains" },
	{ "budgets:\n  lines:\n    \"\": {live: 1 MiB}\n", ":3:5: \"\": expected patterns of lines" },
	{ "budgets:\n  lines:\n    ? [a]\n    : {live: 1 MiB}\n", ":3:7: a name is expected here" },
	{ "suppressions:\n  leak: foo\n", ":2:3: expected a list" },
	{ "suppressions:\n  - reason: foo\n", ":2:5: a suppression needs a pattern" },
	{ "suppressions:\n  - leak: foo\n", ":2:5: a suppression needs a reason" },
	{ "suppressions:\n  - {leak: a, reason: b, expires: soon}\n",
	  ":2:35: \"soon\": expected a day, such as 2030-12-31" },
	{ "suppressions:\n  - {leak: a, reason: b, expires: 2030-13-01}\n", ":2:35: \"2030-13-01\"" },
	{ "suppression_files: [nowhere.supp]\n", "nowhere.supp: No such file" },
	{ "run:\n  min_steps: six\n", ":2:14: \"six\": expected a number" },
	{ "run:\n  too_short: perhaps\n", ":2:14: \"perhaps\": expected fail, pass or skip" },
	{ "tolerance:\n  absolute: 5 %\n", ":2:13: \"5 %\": expected a size" },
	{ "tolerance:\n  relative: 5\n", ":2:13: \"5\": expected a percentage" },
	{ "run:\n---\nrun:\n", ":2:1: a second document begins here" },
	{ "a: \xff\n", "is not YAML" },
};

TEST(what_is_wrong_is_told_with_its_line_and_column)
{
	struct fail fail;
	size_t wrong = 0;

	for (size_t i = 0; i < ARRAY_LEN(bad_files); i++) {
		struct config *config = read_text(bad_files[i].text, &fail);

		if (config != NULL)
			fail_msg("read: %s", bad_files[i].text);
		assert_int_equal(fail.code, EXIT_USAGE);
		if (strstr(fail.text, bad_files[i].says) == NULL) {
			print_error("%s: %s\n", bad_files[i].text, fail.text);
			wrong++;
		}
		assert_null(strchr(fail.text, '\n'));
	}
	assert_int_equal(wrong, 0);
	assert_null(config_read("/nonexistent/a.yml", "", &fail));
	assert_int_equal(fail.code, EXIT_USAGE);
	assert_null(config_read("/", "", &fail));
}

static bool
add_lsan(struct config *config, const char *path, struct fail *fail)
{
	OWNED_FILE int file = open(path, O_RDONLY);

	return config_add_lsan(config, path, file, fail);
}

TEST(suppressions_of_leak_sanitizer_are_read)
{
	static const char file[] = "# known\n\n  leak:libfoo.so  \nleak:^grow$\r\n";
	static const char *const wrong[] = { "leak:a\nrace:b\n", "leak:\n", "foo\n" };
	struct fail fail = { .text = "" };
	OWNED_BY(config) struct config *config = read_text("", &fail);

	write_bytes(scratch_file, file, strlen(file));
	assert_true(add_lsan(config, scratch_file, &fail));
	assert_int_equal(config->suppression_count, 2);
	assert_int_equal(config->suppressions[0].line, 3);
	assert_int_equal(config_suppressed_by(config, "libfoo.so.2"), 0);
	assert_int_equal(config_suppressed_by(config, "grow"), 1);
	assert_true(config_suppressed_by(config, "grow_more") == SIZE_MAX);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		write_bytes(scratch_file, wrong[i], strlen(wrong[i]));
		assert_false(add_lsan(config, scratch_file, &fail));
		assert_null(strstr(fail.text, "race")); // it may be any file that the job may read
		assert_non_null(strstr(fail.text, i == 0 ? ":2:1: expected leak:PATTERN" : ":1:1:"));
	}
}

/* Whoever sends a branch sends its configuration: these took minutes. */
TEST(what_costs_more_than_it_has_bytes_is_refused)
{
	static const char *const parts[] = { "[", "{b: ", "- " };
	OWNED char *text = memory_zeroed(YAML_READ_BYTES_MAX + 100, 1);
	struct fail fail;

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		size_t bytes = (size_t)sprintf(text, "suppressions:\n  ");

		while (bytes + 8 < YAML_READ_BYTES_MAX)
			bytes += (size_t)sprintf(text + bytes, "%s", parts[i]);
		assert_null(read_text(text, &fail));
		assert_non_null(strstr(fail.text, "has more than 32 levels"));
	}
	memset(text, '#', YAML_READ_BYTES_MAX + 1);
	assert_null(read_text(text, &fail));
	assert_non_null(strstr(fail.text, "has more than 65536 bytes"));
	OWNED_BY(config) struct config *config = read_text("", &fail);
	write_bytes(scratch_file, text, YAML_READ_BYTES_MAX / 2);
	for (int i = 0; i < 2; i++) // it may name one file as often as it likes
		assert_true(add_lsan(config, scratch_file, &fail));
	assert_false(add_lsan(config, scratch_file, &fail));
	assert_non_null(strstr(fail.text, "more than 64 KiB in all"));
}

static const struct {
	const char *pattern;
	const char *text;
	bool fits;
} pattern_cases[] = {
	{ "foo", "a foo b", true },
	{ "foo", "fo", false },
	{ "^foo", "foobar", true },
	{ "^foo", "a foo", false },
	{ "foo$", "a foo", true },
	{ "foo$", "foo a", false },
	{ "^foo$", "foo", true },
	{ "^foo$", "foofoo", false },
	{ "a*c", "xabbcx", true },
	{ "a*c", "ca", false },
	{ "a*b*c", "a1b2c", true },
	{ "a*b*c", "a1c2b", false },
	{ "*", "", true },
	{ "", "", true },
	{ "^$", "", true },
	{ "^$", "a", false },
	{ "ab*ab$", "ab", false },
	{ "ab*ab$", "abab", true },
	{ "a*aab", "aaab", true },
	{ "^a*b$", "axb", true },
	{ "^a*b$", "axbx", false },
	{ "^a*b$", "xab", false },
	{ "a**b", "ab", true },
	{ "$", "anything", true },
	{ "train.py:*", "src/train.py:41 epoch", true },
	{ "*.so*free", "libfoo.so.1 f_free", true },
};

TEST(patterns_fit_as_documented)
{
	for (size_t i = 0; i < ARRAY_LEN(pattern_cases); i++) {
		if (pattern_fits(pattern_cases[i].pattern, pattern_cases[i].text) != pattern_cases[i].fits)
			fail_msg("\"%s\", \"%s\"", pattern_cases[i].pattern, pattern_cases[i].text);
	}
}

RUN_TESTS_IN(scratch_make, scratch_remove)
