/*
 * allocators.c - what do the loops cost that allocators are measured with?
 *
 *   allocators larson UNITS   blocks of 10 to 500 bytes, each replaced at random; after each round the blocks go to a new thread
 *   allocators sh6 UNITS      blocks of up to 1,000 bytes in batches, most small, released in another order than they came
 *   allocators forks UNITS    four threads that fork children which allocate once, and wait for each
 *
 * UNITS times, after a tenth as many to warm up. After the ideas of larson (Larson and Krishnan, 1998) and sh6bench (MicroQuill); no code of
 * theirs. Called by bench.py.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "steady.h"

#define NOINLINE __attribute__((noinline))
#define LARSON_THREADS 2
#define LARSON_BLOCKS 1000
#define LARSON_REPLACED 10000
#define SH6_BATCH 2000
#define FORK_THREADS 4

static unsigned long
next_random(unsigned long *state)
{
	*state = *state * 6364136223846793005UL + 1442695040888963407UL;
	return *state >> 33;
}

static NOINLINE void *
allocate(size_t bytes)
{
	char *block = malloc(bytes);

	if (block == NULL)
		abort();
	*block = 1;
	return block;
}

/* ---- larson ---- */

static void *larson_blocks[LARSON_THREADS][LARSON_BLOCKS];

static void *
larson_replace(void *blocks)
{
	void **mine = blocks;
	unsigned long state = 42;

	for (int i = 0; i < LARSON_REPLACED; i++) {
		void **one = &mine[next_random(&state) % LARSON_BLOCKS];

		free(*one);
		*one = allocate(10 + next_random(&state) % 490);
	}
	return NULL;
}

static void
larson_once(void)
{
	pthread_t threads[LARSON_THREADS];

	for (int i = 0; i < LARSON_THREADS; i++) {
		if (pthread_create(&threads[i], NULL, larson_replace, larson_blocks[i]) != 0)
			abort();
	}
	for (int i = 0; i < LARSON_THREADS; i++)
		(void)pthread_join(threads[i], NULL);
}

/* ---- sh6 ---- */

static void
sh6_once(void)
{
	static void *blocks[SH6_BATCH];

	for (size_t bytes = 1; bytes <= 1000; bytes = bytes * 2 + 1) {
		size_t count = SH6_BATCH / (bytes < 64 ? 1 : bytes / 32);

		for (size_t i = 0; i < count; i++)
			blocks[i] = allocate(bytes);
		for (size_t i = 0; i < count; i += 2) // every other one, then the rest backwards
			free(blocks[i]);
		for (size_t i = count; i-- > 0;) {
			if (i % 2 != 0)
				free(blocks[i]);
		}
	}
}

/* ---- forks ---- */

static void *
fork_one(void *unused)
{
	void *block = allocate(100);
	int status;
	pid_t child = fork();

	if (child == 0) {
		free(allocate(50));
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
		abort();
	free(block);
	return unused;
}

static void *
fork_some(void *unused)
{
	for (int i = 0; i < 10; i++)
		(void)fork_one(unused);
	return unused;
}

static void
forks_once(void)
{
	pthread_t threads[FORK_THREADS];

	for (int i = 0; i < FORK_THREADS; i++) {
		if (pthread_create(&threads[i], NULL, fork_some, NULL) != 0)
			abort();
	}
	for (int i = 0; i < FORK_THREADS; i++)
		(void)pthread_join(threads[i], NULL);
}

static double
cpu_with_children_s(double own_s)
{
	struct rusage usage;

	(void)getrusage(RUSAGE_CHILDREN, &usage);
	return own_s + (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

int
main(int count, char **words)
{
	static const struct {
		const char *name;
		void (*once)(void);
	} jobs[] = { { "larson", larson_once }, { "sh6", sh6_once }, { "forks", forks_once } };
	unsigned long units = count > 2 ? strtoul(words[2], NULL, 10) : 0;

	for (size_t i = 0; units > 0 && i < sizeof(jobs) / sizeof(jobs[0]); i++) {
		struct steady_time start, end;

		if (strcmp(words[1], jobs[i].name) != 0)
			continue;
		for (unsigned long done = 0; done < units / 10; done++)
			jobs[i].once();
		start = steady_now();
		start.cpu_s = cpu_with_children_s(start.cpu_s);
		for (unsigned long done = 0; done < units; done++)
			jobs[i].once();
		end = steady_now();
		end.cpu_s = cpu_with_children_s(end.cpu_s);
		steady_report(start, end, units);
		return 0;
	}
	(void)fputs("usage: allocators larson|sh6|forks UNITS\n", stderr);
	return 1;
}
