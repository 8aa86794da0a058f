/*
 * loader_asked.c - children of a program whose thread asks the loader all the time: do they wait for it?
 *
 *   loader_asked looks_up | closes LIBRARY    a thread looks up a function of CUDA's driver that nobody has, or closes a library that stays,
 *                                             while 200 children are forked. Each child visits all loaded objects, as whoever throws an
 *                                             exception does with an older loader. Prints how many children ended
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 200

static const char *path;
static void *library;
static _Atomic int rounds;
static _Atomic int is_over;

static void *
look_up(void *unused)
{
	for (; !is_over; rounds++)
		(void)dlsym(library, "cuMemAlloc_v2");
	return unused;
}

static void *
close_again(void *unused)
{
	for (; !is_over; rounds++)
		(void)dlclose(dlopen(path, RTLD_NOW | RTLD_NOLOAD));
	return unused;
}

static int
visit(struct dl_phdr_info *info, size_t bytes, void *count)
{
	(void)info;
	(void)bytes;
	++*(int *)count;
	return 0;
}

int
main(int argc, char **argv)
{
	int ended = 0;
	pthread_t thread;

	path = argv[argc - 1];
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL ||
	    pthread_create(&thread, NULL, strcmp(argv[1], "closes") == 0 ? close_again : look_up, NULL) != 0)
		return 77;
	for (int i = 0; i < CHILDREN; i++) {
		int before = rounds;
		int status;

		while (rounds == before) // it is in the middle of its work
			;

		pid_t child = fork();

		if (child == 0) {
			int count = 0;

			alarm(20); // one that waits for a thread it does not have
			dl_iterate_phdr(visit, &count);
			_exit(count > 2 ? 0 : 1);
		}
		if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
			break;
		ended++;
	}
	is_over = 1;
	pthread_join(thread, NULL);
	printf("%d of %d\n", ended, CHILDREN);
	return 0;
}
