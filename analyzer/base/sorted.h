/*
 * sorted.h - where does a key stand among items that are sorted by it?
 *
 * Safe from   anywhere; no state.
 */
#ifndef SORTED_H
#define SORTED_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

static inline size_t
sorted_up_to(const void *keys, size_t item_bytes, size_t count, uint64_t key)
{
	size_t low = 0;
	size_t high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (*(const uint64_t *)((const char *)keys + middle * item_bytes) <= key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* How many of `count` items have a `member` of at most `key`. items: sorted by `member`, a uint64_t; may be NULL when there are none. */
#define SORTED_UP_TO(items, count, member, key)                                                          \
	({                                                                                                   \
		static_assert(sizeof((items)->member) == sizeof(uint64_t), "");                                  \
		size_t sorted_count = (count);                                                                   \
		sorted_count == 0 ? 0                                                                            \
						  : sorted_up_to((const char *)(items) + offsetof(__typeof__(*(items)), member), \
		                                 sizeof(*(items)), sorted_count, (key));                         \
	})

#endif
