/*
 * launcher_guard.c - runs a command when a process passes its guard (--guard-action exec:CMD).
 *
 * Whoever passes its guard writes its pid into a pipe in the folder of captures. A process of ours reads there and runs the command:
 * never the one that is full. It lives as long as the launcher.
 *
 * When failing  no pipe, no process: the guard says that nobody runs the command.
 */
#include "launch/launcher_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kmem_words.h"

#define END "0" // instead of a pid

static char path[PATH_MAX + 64];
static int pipe_end = -1;
static pid_t reader;

/* NULL: another action, or there is no guard. */
static const char *
command_of(const char *guard_action)
{
	const char *text = guard_action != NULL ? guard_action : getenv("KMEMSHIM_GUARD_ACTION");
	enum kmem_guard_action action;
	const char *command;

	return text != NULL && kmem_parse_guard_action(text, &action, &command) ? command : NULL;
}

static void
run_command(const char *command, const char *pid)
{
	if (fork() != 0)
		return;
	(void)signal(SIGCHLD, SIG_DFL);
	(void)dup2(STDERR_FILENO, STDOUT_FILENO); // standard output is the program's alone
	(void)setenv("KMEMSHIM_GUARD_PID", pid, 1);
	(void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

/* One line each: pipes keep short ones whole. */
static void __attribute__((noreturn)) read_pids(const char *command)
{
	FILE *lines = fdopen(pipe_end, "r");
	char line[32];

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)setpgid(0, 0); // keys at the terminal are the program's
	(void)signal(SIGCHLD, SIG_IGN);
	while (lines != NULL && fgets(line, sizeof(line), lines) != NULL && strcmp(line, END "\n") != 0) {
		line[strcspn(line, "\n")] = '\0';
		run_command(command, line);
	}
	_exit(0);
}

void
launcher_guard_start(const char *folder, uint64_t started_ns, const char *guard_action)
{
	const char *command = command_of(guard_action);
	char session[24];

	if (command == NULL || folder == NULL)
		return;
	(void)snprintf(session, sizeof(session), "%" PRIx64, started_ns / 1000);
	(void)snprintf(path, sizeof(path), KMEM_GUARD_PIPE, folder, session);
	if (mkfifo(path, 0600) != 0)
		return;
	pipe_end = open(path, O_RDWR | O_CLOEXEC); // of both ends: there is a reader all the time
	reader = pipe_end >= 0 ? fork() : -1;
	if (reader == 0)
		read_pids(command);
	if (reader < 0)
		(void)unlink(path);
}

void
launcher_guard_end(void)
{
	if (reader <= 0)
		return;
	(void)unlink(path);
	if (write(pipe_end, END "\n", strlen(END "\n")) < 0)
		(void)kill(reader, SIGKILL);
	while (waitpid(reader, NULL, 0) < 0 && errno == EINTR)
		continue;
	reader = 0;
}
