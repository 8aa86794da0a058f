/*
 * neighbours.c - blocks as small as they come, every second one given back: the distance of the closest two on stdout.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static __attribute__((noinline, noclone)) void *
keep(void)
{
	void *block = malloc(8);

	__asm__ volatile("" : "+r"(block)); // not a tail call
	return block;
}

int
main(int argc, char **argv)
{
	unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
	void **blocks = calloc(count, sizeof(*blocks));
	uint64_t closest = UINT64_MAX;

	for (unsigned i = 0; i < count; i++) {
		blocks[i] = keep();
		uint64_t distance = i == 0 ? UINT64_MAX : (uint64_t)llabs((char *)blocks[i] - (char *)blocks[i - 1]);

		if (distance < closest)
			closest = distance;
	}
	for (unsigned i = 0; i < count; i += 2)
		free(blocks[i]);
	printf("%lu\n", (unsigned long)closest);
	return 0;
}
