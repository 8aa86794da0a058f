/*
 * text_pool.c - every text once (see text_pool.h).
 */
#include "base/text_pool.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/memory.h"
#include "base/text_clean.h"

#define BLOCK_BYTES ((size_t)256 << 10)

struct block {
	struct block *next;
	max_align_t room[];
};

struct text {
	UT_hash_handle hh;
	const char *original; // NULL: nothing was escaped
	char characters[];
};

struct text_pool {
	struct block *blocks;
	char *free_at;
	size_t free_bytes;
	struct text *texts;
};

struct text_pool *
text_pool_new(void)
{
	return memory_zeroed(1, sizeof(struct text_pool));
}

void
text_pool_free(struct text_pool *pool)
{
	if (pool == NULL)
		return;
	HASH_CLEAR(hh, pool->texts);
	for (struct block *block = pool->blocks, *next; block != NULL; block = next) {
		next = block->next;
		free(block);
	}
	free(pool);
}

void *
text_pool_room(struct text_pool *pool, size_t bytes)
{
	const size_t step = alignof(max_align_t);
	char *room;

	bytes = (bytes + step - 1) / step * step;
	if (bytes > pool->free_bytes) {
		size_t block_bytes = bytes > BLOCK_BYTES / 4 ? bytes : BLOCK_BYTES;
		struct block *block = memory_zeroed(1, sizeof(*block) + block_bytes);

		block->next = pool->blocks;
		pool->blocks = block;
		if (bytes > BLOCK_BYTES / 4) // a block of its own; the current one stays in use
			return block->room;
		pool->free_at = (char *)block->room;
		pool->free_bytes = block_bytes;
	}
	room = pool->free_at;
	pool->free_at += bytes;
	pool->free_bytes -= bytes;
	return room;
}

static const char *
add_bytes(struct text_pool *pool, const char *text, size_t bytes)
{
	return memcpy(text_pool_room(pool, bytes + 1), text, bytes);
}

const char *
text_pool_add(struct text_pool *pool, const char *text, size_t bytes)
{
	struct text *found;

	/* Most texts are clean and known: then nothing is copied. */
	HASH_FIND(hh, pool->texts, text, bytes, found);
	if (found != NULL)
		return found->characters;

	OWNED char *copy = memory_zeroed(bytes + 1, TEXT_ESCAPED_MOST);
	size_t clean_bytes = text_escape(text, bytes, copy);

	HASH_FIND(hh, pool->texts, copy, clean_bytes, found);
	if (found == NULL) {
		found = text_pool_room(pool, sizeof(*found) + clean_bytes + 1);
		memcpy(found->characters, copy, clean_bytes);
		if (clean_bytes != bytes)
			found->original = add_bytes(pool, text, bytes);
		HASH_ADD_KEYPTR(hh, pool->texts, found->characters, clean_bytes, found);
	}
	return found->characters;
}

const char *
text_pool_add_text(struct text_pool *pool, const char *text)
{
	return text_pool_add(pool, text, strlen(text));
}

const char *
text_pool_original(const struct text_pool *pool, const char *clean)
{
	struct text *found;

	HASH_FIND(hh, pool->texts, clean, strlen(clean), found);
	return found != NULL && found->original != NULL ? found->original : clean;
}

const char *
text_pool_add_original(struct text_pool *pool, const char *text)
{
	return add_bytes(pool, text, strlen(text));
}
