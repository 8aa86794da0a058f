/*
 * spawns.c - what does starting and ending a program that does nothing cost?
 *
 *   spawns COUNT [PROGRAM]     default /bin/true, one after the other; CPU is that of the children
 *
 * Called by   bench.py.
 * On failure  a message and exit 1.
 */
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "steady.h"

extern char **environ;

static double
children_cpu_s(void)
{
	struct rusage usage;

	(void)getrusage(RUSAGE_CHILDREN, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

int
main(int count, char **words)
{
	unsigned long spawns = count > 1 ? strtoul(words[1], NULL, 10) : 0;
	char *program = count > 2 ? words[2] : (char[]){ "/bin/true" };
	char *arguments[] = { program, NULL };
	struct steady_time start = steady_now(), end;

	start.cpu_s = children_cpu_s();
	for (unsigned long i = 0; i < spawns; i++) {
		pid_t child;
		int status;

		if (posix_spawn(&child, program, NULL, NULL, arguments, environ) != 0 || waitpid(child, &status, 0) != child ||
		    status != 0) {
			(void)fprintf(stderr, "spawns: %s did not run and end with 0\n", program);
			return 1;
		}
	}
	end = steady_now();
	end.cpu_s = children_cpu_s();
	steady_report(start, end, spawns);
	return spawns == 0;
}
