/*
 * test_source_lines.c - is a line of source shown only when it is what ran?
 */
#include "test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "scratch.h"
#include "symbols/source_lines.h"
#include "base/memory.h"

static void
write_file(const char *name, const char *text, size_t bytes)
{
	const char *path = TEXT(256, "%s/%s", scratch_folder, name);
	FILE *stream = fopen(path, "w");
	assert_non_null(stream);
	assert_int_equal(fwrite(text, 1, bytes, stream), bytes);
	assert_int_equal(fclose(stream), 0);
}

static const char *
find(struct source_lines *lines, const char *directory, const char *file, uint32_t line, bool *is_changed)
{
	const struct source_place place = {
		.directory = directory, .file = file, .path = file, .line = line, .function = ""
	};

	return source_lines_find(lines, &place, is_changed);
}

static uint64_t
now(void)
{
	struct timespec time;

	assert_int_equal(clock_gettime(CLOCK_REALTIME, &time), 0);
	return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

TEST(lines_end_where_python_ends_them_and_can_be_shown)
{
	static const char text[] = "\xef\xbb\xbf"
							   "first\r\n\tsecond  \rthird\n\nfi\x1b[31mfth\x00!\nbad \xff\xfe\nl\xc3\xa4st";
	static const char *const wanted[] = { "first", "second", "third", "", "fi?[31mfth?!", "bad ??", "l\xc3\xa4st", "" };
	bool is_changed;

	write_file("a.py", text, sizeof(text) - 1);
	struct source_lines *lines = source_lines_new(now() + 1000000000, NULL);
	for (uint32_t i = 0; i < ARRAY_LEN(wanted); i++) {
		assert_string_equal(find(lines, scratch_folder, "a.py", i + 1, &is_changed), wanted[i]);
		assert_false(is_changed);
	}
	assert_string_equal(find(lines, scratch_folder, "a.py", 0, &is_changed), "");
	assert_string_equal(find(lines, scratch_folder, "a.py", UINT32_MAX, &is_changed), "");
	source_lines_free(lines);
}

TEST(a_long_line_is_cut_between_characters)
{
	char text[3000];
	bool is_changed;

	for (size_t i = 0; i + 1 < sizeof(text); i += 2)
		memcpy(text + i, "\xc3\xa4", 2);
	write_file("long.py", text, sizeof(text));
	struct source_lines *lines = source_lines_new(now() + 1000000000, NULL);
	const char *line = find(lines, scratch_folder, "long.py", 1, &is_changed);
	assert_in_range(strlen(line), SOURCE_LINE_BYTES - 4, SOURCE_LINE_BYTES);
	assert_string_equal(line + strlen(line) - 5, "\xc3\xa4...");
	source_lines_free(lines);
}

TEST(a_file_that_changed_since_is_never_shown)
{
	const struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	struct source_lines *lines;
	uint64_t started = now() - 10 * UINT64_C(1000000000);
	bool is_changed;

	write_file("b.py", "x\n", 2);
	const char *path = TEXT(256, "%s/b.py", scratch_folder);
	for (int round = 0; round < 2; round++) {
		lines = source_lines_new(started, NULL);
		assert_string_equal(find(lines, scratch_folder, "b.py", 1, &is_changed), "");
		assert_true(is_changed);
		source_lines_free(lines);
		// looks old, as after rsync -t or git stash: ctime tells
		assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
	}
}

/* A script that another process of the session wrote before it ran. */
TEST(each_process_is_compared_with_its_own_start)
{
	struct source_place place = {
		.directory = scratch_folder, .file = "own.py", .path = "own.py", .line = 1, .function = ""
	};
	struct source_lines *lines = source_lines_new(now() - 10 * UINT64_C(1000000000), NULL);
	struct source_text text;
	bool is_changed;

	write_file("own.py", "x\n", 2);
	for (int round = 0; round < 2; round++) {
		place.started_ns = now() + UINT64_C(1000000000);
		assert_string_equal(source_lines_find(lines, &place, &is_changed), "x");
		assert_false(is_changed);
		assert_int_equal(source_lines_all(lines, &place, &text), SOURCE_KNOWN);
		place.started_ns = 0; // of the first one
		assert_string_equal(source_lines_find(lines, &place, &is_changed), "");
		assert_true(is_changed);
		assert_int_equal(source_lines_all(lines, &place, &text), SOURCE_CHANGED);
	}
	source_lines_free(lines);
}

/* A whole file is its text, or the reason why there is none. */
TEST(a_whole_file_says_why_it_cannot_be_shown)
{
	static const struct {
		const char *file;
		uint32_t first_line;
		bool is_old;
		enum source_state wanted;
	} cases[] = {
		{ "whole.py", 1, true, SOURCE_KNOWN },    { "whole.py", 2, true, SOURCE_UNKNOWN },
		{ "whole.py", 1, false, SOURCE_CHANGED }, { "missing.py", 0, true, SOURCE_GONE },
		{ "whole.py/x", 0, true, SOURCE_GONE },   { "<string>", 0, true, SOURCE_UNKNOWN },
		{ "/dev/zero", 0, true, SOURCE_UNKNOWN },
	};

	write_file("whole.py", "def f():\n    x = 1\n", 19);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const uint64_t hour = 3600 * UINT64_C(1000000000);
		struct source_lines *lines = source_lines_new(cases[i].is_old ? now() + hour : now() - hour, NULL);
		const struct source_place place = { .directory = scratch_folder,
			                                .file = cases[i].file,
			                                .path = cases[i].file,
			                                .first_line = cases[i].first_line,
			                                .function = "f" };
		struct source_text text;

		if (source_lines_all(lines, &place, &text) != cases[i].wanted)
			fail_msg("case %zu: not %d", i, (int)cases[i].wanted);
		if (cases[i].wanted == SOURCE_KNOWN) {
			assert_int_equal(text.line_count, 2);
			assert_string_equal(text.lines[1], "x = 1");
			assert_int_equal(text.indents[1], 4);
		}
		source_lines_free(lines);
	}
}

TEST(what_is_no_file_is_no_line)
{
	static const char *const names[] = { "", "<string>", "missing.py", "/dev/zero", "/proc/self/mem", "/", "../x" };
	struct source_lines *lines = source_lines_new(now() + 1000000000, NULL);
	bool is_changed;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		assert_string_equal(find(lines, scratch_folder, names[i], 1, &is_changed), "");
	assert_string_equal(find(lines, "", "a.py", 1, &is_changed), ""); // started nobody knows where
	source_lines_free(lines);
	lines = source_lines_new(0, NULL); // of another machine
	assert_string_equal(find(lines, scratch_folder, "a.py", 1, &is_changed), "");
	assert_false(is_changed);
	source_lines_free(lines);
}

TEST(another_file_is_told_by_its_functions)
{
	static const char text
		[] = "def f(a):\n    return a\n@wraps\nasync def  g (a): pass\nclass C: x = 1\nh = lambda: 0\ndef ff(): 0\n";
	static const struct {
		const char *function;
		uint32_t first_line;
		bool is_it;
	} cases[] = {
		{ "f", 1, true },        { "C.f", 1, true },       { "f", 2, false },
		{ "f", 7, false },       { "ff", 1, false },       { "g", 3, true },
		{ "g", 4, true },        { "C", 5, true },         { "h", 6, false },
		{ "<lambda>", 6, true }, { "<lambda>", 5, false }, { "f.<locals>.<listcomp>", 2, true },
		{ "<module>", 1, true }, { "f", 8, false },        { "f", 0, true },
	};
	struct source_lines *lines = source_lines_new(now() + 1000000000, NULL);

	write_file("a.py", text, sizeof(text) - 1);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct source_place place = { .directory = scratch_folder,
			                                .file = "a.py",
			                                .path = "a.py",
			                                .line = 2,
			                                .first_line = cases[i].first_line,
			                                .function = cases[i].function };
		bool is_changed;
		const char *line = source_lines_find(lines, &place, &is_changed);

		if (is_changed || (line[0] != '\0') != cases[i].is_it)
			fail_msg("%s at %u: \"%s\"", cases[i].function, (unsigned)cases[i].first_line, line);
	}
	source_lines_free(lines);
}

TEST(recorded_texts_need_no_file)
{
	struct source_lines *lines = source_lines_new(0, NULL);
	bool is_changed;

	source_lines_add(lines, "cell In[3]", "a = 1\n  b = 2");
	assert_string_equal(find(lines, "", "cell In[3]", 2, &is_changed), "b = 2");
	assert_string_equal(find(lines, "", "cell In[3]", 3, &is_changed), "");
	assert_string_equal(find(lines, "", "cell In[4]", 1, &is_changed), "");
	source_lines_free(lines);
}

RUN_TESTS_IN(scratch_make, scratch_remove)
