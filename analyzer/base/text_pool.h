/*
 * text_pool.h - every text once.
 *
 * A capture names few files and functions many times; equal texts of a pool are one pointer, so that comparing and
 * hashing them is comparing pointers. Also gives room that lives as long as the pool.
 *
 * When failing  without memory the analyzer ends with a message (memory.h).
 */
#ifndef TEXT_POOL_H
#define TEXT_POOL_H

#include <stddef.h>

struct text_pool;

struct text_pool *text_pool_new(void);
void text_pool_free(struct text_pool *pool); // every text and all room become invalid

/* The pool's copy, terminated, what cannot be shown escaped (text_clean.h). Equal input gives the same pointer. */
const char *text_pool_add(struct text_pool *pool, const char *text, size_t bytes);
const char *text_pool_add_text(struct text_pool *pool, const char *text);

/*
 * The bytes of the first text that became this one: a file of that name can be opened. The text itself when nothing was escaped.
 * clean: of the pool.
 */
const char *text_pool_original(const struct text_pool *pool, const char *clean);

/* The pool's copy as it is. */
const char *text_pool_add_original(struct text_pool *pool, const char *text);

/* Zeroed room, aligned for any type, freed with the pool. */
void *text_pool_room(struct text_pool *pool, size_t bytes) __attribute__((returns_nonnull));

#endif
