/*
 * digest.h - digests of words: a sum of products of two words each, 128 bits, with keys that are fixed.
 *
 * Two sequences of the same number of words that differ have the same digest with a probability of 2^-64.
 *
 * Safe from   anywhere: no state.
 */
#ifndef DIGEST_H
#define DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include "base/arch.h"

static inline void
digest_keys_fill(uint64_t *keys, size_t count, uint64_t seed)
{
	for (size_t i = 0; i < count; i++) { // splitmix64
		uint64_t z = seed += UINT64_C(0x9e3779b97f4a7c15);

		z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
		z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
		keys[i] = (z ^ z >> 31) | 1;
	}
}

struct digest {
	uint64_t low;
	uint64_t high;
};

static inline void
digest_add(struct digest *sum, uint64_t one, uint64_t other)
{
	arch_multiply_add(&sum->low, &sum->high, one, other);
}

#endif
