/*
 * test.h - a test of cmocka that is its own entry in the list: TEST(name) { ... } is a function, and RUN_TESTS() at the end of the file runs
 * all of them in the order in which they stand. With the headers that nearly each test needs.
 */
#ifndef TEST_H
#define TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))
#define TESTS_MAX 256

static struct CMUnitTest test_list[TESTS_MAX];
static size_t test_count;

static inline void
test_add(struct CMUnitTest test)
{
	if (test_count == TESTS_MAX)
		__builtin_trap();
	test_list[test_count++] = test;
}

/* setup and teardown: of each test that has none of its own. */
static inline int
test_run(CMFixtureFunction before_all, CMFixtureFunction after_all, CMFixtureFunction setup, CMFixtureFunction teardown)
{
	for (size_t i = 0; i < test_count; i++) {
		struct CMUnitTest *test = &test_list[i];

		if (test->setup_func == NULL && test->teardown_func == NULL) {
			test->setup_func = setup;
			test->teardown_func = teardown;
		}
	}
	return _cmocka_run_group_tests("tests", test_list, test_count, before_all, after_all);
}

/* The function once more, under another name and with another setup. */
#define TEST_AGAIN(name, function, setup, teardown)                              \
	__attribute__((constructor)) static void add_##name(void)                    \
	{                                                                            \
		test_add((struct CMUnitTest){ #name, function, setup, teardown, NULL }); \
	}

/* For a test that stands further down and has to run before those above it. */
#define TEST_EARLY(name, setup, teardown) \
	static void name(void **test_state);  \
	TEST_AGAIN(name, name, setup, teardown)

#define TEST_WITH(name, setup, teardown) \
	TEST_EARLY(name, setup, teardown)    \
	static void name(__attribute__((unused)) void **test_state)

#define TEST(name) TEST_WITH(name, NULL, NULL)

/* What comes before each test, or behind it. */
#define SETUP(name)                                                   \
	static void name##_does(void);                                    \
	static inline int name(__attribute__((unused)) void **test_state) \
	{                                                                 \
		name##_does();                                                \
		return 0;                                                     \
	}                                                                 \
	static void name##_does(void)

/* A file's main(): with a setup for each test, or for all of them together. */
#define RUN_TESTS_IN(before_all, after_all)                 \
	int main(void)                                          \
	{                                                       \
		return test_run(before_all, after_all, NULL, NULL); \
	}
#define RUN_TESTS(setup, teardown)                    \
	int main(void)                                    \
	{                                                 \
		return test_run(NULL, NULL, setup, teardown); \
	}

#endif
