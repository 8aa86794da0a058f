/*
 * resident_pages.c - how much of these addresses is in memory (see resident_pages.h)?
 */
#include "periodic/resident_pages.h"

#include "base/raw_sys.h"

#define AT_ONCE RESIDENT_PAGES_AT_ONCE
#define PAGES_AT_ONCE 256             // 2 KiB of stack
#define PRESENT (UINT64_C(1) << 63)   // of a word of the page map: Documentation/admin-guide/mm/pagemap.rst
#define EXCLUSIVE (UINT64_C(1) << 56) // mapped by this process alone; since Linux 4.2

const unsigned char *
resident_pages_find(uint64_t start, uint64_t end)
{
	static unsigned char pages[AT_ONCE]; // one thread at a time; the stack may be small

	return raw_syscall(SYS_mincore, start, end - start, pages) == 0 ? pages : NULL;
}

uint64_t
resident_pages_bytes(uint64_t start, uint64_t end)
{
	uint64_t bytes = 0;

	for (uint64_t next; start < end; start = next) {
		next = end - start > AT_ONCE * RESIDENT_PAGE_BYTES ? start + AT_ONCE * RESIDENT_PAGE_BYTES : end;
		const unsigned char *pages = resident_pages_find(start, next);

		if (pages == NULL)
			return bytes;
		for (uint64_t i = 0; i < (next - start) / RESIDENT_PAGE_BYTES; i++)
			bytes += (pages[i] & 1) * RESIDENT_PAGE_BYTES;
	}
	return bytes;
}

uint64_t
resident_pages_own_bytes(uint64_t start, uint64_t end)
{
	uint64_t words[PAGES_AT_ONCE]; // more than one thread may ask
	int fd = raw_open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC, 0);
	uint64_t bytes = 0;
	long got = 1;

	while (fd >= 0 && start < end && got > 0) {
		uint64_t pages = (end - start) / RESIDENT_PAGE_BYTES;

		got = raw_syscall(SYS_pread64, fd, words, (pages < PAGES_AT_ONCE ? pages : PAGES_AT_ONCE) * 8,
		                  start / RESIDENT_PAGE_BYTES * 8);
		for (long i = 0; i < got / 8; i++)
			bytes += (words[i] & PRESENT) != 0 && (words[i] & EXCLUSIVE) != 0 ? RESIDENT_PAGE_BYTES : 0;
		start += got > 0 ? (uint64_t)got / 8 * RESIDENT_PAGE_BYTES : 0;
	}
	if (fd >= 0)
		raw_close(fd);
	return bytes;
}

struct resident_page_map
resident_pages_open(void)
{
	return (struct resident_page_map){ .fd = raw_open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC, 0) };
}

bool
resident_pages_is_own(struct resident_page_map *map, uint64_t addr)
{
	uint64_t page = addr / RESIDENT_PAGE_BYTES;

	if (map->fd < 0)
		return false;
	if (map->page != page + 1) {
		map->page = page + 1;
		if (raw_syscall(SYS_pread64, map->fd, &map->word, sizeof(map->word), page * sizeof(map->word)) !=
		    (long)sizeof(map->word))
			map->word = 0;
	}
	return (map->word & PRESENT) != 0 && (map->word & EXCLUSIVE) != 0;
}

void
resident_pages_close(struct resident_page_map *map)
{
	if (map->fd >= 0)
		raw_close(map->fd);
}
