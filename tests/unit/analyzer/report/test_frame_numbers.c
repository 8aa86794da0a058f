/*
 * test_frame_numbers.c - has each frame one number, from 0 on, in the order in which it was met?
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "report/frame_numbers.h"

#define FRAMES 1000

static void
a_frame_keeps_the_number_that_it_was_given_first(void **state)
{
	static const char identities[FRAMES];
	struct frame_numbers numbers = { .by_identity = NULL };

	for (unsigned round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < FRAMES; i++) {
			const struct report_frame frame = { .of = { .line = i }, .identity = &identities[FRAMES - 1 - i] };

			assert_int_equal(frame_numbers_of(&numbers, &frame), i);
			assert_int_equal(numbers.count, round == 0 ? i + 1 : FRAMES);
		}
	}
	for (uint32_t i = 0; i < FRAMES; i++)
		assert_int_equal(numbers.frames[i].of.line, i);
	frame_numbers_free(&numbers);
	assert_int_equal(numbers.count, 0);
	assert_null(numbers.by_identity);
	frame_numbers_free(&numbers); // an empty one
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_frame_keeps_the_number_that_it_was_given_first),
	};

	return cmocka_run_group_tests_name("frame numbers", tests, NULL, NULL);
}
