/*
 * test_options.c - is what a person types understood, or refused in one line that helps?
 */
#include "test.h"

#include "base/place.h"
#include "base/shell_words.h"
#include "cli/options.h"

#define WORDS 8

static const struct {
	const char *text;
	bool is_percent;
	uint32_t ppm;
} percents[] = {
	{ "5", true, 50000 },       { "5%", true, 50000 }, { "2.5 %", true, 25000 }, { "0", true, 0 },
	{ "1000", true, 10000000 }, { "1001", false, 0 },  { "-5", false, 0 },       { "5e2", false, 0 },
	{ "0x5", false, 0 },        { "five", false, 0 },  { "", false, 0 },         { "5%%", false, 0 },
	{ "1.2.3", false, 0 },
};

TEST(percentages_have_no_sign_and_no_exponent)
{
	for (size_t i = 0; i < ARRAY_LEN(percents); i++) {
		uint32_t ppm = 12345;

		assert_int_equal(options_parse_percent(percents[i].text, &ppm), percents[i].is_percent);
		assert_int_equal(ppm, percents[i].is_percent ? percents[i].ppm : 12345);
	}
}

static bool
parse(const struct command *command, const char *const *words, struct options *options, struct fail *fail)
{
	static char copies[WORDS][64];
	static char *arguments[WORDS + 1];
	int count = 0;

	for (; words[count] != NULL; count++) {
		strcpy(copies[count], words[count]);
		arguments[count] = copies[count];
	}
	arguments[count] = NULL;
	return options_parse(command, count, arguments, options, fail);
}

TEST(options_may_stand_anywhere_but_behind_a_program)
{
	static const char *const leaks[] = { "leaks", "x.kmem", "--top", "3", "--json", "--domain=cuda:0", NULL };
	static const char *const run[] = { "run", "-o", "out", "python", "-o", "own", "--top", NULL };
	static const char *const dashes[] = { "run", "--", "--odd", NULL };
	static const char *const huge[] = { "peak", "--top", "99999999999999999999999", NULL };
	struct options options;
	struct fail fail;

	assert_true(parse(command_find("leaks"), leaks, &options, &fail));
	assert_true(options.is_json && options_has(&options, OPTION_TOP));
	assert_int_equal(options.top, 3);
	assert_string_equal(options.domain, "cuda:0");
	assert_int_equal(options.argument_count, 1);
	assert_string_equal(options.arguments[0], "x.kmem");

	assert_true(parse(command_find("run"), run, &options, &fail));
	assert_string_equal(options.output, "out");
	assert_int_equal(options.argument_count, 4);
	assert_string_equal(options.arguments[1], "-o");

	assert_true(parse(command_find("run"), dashes, &options, &fail));
	assert_string_equal(options.arguments[0], "--odd");

	assert_true(parse(command_find("peak"), huge, &options, &fail));
	assert_true(options.top == UINT64_MAX);
}

static const struct {
	const char *words[WORDS];
	const char *says;
} refused_words[] = {
	{ { "leaks", "--zap" }, "unknown option --zap" },
	{ { "leaks", "-z" }, "unknown option -z" },
	{ { "leaks", "--json", "-qz" }, "unknown option -q" },
	{ { "leaks", "--top" }, "--top needs a value" },
	{ { "leaks", "--json=3" }, "takes no value" },
	{ { "leaks", "--top", "many" }, "--top \"many\": expected a number of rows" },
	{ { "leaks", "--top", "-1" }, "--top \"-1\": expected a number of rows (0 or more)" },
	{ { "leaks", "--domain", "heap", "--domain", "mmap" }, "--domain was given twice" },
	{ { "run", "-o", "a", "--output=b", "x" }, "--output was given twice" },
	{ { "leaks", "a", "b" }, "unexpected argument \"b\"" },
	{ { "leaks", "--baseline", "x" }, "unknown option --baseline" },
	{ { "why", "--top", "3" }, "unknown option --top" },
	{ { "check", "--abs", "1x", "r" }, "--abs \"1x\": expected a size" },
	{ { "check", "--rel", "x", "r" }, "expected a percentage" },
	{ { "run", "--guard", "90", "x" }, "--guard \"90\": expected a share such as 90%" },
	{ { "run", "--guard", "100%", "x" }, "expected a share such as 90% (1% to 99%), or a size with its unit" },
	{ { "run", "--guard", "9%", "--guard-action", "stop", "x" }, "expected note, interrupt, raise, or exec:CMD" },
	{ { "check" }, "an argument is missing" },
	{ { "run" }, "an argument is missing" },
	{ { "run", "--" }, "an argument is missing" },
};

TEST(what_is_not_understood_is_one_line_that_names_it)
{
	for (size_t i = 0; i < ARRAY_LEN(refused_words); i++) {
		struct options options;
		struct fail fail = { .text = "" };

		assert_false(parse(command_find(refused_words[i].words[0]), refused_words[i].words, &options, &fail));
		assert_int_equal(fail.code, EXIT_USAGE);
		if (strstr(fail.text, refused_words[i].says) == NULL)
			print_error("wanted \"%s\", got \"%s\"\n", refused_words[i].says, fail.text);
		assert_non_null(strstr(fail.text, refused_words[i].says));
		assert_non_null(strstr(fail.text, refused_words[i].words[0]));
		assert_null(strchr(fail.text, '\n'));
	}
}

TEST(help_is_taken_even_where_arguments_are_missing)
{
	static const char *const words[] = { "check", "--help", NULL };
	struct options options;
	struct fail fail;

	assert_true(parse(command_find("check"), words, &options, &fail));
	assert_true(options.wants_help);
}

static const struct {
	const char *words;
	size_t bytes;
	const char *typed;
} command_lines[] = {
	{ "python\0train.py", 16, "python train.py" },
	{ "a b\0it's\0", 9, "'a b' 'it'\\''s'" },
	{ "a\0\0b", 4, "a '' b" },
	{ "cut off here", 7, "'cut off'" },
	{ "-c\0a = 'b'\n\td\\n\033[0", 19, "-c $'a = \\'b\\'\\n\\td\\\\n\\x1b[0'" },
	{ "\n\0\302\240\0\303\244 \342\200\256", 11, "$'\\n' '\302\240' $'\303\244 \\xe2\\x80\\xae'" },
	{ "", 0, "" },
};

TEST(commands_are_written_as_a_shell_takes_them)
{
	for (size_t i = 0; i < ARRAY_LEN(command_lines); i++) {
		char *typed = shell_words_join(command_lines[i].words, command_lines[i].bytes);

		assert_string_equal(typed, command_lines[i].typed);
		free(typed);
	}
}

static const struct {
	const char *file, *function, *module;
	uint32_t line;
	const char *text;
	uint64_t offset;
} places[] = {
	{ "/data/me/train.py", "epoch", "train.py", 41, "train.py:41 epoch", 0 },
	{ "/data/me/train.py", "", "train.py", 41, "train.py:41", 0 },
	{ "", "grow", "libfoo.so", 0, "libfoo.so grow", 0 },
	{ "", "", "libfoo.so", 0, "libfoo.so", 0 },
	{ "", "", "libfoo.so", 0, "libfoo.so+0x1159", 0x1159 },
	{ "", "grow", "libfoo.so", 0, "libfoo.so grow", 0x1159 },
	{ "", "", "", 0, "unknown place", 0x7f0000001159 },
	{ "", "", "", 0, "unknown place", 0 },
	{ "a.py", "f\033[31m\n", "", 1, "a.py:1 f?[31m?", 0 },
};

TEST(places_are_short_and_harmless)
{
	char text[PLACE_TEXT_BYTES];
	char name[2000];

	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		assert_string_equal(
			place_text(places[i].file, places[i].line, places[i].function, places[i].module, places[i].offset, text),
			places[i].text);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_true(strlen(place_text(name, 7, name, name, 0, text)) < PLACE_TEXT_BYTES - 1);
	assert_non_null(strstr(text, "..."));
}

TEST(files_of_one_name_are_told_apart)
{
	static const struct {
		const char *path;
		const char *name;
	} cases[] = {
		{ "/srv/x/main.c", "x/main.c" },
		{ "/srv/y/main.c", "y/main.c" },
		{ "/srv/fx/one.c", "fx/one.c" },
		{ "/opt/x/one.c", "opt/x/one.c" },
		{ "/r/two.c", "/r/two.c" },
		{ "/q/r/two.c", "q/r/two.c" },
		{ "three.c", "three.c" },
		{ "/srv/three.c", "srv/three.c" },
		{ "/srv/a/four.c", "four.c" },
		{ "/srv/a/__init__.py", "a/__init__.py" },
		{ "/srv/b/a/__main__.py", "a/__main__.py" },
		{ "__init__.py", "__init__.py" },
		{ "/usr/lib/python3.11/z/__init__.py", "z/__init__.py" },
	};
	const char *paths[ARRAY_LEN(cases) * 2];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		paths[i] = paths[2 * ARRAY_LEN(cases) - 1 - i] = cases[i].path; // each twice
	place_learn(paths, 2 * ARRAY_LEN(cases));
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_string_equal(place_short(cases[i].path), cases[i].name);
	place_forget();
	assert_string_equal(place_short("/srv/x/main.c"), "main.c");
	assert_string_equal(place_short("/srv/b/a/__main__.py"), "a/__main__.py");
}

TEST(a_misspelt_command_is_known)
{
	static const struct {
		const char *text;
		const char *name;
	} cases[] = {
		{ "repot", "report" }, { "reports", "report" }, { "rwport", "report" }, { "reoprt", "report" },
		{ "wh", "why" },       { "twhy", "why" },       { "", NULL },           { "report", NULL },
		{ "rport2", NULL },    { "holders to", NULL },  { "tepp", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct command *like = command_like(cases[i].text);

		if (cases[i].name == NULL)
			assert_null(like);
		else
			assert_string_equal(like->name, cases[i].name);
	}
}

RUN_TESTS(NULL, NULL)
