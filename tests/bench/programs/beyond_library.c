/* beyond_library.c - one call site in a library of its own. beyond.c opens many copies. */
#include <stdlib.h>

void beyond_pair(void) __attribute__((visibility("default")));

void
beyond_pair(void)
{
	void *block = malloc(100);

	__asm__ volatile("" : "+r"(block)::"memory");
	free(block);
}
