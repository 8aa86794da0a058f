/*
 * timeline.c - a program that writes down what it holds and when, to be compared with the points of the timeline.
 *
 *   timeline FILE SEED OPERATIONS [kill|fork]
 *
 * FILE becomes an array of struct entry, one for each operation, with what each of the three lines holds after it. A point that was taken
 * between an entry's two times is that of before the operation or after it. The entries are in a shared mapping, so that they are there after SIGKILL.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SLOTS 400

struct entry {
	uint64_t from_ns;
	uint64_t to_ns;
	uint64_t bytes[3];
};

static __attribute__((noinline, noclone)) void *
small(size_t bytes)
{
	return malloc(bytes % 2000 + 1);
}

static __attribute__((noinline, noclone)) void *
middle(size_t bytes)
{
	return malloc(bytes % 60000 + 2000);
}

static __attribute__((noinline, noclone)) void *
large(size_t bytes)
{
	return malloc(bytes % 900000 + 200000);
}

static uint64_t
now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void
work(const char *path, uint64_t seed, size_t operations)
{
	void *volatile slots[SLOTS] = { 0 };
	size_t held[SLOTS] = { 0 };
	unsigned whose[SLOTS] = { 0 };
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	struct entry sum = { 0 };
	struct entry *entries;

	if (fd < 0 || ftruncate(fd, (off_t)(operations * sizeof(*entries))) != 0)
		_exit(9);
	entries = mmap(NULL, operations * sizeof(*entries), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (entries == MAP_FAILED)
		_exit(9);
	for (size_t i = 0; i < operations; i++) {
		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
		size_t slot = (seed >> 40) % (i * SLOTS / operations + 1); // it grows
		size_t wanted = (size_t)(seed >> 33);
		unsigned who = slot % 3;

		sum.from_ns = now();
		if (slots[slot] != NULL) {
			sum.bytes[whose[slot]] -= held[slot];
			free(slots[slot]);
			slots[slot] = NULL;
		} else {
			slots[slot] = who == 0 ? small(wanted) : who == 1 ? middle(wanted) : large(wanted);
			held[slot] = who == 0 ? wanted % 2000 + 1 : who == 1 ? wanted % 60000 + 2000 : wanted % 900000 + 200000;
			whose[slot] = who;
			sum.bytes[who] += held[slot];
		}
		sum.to_ns = now();
		entries[i] = sum;
	}
}

int
main(int argc, char **argv)
{
	char path[4096];

	if (argc < 4)
		return 2;
	work(argv[1], strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
	if (argc > 4 && strcmp(argv[4], "fork") == 0) {
		pid_t child = fork();

		if (child == 0) {
			strcpy(path, argv[1]);
			strcat(path, ".child");
			work(path, strtoull(argv[2], NULL, 10) + 1, strtoull(argv[3], NULL, 10));
			return 0;
		}
		waitpid(child, NULL, 0);
	}
	if (argc > 4 && strcmp(argv[4], "kill") == 0)
		raise(SIGKILL);
	return 0;
}
