/* static_cache: a table that lives as long as the program, and is freed when it ends. Run by test_static_cache.py. */
#include <stdlib.h>
#include <string.h>

#define COUNT 20000
#define BYTES 1000

static char *volatile cache[COUNT];

__attribute__((noinline)) static void
remember(size_t number)
{
	cache[number] = memset(malloc(BYTES), 1, BYTES);
}

__attribute__((noinline)) static void
work(void)
{
	char *volatile block = memset(malloc(3 * BYTES), 1, 3 * BYTES);

	free(block);
}

__attribute__((destructor)) static void
forget(void)
{
	for (size_t i = 0; i < COUNT; i++)
		free(cache[i]);
}

int
main(void)
{
	for (size_t i = 0; i < COUNT; i++) {
		remember(i);
		work();
	}
	return 0;
}
