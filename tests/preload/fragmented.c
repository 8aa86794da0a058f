/*
 * fragmented: 180 MiB of small blocks of which nearly all are freed, and every fiftieth, of another line, stays. Run by
 * test_fragmentation.py: fragmented asleep|exits|limit FILE. What the system says then goes to FILE. Then it is ended in its sleep, or ends, or takes
 * larger blocks, for which there is no room in the holes, until it is ended.
 */
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "fragmented.h"

#define COUNT 200000
#define BYTES 900

static char *volatile worked[COUNT];
static char *volatile kept[COUNT];

__attribute__((noinline)) static char *
work(void)
{
	return memset(malloc(BYTES), 1, BYTES);
}

__attribute__((noinline)) static char *
keep(void)
{
	return memset(malloc(BYTES), 1, BYTES);
}

__attribute__((noinline)) static void
refill(size_t number)
{
	kept[number] = memset(malloc(100000), 1, 100000);
	usleep(
		1000); // looks take no more than a 32nd part of the time: there is to be one before the limit on a busy machine, too
}

int
main(int argc, char **arguments)
{
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	if (argc != 3)
		return 2;
	for (size_t i = 0; i < COUNT; i++) {
		if (i % 50 == 0)
			kept[i] = keep();
		else
			worked[i] = work();
	}
	for (size_t i = 0; i < COUNT; i++) {
		free(worked[i]);
		give_time(i);
	}
	tell_truth(arguments[2]);
	if (strcmp(arguments[1], "asleep") == 0)
		kill(getpid(), SIGKILL);
	if (strcmp(arguments[1], "exits") == 0)
		return 0;
	for (size_t i = 0; i < COUNT; i++)
		refill(i % 50 == 0 ? i + 1 : i);
	return 1;
}
