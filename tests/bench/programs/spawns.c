/*
 * spawns.c - what does starting and ending a program that does nothing cost?
 *
 *   spawns COUNT PROGRAM [NAME=VALUE...]     one after the other; CPU and resident size are those of the children
 *
 * The assignments reach the children only: this program is not recorded itself, and a recorder that
 * takes itself out of the environment of what it records (heaptrack) is in every child all the same.
 *
 * On failure  a message and exit 1.
 */
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "steady.h"

static double
children_cpu_s(long *resident_kib)
{
	struct rusage usage;

	(void)getrusage(RUSAGE_CHILDREN, &usage);
	*resident_kib = usage.ru_maxrss;
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

int
main(int count, char **words)
{
	unsigned long spawns = count > 2 ? strtoul(words[1], NULL, 10) : 0;
	char *program = count > 2 ? words[2] : NULL;
	char *arguments[] = { program, NULL };
	struct steady_time start = steady_now(), end;
	long resident_kib;

	if (spawns == 0) {
		(void)fputs("usage: spawns COUNT PROGRAM [NAME=VALUE...]\n", stderr);
		return 1;
	}
	for (int i = 3; i < count; i++) {
		if (putenv(words[i]) != 0)
			return 1;
	}
	start.cpu_s = children_cpu_s(&resident_kib);
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
	end.cpu_s = children_cpu_s(&resident_kib);
	steady_report_of(start, end, spawns, (unsigned long)resident_kib);
	return 0;
}
