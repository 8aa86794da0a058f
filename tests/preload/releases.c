/* Blocks are put into a table. Most ways out of it take theirs out again. Argument: how many rounds. */
#include <stdlib.h>

#define BYTES 20000

static void *table[100000];

static __attribute__((noinline)) void
begin(int number)
{
	table[number] = malloc(BYTES);
	__asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void
finish(int number)
{
	free(table[number]); // released
	table[number] = NULL;
	__asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void
serve(int number)
{
	begin(number);
	finish(number);
	__asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void
fail(int number)
{
	begin(number); // forgotten
	__asm__ volatile("" ::: "memory");
}

int
main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 4000;

	for (int number = 0; number < rounds; number++) {
		if (number % 10 == 3)
			fail(number);
		else
			serve(number);
	}
	return 0;
}
