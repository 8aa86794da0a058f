/*
 * in_memory: what fills memory is not what was asked for. Run by test_in_memory.py; the first argument says what, the second how many
 * MiB are kept in small blocks.
 *
 *   calloc, mmap    2 GiB that nobody touches, then a line that keeps small blocks
 *   blocks, mappings the same 2 GiB as blocks of 800,000 bytes, or as mappings of 256 KiB; one page of each is touched
 *   quarter         the same, but a quarter of a GiB is touched
 *   fill            a block that is filled in one go is too much, after the small ones
 *   empty           most of what was filled is freed again, and work goes on; every thousandth block stays
 *   sparse          the same; in every second page a small block stays
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static char *volatile pool;
static char **kept;

__attribute__((noinline)) static void
ask_for_much(const char *what)
{
	size_t bytes = strcmp(what, "quarter") == 0 ? 1024 * MIB : 2048 * MIB;

	if (strcmp(what, "mmap") == 0)
		pool = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	else
		pool = calloc(1, bytes);
	if (strcmp(what, "quarter") == 0)
		memset(pool, 1, bytes / 4);
}

/* In blocks or mappings that are not large. */
__attribute__((noinline)) static void
ask_for_many(const char *what)
{
	size_t bytes = strcmp(what, "mappings") == 0 ? MIB / 4 : 800000;

	for (size_t i = 0; i < 2048 * MIB / bytes; i++) {
		char *one = bytes == MIB / 4 ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
		                             : calloc(1, bytes);

		*one = 1;
		pool = one;
	}
}

__attribute__((noinline)) static void
keep_one(size_t number)
{
	kept[number] = memset(malloc(1000), 1, 1000);
}

__attribute__((noinline)) static char *
work_with_one(void)
{
	return memset(malloc(1000), 1, 1000);
}

__attribute__((noinline)) static char *
keep_small(void)
{
	return memset(malloc(40), 1, 40);
}

__attribute__((noinline)) static void
fill_at_once(size_t bytes)
{
	pool = memset(malloc(bytes), 1, bytes);
}

/* Blocks of a page's size in all, and one of `each` stays. */
__attribute__((noinline)) static void
free_most(size_t mib, size_t each)
{
	size_t count = mib * MIB / 1000;
	char **worked = calloc(count, sizeof(*worked));

	for (size_t i = 0; i < count; i++) {
		worked[i] = work_with_one();
		kept[i] = i % each == 0 ? keep_small() : NULL;
	}
	for (size_t i = 0; i < count; i++)
		free(worked[i]);
	free(worked);
	for (size_t i = 0; i < count / 2; i++)
		free(work_with_one());
}

int
main(int argc, char **arguments)
{
	size_t mib = argc > 2 ? strtoul(arguments[2], NULL, 10) : 100;

	kept = calloc(mib * MIB / 1000 + 1, sizeof(*kept));
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	if (strcmp(arguments[1], "empty") == 0 || strcmp(arguments[1], "sparse") == 0) {
		free_most(mib, arguments[1][0] == 'e' ? 1000 : 8);
		return 0;
	}
	mallopt(M_MMAP_THRESHOLD, 1 << 19);
	if (strcmp(arguments[1], "blocks") == 0 || strcmp(arguments[1], "mappings") == 0)
		ask_for_many(arguments[1]);
	else if (strcmp(arguments[1], "fill") != 0)
		ask_for_much(arguments[1]);
	for (size_t i = 0; i < mib * MIB / 1000; i++) {
		keep_one(i);
		if (i % 1000 == 0)
			usleep(1000); // looks come as time passes, also where others have the processor
	}
	if (strcmp(arguments[1], "fill") == 0)
		fill_at_once(10 * mib * MIB);
	return 0;
}
