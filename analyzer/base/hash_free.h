/*
 * hash_free.h - frees all items of a hash table of uthash.
 *
 * Safe from   anywhere; no state.
 */
#ifndef HASH_FREE_H
#define HASH_FREE_H

#include <stdlib.h>
#include <uthash.h>

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
