/*
 * hooks_process.c - the ways a process image ends: exit, before its handlers; _exit and exec, which run none.
 *
 * A return from main is an exit() that libc makes inside: main is started by a function of ours, whose frame stays below it. Functions
 * of libc that exit themselves (err, error) are seen by a handler that was registered before main: destructors of objects that were made
 * later run before that handler.
 *
 * The exec family is interposed name by name, because libc's members call each other inside. posix_spawn, system and popen start their
 * children inside libc; those children begin with an exec of their own and need nothing here. A forked child is noticed through
 * pthread_atfork and a page that the kernel wipes (lifecycle.c); a refused fork only here. The parent of daemon() ends inside libc.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/export.h"
#include "base/real_libc.h"
#include "base/reentry_guard.h"
#include "hooks/lifecycle.h"
#include "moments/other_limits.h"
#include "record/tracker.h"

extern char **environ;

EXPORT void
exit(int status)
{
	int host_errno = errno;

	real_libc_find();
	lifecycle_exit_begins();
	errno = host_errno;
	real_libc.exit(status);
}

EXPORT void
quick_exit(int status)
{
	int host_errno = errno;

	real_libc_find();
	lifecycle_exit_begins();
	errno = host_errno;
	real_libc.quick_exit(status);
}

static real_libc_main *program_main;

static int
start_program(int count, char **arguments, char **variables)
{
	lifecycle_main_begins();

	int status = program_main(count, arguments, variables);

	lifecycle_exit_begins();
	return status;
}

/* The program's first code calls it, once; it does not return. */
int __libc_start_main(real_libc_main *main, int count, char **arguments, void (*init)(void), void (*end)(void),
                      void (*loader_end)(void), void *stack_end);

EXPORT int
__libc_start_main(real_libc_main *main, int count, char **arguments, void (*init)(void), void (*end)(void),
                  void (*loader_end)(void), void *stack_end)
{
	real_libc_find();
	program_main = main;
	return real_libc.start_main(start_program, count, arguments, init, end, loader_end, stack_end);
}

/* atexit() comes here too; so do destructors of static objects. */
int __cxa_atexit(void (*handler)(void *argument), void *argument, void *object);

EXPORT int
__cxa_atexit(void (*handler)(void *argument), void *argument, void *object)
{
	real_libc_find();

	int result = real_libc.cxa_atexit(handler, argument, object);

	lifecycle_handler_was_added();
	return result;
}

EXPORT int
on_exit(void (*handler)(int status, void *argument), void *argument)
{
	real_libc_find();

	int result = real_libc.on_exit(handler, argument);

	lifecycle_handler_was_added();
	return result;
}

EXPORT void
_exit(int status)
{
	lifecycle_end_at_once(status & 0xff);
	real_libc_find();
	real_libc._exit(status);
}

EXPORT void
_Exit(int status)
{
	_exit(status);
}

/* Handlers of fork do not learn that a fork was refused. */
EXPORT pid_t
fork(void)
{
	real_libc_find();

	pid_t pid = real_libc.fork();

	if (pid >= 0)
		return pid;

	int host_errno = errno;

	if (tracker_is_on() && reentry_guard_enter()) {
		other_limits_process(host_errno);
		reentry_guard_leave();
	}
	errno = host_errno;
	return pid;
}

EXPORT int
daemon(int keeps_folder, int keeps_streams)
{
	real_libc_find();
	lifecycle_fork_ends_parent = true;

	int result = real_libc.daemon(keeps_folder, keeps_streams);

	lifecycle_fork_ends_parent = false;
	return result;
}

/* Would exec find this? Searched in PATH as execvp does, when the name has no slash. */
static bool
is_executable(const char *file, bool searches)
{
	const char *path = getenv("PATH");
	char whole[4096];

	if (file == NULL)
		return false;
	if (!searches || strchr(file, '/') != NULL)
		return access(file, X_OK) == 0;
	for (path = path != NULL ? path : "/bin:/usr/bin"; *path != '\0';) {
		size_t length = strcspn(path, ":");

		if (length + strlen(file) + 2 < sizeof(whole)) {
			memcpy(whole, path, length);
			diag_format(whole + length, sizeof(whole) - length, "%s%s", length != 0 ? "/" : "./", file);
			if (access(whole, X_OK) == 0)
				return true;
		}
		path += length + (path[length] == ':');
	}
	return false;
}

static int
replace_image(const char *file, bool searches, char *const argv[], char *const envp[])
{
	int host_errno = errno;

	real_libc_find();
	if (lifecycle_exec_begin() && is_executable(file, searches))
		lifecycle_exec_replaces_small();
	errno = host_errno;
	int result = searches ? real_libc.execvpe(file, argv, envp) : real_libc.execve(file, argv, envp);

	host_errno = errno;
	lifecycle_exec_failed(); // only then are we still here
	errno = host_errno;
	return result;
}

EXPORT int
execve(const char *path, char *const argv[], char *const envp[])
{
	return replace_image(path, false, argv, envp);
}

EXPORT int
execv(const char *path, char *const argv[])
{
	return replace_image(path, false, argv, environ);
}

EXPORT int
execvp(const char *file, char *const argv[])
{
	return replace_image(file, true, argv, environ);
}

EXPORT int
execvpe(const char *file, char *const argv[], char *const envp[])
{
	return replace_image(file, true, argv, envp);
}

EXPORT int
fexecve(int fd, char *const argv[], char *const envp[])
{
	real_libc_find();
	if (lifecycle_exec_begin() && fd >= 0)
		lifecycle_exec_replaces_small();

	int result = real_libc.fexecve(fd, argv, envp);
	int host_errno = errno;

	lifecycle_exec_failed();
	errno = host_errno;
	return result;
}

EXPORT int
execveat(int folder_fd, const char *path, char *const argv[], char *const envp[], int flags)
{
	int host_errno = errno;

	real_libc_find();
	if (real_libc.execveat == NULL) { // before glibc 2.34
		errno = ENOSYS;
		return -1;
	}
	if (lifecycle_exec_begin() && ((flags & AT_EMPTY_PATH) != 0 || faccessat(folder_fd, path, X_OK, 0) == 0))
		lifecycle_exec_replaces_small();
	errno = host_errno;

	int result = real_libc.execveat(folder_fd, path, argv, envp, flags);

	host_errno = errno;
	lifecycle_exec_failed();
	errno = host_errno;
	return result;
}

/* The list forms: the arguments are collected into a vector on the stack, as libc does. */
#define COLLECT(first, vector, rest)                                 \
	va_list counted;                                                 \
	size_t count = 1;                                                \
	va_start(rest, first);                                           \
	va_copy(counted, rest);                                          \
	while (va_arg(counted, char *) != NULL)                          \
		count++;                                                     \
	va_end(counted);                                                 \
	char **vector = __builtin_alloca((count + 1) * sizeof(*vector)); \
	vector[0] = (char *)(uintptr_t)(first);                          \
	for (size_t i = 1; i <= count; i++)                              \
	vector[i] = va_arg(rest, char *)

EXPORT int
execl(const char *path, const char *argument, ...)
{
	va_list rest;

	COLLECT(argument, vector, rest);
	va_end(rest);
	return replace_image(path, false, vector, environ);
}

EXPORT int
execlp(const char *file, const char *argument, ...)
{
	va_list rest;

	COLLECT(argument, vector, rest);
	va_end(rest);
	return replace_image(file, true, vector, environ);
}

EXPORT int
execle(const char *path, const char *argument, ...)
{
	va_list rest;

	COLLECT(argument, vector, rest);
	char *const *envp = va_arg(rest, char *const *);
	va_end(rest);
	return replace_image(path, false, vector, envp);
}
