/*
 * test_table_rows.c - do the right lines of code get a row, and is the rest summed up?
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "report/table_rows.h"

#define LINES 5

/* S: too small for a row, A: address space, +: as many bytes as its place in the ranking leaves, L: the largest. */
static const struct {
	const char *lines;
	size_t top;
	const char *rows; // x = has one
	size_t rest, space;
	const char *why;
} cases[] = {
	{ "L+++", 4, "xxxx", 0, 0, "all fit" },
	{ "L+++", 2, "xx..", 2, 0, "the first ones of the ranking" },
	{ "L+++", 0, "....", 4, 0, "none wanted" },
	{ "++++L", 2, "x...x", 3, 0, "the last row is the largest line's" },
	{ "+++L+", 3, "xx.x.", 2, 0, "and waits for it" },
	{ "++L", 1, "x..", 2, 0, "the first line has its row always" },
	{ "LSS+", 4, "x..x", 2, 0, "small ones are summed up" },
	{ "SL", 2, "xx", 0, 0, "but not the first" },
	{ "L+AA", 2, "xx..", 0, 2, "address space has a sum of its own" },
	{ "+A", 2, "xx", 0, 0, "and rows where there is room" },
	{ "", 3, "", 0, 0, "nothing" },
};

static void
the_first_ones_and_the_largest_have_rows(void **state)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct table_line lines[LINES];
		struct table_rest rest, space;
		size_t count = strlen(cases[i].lines);

		for (size_t n = 0; n < count; n++) {
			char kind = cases[i].lines[n];

			lines[n] = (struct table_line){
				.number = n,
				.bytes = kind == 'L'   ? 100
				         : kind == 'A' ? 1000
				                       : 10 - n,
				.is_address_space = kind == 'A',
				.is_small = kind == 'S',
			};
			lines[n].in_memory_bytes = lines[n].bytes;
		}
		table_rows_choose(lines, count, cases[i].top, &rest, &space);
		for (size_t n = 0; n < count; n++) {
			if (lines[n].has_row != (cases[i].rows[n] == 'x'))
				fail_msg("%s: line %zu of \"%s\"", cases[i].why, n, cases[i].lines);
		}
		assert_int_equal(rest.count, cases[i].rest);
		assert_int_equal(space.count, cases[i].space);
		assert_int_equal(space.bytes, 1000 * cases[i].space);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_ones_and_the_largest_have_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
