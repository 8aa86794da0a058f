/*
 * steady.h - what did the measured phase of a workload cost? (the same line as steady.py prints)
 *
 * Safe from   one thread, while no other works.
 * On failure  the line lacks the figure; runner.py then has none either.
 */
#ifndef STEADY_H
#define STEADY_H

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

struct steady_time {
	double cpu_s; // user and system, all threads of this process
	double wall_s;
	unsigned long long pairs; // allocations so far, 0 when no preload counts them
};

/* The preload that counts exports this (floor_shadow.c); no other does. */
#ifdef __cplusplus
extern "C"
#endif
	unsigned long long
	bench_allocations(void) __attribute__((weak));

static inline double
steady_clock(clockid_t which)
{
	struct timespec now;

	(void)clock_gettime(which, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline struct steady_time
steady_now(void)
{
	struct steady_time now;

	now.cpu_s = steady_clock(CLOCK_PROCESS_CPUTIME_ID);
	now.wall_s = steady_clock(CLOCK_MONOTONIC);
	now.pairs = bench_allocations != NULL ? bench_allocations() : 0;
	return now;
}

/* Peak of this program alone: rusage would start from the size of the process that forked it. */
static inline unsigned long
steady_resident_kib(void)
{
	char line[256];
	unsigned long kib = 0;
	FILE *status = fopen("/proc/self/status", "r");

	while (status != NULL && fgets(line, sizeof(line), status) != NULL) {
		if (sscanf(line, "VmHWM: %lu", &kib) == 1)
			break;
	}
	if (status != NULL)
		(void)fclose(status);
	return kib;
}

static inline void
steady_report_of(struct steady_time start, struct steady_time end, unsigned long units, unsigned long resident_kib)
{
	(void)printf("bench: {\"units\": %lu, \"cpu_s\": %.9f, \"wall_s\": %.9f, \"rss_kib\": %lu, \"pairs\": %llu}\n",
	             units, end.cpu_s - start.cpu_s, end.wall_s - start.wall_s, resident_kib, end.pairs - start.pairs);
}

static inline void
steady_report(struct steady_time start, struct steady_time end, unsigned long units)
{
	steady_report_of(start, end, units, steady_resident_kib());
}

#endif
