/*
 * resident.c - touches so much of each kind of memory, and prints how much and what the kernel says of the whole, in KiB.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define RW (PROT_READ | PROT_WRITE)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)
#define STACK_BYTES (3 * MIB)

static pthread_barrier_t barrier;

static char *
touched(const char *part, void *at, size_t bytes)
{
	if (at == MAP_FAILED || at == NULL) {
		perror(part);
		exit(1);
	}
	memset(at, 1, bytes);
	printf("%s %zu\n", part, bytes >> 10);
	return at;
}

static void *
deep(void *unused)
{
	volatile char bytes[STACK_BYTES];

	for (size_t i = 0; i < sizeof(bytes); i += 4096)
		bytes[i] = 1;
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier); // until the end
	return unused;
}

static size_t
resident_kib(void)
{
	static char line[256];
	size_t kib = 0;
	FILE *file = fopen("/proc/self/smaps_rollup", "r");

	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		sscanf(line, "Rss: %zu", &kib);
	return kib;
}

int
main(void)
{
	static void *volatile kept[30000];
	pthread_t thread;
	volatile char sum = 0;

	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); // what is touched is resident, and nothing beside it
	for (size_t i = 0; i < 30000; i++)
		kept[i] = memset(malloc(200), 1, 200);
	printf("brk %zu\n", 30000 * (size_t)208 >> 10);
	touched("heap", malloc(20 * MIB), 20 * MIB);

	/* As NumPy asks for large arrays: the kernel has another mapping then, in which no block begins. */
	char *array = malloc(24 * MIB);
	madvise((char *)(((uintptr_t)array + 2 * MIB) & ~(uintptr_t)(2 * MIB - 1)), 20 * MIB, MADV_HUGEPAGE);
	touched("heap", array, 24 * MIB);

	/* All kinds as neighbours: the kernel makes one mapping of them. */
	char *window = mmap(NULL, 64 * MIB, PROT_NONE, ANON, -1, 0);
	touched("mmap", mmap(window + 32 * MIB, 7 * MIB, RW, ANON | MAP_FIXED, -1, 0), 7 * MIB);
	mprotect(window + 39 * MIB, 2 * MIB, RW);
	touched("mmap", window + 39 * MIB, 2 * MIB);
	mmap(window, 8 * MIB, RW, ANON | MAP_FIXED | MAP_NORESERVE, -1, 0);
	touched("reserved", window, 5 * MIB);
	munmap(window + 41 * MIB, 23 * MIB);
	touched("not attributed", (void *)syscall(SYS_mmap, window + 41 * MIB, 6 * MIB, RW, ANON, -1, 0), 6 * MIB);
	volatile char *zeroes = mmap(NULL, 8 * MIB, PROT_READ, ANON, -1, 0);
	for (size_t i = 0; i < 8 * MIB; i += 4096) // the one page that is all zero: nothing
		sum += zeroes[i];

	int memory = memfd_create("memory", 0);
	int segment = shmget(IPC_PRIVATE, 2 * MIB, IPC_CREAT | 0600);
	if (ftruncate(memory, 4 * MIB) != 0)
		return 1;
	touched("shared", mmap(NULL, 4 * MIB, RW, MAP_SHARED, memory, 0), 4 * MIB);
	if (segment >= 0) {
		touched("shared", shmat(segment, NULL, 0), 2 * MIB);
		shmctl(segment, IPC_RMID, NULL);
	}
	touched("shared", mmap(NULL, MIB, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0), MIB);
	touched("mmap", mmap(NULL, MIB, RW, MAP_PRIVATE, open("/dev/zero", O_RDWR), 0), MIB);
	int file = open("/proc/self/exe", O_RDONLY);
	touched("file", mmap(NULL, 4096, RW, MAP_PRIVATE, file, 0), 4096);

	pthread_barrier_init(&barrier, NULL, 2);
	if (pthread_create(&thread, NULL, deep, NULL) != 0)
		return 1;
	pthread_barrier_wait(&barrier);
	printf("stacks %zu\n", STACK_BYTES >> 10);
	printf("all %zu\n", resident_kib());
	return sum;
}
