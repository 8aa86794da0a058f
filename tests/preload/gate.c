/*
 * gate.c - the program under the gate: the same code, with a leak and with a larger peak on demand.
 *
 *   gate [leak] [peak] [fail] [kill]
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_leaking, is_larger;

static __attribute__((noinline)) void *
take_block(int step)
{
	return malloc((size_t)(512 + step % 7));
}

static __attribute__((noinline)) void *
take_table(size_t bytes)
{
	return calloc(1, bytes);
}

int
main(int argc, char **argv)
{
	int status = 0, is_killed = 0;

	for (int i = 1; i < argc; i++) {
		is_leaking |= strcmp(argv[i], "leak") == 0;
		is_larger |= strcmp(argv[i], "peak") == 0;
		is_killed |= strcmp(argv[i], "kill") == 0;
		status |= strcmp(argv[i], "fail") == 0 ? 3 : 0;
	}

	void *table = take_table(is_larger ? 64u << 20 : 16u << 20);

	for (int step = 0; step < 20000; step++) {
		void *block = take_block(step);

		if (!is_leaking)
			free(block);
	}
	free(table);
	if (is_killed)
		raise(SIGKILL);
	return status;
}
