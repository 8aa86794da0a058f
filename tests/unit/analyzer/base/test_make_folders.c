/*
 * test_make_folders.c - does errno say what is wrong, and not only that the last folder has no parent?
 */
#include "test.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/make_folders.h"

/* Nobody can make a folder in sysfs. */
TEST(the_first_failure_is_told)
{
	assert_int_equal(mkdir("/sys/kmemshim", 0700), -1);
	int first = errno;
	assert_int_not_equal(first, ENOENT);
	assert_false(make_folders("/sys/kmemshim/below/more", 0700));
	assert_int_equal(errno, first);
}

TEST(a_file_in_the_way_is_told)
{
	assert_false(make_folders("/proc/self/status", 0700));
	assert_int_equal(errno, ENOTDIR);
	assert_false(make_folders("/proc/self/status/below", 0700));
	assert_int_equal(errno, ENOTDIR);
}

RUN_TESTS(NULL, NULL)
