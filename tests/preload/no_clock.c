/*
 * no_clock.c - a program that forbids itself a look at the processor's clock: from then on one is a signal.
 *
 * It has a reservation that only needs to be touched, as libraries with an allocator of their own have.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define MIB ((size_t)1 << 20)

int
main(void)
{
	pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
	char *reserved = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
	for (size_t i = 0; i < 64; i++) {
		memset(reserved + i * MIB, 1, MIB);
		pthread_cond_signal(&condition);
		void *volatile block = malloc(MIB);
		free(block);
	}
	puts("done");
	return 0;
}
