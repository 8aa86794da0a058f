/* fill.c - allocates blocks of 1,000 bytes until that is refused, and prints how many MiB it got. */
#include <stdio.h>
#include <stdlib.h>

#define BLOCK_BYTES 1000

int
main(void)
{
	size_t bytes = 0;
	void *volatile block;

	while ((block = malloc(BLOCK_BYTES)) != NULL)
		bytes += BLOCK_BYTES;
	printf("%zu\n", bytes >> 20);
	return 0;
}
