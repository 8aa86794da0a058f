/*
 * test_stopped_process.c - does a process go on when the one that stopped it does not?
 */
#include "test.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "holders/stopped_process.h"

#define WAIT_NS 500000000

/* A look that may be held up for a second; one that lets the process go on if `is_ended`: then no alarm is left, whatever the machine does. */
static pid_t
look_and_wait(pid_t pid, int say, bool is_ended)
{
	pid_t looker = fork();

	if (looker == 0) {
		struct stopped_process process;
		struct fail fail;

		stopped_process_grace_s = is_ended ? 60 : 1;
		if (!stopped_process_stop("test", pid, WAIT_NS, &process, &fail))
			_exit(strstr(fail.text, "EPERM") != NULL ? 77 : 1);
		if (is_ended)
			(void)stopped_process_resume(&process);
		(void)!write(say, "", 1);
		if (!is_ended)
			(void)sleep(60);
		_exit(alarm(0) == 0 ? 0 : 2);
	}
	return looker;
}

/* Returns the status of who looked. */
static int
status_of_look(bool is_ended)
{
	int told[2];
	int status;
	char nothing;
	pid_t pid = fork();

	if (pid == 0) {
		for (;;)
			(void)pause();
	}
	assert_int_equal(pipe(told), 0);
	pid_t looker = look_and_wait(pid, told[1], is_ended);

	(void)close(told[1]);
	(void)!read(told[0], &nothing, 1);
	(void)close(told[0]);
	assert_int_equal(waitpid(looker, &status, 0), looker);
	assert_int_equal(kill(pid, SIGTERM), 0); // who stands still does not take it
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return status;
}

TEST(who_is_held_up_is_ended)
{
	int status = status_of_look(false);

	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
}

TEST(who_has_let_it_go_on_has_all_the_time)
{
	int status = status_of_look(true);

	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

RUN_TESTS(NULL, NULL)
