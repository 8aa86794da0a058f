/*
 * recursion.c - allocates where functions have called themselves, or each other, very often; the first argument says how.
 *
 * deep   100,000 calls of one function in each other, each allocates; released on the way back but for one block
 * trees  the same tree twice, from two lines, node by node, all kept
 * ways   3,000 frames that are the same each time, called from one function or the other, with nothing in between that allocates
 * locked  3,000 calls of one function in each other, and all that is mapped is locked; prints how many MiB came into memory meanwhile
 * signals  as ways, with 60,000 frames, and a signal's handler allocates just before the block that stays
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define STACK_BYTES ((size_t)256 << 20)
#define DEEP 100000
#define WAYS_DEPTH 3000
#define SIGNALS_DEPTH 60000
#define ROUNDS 200

static void *volatile kept;

static NOINLINE long
nest(int depth)
{
	void *volatile block = malloc(40);
	long below = depth > 0 ? nest(depth - 1) + 1 : 0;

	if (depth == 0)
		kept = block;
	else
		free(block);
	return below;
}

struct node {
	struct node *left;
	struct node *right;
};

static NOINLINE struct node *
build_tree(int depth)
{
	struct node *node = malloc(sizeof(*node));

	node->left = depth > 0 ? build_tree(depth - 1) : NULL;
	node->right = depth > 0 ? build_tree(depth - 1) : NULL;
	return node;
}

static void *volatile trees[2];
static int ways_depth = WAYS_DEPTH;
static int signal_before; // the block; 0 = none

static NOINLINE void
keep_one(void)
{
	static void *volatile blocks[2 * ROUNDS];
	static unsigned count;

	if (signal_before != 0)
		raise(signal_before);
	blocks[count++] = malloc(1000);
}

static void
allocate_in_handler(int signal)
{
	void *volatile block = malloc(8);

	(void)signal;
	free(block);
}

static NOINLINE void even(int depth);

static NOINLINE void
odd(int depth)
{
	even(depth - 1);
	__asm__ volatile("# odd" ::: "memory");
}

static NOINLINE void
even(int depth)
{
	if (depth <= 0)
		keep_one();
	else
		odd(depth - 1);
	__asm__ volatile("# even" ::: "memory");
}

static NOINLINE void
first_way(void)
{
	even(ways_depth);
	__asm__ volatile("# first" ::: "memory");
}

static NOINLINE void
second_way(void)
{
	even(ways_depth);
	__asm__ volatile("# second" ::: "memory");
}

static long
resident_mib(void)
{
	FILE *statm = fopen("/proc/self/statm", "r");
	long pages = 0;

	if (statm == NULL || fscanf(statm, "%*d %ld", &pages) != 1)
		abort();
	fclose(statm);
	return pages * sysconf(_SC_PAGESIZE) >> 20;
}

static void
nest_locked(void)
{
	if (mlockall(MCL_FUTURE) != 0) {
		puts("may not lock");
		return;
	}
	long before = resident_mib();

	nest(WAYS_DEPTH);
	printf("%ld\n", resident_mib() - before);
}

static void *
work(void *name)
{
	if (strcmp(name, "deep") == 0) {
		printf("%ld\n", nest(DEEP));
	} else if (strcmp(name, "locked") == 0) {
		nest_locked();
	} else if (strcmp(name, "trees") == 0) {
		trees[0] = build_tree(14);
		trees[1] = build_tree(14);
	} else {
		if (strcmp(name, "signals") == 0) {
			struct sigaction action = { .sa_handler = allocate_in_handler };

			sigaction(SIGUSR1, &action, NULL);
			ways_depth = SIGNALS_DEPTH;
			signal_before = SIGUSR1;
		}
		for (unsigned i = 0; i < ROUNDS; i++) {
			if (i * 7 % 4 < 1)
				first_way();
			else
				second_way();
		}
	}
	return NULL;
}

int
main(int count, char **words)
{
	pthread_attr_t attributes;
	pthread_t thread;

	if (count < 2)
		return 2;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	if (pthread_create(&thread, &attributes, work, words[1]) != 0 || pthread_join(thread, NULL) != 0)
		return 2;
	puts("done");
	return 0;
}
