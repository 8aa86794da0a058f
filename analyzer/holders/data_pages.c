/* data_pages.c - see data_pages.h. */
#include "holders/data_pages.h"

#include <stdlib.h>
#include <uthash.h>

#include "base/hash_free.h"
#include "base/memory.h"

#define CHUNK_PAGES 16384u

struct data_chunk {
	uint64_t number; // of its first page, by CHUNK_PAGES
	uint64_t bits[CHUNK_PAGES / 64];
	UT_hash_handle hh;
};

static struct data_chunk *
find(const struct data_pages *pages, uint64_t page)
{
	uint64_t number = page / CHUNK_PAGES;
	struct data_chunk *chunk;

	HASH_FIND(hh, pages->chunks, &number, sizeof(number), chunk);
	return chunk;
}

void
data_pages_add(struct data_pages *pages, uint64_t page)
{
	struct data_chunk *chunk = find(pages, page);

	if (chunk == NULL) {
		chunk = memory_zeroed(1, sizeof(*chunk));
		chunk->number = page / CHUNK_PAGES;
		HASH_ADD(hh, pages->chunks, number, sizeof(chunk->number), chunk);
	}
	chunk->bits[page % CHUNK_PAGES / 64] |= UINT64_C(1) << page % 64;
}

bool
data_pages_has(const struct data_pages *pages, uint64_t page)
{
	const struct data_chunk *chunk = find(pages, page);

	return chunk != NULL && (chunk->bits[page % CHUNK_PAGES / 64] >> page % 64 & 1) != 0;
}

void
data_pages_free(struct data_pages *pages)
{
	HASH_FREE(pages->chunks, free);
}
