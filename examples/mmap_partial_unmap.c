// expect: peak mmap where=mmap_partial_unmap.c:23 live_bytes=16777216 peak_bytes=67108864
// expect: peak reserved where=mmap_partial_unmap.c:20 live_bytes=1073741824
/*
 * mmap_partial_unmap.c - a mapping of which the middle is given back.
 *
 * A part that is unmapped takes its bytes away. Address space that is only reserved is in a domain of its
 * own: it is no memory.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define POOL_BYTES (64u << 20)
#define EDGE_BYTES (8u << 20)
#define RESERVED_BYTES (1ul << 30)

int
main(void)
{
	void *space = mmap(NULL, RESERVED_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	// Two edges of eight MiB stay, the 48 MiB between them go.
	char *pool = mmap(NULL, POOL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (space == MAP_FAILED || pool == MAP_FAILED)
		return 1;
	memset(pool, 1, POOL_BYTES);
	if (munmap(pool + EDGE_BYTES, POOL_BYTES - 2 * EDGE_BYTES) != 0)
		return 1;
	printf("%d %d\n", pool[0], pool[POOL_BYTES - 1]);
	return 0;
}
