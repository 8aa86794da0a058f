/*
 * transparent.c - everything a program can notice of its allocator, printed; the same with and without a shim.
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile size_t huge = SIZE_MAX / 2;
static volatile size_t zero;

#define SHOW(expression)                                                \
	do {                                                                \
		errno = 77;                                                     \
		long shown = (long)(expression);                                \
		int host_errno = errno;                                         \
		printf("%-60s %ld errno %d\n", #expression, shown, host_errno); \
	} while (0)

static int
is_zeroed(const unsigned char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (bytes[i] != 0)
			return 0;
	return 1;
}

static void
failed_requests(void)
{
	void *block = malloc(100), *out = block;

	memset(block, 7, 100);
	SHOW(malloc(huge) == NULL);
	SHOW(calloc(huge, 4) == NULL);
	SHOW(reallocarray(NULL, huge, 4) == NULL);
	SHOW(realloc(block, huge) == NULL);
	SHOW(((unsigned char *)block)[99]);
	SHOW(posix_memalign(&out, 3, 10));
	SHOW(out == block);
	SHOW(posix_memalign(&out, 64, huge));
	SHOW(aligned_alloc(64, huge) == NULL);
	SHOW(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
	SHOW(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 999, 0) == MAP_FAILED);
	SHOW(munmap((void *)1, 4096));
	SHOW(mremap((void *)4096, 4096, 8192, 0) == MAP_FAILED);
	SHOW((free(block), 0));
	SHOW((free(NULL), 0));
}

static void
shapes(void)
{
	char *block = malloc(24), *range;

	SHOW(malloc_usable_size(block));
	SHOW((free(block), 0));
	SHOW(malloc(zero) != NULL);
	SHOW(realloc(malloc(10), zero) == NULL);
	SHOW(is_zeroed(calloc(1000, 1000), 1000000));
	for (size_t alignment = 16; alignment <= 65536; alignment *= 4) {
		SHOW((uintptr_t)memalign(alignment, 100) % alignment);
		SHOW((uintptr_t)aligned_alloc(alignment, 100) % alignment);
	}
	SHOW((uintptr_t)valloc(10) % 4096);
	SHOW((uintptr_t)pvalloc(10) % 4096);
	SHOW(malloc_usable_size(pvalloc(10)) >= 4096);
	block = strdup("moved");
	for (size_t bytes = 8; bytes < 32u << 20; bytes *= 3)
		block = realloc(block, bytes);
	SHOW(strcmp(block, "moved"));
	range = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	strcpy(range + 8192, "kept");
	SHOW(munmap(range, 8192));
	SHOW(mmap(range + 65536, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == range + 65536);
	range = mremap(range + 8192, 4096, 1 << 22, MREMAP_MAYMOVE);
	SHOW(strcmp(range, "kept"));
}

static volatile sig_atomic_t signals;

static void
on_signal(int number)
{
	(void)number;
	free(malloc(64)); // not allowed, done everywhere
	signals = signals + 1;
}

static void *
allocate_and_exit(void *unused)
{
	(void)unused;
	for (int i = 0; i < 1000; i++)
		free(malloc((size_t)i));
	return malloc(100);
}

static void
processes(void)
{
	int status = 0;
	pthread_t thread;
	void *result;
	pid_t child = fork();

	if (child == 0) {
		free(malloc(2000000));
		_exit(malloc(100) != NULL ? 5 : 6);
	}
	waitpid(child, &status, 0);
	SHOW(WEXITSTATUS(status));
	child = vfork();
	if (child == 0) {
		execl("/bin/sh", "sh", "-c", "exit 9", (char *)NULL);
		_exit(1);
	}
	waitpid(child, &status, 0);
	SHOW(WEXITSTATUS(status));
	SHOW(system("exit 3") >> 8);
	SHOW(pthread_create(&thread, NULL, allocate_and_exit, NULL));
	SHOW(pthread_join(thread, &result));
	SHOW((free(result), 0));
	signal(SIGUSR1, on_signal);
	for (int i = 0; i < 100; i++)
		raise(SIGUSR1);
	SHOW(signals);
}

int
main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	failed_requests();
	shapes();
	processes();
	fprintf(stderr, "last words\n");
	if (argc > 1 && strcmp(argv[1], "abort") == 0)
		abort();
	if (argc > 1 && strcmp(argv[1], "_exit") == 0)
		_exit(4);
	return 42;
}
