/*
 * test_numbers.c - has each key one number, from 0 on, in the order in which it was met?
 */
#include "test.h"

#include "base/numbers.h"

#define KEYS 1000

TEST(a_key_keeps_the_number_that_it_was_given_first)
{
	struct number *numbers = NULL;
	uint32_t next = 0;

	for (unsigned round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < KEYS; i++) {
			const uint64_t key[] = { KEYS - i, 7 };
			bool is_new;

			assert_int_equal(numbers_of(&numbers, key, sizeof(key), &is_new)->number, i);
			assert_int_equal(is_new, round == 0);
		}
	}
	for (const struct number *at = numbers; at != NULL; at = at->hh.next, next++)
		assert_int_equal(((const uint64_t *)(const void *)at->key)[0], KEYS - next);
	assert_int_equal(next, KEYS);
	numbers_free(&numbers);
	assert_null(numbers);
	assert_int_equal(numbers_of_text(&numbers, "a"), 0);
	assert_int_equal(numbers_of_text(&numbers, "ab"), 1);
	numbers_free(&numbers);
	numbers_free(&numbers); // an empty one
}

RUN_TESTS(NULL, NULL)
