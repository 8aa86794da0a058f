/*
 * Runs what variants.rs or arrays.f90 has, and waits while it does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int run(void);
void *page(void);
int wait_for_word(void *kept);

void *
page(void)
{
	return memset(malloc(52000), 1, 52000);
}

int
wait_for_word(void *kept)
{
	__asm__ volatile("" : : "r"(kept) : "memory");
	puts("ready");
	fflush(stdout);
	return getchar() == 'x' ? 0 : 3;
}

int
main(void)
{
	return run();
}
