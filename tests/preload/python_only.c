/*
 * python_only.c - two native ways to malloc, or thousands, for one line of Python (test_python_only.py); a shared library.
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

/*
 * Two functions that call each other, each from two places: of one that calls itself the recorder keeps the first and the last call
 * only. The comments keep compilers from making one place, or one function, of two.
 */
#define STEP(name, other)                                                     \
	static NOINLINE void *name(size_t bytes, unsigned number, unsigned steps) \
	{                                                                         \
		void *block;                                                          \
                                                                              \
		if (steps == 0) {                                                     \
			block = malloc(bytes);                                            \
		} else if ((number & 1) != 0) {                                       \
			block = other(bytes, number >> 1, steps - 1);                     \
			__asm__ volatile("# " #name " odd" ::: "memory");                 \
		} else {                                                              \
			block = other(bytes, number >> 1, steps - 1);                     \
			__asm__ volatile("# " #name " even" ::: "memory");                \
		}                                                                     \
		KEEP_FRAME();                                                         \
		return block;                                                         \
	}
static NOINLINE void *step_there(size_t bytes, unsigned number, unsigned steps);
STEP(step_back, step_there)
STEP(step_there, step_back)

/* Each number takes another way. */
void *
numbered_way(size_t bytes, unsigned number)
{
	void *block = step_there(bytes, number, STEPS);

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
