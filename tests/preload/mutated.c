/*
 * mutated.c - a capture with everything in it that C can bring: threads that release for each other, generations, a refused request,
 * a library that is gone again. "kill" as argument: SIGKILL itself at the end.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS 3000
#define SHARE 400

static void *blocks[BLOCKS];

__attribute__((noinline)) static void *
small(size_t bytes)
{
	return memset(malloc(bytes), 1, bytes);
}

__attribute__((noinline)) static void *
zeroed(size_t bytes)
{
	return calloc(1, bytes);
}

static void *
replace_some(void *first)
{
	for (unsigned i = 0; i < SHARE; i++) {
		void **block = (void **)first + i;

		free(*block);
		*block = small(300 + i);
	}
	return NULL;
}

int
main(int count, char **arguments)
{
	volatile size_t too_much = (size_t)1 << 46;
	pthread_t threads[2];
	void *library = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);

	for (unsigned i = 0; i < BLOCKS; i++)
		blocks[i] = i % 3 != 0 ? small(100 + i % 900) : zeroed(2000);
	for (unsigned i = 0; i < BLOCKS; i += 5) {
		free(blocks[i]);
		blocks[i] = NULL;
	}
	for (unsigned i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, replace_some, blocks + i * SHARE);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("%d\n", malloc(too_much) == NULL);
	if (library != NULL)
		dlclose(library);
	fflush(stdout);
	if (count > 1 && strcmp(arguments[1], "kill") == 0)
		raise(SIGKILL);
	return 0;
}
