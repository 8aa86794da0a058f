/*
 * test_running_capture.c - what is said of a process that has no capture?
 */
#include "test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/running_capture.h"
#include "base/memory.h"

static const char *
said_of(pid_t pid)
{
	static struct fail fail;
	static char path[RUNNING_CAPTURE_PATH_BYTES];

	const char *text = TEXT(24, "%d", (int)pid);
	assert_false(running_capture_path("top", text, path, &fail));
	return fail.text;
}

TEST(a_process_that_nobody_has_waited_for_is_gone)
{
	pid_t pid = fork();
	siginfo_t info;

	if (pid == 0)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	const char *wanted = TEXT(64, "top: process %d is gone", (int)pid);
	assert_string_equal(said_of(pid), wanted);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_string_equal(said_of(pid), wanted);
}

TEST(a_process_without_the_recorder_is_not_recorded)
{
	const char *wanted = TEXT(96, "top: process %d is not recorded: start it with kmemshim run", (int)getpid());
	assert_string_equal(said_of(getpid()), wanted);
}

RUN_TESTS(NULL, NULL)
