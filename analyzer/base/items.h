/*
 * items.h - what is done with all items of an array
 *
 * `item` is the name of a pointer to each of them in turn. items: may be NULL when there are none.
 *
 *     EACH (site, model->sites, model->site_count)
 *         bytes += site->live_bytes;
 *     return ANY(site, model->sites, model->site_count, site->is_estimated);
 *
 * Safe from   anywhere; no state.
 */
#ifndef ITEMS_H
#define ITEMS_H

#include <stddef.h>
#include <stdint.h>

#include "base/amount.h"

/* Of an array whose length the compiler knows. */
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* A loop over them. */
#define EACH(item, items, count)                                          \
	for (size_t item##_left = (count); item##_left != 0; item##_left = 0) \
		for (__typeof__((items)[0]) *item = (items); item##_left != 0; item++, item##_left--)

/* Defines a function that gives the name of a number, from 0; NULL = it has none. */
#define NAMES_OF(function, ...)                                 \
	const char *function(unsigned number)                       \
	{                                                           \
		static const char *const names[] = { __VA_ARGS__ };     \
                                                                \
		return number < COUNT_OF(names) ? names[number] : NULL; \
	}

/* The first item for which the condition holds; NULL = none. */
#define FIRST(item, items, count, condition)                    \
	({                                                          \
		__typeof__((items)[0]) *item = (items);                 \
		size_t item##_left = (count);                           \
                                                                \
		for (; item##_left != 0 && !(condition); item##_left--) \
			item++;                                             \
		item##_left != 0 ? item : NULL;                         \
	})

/* Does it hold for one of them? */
#define ANY(item, items, count, condition) (FIRST(item, items, count, condition) != NULL)

/* The sum of a figure of each, and the largest figure of one: 0 = there are none. */
#define SUM_OF(item, items, count, figure) \
	({                                     \
		uint64_t item##_sum = 0;           \
                                           \
		EACH (item, items, count)          \
			item##_sum += (figure);        \
		item##_sum;                        \
	})
#define MOST_OF(item, items, count, figure)                      \
	({                                                           \
		uint64_t item##_most = 0;                                \
                                                                 \
		EACH (item, items, count)                                \
			item##_most = amount_greater(item##_most, (figure)); \
		item##_most;                                             \
	})

#endif
