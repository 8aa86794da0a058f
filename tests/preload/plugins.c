/*
 * plugins.c - loads libraries one after the other, each where the last one was: plugins TURNS LIBRARY...
 *
 * Each has a function allocate(bytes). In each turn every library is loaded, called once, and unloaded; what it allocated stays.
 * Prints `same` when all were at the same address, else `moved`. TURNS below 0: so many, and each at another address; 0: one, and all
 * stay loaded.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

typedef void *allocate_function(size_t bytes);

static int is_moving;
static int is_staying;

static void *
call(const char *library, void **block)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	allocate_function *allocate = handle != NULL ? (allocate_function *)dlsym(handle, "allocate") : NULL;

	if (allocate == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	*block = allocate(1000);
	if (!is_staying)
		dlclose(handle);
	if (is_moving) // into the gap that it leaves
		mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return (void *)allocate;
}

int
main(int argc, char **argv)
{
	void *volatile kept = NULL;
	void *first = NULL;
	int moved = 0;

	long turns = strtol(argv[1], NULL, 10);

	is_moving = turns < 0;
	is_staying = turns == 0;
	for (long turn = 0; turn < labs(turns) + is_staying; turn++) {
		for (int i = 2; i < argc; i++) {
			void *block;
			void *at = call(argv[i], &block);

			moved |= first != NULL && at != first;
			first = at;
			*(void **)block = kept;
			kept = block;
		}
	}
	puts(moved ? "moved" : "same");
	return 0;
}
