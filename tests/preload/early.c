/*
 * early.c - a library whose constructor is the first to allocate, in a request of libc's that holds a lock; EARLY says which.
 *
 * Linked to a program of its own (-DPROGRAM), which forks once: the handlers of fork that the constructor registered allocate and map.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

void early(void);

#ifdef PROGRAM
int
main(void)
{
	int status = -1;

	early();
	pid_t child = fork();
	if (child == 0)
		exit(0);
	return waitpid(child, &status, 0) == child ? status : 1;
}
#else

#define BLOCK_BYTES ((size_t)2 << 20)

static void *volatile kept;

static void
nothing(void)
{
}

static void
map_and_allocate(void)
{
	void *mapped = mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(mapped, BLOCK_BYTES);
	kept = malloc(BLOCK_BYTES);
}

static void
release(void)
{
	free(kept);
}

__attribute__((constructor)) static void
start_early(void)
{
	char how[32];

	strncpy(how, getenv("EARLY"), sizeof(how) - 1);
	how[sizeof(how) - 1] = '\0';
	for (int i = 0; i < 100; i++) {
		if (strcmp(how, "atexit") == 0)
			atexit(nothing);
		else if (strcmp(how, "at_quick_exit") == 0)
			at_quick_exit(nothing);
		else if (strcmp(how, "pthread_atfork") == 0)
			pthread_atfork(nothing, nothing, nothing);
		else if (strcmp(how, "setenv") == 0)
			setenv("EARLY_VALUE", "1", 1);
	}
	if (strcmp(how, "handlers") == 0)
		pthread_atfork(map_and_allocate, NULL, map_and_allocate);
	atexit(release);
}

void
early(void)
{
}
#endif
