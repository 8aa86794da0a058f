/*
 * brief.c - two native ways to malloc, or thousands, for one line of Python (test_brief.py); a shared library.
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

#define STEPS 13 // 8,192 ways

static NOINLINE void *step_even(size_t bytes, unsigned number, unsigned steps);

static NOINLINE void *
step_odd(size_t bytes, unsigned number, unsigned steps)
{
	void *block = steps == 0 ? malloc(bytes) : (number & 1) != 0 ? step_odd(bytes, number >> 1, steps - 1) :
	              step_even(bytes, number >> 1, steps - 1);

	KEEP_FRAME();
	return block;
}

static NOINLINE void *
step_even(size_t bytes, unsigned number, unsigned steps)
{
	void *block = steps == 0 ? malloc(bytes) : (number & 1) != 0 ? step_odd(bytes, number >> 1, steps - 1) :
	              step_even(bytes, number >> 1, steps - 1);

	KEEP_FRAME();
	return block;
}

/* Each number takes another way. */
void *
numbered_way(size_t bytes, unsigned number)
{
	void *block = step_even(bytes, number, STEPS);

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
