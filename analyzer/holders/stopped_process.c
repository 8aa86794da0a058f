/*
 * stopped_process.c - stops the threads of a process and lets them go on (see stopped_process.h).
 *
 * Threads that begin while the others are being stopped are found by reading the list again until it has none that is new.
 */
#include "holders/stopped_process.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/items.h"
#include "base/memory.h"
#include "base/read_each.h"
#include "capture/process_alive.h"

#define POLL_NS 50000
#define SECOND_NS UINT64_C(1000000000)

unsigned stopped_process_grace_s = 10;

static bool
refuse(const char *command, pid_t pid, int error, struct fail *fail)
{
	uint64_t tracer = read_number(TEXT(64, "/proc/%d/status", (int)pid), "TracerPid:");

	if (error == ESRCH || process_is_dead(TEXT(24, "%d", (int)pid)))
		return fail_set(fail, EXIT_USAGE, "%s: process %d is gone", command, (int)pid);
	if (tracer != 0 && tracer != UINT64_MAX)
		return fail_set(fail, EXIT_USAGE,
		                "%s: process %d is traced by process %" PRIu64 " already, perhaps a debugger: end that first",
		                command, (int)pid, tracer);
	return fail_set(fail, EXIT_USAGE,
	                "%s: process %d may not be looked at (ptrace: %s): run this as root, or as its user with "
	                "/proc/sys/kernel/yama/ptrace_scope at 0; a container needs the capability SYS_PTRACE",
	                command, (int)pid, strerrorname_np(error));
}

static bool
is_known(const struct stopped_process *process, pid_t number)
{
	return ANY(thread, process->threads, process->count, thread->number == number);
}

enum wait_result { WAIT_STOPPED, WAIT_ENDED, WAIT_LATE };

static enum wait_result
wait_until_still(struct stopped_thread *thread, uint64_t deadline_ns)
{
	for (;;) {
		int status;
		pid_t who = waitpid(thread->number, &status, __WALL | WNOHANG);

		if (who == thread->number && WIFSTOPPED(status)) {
			if (status >> 16 != PTRACE_EVENT_STOP)
				thread->signal = WSTOPSIG(status); // it was about to get one
			return WAIT_STOPPED;
		}
		if (who != 0)
			return WAIT_ENDED;
		if (clock_monotonic_ns() > deadline_ns)
			return WAIT_LATE;
		(void)nanosleep(&(struct timespec){ .tv_nsec = POLL_NS }, NULL);
	}
}

/* Seizes the threads of the list that are new. False and errno: the first thread cannot be seized. *added: how many were. */
static bool
seize_new(struct stopped_process *process, size_t *added)
{
	DIR *tasks = opendir(TEXT(64, "/proc/%d/task", (int)process->pid));
	const char *name;

	*added = 0;
	if (tasks == NULL) {
		errno = errno == ENOENT ? ESRCH : errno;
		return false;
	}
	while ((name = read_names_next(tasks)) != NULL) {
		pid_t number = (pid_t)strtol(name, NULL, 10);

		if (number <= 0 || is_known(process, number))
			continue;
		if (ptrace(PTRACE_SEIZE, number, NULL, NULL) != 0) {
			if (errno == ESRCH && process->count != 0)
				continue; // it ended meanwhile
			int error = errno;

			(void)closedir(tasks);
			errno = error;
			return false;
		}
		*MEMORY_NEXT(process->threads, process->count) = (struct stopped_thread){ .number = number };
		(void)ptrace(PTRACE_INTERRUPT, number, NULL, NULL);
		++*added;
	}
	(void)closedir(tasks);
	return true;
}

bool
stopped_process_stop(const char *command, pid_t pid, uint64_t wait_ns, struct stopped_process *process,
                     struct fail *fail)
{
	size_t still = 0;
	size_t added;

	*process = (struct stopped_process){ .pid = pid, .since_ns = clock_monotonic_ns() };
	(void)alarm((unsigned)(wait_ns / SECOND_NS) + stopped_process_grace_s);
	do {
		if (!seize_new(process, &added)) {
			int error = errno;

			(void)stopped_process_resume(process);
			stopped_process_free(process);
			return refuse(command, pid, error, fail);
		}
		while (still < process->count) {
			enum wait_result result = wait_until_still(&process->threads[still], process->since_ns + wait_ns);

			if (result == WAIT_LATE) {
				(void)stopped_process_resume(process);
				stopped_process_free(process);
				return fail_set(fail, EXIT_USAGE,
				                "%s: process %d did not stop in time, it waits for a device perhaps: try again",
				                command, (int)pid);
			}
			if (result == WAIT_ENDED) {
				process->threads[still] = process->threads[--process->count];
				continue;
			}
			stopped_registers_read(&process->threads[still++]);
		}
	} while (added != 0);
	if (process->count != 0)
		return true;
	(void)stopped_process_resume(process);
	stopped_process_free(process);
	return refuse(command, pid, ESRCH, fail);
}

uint64_t
stopped_process_resume(struct stopped_process *process)
{
	for (size_t i = 0; i < process->count && !process->is_image; i++) {
		/* A thread that was killed meanwhile is seen by its parent only after we have waited for it. */
		if (ptrace(PTRACE_DETACH, process->threads[i].number, NULL, (void *)(intptr_t)process->threads[i].signal) == 0)
			continue;
		process->was_killed = true;
		(void)waitpid(process->threads[i].number, NULL, __WALL | WNOHANG);
	}
	(void)alarm(0);
	return clock_monotonic_ns() - process->since_ns;
}

void
stopped_process_free(struct stopped_process *process)
{
	free(process->threads);
	*process = (struct stopped_process){ 0 };
}
