/*
 * brief.c - two native ways to malloc, for one line of Python (test_brief.py); a shared library.
 */
#include <pthread.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline))
#define KEEP_FRAME() __asm__ volatile("" ::: "memory") // no tail call

NOINLINE void *
one_way(size_t bytes)
{
	void *block = malloc(bytes);

	KEEP_FRAME();
	return block;
}

NOINLINE void *
other_way(size_t bytes)
{
	void *block = malloc(bytes);

	KEEP_FRAME();
	return block;
}

void
give_back(void *block)
{
	free(block);
}

static void *
release(void *block)
{
	free(block);
	return NULL;
}

/* By another thread, which has a record of its own. */
void
give_back_elsewhere(void *block)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, release, block) == 0)
		pthread_join(thread, NULL);
}
