/*
 * Leaves pointers to blocks in its stack, then waits in a function whose variables stand there: of characters and numbers, which were never
 * written, or of unions, which have them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OWN __attribute__((noinline))
#define COUNT 64

union either {
	double number;
	struct {
		char *page;
	} kept;
};
struct stats {
	double a, b, c;
	char name[32];
	long count;
	double more[COUNT];
	unsigned long addresses[COUNT];
};

static OWN void
leave(void)
{
	void *volatile blocks[COUNT * 2];

	for (int i = 0; i < COUNT * 2; i++)
		blocks[i] = memset(malloc(50000), 1, 50000);
	__asm__ volatile("" : : "r"(blocks) : "memory");
}

static OWN int
wait_for_word(void *variable)
{
	__asm__ volatile("" : : "r"(variable) : "memory");
	puts("ready");
	fflush(stdout);
	return getchar() == 'x' ? 0 : 3;
}

static OWN int
with_characters(void)
{
	char line[2048];

	return wait_for_word(line);
}

static OWN int
with_numbers(void)
{
	struct stats stats;

	return wait_for_word(&stats);
}

static OWN int
with_unions(void)
{
	union either either[COUNT];

	for (int i = 0; i < COUNT; i++)
		either[i].kept.page = memset(malloc(51000), 1, 51000);
	return wait_for_word(either);
}

int
main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";

	if (strcmp(word, "unions") == 0)
		return with_unions();
	leave();
	return strcmp(word, "characters") == 0 ? with_characters() : with_numbers();
}
