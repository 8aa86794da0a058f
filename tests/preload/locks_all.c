/*
 * locks_all.c - mlockall() with what its arguments name (current, future, onfault), again and again, while two threads are there.
 *
 * Prints a line for each: what the call said, and whether this program's memory is locked. To stderr: KiB locked, KiB in memory.
 * "limit" instead of flags: locks exactly as much as RLIMIT_MEMLOCK lets it, and prints what that said.
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define PAGE ((size_t)4096)
#define BLOCK_BYTES ((size_t)256 << 10)

static pthread_barrier_t start, end;

static void *
be_there(void *unused)
{
	void *volatile block = malloc(1000);

	free(block);
	pthread_barrier_wait(&start);
	pthread_barrier_wait(&end);
	return unused;
}

static long
kib_of(const char *name)
{
	char line[256];
	long kib = -1;
	FILE *status = fopen("/proc/self/status", "r");

	while (status != NULL && fgets(line, sizeof(line), status) != NULL) {
		if (strncmp(line, name, strlen(name)) == 0)
			kib = atol(line + strlen(name));
	}
	if (kib < 0)
		abort();
	fclose(status);
	return kib;
}

static const char *
residence(const void *addr, size_t bytes)
{
	unsigned char pages[BLOCK_BYTES / PAGE];
	size_t count = 0;

	if (mincore((void *)addr, bytes, pages) != 0)
		abort();
	for (size_t i = 0; i < bytes / PAGE; i++)
		count += pages[i] & 1;
	return count == 0 ? "absent" : count == bytes / PAGE ? "present" : "in part";
}

static void *
fresh(void)
{
	void *addr = mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (addr == MAP_FAILED)
		abort();
	return addr;
}

static int
lock_the_limit(void)
{
	struct rlimit limit;
	void *addr;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0)
		abort();
	addr = mmap(NULL, limit.rlim_cur, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	printf("%s\n", mlock(addr, limit.rlim_cur) == 0 ? "locked" : strerror(errno));
	return 0;
}

int
main(int count, char **words)
{
	pthread_t thread[2];

	if (count > 2) { // as another user, without rights
		if (setgid(65534) != 0 || setuid(65534) != 0)
			abort();
	}
	if (strcmp(words[1], "limit") == 0)
		return lock_the_limit();
	mallopt(M_ARENA_MAX, 1); // more are 64 MiB of addresses each
	pthread_barrier_init(&start, NULL, 3);
	pthread_barrier_init(&end, NULL, 3);
	for (int i = 0; i < 2; i++) {
		pthread_attr_t attributes;

		pthread_attr_init(&attributes);
		pthread_attr_setstacksize(&attributes, 64 << 10);
		pthread_create(&thread[i], &attributes, be_there, NULL);
	}
	pthread_barrier_wait(&start);
	for (char *word = strtok(words[1], ","); word != NULL; word = strtok(NULL, ",")) {
		char *before = fresh();
		int flags = atoi(word);
		int result = mlockall(flags);
		int error = result != 0 ? errno : 0;
		char *after = error == EAGAIN
		                  ? MAP_FAILED
		                  : mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		printf("%d: %d %s, before %s, after %s\n", flags, result, strerror(error), residence(before, BLOCK_BYTES),
		       after == MAP_FAILED ? "refused" : residence(after, BLOCK_BYTES));
		fprintf(stderr, "%ld %ld\n", kib_of("VmLck:"), kib_of("VmRSS:"));
		munlockall();
	}
	pthread_barrier_wait(&end);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
