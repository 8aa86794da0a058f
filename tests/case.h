/*
 * case.h - a unit test stands in its file once: CASE() adds it to the tests of the file, in their order, and CASES() runs them.
 */
#ifndef CASE_H
#define CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static struct CMUnitTest file_cases[128];
static size_t file_case_count;

/* The body follows. setup, teardown: of this case; NULL = none. */
#define CASE_WITH(name, setup, teardown)                                                                           \
	static void name(void **state);                                                                                \
	__attribute__((constructor)) static void add_##name(void)                                                      \
	{                                                                                                              \
		file_cases[file_case_count++] = (struct CMUnitTest)cmocka_unit_test_setup_teardown(name, setup, teardown); \
	}                                                                                                              \
	static void name(__attribute__((unused)) void **state)
#define CASE(name) CASE_WITH(name, NULL, NULL)

/* setup, teardown: of all together */
#define RUN_CASES(setup, teardown) \
	_cmocka_run_group_tests(__BASE_FILE__, file_cases, file_case_count, (setup), (teardown))
#define CASES(setup, teardown)                 \
	int main(void)                             \
	{                                          \
		return RUN_CASES((setup), (teardown)); \
	}

#endif
