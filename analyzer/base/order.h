/*
 * order.h - which of two values comes first, and an array in that order
 *
 * Below 0 the left one, 0 neither. Several are asked one after the other by `?:`, which goes on where the one before says 0:
 *
 *     return order_numbers(a->pid, b->pid) ?: order_numbers(a->start_ns, b->start_ns);
 *
 * Safe from   anywhere; no state.
 */
#ifndef ORDER_H
#define ORDER_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline int
order_numbers(uint64_t left, uint64_t right)
{
	return left < right ? -1 : left > right;
}

/* Texts of frames are mostly shared, so most comparisons end at the pointer. */
static inline int
order_texts(const char *left, const char *right)
{
	return left == right ? 0 : strcmp(left, right);
}

/* Defines a function for SORT() and bsearch() of items of `type`: `order` says which of the items that a and b point to comes first. */
#define ORDER_OF(name, type, order)                      \
	static int name(const void *left, const void *right) \
	{                                                    \
		const type *a = left;                            \
		const type *b = right;                           \
                                                         \
		return order;                                    \
	}

/* The same of items that are pointers to `type`: a and b are these pointers. */
#define ORDER_OF_POINTERS(name, type, order)             \
	static int name(const void *left, const void *right) \
	{                                                    \
		const type *a = *(const type *const *)left;      \
		const type *b = *(const type *const *)right;     \
                                                         \
		return order;                                    \
	}

/* Puts the items of an array in order. items: may be NULL when there are none. */
#define SORT(items, count, compare)                                  \
	do {                                                             \
		size_t sort_count = (count);                                 \
                                                                     \
		if (sort_count > 1)                                          \
			qsort((items), sort_count, sizeof(*(items)), (compare)); \
	} while (0)

#endif
