/*
 * unit.h - what every unit test of the shim includes first: cmocka, and the headers that many of them need.
 */
#ifndef UNIT_H
#define UNIT_H

#include "base/diag.h"
#include "kmem_words.h"
#include "test.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Runs the function in a forked child, for what changes the whole process (limits, identity, signals). Returns the wait
 * status: 0 = the function returned 0.
 */
static inline int
in_child(int (*run)(void *), void *context)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(run(context));
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* Of this process, by the kernel: the first and the second number of statm; 0 = it cannot be read, as where no memory is left. */
static inline uint64_t
statm_bytes(const char *format)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long pages = 0;

	if (file != NULL && (fscanf(file, format, &pages) != 1 || fclose(file) != 0))
		pages = 0;
	return (uint64_t)pages * 4096;
}

static inline uint64_t
address_space_bytes(void)
{
	return statm_bytes("%lu");
}

static inline uint64_t
resident_bytes(void)
{
	return statm_bytes("%*u %lu");
}

/* The same; what the child says on stderr is in text (terminated), and shown when the child failed. */
static inline int
in_child_telling(int (*run)(void *), void *context, char *text, size_t size)
{
	int status = -1;
	size_t length = 0;
	ssize_t got;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		diag_start();
		_exit(run(context));
	}
	assert_true(pid > 0);
	close(ends[1]);
	while (length < size - 1 && (got = read(ends[0], text + length, size - 1 - length)) > 0)
		length += (size_t)got;
	text[length] = '\0';
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status != 0)
		print_message("%s", text);
	return status;
}

/* In a child: says which check failed and ends with 1. */
#define CHECK_IN_CHILD(condition)                                      \
	do {                                                               \
		if (!(condition)) {                                            \
			dprintf(2, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			return 1;                                                  \
		}                                                              \
	} while (0)

/* The same in a TEST_IN_CHILD(): such a test changes the whole process. */
#define ASSERT_IN_CHILD(condition)                                     \
	do {                                                               \
		if (!(condition)) {                                            \
			dprintf(2, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			_exit(1);                                                  \
		}                                                              \
	} while (0)

#define TEST_IN_CHILD(name)                                                          \
	static void name##_in_child(void);                                               \
	static int name##_run(__attribute__((unused)) void *context)                     \
	{                                                                                \
		name##_in_child();                                                           \
		return 0;                                                                    \
	}                                                                                \
	TEST(name)                                                                       \
	{                                                                                \
		char text[1024] = "";                                                        \
                                                                                     \
		assert_int_equal(in_child_telling(name##_run, NULL, text, sizeof(text)), 0); \
	}                                                                                \
	static void name##_in_child(void)

#endif
