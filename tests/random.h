/*
 * random.h - numbers for tests that pick at random, the same again with SEED=.
 */
#ifndef RANDOM_H
#define RANDOM_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The seed of this run, printed; from the environment when SEED is set there. */
static inline uint64_t
random_seed(void)
{
	const char *wanted = getenv("SEED");
	struct timespec now;
	uint64_t seed;

	clock_gettime(CLOCK_REALTIME, &now);
	seed = wanted != NULL && *wanted != '\0' ? strtoull(wanted, NULL, 0) : (uint64_t)now.tv_nsec;
	fprintf(stderr, "SEED=%llu\n", (unsigned long long)seed);
	return seed;
}

/* splitmix64 */
static inline uint64_t
random_next(uint64_t *state)
{
	uint64_t word = *state += UINT64_C(0x9e3779b97f4a7c15);

	word = (word ^ word >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	word = (word ^ word >> 27) * UINT64_C(0x94d049bb133111eb);
	return word ^ word >> 31;
}

static inline uint64_t
random_below(uint64_t *state, uint64_t bound)
{
	return random_next(state) % bound;
}

#endif
