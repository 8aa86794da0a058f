/* An allocator of its own kind: reserves addresses that can be written, and only touches them. Says what is in memory at the end. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define PAGES (64 * MIB / 4096)

static char *arena;

/* What an allocator asks of the system now and then; it is asked for growth only once in a while. */
static void
ask(void)
{
	for (clock_t begin = clock(); clock() - begin < CLOCKS_PER_SEC / 200;)
		munmap(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
}

__attribute__((noinline)) static void
grow(size_t from, size_t to)
{
	for (size_t at = from; at < to; at += MIB) {
		memset(arena + at, 1, MIB);
		ask(); // grows here
	}
}

int
main(void)
{
	static unsigned char pages[PAGES];
	size_t resident = 0;

	arena = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	madvise(arena, 64 * MIB, MADV_NOHUGEPAGE);
	ask();
	grow(0, 30 * MIB);
	madvise(arena + 3 * MIB, 5 * MIB, MADV_DONTNEED);
	munmap(arena + 20 * MIB, 4 * MIB);
	grow(40 * MIB, 50 * MIB);
	mincore(arena, 20 * MIB, pages);
	mincore(arena + 24 * MIB, 40 * MIB, pages + 20 * MIB / 4096);
	for (size_t i = 0; i < PAGES; i++)
		resident += pages[i] & 1;
	printf("%zu\n", resident * 4096);
	fflush(stdout);
	_exit(0);
}
