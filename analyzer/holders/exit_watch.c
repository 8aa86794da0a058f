/*
 * exit_watch.c - starts a program and waits for its end (see exit_watch.h).
 *
 * The first thread is watched: it is the last one whose memory the kernel takes away, whichever ends the program.
 */
#include "holders/exit_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

/* Waits until it is watched, then becomes the program. An error is sent back: the pipe is closed when the program begins. */
static void __attribute__((noreturn)) become(char *const *arguments, const int go[2], const int failed[2])
{
	char nothing;
	int error = EINTR;

	(void)close(go[1]);
	(void)dup2(STDERR_FILENO, STDOUT_FILENO);
	while (read(go[0], &nothing, 1) < 0 && errno == EINTR)
		continue;
	(void)execvp(arguments[0], arguments);
	error = errno;
	(void)!write(failed[1], &error, sizeof(error));
	_exit(127);
}

/* 0 = it has begun. */
static int
let_begin(const int go[2], const int failed[2])
{
	int error = 0;

	(void)close(failed[1]);
	(void)close(go[0]);
	(void)!write(go[1], "", 1);
	(void)close(go[1]);
	while (read(failed[0], &error, sizeof(error)) < 0 && errno == EINTR)
		continue;
	(void)close(failed[0]);
	return error;
}

static bool
end_it(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, __WALL);
	return false;
}

bool
exit_watch_start(const char *command, char *const *arguments, pid_t *pid, struct fail *fail)
{
	int go[2];
	int failed[2];

	if (pipe2(go, O_CLOEXEC) != 0 || pipe2(failed, O_CLOEXEC) != 0 || (*pid = fork()) < 0)
		return fail_set(fail, EXIT_USAGE, "%s: %s: cannot start it: %s", command, arguments[0], strerror(errno));
	if (*pid == 0)
		become(arguments, go, failed);
	if (ptrace(PTRACE_SEIZE, *pid, NULL, (void *)(intptr_t)PTRACE_O_TRACEEXIT) != 0) {
		(void)fail_set(fail, EXIT_USAGE,
		               "%s: %s may not be watched (ptrace: %s): a container needs the capability SYS_PTRACE", command,
		               arguments[0], strerrorname_np(errno));
		return end_it(*pid);
	}

	int error = let_begin(go, failed);

	if (error == 0)
		return true;
	(void)fail_set(fail, EXIT_USAGE, "%s: %s: cannot be run: %s", command, arguments[0], strerror(error));
	return end_it(*pid);
}

static bool
is_stop(int number)
{
	return number == SIGSTOP || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
}

bool
exit_watch_wait(const char *command, pid_t pid, struct stopped_process *process, int *status, struct fail *fail)
{
	for (;;) {

		if (waitpid(pid, status, __WALL) < 0) {
			if (errno == EINTR)
				continue;
			return fail_set(fail, EXIT_USAGE, "%s: process %d is gone", command, (int)pid);
		}
		if (!WIFSTOPPED(*status))
			return fail_set(fail, EXIT_USAGE, "%s: process %d was killed: its memory is gone", command, (int)pid);

		int event = *status >> 16;

		if (event == PTRACE_EVENT_EXIT)
			break;
		if (event == PTRACE_EVENT_STOP && is_stop(WSTOPSIG(*status)))
			(void)ptrace(PTRACE_LISTEN, pid, NULL, NULL); // until it gets SIGCONT
		else
			(void)ptrace(PTRACE_CONT, pid, NULL, (void *)(intptr_t)(event == 0 ? WSTOPSIG(*status) : 0));
	}
	*process = (struct stopped_process){ .pid = pid, .is_ending = true, .since_ns = clock_monotonic_ns() };
	*MEMORY_NEXT(process->threads, process->count) = (struct stopped_thread){ .number = pid };
	stopped_registers_read(&process->threads[0]);
	return true;
}
