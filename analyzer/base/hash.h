/*
 * hash.h - what is done with every hash table of uthash: find an item or make it, and free them all
 *
 * An item of a table has its key in a member without gaps, and a member `hh`. Items stay in the order in which they were made.
 *
 * Safe from   anywhere; no state.
 */
#ifndef HASH_H
#define HASH_H

#include <stdbool.h>
#include <stdlib.h>
#include <uthash.h>

#include "base/memory.h"

/* The item whose `member` is `key` goes to `found`. True: it is new, zeroed but for its key. */
#define HASH_MADE(head, member, key_, found)                               \
	({                                                                     \
		const __typeof__((found)->member) hash_key = (key_);               \
		bool hash_is_new;                                                  \
                                                                           \
		HASH_FIND(hh, head, &hash_key, sizeof(hash_key), found);           \
		hash_is_new = (found) == NULL;                                     \
		if (hash_is_new) {                                                 \
			(found) = memory_zeroed(1, sizeof(*(found)));                  \
			memcpy((void *)&(found)->member, &hash_key, sizeof(hash_key)); \
			HASH_ADD(hh, head, member, sizeof(hash_key), found);           \
		}                                                                  \
		hash_is_new;                                                       \
	})

/* The same of an item whose `member` is a text: a new one gets a copy of its own. */
#define HASH_TEXT_MADE(head, member, text_, found)                                \
	({                                                                            \
		const char *hash_text = (text_);                                          \
		bool hash_is_new;                                                         \
                                                                                  \
		HASH_FIND_STR(head, hash_text, found);                                    \
		hash_is_new = (found) == NULL;                                            \
		if (hash_is_new) {                                                        \
			(found) = memory_zeroed(1, sizeof(*(found)));                         \
			(found)->member = memory_text(hash_text);                             \
			HASH_ADD_KEYPTR(hh, head, (found)->member, strlen(hash_text), found); \
		}                                                                         \
		hash_is_new;                                                              \
	})

/* Release an item that has a text, or a name, of its own and nothing else. */
#define HASH_TEXT_FREE(item) (free((void *)(uintptr_t)(item)->text), free(item))
#define HASH_NAME_FREE(item) (free((item)->name), free(item))

/* head: NULL afterwards. release: a function that takes one item, such as free. */
#define HASH_FREE(head, release)                  \
	do {                                          \
		__typeof__(head) hash_item;               \
		__typeof__(head) hash_next;               \
                                                  \
		HASH_ITER(hh, head, hash_item, hash_next) \
		{                                         \
			HASH_DEL(head, hash_item);            \
			release(hash_item);                   \
		}                                         \
	} while (0)

#endif
