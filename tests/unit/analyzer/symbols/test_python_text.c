/*
 * test_python_text.c - does every format of line tables give the interpreter's own lines?
 *
 * Small tables of each format by hand, with the line that co_lines() of that interpreter gives; then damaged ones.
 */
#include "test.h"

#include "symbols/python_text.h"
#include "base/memory.h"

static const struct {
	const char *name;
	uint32_t version, first_line;
	uint8_t table[24];
	size_t table_bytes;
	uint32_t offset, line;
} cases[] = {
	/* co_lnotab: (bytes, lines), the lines apply after the bytes */
	{ "3.8 first", 0x0308, 10, { 0, 1, 8, 2, 6, 255 }, 6, 0, 11 },
	{ "3.8 before the step", 0x0308, 10, { 0, 1, 8, 2, 6, 255 }, 6, 6, 11 },
	{ "3.8 at the step", 0x0308, 10, { 0, 1, 8, 2, 6, 255 }, 6, 8, 13 },
	{ "3.9 backwards", 0x0309, 10, { 0, 1, 8, 2, 6, 255 }, 6, 14, 12 },
	{ "3.9 beyond the end", 0x0309, 10, { 0, 1, 8, 2, 6, 255 }, 6, 1000000, 12 },
	{ "3.8 wide steps", 0x0308, 10, { 255, 0, 45, 127, 0, 100 }, 6, 300, 237 },
	{ "3.8 half a pair", 0x0308, 10, { 0, 1, 8 }, 3, 8, 11 },
	{ "3.8 no table", 0x0308, 10, { 0 }, 0, 8, 10 },
	/* co_linetable of 3.10: (bytes, lines), the lines apply to these bytes; -128 is no line */
	{ "3.10 first", 0x030a, 20, { 8, 1, 4, 2, 2, 128, 6, 255 }, 8, 0, 21 },
	{ "3.10 second", 0x030a, 20, { 8, 1, 4, 2, 2, 128, 6, 255 }, 8, 8, 23 },
	{ "3.10 no line: the one before", 0x030a, 20, { 8, 1, 4, 2, 2, 128, 6, 255 }, 8, 12, 23 },
	{ "3.10 after no line", 0x030a, 20, { 8, 1, 4, 2, 2, 128, 6, 255 }, 8, 14, 22 },
	{ "3.10 half a pair", 0x030a, 20, { 8, 1, 4 }, 3, 8, 21 },
	/* locations from 3.11 on; 0x80 | kind << 3 | units - 1 */
	{ "3.11 same line", 0x030b, 30, { 0x80 | 3 << 3 | 1, 0x12, 0x80 | 11 << 3 | 0, 1, 2 }, 5, 2, 30 },
	{ "3.11 one line on", 0x030b, 30, { 0x80 | 3 << 3 | 1, 0x12, 0x80 | 11 << 3 | 0, 1, 2 }, 5, 4, 31 },
	{ "3.12 two lines on", 0x030c, 30, { 0x80 | 12 << 3 | 7, 1, 2 }, 3, 15, 32 },
	{ "3.13 back by a varint", 0x030d, 30, { 0x80 | 13 << 3, 7 }, 2, 0, 27 },
	{ "3.13 long, two groups", 0x030d, 30, { 0x80 | 14 << 3, 0x40 | 8, 3, 0, 1, 2 }, 6, 0, 30 + (8 + (3 << 6)) / 2 },
	{ "3.11 no location: the one before", 0x030b, 30, { 0x80 | 11 << 3, 1, 2, 0x80 | 15 << 3 }, 4, 2, 31 },
	{ "3.11 beyond the end", 0x030b, 30, { 0x80 | 11 << 3, 1, 2 }, 3, 400, 31 },
	{ "3.11 varint cut", 0x030b, 30, { 0x80 | 13 << 3, 0x48 }, 2, 0, 30 },
	{ "3.11 varint too long", 0x030b, 30, { 0x80 | 13 << 3, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 1 }, 9, 0, 30 },
	{ "3.11 begins inside an entry", 0x030b, 30, { 0x12, 0x80 | 11 << 3, 1, 2 }, 4, 0, 30 },
	{ "3.11 leads below the first line", 0x030b, 3, { 0x80 | 13 << 3, 21 }, 2, 0, 0 },
	{ "3.11 no table", 0x030b, 30, { 0 }, 0, 0, 30 },
	{ "3.15 like 3.11", 0x030f, 30, { 0x80 | 11 << 3, 1, 2 }, 3, 0, 31 },
};

TEST(lines_are_those_of_the_interpreter)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		/* Of exactly the table's size, so that a sanitizer sees any step beyond it. */
		OWNED uint8_t *table = malloc(cases[i].table_bytes + (cases[i].table_bytes == 0));

		assert_non_null(table);
		memcpy(table, cases[i].table, cases[i].table_bytes);
		uint32_t line = python_text_line(cases[i].version, cases[i].first_line, table, cases[i].table_bytes,
		                                 cases[i].offset);
		if (line != cases[i].line)
			fail_msg("%s: line %u, wanted %u", cases[i].name, line, cases[i].line);
	}
}

TEST(any_table_gives_some_line)
{
	uint32_t seed = 1;

	for (unsigned round = 0; round < 20000; round++) {
		OWNED uint8_t *table = malloc(round % 50 + 1);

		assert_non_null(table);
		for (unsigned i = 0; i < round % 50; i++) {
			seed = seed * 1103515245 + 12345;
			table[i] = (uint8_t)(seed >> 16);
		}
		for (uint32_t version = 0x0307; version < 0x0310; version++)
			assert_true(python_text_line(version, 1, table, round % 50, seed >> 20) <= INT32_MAX);
	}
}

RUN_TESTS(NULL, NULL)
