/* fragmented.h - what the system says of a program whose heap is full of holes: two numbers for test_fragmentation.py. */
#ifndef FRAGMENTED_H
#define FRAGMENTED_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* After each free: looks take no more than a 32nd part of the time, and the last one is to come when nearly all is freed. */
static void
give_time(size_t number)
{
	if (number % 250 == 0)
		usleep(1000);
}

/* Resident KiB of the process, and of what lies below its program break. Without a block of its own. */
static void
tell_truth(const char *path)
{
	static char text[1 << 16];
	static char buffer[1 << 14];
	FILE *maps = fopen("/proc/self/smaps", "r");
	FILE *truth = fopen(path, "w");
	long all = 0;
	long heap = 0;
	long kib;
	int is_heap = 0;

	setvbuf(maps, buffer, _IOFBF, sizeof(buffer));
	while (fgets(text, sizeof(text), maps) != NULL) {
		if (strchr(text, '-') != NULL && strchr(text, '-') < strchr(text, ' '))
			is_heap = strstr(text, "[heap]") != NULL;
		if (sscanf(text, "Rss: %ld kB", &kib) == 1) {
			all += kib;
			heap += is_heap ? kib : 0;
		}
	}
	fprintf(truth, "%ld %ld\n", all, heap);
	fclose(truth);
	fclose(maps);
}

#endif
