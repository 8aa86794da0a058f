/*
 * launcher_guard.c - what the launcher does when a process passes its guard: runs a command (--guard-action exec:CMD), or looks who
 * holds what; and when a process has much live.
 *
 * A process that passes its guard writes its pid into a pipe in the folder of captures; one that has much live writes its pid and its
 * limit. A process of ours reads there, because the full process must not do the work. The reader lives as long as the launcher. Each
 * look is a process of its own: its memory is given back, and nothing that ends it ends the reader. Where there is a command, looks have
 * a reader of their own: one look at a time, and no command waits for a look.
 *
 * Not chosen  looks by the launcher itself, who as the parent may always trace: it would meet the stops of its child in its own wait.
 *             The program names our reader instead, see memory_guard.c.
 *
 * When failing  no pipe, no process: the guard says that nobody runs the command; nobody looks.
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

#include "base/memory.h"
#include "base/owner.h"
#include "base/read_each.h"
#include "kmem_words.h"

#define END "0"        // instead of a pid
#define KILLED_MAX 100 // an exit status says no more
#define LINE_BYTES 48

static char path[PATH_MAX + 64];
static int pipe_end = -1;
static pid_t reader;

/* The action when a guard is passed; *command: NULL = none is run. */
static enum kmem_guard_action
action_of(const struct guard_task *task, const char **command)
{
	const char *text = task->action != NULL ? task->action : getenv("KMEMSHIM_GUARD_ACTION");
	enum kmem_guard_action action;

	*command = NULL;
	if (text == NULL || !kmem_parse_guard_action(text, &action, command))
		return KMEM_GUARD_NOTE; // as the recorder takes it
	return action;
}

/* Runs the command as the grandchild of a process that ends at once: nobody waits for the command. */
static void
run_command(const char *command, const char *pid)
{
	pid_t between = fork();

	if (between != 0) {
		if (between > 0)
			(void)waitpid(between, NULL, 0);
		return;
	}
	if (fork() != 0)
		_exit(0);
	(void)dup2(STDERR_FILENO, STDOUT_FILENO); // standard output is the program's alone
	(void)setenv("KMEMSHIM_GUARD_PID", pid, 1);
	(void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

/* The result is in the capture. Returns whether the look was killed. */
static bool
look(const struct guard_task *task, const char *pid, const char *limit)
{
	pid_t own_pid = getpid();
	pid_t child = fork();
	int status = 0;
	int nothing;

	if (child == 0) {
		/* It ends with the reader, and so with the launcher: nothing of ours outlives that. */
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)signal(SIGTERM, SIG_DFL);
		if (getppid() != own_pid)
			_exit(0);
		memory_die_first();
		nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
		(void)dup2(nothing, STDOUT_FILENO);
		(void)dup2(nothing, STDERR_FILENO);
		task->look(pid, strtoull(limit, NULL, 10), task->look_stop_ns);
		_exit(0);
	}
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		continue;
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/* By a lock the launcher says that it lives (kernel_life.h): the lock must go when the launcher ends, not when this process does. */
static void
close_inherited(void)
{
	EACH_NAME (name, "/proc/self/fd") {
		int file = atoi(name);

		if (file > STDERR_FILENO && file != pipe_end && file != dirfd(name_of))
			(void)close(file);
	}
}

/* The launcher was killed: only this process can remove the pipe. */
static void
go_with_launcher(int number)
{
	(void)number;
	(void)unlink(path);
	_exit(0);
}

static void
end_with(pid_t parent)
{
	sigset_t end;

	(void)signal(SIGTERM, go_with_launcher);
	(void)sigemptyset(&end);
	(void)sigaddset(&end, SIGTERM);
	(void)sigprocmask(SIG_UNBLOCK, &end, NULL);
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		go_with_launcher(SIGTERM);
}

/* "PID" or "PID LIMIT", and nothing else. NULL: no more will come. */
static char *
next_line(FILE *lines, char line[LINE_BYTES])
{
	while (lines != NULL && fgets(line, LINE_BYTES, lines) != NULL && strcmp(line, END "\n") != 0) {
		size_t digits = strspn(line, "0123456789");
		size_t more = line[digits] == ' ' ? 1 + strspn(line + digits + 1, "0123456789") : 0;

		if (digits != 0 && more != 1 && strcmp(line + digits + more, "\n") == 0)
			return line;
	}
	return NULL;
}

/* One look at a time, because memory is short. */
static void __attribute__((noreturn)) read_looks(const struct guard_task *task, FILE *lines)
{
	char line[LINE_BYTES];
	int killed = 0;

	while (next_line(lines, line) != NULL) {
		char *limit = line + strcspn(line, " \n");
		bool is_guard = *limit != ' ';

		*limit++ = '\0';
		killed += look(task, line, is_guard ? "" : limit);
	}
	_exit(killed < KILLED_MAX ? killed : KILLED_MAX);
}

/*
 * Looks get a process of their own where a command may have to be run meanwhile, which must not come too late. Returns where that
 * process reads; -1 = nobody looks.
 */
static int
start_looker(const struct guard_task *task, pid_t *looker)
{
	pid_t own_pid = getpid();
	int ends[2];

	if (task->look == NULL || pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
		return -1;
	*looker = fork();
	if (*looker == 0) {
		end_with(own_pid);
		(void)close(ends[1]);
		(void)fcntl(ends[0], F_SETFL, 0);
		read_looks(task, fdopen(ends[0], "r"));
	}
	return ends[1]; // who looks may be gone: with our own end of it open, writing is no signal
}

/* One line for each pid: a pipe keeps short lines whole. */
static void __attribute__((noreturn)) read_pids(const struct guard_task *task, const char *command)
{
	FILE *lines = fdopen(pipe_end, "r");
	char line[LINE_BYTES];
	pid_t looker = -1;
	int status = 0;

	(void)setpgid(0, 0); // keys at the terminal are the program's
	(void)signal(SIGCHLD, SIG_DFL);
	if (command == NULL)
		read_looks(task, lines);

	int looks = start_looker(task, &looker);

	while (next_line(lines, line) != NULL) {
		bool is_guard = strchr(line, ' ') == NULL;

		if (!is_guard && looks >= 0)
			(void)!write(looks, line, strlen(line));
		line[strcspn(line, "\n")] = '\0';
		if (is_guard)
			run_command(command, line);
	}
	if (looks >= 0)
		(void)close(looks);
	while (looker > 0 && waitpid(looker, &status, 0) < 0 && errno == EINTR)
		continue;
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 0);
}

pid_t
launcher_guard_start(const struct guard_task *task, uint64_t started_ns)
{
	const char *command;
	pid_t own_pid = getpid();
	struct stat status;
	uid_t owner;

	(void)action_of(task, &command);
	if ((command == NULL && task->look == NULL) || task->folder == NULL || owner_is_anothers(task->folder, &owner))
		return 0;
	(void)snprintf(path, sizeof(path), KMEM_GUARD_PIPE, task->folder, TEXT(24, "%" PRIx64, started_ns / 1000));
	if (mkfifo(path, 0600) != 0)
		return 0;
	pipe_end = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC); // of both ends: there is a reader all the time
	bool is_own = pipe_end >= 0 && fstat(pipe_end, &status) == 0 && S_ISFIFO(status.st_mode) &&
	              owner_is_trusted(status.st_uid); // and not what another user put there meanwhile

	reader = is_own ? fork() : -1;
	if (reader == 0) {
		end_with(own_pid);
		close_inherited();
		read_pids(task, command);
	}
	if (reader < 0)
		(void)unlink(path);
	return reader > 0 && task->look != NULL ? reader : 0;
}

unsigned
launcher_guard_end(void)
{
	int status = 0;

	if (reader <= 0)
		return 0;
	(void)unlink(path);
	if (write(pipe_end, END "\n", strlen(END "\n")) < 0)
		(void)kill(reader, SIGKILL);
	while (waitpid(reader, &status, 0) < 0 && errno == EINTR)
		continue;
	reader = 0;
	return WIFEXITED(status) ? (unsigned)WEXITSTATUS(status) : 0;
}
