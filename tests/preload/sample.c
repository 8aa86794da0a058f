/*
 * sample.c - keeps so many bytes at each place, in every way that there is to ask for them.
 *
 *   sample exit|kill|fork    prints "PLACE BYTES" for each function that keeps some, then ends so; fork: a child does it, too
 *
 * Many times as much comes and goes. What threads allocate, other threads release.
 */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define NOINLINE __attribute__((noinline))
#define THREADS 4

static void *volatile kept[1 << 20];
static size_t kept_count;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void
keep(void *block)
{
	pthread_mutex_lock(&mutex);
	kept[kept_count++] = block;
	pthread_mutex_unlock(&mutex);
}

static void
tell(const char *place, size_t bytes)
{
	printf("%s %zu\n", place, bytes);
}

static NOINLINE void
small_blocks(void)
{
	for (size_t i = 0; i < 200000; i++)
		keep(malloc(100));
	tell("small_blocks", 200000 * 100);
}

static NOINLINE void
middling_blocks(void)
{
	for (size_t i = 0; i < 20000; i++)
		keep(calloc(3, 1000));
	tell("middling_blocks", 20000 * 3000);
}

static NOINLINE void
large_blocks(void)
{
	for (size_t i = 0; i < 5; i++)
		keep(malloc(2 * MIB));
	tell("large_blocks", 5 * 2 * MIB);
}

static NOINLINE void
aligned_blocks(void)
{
	for (size_t i = 0; i < 2000; i++) {
		void *block;

		keep(aligned_alloc(64, 4096));
		keep(memalign(256, 5000));
		if (posix_memalign(&block, 4096, 6000) == 0)
			keep(block);
	}
	tell("aligned_blocks", 2000 * (4096 + 5000 + 6000));
}

/* Each grows from nothing through many sizes, and some become smaller again. */
static NOINLINE void
grown_blocks(void)
{
	size_t bytes = 0;

	for (size_t i = 0; i < 4000; i++) {
		void *block = NULL;

		for (size_t size = 16; size <= 8192; size *= 2)
			block = realloc(block, size);
		if (i % 4 == 0)
			block = realloc(block, 1024);
		bytes += i % 4 == 0 ? 1024 : 8192;
		keep(block);
	}
	tell("grown_blocks", bytes);
}

/* From a sample, or none, to a block that is recorded as it is, and back. */
static NOINLINE void
to_and_fro(void)
{
	for (size_t i = 0; i < 3000; i++)
		keep(realloc(realloc(malloc(300), 600000), 5000));
	tell("to_and_fro", (size_t)3000 * 5000);
}

static NOINLINE void
dropped(size_t bytes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		void *volatile block = malloc(bytes);

		free(block);
	}
}

static NOINLINE void *
thread_blocks(void *unused)
{
	(void)unused;
	for (size_t i = 0; i < 20000; i++) {
		keep(malloc(700));
		dropped(90, 10);
	}
	return NULL;
}

static NOINLINE void *
handed(void *unused)
{
	(void)unused;
	for (size_t i = 0; i < 50000; i++)
		keep(malloc(900));
	return NULL;
}

static void
run(void *(*work)(void *))
{
	pthread_t threads[THREADS];

	for (size_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void
all(void)
{
	size_t before = kept_count;

	run(handed);
	while (kept_count > before)
		free(kept[--kept_count]);
	tell("handed", 0);
	small_blocks();
	middling_blocks();
	large_blocks();
	aligned_blocks();
	grown_blocks();
	to_and_fro();
	dropped(2000, 500000);
	tell("dropped", 0);
	run(thread_blocks);
	tell("thread_blocks", (size_t)THREADS * 20000 * 700);
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	const char *end = argc == 2 ? argv[1] : "exit";

	all();
	if (strcmp(end, "fork") == 0) {
		pid_t child = fork();

		if (child == 0) {
			for (size_t i = 0; i < kept_count; i++)
				free(kept[i]);
			kept_count = 0;
			freopen("/dev/null", "w", stdout);
			all();
			kill(getpid(), SIGKILL);
		}
		waitpid(child, NULL, 0);
	} else if (strcmp(end, "kill") == 0) {
		kill(getpid(), SIGKILL);
	}
	return 0;
}
