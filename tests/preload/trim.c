/*
 * trim.c - 128 MiB of the smallest blocks, all given back in two threads, then trimmed: how much stays (KiB, on stdout)?
 */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define BLOCKS (2 << 20) // of 32 bytes, in each thread

static void *
fill_and_empty(void *unused)
{
	void **newest = NULL;

	for (unsigned i = 0; i < BLOCKS; i++) {
		void **block = malloc(24);

		if (block == NULL)
			abort();
		*block = newest;
		newest = block;
	}
	while (newest != NULL) {
		void **next = *newest;

		free(newest);
		newest = next;
	}
	return unused;
}

int
main(void)
{
	static char line[256];
	unsigned long kib = 0;
	pthread_t other;

	if (pthread_create(&other, NULL, fill_and_empty, NULL) != 0)
		return 1;
	fill_and_empty(NULL);
	pthread_join(other, NULL);
	malloc_trim(0);

	FILE *file = fopen("/proc/self/smaps_rollup", "r"); // statm is off by some hundred pages for each processor

	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		sscanf(line, "Rss: %lu", &kib);
	printf("%lu\n", kib);
	return kib == 0;
}
