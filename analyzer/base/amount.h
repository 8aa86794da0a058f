/*
 * amount.h - sums and differences that never wrap around: a capture may say any number.
 *
 * Safe from   anywhere; no state.
 */
#ifndef AMOUNT_H
#define AMOUNT_H

#include <stdint.h>

static inline uint64_t
amount_lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t
amount_greater(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* UINT64_MAX where it is more. */
static inline uint64_t
amount_sum(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* 0 where it would be less. */
static inline uint64_t
amount_less(uint64_t from, uint64_t taken)
{
	return from > taken ? from - taken : 0;
}

/* 0 where it is less. */
static inline uint64_t
amount_not_negative(int64_t number)
{
	return number > 0 ? (uint64_t)number : 0;
}

#endif
