/*
 * self_measurement.c - the same allocations again and again, from stacks whose number is known.
 *
 *   self_measurement steady         "ready"; for each line of the standard input ROUNDS times the same, and a line
 *   self_measurement stacks N kill  N new stacks, each with a block that stays; then it kills itself
 *   self_measurement stacks N fork  the same; then a child makes as many
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 5000
#define DEPTHS 20

static void *kept[1000];

/* Each depth is a stack of its own: the compiler makes no loop of it, and recursion that deep is left out nowhere. */
static __attribute__((noinline)) void *other(int depth, size_t bytes);

static __attribute__((noinline)) void *
one(int depth, size_t bytes)
{
	void *block = depth == 0 ? malloc(bytes) : other(depth - 1, bytes);

	__asm__ volatile("" : : "r"(block) : "memory");
	return block;
}

static __attribute__((noinline)) void *
other(int depth, size_t bytes)
{
	void *block = depth == 0 ? malloc(bytes) : one(depth - 1, bytes);

	__asm__ volatile("" : : "r"(block) : "memory");
	return block;
}

static void
turn(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		void *blocks[DEPTHS];

		for (int i = 0; i < DEPTHS; i++)
			blocks[i] = one(i, (size_t)(40 + 8 * i));
		for (int i = 0; i < DEPTHS; i++)
			free(blocks[i]);
	}
}

static void
keep(int first, int count)
{
	for (int i = first; i < first + count; i++)
		kept[i] = one(i, 10000);
}

int
main(int argc, char **argv)
{
	int count = argc > 3 ? atoi(argv[2]) : 0;
	char line[80];

	if (argc == 2) {
		puts("ready");
		fflush(stdout);
		while (fgets(line, sizeof(line), stdin) != NULL) {
			turn();
			puts("done");
			fflush(stdout);
		}
		return 0;
	}
	keep(0, count);
	if (strcmp(argv[3], "kill") == 0)
		raise(SIGKILL);
	if (fork() == 0) {
		keep(count, count);
		_exit(0);
	}
	wait(NULL);
	return 0;
}
