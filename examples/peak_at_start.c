// expect: peak heap where=peak_at_start.c:19 peak_bytes=67108864 live_bytes=0
/*
 * peak_at_start.c - the memory was needed once, before the work began.
 *
 * A table is built from a large buffer, which is then given back. What is live at the end says nothing
 * about the maximum; the peak report does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_BYTES (64u << 20)
#define ROUNDS 10000

static __attribute__((noinline)) size_t
build_table(size_t table[256])
{
	size_t total = 0;
	unsigned char *input = malloc(INPUT_BYTES);

	if (input == NULL)
		return 0;
	for (size_t i = 0; i < INPUT_BYTES; i++)
		input[i] = (unsigned char)(i * 31 >> 3);
	for (size_t i = 0; i < INPUT_BYTES; i++)
		table[input[i]]++;
	for (size_t i = 0; i < 256; i++)
		total += table[i];
	free(input);
	return total;
}

int
main(void)
{
	size_t table[256] = { 0 };
	size_t total = build_table(table);
	size_t work = 0;

	for (int i = 0; i < ROUNDS; i++) {
		char *scratch = calloc(1, 2048);

		if (scratch == NULL)
			return 1;
		scratch[i % 2048] = 1;
		work += (size_t)scratch[i % 2048];
		free(scratch);
	}
	printf("%zu bytes counted, %zu rounds\n", total, work);
	return 0;
}
