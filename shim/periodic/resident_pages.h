/*
 * resident_pages.h - how much of these addresses is in memory?
 *
 * Context     under the flag of the look.
 * Safe from   one thread at a time; system calls, no allocation.
 * When failing  what was counted before.
 */
#ifndef RESIDENT_PAGES_H
#define RESIDENT_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#define RESIDENT_PAGE_BYTES UINT64_C(4096)

/* start and end: at edges of pages. Pages that were only read, and are the one zero page of all, count. */
uint64_t resident_pages_bytes(uint64_t start, uint64_t end);

/* One byte for each page, bit 0: is it in memory? At most RESIDENT_PAGES_AT_ONCE, valid until the next call here. NULL: not known. */
#define RESIDENT_PAGES_AT_ONCE 16384u
const unsigned char *resident_pages_find(uint64_t start, uint64_t end);

/* For private memory: pages that no other process has. The zero page does not count. 0 where the kernel does not tell. */
uint64_t resident_pages_own_bytes(uint64_t start, uint64_t end);

/*
 * For many addresses that lie anywhere: is the page of each private memory that no other process has? What the kernel says of a page is
 * kept for the next address. -1 and false where it does not tell.
 */
struct resident_page_map {
	int fd;
	uint64_t page; // that was read last, + 1; 0 = none
	uint64_t word;
};
struct resident_page_map resident_pages_open(void);
bool resident_pages_is_own(struct resident_page_map *map, uint64_t addr);
void resident_pages_close(struct resident_page_map *map);

#endif
