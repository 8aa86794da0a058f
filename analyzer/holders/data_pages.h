/*
 * data_pages.h - pages of a process that stands still in which no word can be a pointer.
 *
 * A search reads memory again and again, for other addresses each time. Arrays of numbers, images and texts hold no word in the range of
 * addresses: once such a page was read, it need not be read again.
 *
 * Context     2 KiB for each 64 MiB of addresses with such a page.
 */
#ifndef DATA_PAGES_H
#define DATA_PAGES_H

#include <stdbool.h>
#include <stdint.h>

struct data_chunk;
struct data_pages {
	struct data_chunk *chunks; // hash
};

/* page: the page's address divided by the size of a page. */
void data_pages_add(struct data_pages *pages, uint64_t page);
bool data_pages_has(const struct data_pages *pages, uint64_t page);
void data_pages_free(struct data_pages *pages);

#endif
