/*
 * test_read_each.c - can a name that somebody else has chosen make the reader wait?
 */
#include "test.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/read_each.h"
#include "scratch.h"

/* A capture says in which folder the counters of its cgroup are. */
TEST_WITH(a_pipe_has_no_lines, scratch_make, scratch_remove)
{
	assert_int_equal(mkfifo(scratch_file, 0600), 0);
	(void)alarm(60);
	assert_true(read_number(scratch_file, NULL) == UINT64_MAX);
	(void)alarm(0);
	assert_int_equal(read_number("/proc/self/status", "Threads:"), 1);
}

RUN_TESTS(NULL, NULL)
