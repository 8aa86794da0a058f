/*
 * sorted.h - where does a key stand among items that are sorted by it?
 *
 * Safe from   anywhere; no state.
 */
#ifndef SORTED_H
#define SORTED_H

#include <stddef.h>
#include <stdint.h>

/* How many of `count` items are before a place: `is_before` says it of the one with the number `at`; all that are come first. */
#define SORTED_BEFORE(at, count, is_before)                    \
	({                                                         \
		size_t at##_low = 0;                                   \
		size_t at##_high = (count);                            \
                                                               \
		while (at##_low < at##_high) {                         \
			size_t at = at##_low + (at##_high - at##_low) / 2; \
                                                               \
			if (is_before)                                     \
				at##_low = at + 1;                             \
			else                                               \
				at##_high = at;                                \
		}                                                      \
		at##_low;                                              \
	})

/* How many of `count` items have a `member` of at most `key`. items: sorted by `member`; may be NULL when there are none. */
#define SORTED_UP_TO(items, count, member, key)                                     \
	({                                                                              \
		uint64_t sorted_key = (key);                                                \
		SORTED_BEFORE(sorted_at, (count), (items)[sorted_at].member <= sorted_key); \
	})

#endif
