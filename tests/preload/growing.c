/*
 * growing.c THREADS BLOCKS - threads that allocate small blocks at once, and keep them.
 */
#include <pthread.h>
#include <stdlib.h>

#define THREADS_MAX 64

static unsigned long blocks;

static __attribute__((noinline)) void *
keep(void *before)
{
	void **block = malloc(24);

	*block = before;
	return block;
}

static void *
grow(void *newest)
{
	for (unsigned long i = 0; i < blocks; i++)
		newest = keep(newest);
	return newest;
}

int
main(int count, char **words)
{
	pthread_t ids[THREADS_MAX];
	unsigned threads = count > 2 ? (unsigned)atoi(words[1]) : 0;

	blocks = threads != 0 && threads <= THREADS_MAX ? strtoul(words[2], NULL, 10) : 0;
	for (unsigned i = 0; i < threads; i++) {
		if (pthread_create(&ids[i], NULL, grow, NULL) != 0)
			return 1;
	}
	for (unsigned i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	return 0;
}
