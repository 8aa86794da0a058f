/* data_pages.c - see data_pages.h. */
#include "holders/data_pages.h"

#include <uthash.h>

#include "base/hash.h"

#define CHUNK_PAGES 16384u

struct data_chunk {
	uint64_t number; // of its first page, by CHUNK_PAGES
	uint64_t bits[CHUNK_PAGES / 64];
	UT_hash_handle hh;
};

void
data_pages_add(struct data_pages *pages, uint64_t page)
{
	struct data_chunk *chunk;

	(void)HASH_MADE(pages->chunks, number, page / CHUNK_PAGES, chunk);
	chunk->bits[page % CHUNK_PAGES / 64] |= UINT64_C(1) << page % 64;
}

bool
data_pages_has(const struct data_pages *pages, uint64_t page)
{
	uint64_t number = page / CHUNK_PAGES;
	const struct data_chunk *chunk;

	HASH_FIND(hh, pages->chunks, &number, sizeof(number), chunk);
	return chunk != NULL && (chunk->bits[page % CHUNK_PAGES / 64] >> page % 64 & 1) != 0;
}

void
data_pages_free(struct data_pages *pages)
{
	HASH_FREE(pages->chunks, free);
}
