/*
 * Loads a library, and calls it in its first thread and in one that ran before; then waits.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static long (*keep)(size_t bytes);
static int begin[2];
static int kept[2];
static int end[2];

static void *
keep_and_wait(void *unused)
{
	char word;

	(void)!read(begin[0], &word, 1);
	keep(1500000);
	(void)!write(kept[1], "k", 1);
	(void)!read(end[0], &word, 1);
	return unused;
}

static void
overwrite_stack(void)
{
	volatile char space[20000];

	memset((void *)space, 0, sizeof(space));
}

int
main(int count, char **words)
{
	pthread_t thread;
	void *library;
	char word;

	if (count != 2 || pipe(begin) != 0 || pipe(kept) != 0 || pipe(end) != 0 ||
	    pthread_create(&thread, NULL, keep_and_wait, NULL) != 0)
		return 2;
	library = dlopen(words[1], RTLD_NOW);
	keep = library != NULL ? (long (*)(size_t))dlsym(library, "thread_library_keep") : NULL;
	if (keep == NULL)
		return 2;
	(void)!write(begin[1], "b", 1);
	(void)!read(kept[0], &word, 1);
	keep(1400000);
	overwrite_stack();
	puts("ready");
	fflush(stdout);
	if (getchar() != 'x')
		return 3;
	(void)!write(end[1], "e", 1);
	pthread_join(thread, NULL);
	return 0;
}
