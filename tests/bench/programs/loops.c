/*
 * loops.c - what does one more of something cost that allocates little by itself? (pairs.c has malloc and free)
 *
 *   loops realloc COUNT          a block grows and shrinks, in place and not
 *   loops new COUNT [LIBRARY]    operator new and delete at the call sites of pages.cc, each on a code page of its own
 *   loops others COUNT           blocks that one thread made are released by another; the two wait for each other each 512 blocks
 *   loops threads COUNT          threads that allocate once, one after the other
 *   loops forks COUNT [EVENTS]   children that allocate EVENTS times, each a child of the one before
 *   loops execs COUNT            starts of /bin/true, one after the other
 *
 * Nothing in it depends on time, on addresses or on which thread is faster: the instructions of two runs are the same.
 *
 * On failure  a message and exit 1.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "steady.h"

#define BATCH 512
#define PAGES 4 // call sites of pages.cc

static unsigned long count;
static const char *option;
static pid_t first;

static void
require(bool holds, const char *what)
{
	if (holds)
		return;
	(void)fprintf(stderr, "loops: %s\n", what);
	exit(1);
}

static void
pair(size_t bytes)
{
	char *block = malloc(bytes);

	require(block != NULL, "no memory");
	*(volatile char *)block = 1;
	free(block);
}

static void
reallocs(void)
{
	char *block = malloc(100);

	for (unsigned long i = 0; i < count; i++) {
		block = realloc(block, i % 2 == 0 ? 2000 : 100);
		require(block != NULL, "no memory");
	}
	free(block);
}

static void
news(void)
{
	void *library = dlopen(option, RTLD_NOW | RTLD_LOCAL);
	void (*sites[PAGES])(void);

	require(library != NULL, "the library of pages.cc cannot be loaded");
	for (int i = 0; i < PAGES; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "pages_%d", i);
		*(void **)&sites[i] = dlsym(library, name);
		require(sites[i] != NULL, "the library has no such call site");
	}
	for (unsigned long i = 0; i < count; i++)
		sites[i % PAGES]();
}

static pthread_barrier_t barrier;
static void *batch[BATCH];

static void *
release(void *unused)
{
	(void)unused;
	for (unsigned long done = 0; done < count; done += BATCH) {
		(void)pthread_barrier_wait(&barrier);
		for (int i = 0; i < BATCH; i++)
			free(batch[i]);
		(void)pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void
others(void)
{
	pthread_t thread;

	(void)pthread_barrier_init(&barrier, NULL, 2);
	require(pthread_create(&thread, NULL, release, NULL) == 0, "no thread");
	for (unsigned long done = 0; done < count; done += BATCH) {
		for (int i = 0; i < BATCH; i++) {
			batch[i] = malloc(100);
			require(batch[i] != NULL, "no memory");
		}
		(void)pthread_barrier_wait(&barrier);
		(void)pthread_barrier_wait(&barrier);
	}
	(void)pthread_join(thread, NULL);
}

static void *
allocate_once(void *unused)
{
	pair(100);
	return unused;
}

static void
threads(void)
{
	for (unsigned long i = 0; i < count; i++) {
		pthread_t thread;

		require(pthread_create(&thread, NULL, allocate_once, NULL) == 0, "no thread");
		(void)pthread_join(thread, NULL);
	}
}

static void
wait_for(pid_t child)
{
	int status;

	require(child > 0 && waitpid(child, &status, 0) == child && status == 0, "a child did not run and end with 0");
}

/* Each child has the next one: callgrind counts for the last of them what its ancestors did before it, and so all forks. */
static void
forks(void)
{
	unsigned long events = option != NULL ? strtoul(option, NULL, 10) : 1;
	pid_t child = 0;

	pair(100);
	for (unsigned long i = 0; i < count && child == 0; i++) {
		child = fork();
		for (unsigned long done = 0; child == 0 && done < events; done++)
			pair(100);
	}
	if (child != 0)
		wait_for(child);
	if (getpid() != first)
		_exit(0);
}

static void
execs(void)
{
	for (unsigned long i = 0; i < count; i++) {
		pid_t child = fork();

		if (child == 0) {
			(void)execl("/bin/true", "/bin/true", (char *)NULL);
			_exit(1);
		}
		wait_for(child);
	}
}

static const struct {
	const char *name;
	void (*run)(void);
} loops[] = {
	{ "realloc", reallocs }, { "new", news },    { "others", others },
	{ "threads", threads },  { "forks", forks }, { "execs", execs },
};

int
main(int word_count, char **words)
{
	struct steady_time start = steady_now();

	count = word_count > 2 ? strtoul(words[2], NULL, 10) : 0;
	option = word_count > 3 ? words[3] : NULL;
	first = getpid();
	for (size_t i = 0; count > 0 && i < sizeof(loops) / sizeof(loops[0]); i++) {
		if (strcmp(words[1], loops[i].name) == 0) {
			loops[i].run();
			steady_report(start, steady_now(), count);
			return 0;
		}
	}
	(void)fputs("usage: loops realloc|new|others|threads|forks|execs COUNT [LIBRARY|EVENTS]\n", stderr);
	return 1;
}
