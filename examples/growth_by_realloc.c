// expect: peak heap where=growth_by_realloc.c:23 live_count=1 live_bytes=33554432
/*
 * growth_by_realloc.c - one log in memory that doubles whenever it is full.
 *
 * The block is one block all the time: realloc is one release and one allocation at its own caller, and
 * the peak is judged on the net change, not on old and new together.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINES 700000

static char *log_text;
static size_t log_used;
static size_t log_size;

static __attribute__((noinline)) int
log_add(const char *line, size_t length)
{
	if (log_used + length > log_size) {
		size_t size = log_size == 0 ? 4096 : log_size * 2;
		char *bigger = realloc(log_text, size);

		if (bigger == NULL)
			return -1;
		log_text = bigger;
		log_size = size;
	}
	memcpy(log_text + log_used, line, length);
	log_used += length;
	return 0;
}

int
main(void)
{
	char line[64];

	for (int i = 0; i < LINES; i++) {
		int length = snprintf(line, sizeof(line), "%09d: nothing happened\n", i);

		if (log_add(line, (size_t)length) != 0)
			return 1;
	}
	printf("%zu bytes logged\n", log_used);
	return 0;
}
