/*
 * A library that keeps a block in each thread, for a program that loads it when its threads run already.
 */
#include <stdlib.h>
#include <string.h>

struct pages {
	long count;
	char *page;
};
static __thread long unused[700] = { 1 };
static __thread volatile struct pages pages;

long
thread_library_keep(size_t bytes)
{
	char *page = malloc(bytes);

	memset(page, 1, bytes);
	pages.page = page;
	return unused[bytes % 700];
}
