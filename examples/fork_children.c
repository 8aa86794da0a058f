// expect: peak heap where=fork_children.c:22 live_count=3 live_bytes=12582912 processes=4
// expect: peak heap where=fork_children.c:36 live_count=1 live_bytes=8388608
/*
 * fork_children.c - a pool of forked workers, each with a block of its own.
 *
 * What a child inherited is not counted again: the parent's block is one block, held by one process. Each
 * child has a capture of its own and all of them are one report.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 3
#define SHARED_BYTES (8u << 20)
#define WORK_BYTES (4u << 20)

static __attribute__((noinline)) int
work(const char *shared)
{
	char *mine = malloc(WORK_BYTES);

	if (mine == NULL)
		return 1;
	memset(mine, 1, WORK_BYTES);
	return memcmp(mine, shared, 16) == 0;
}

int
main(void)
{
	int failures = 0;

	// The children see this block through copy-on-write.
	char *shared = calloc(1, SHARED_BYTES);

	if (shared == NULL)
		return 1;
	for (int i = 0; i < CHILDREN; i++) {
		if (fork() == 0)
			exit(work(shared));
	}
	for (int i = 0; i < CHILDREN; i++) {
		int status;

		failures += wait(&status) < 0 || status != 0;
	}
	printf("%d children, %d failures\n", CHILDREN, failures);
	return failures;
}
