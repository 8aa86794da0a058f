/* chance.c - random numbers for samples (see chance.h). */
#include "base/chance.h"

#include "base/clock.h"
#include "base/raw_sys.h"

uint64_t
chance_seed(const void *own)
{
	uint64_t seed = (clock_now_ns() ^ (uint64_t)(uintptr_t)own) * UINT64_C(0x9e3779b97f4a7c15) ^
	                (uint64_t)raw_syscall(SYS_getpid) << 40;

	return seed | (seed == 0);
}

/* splitmix64. */
static uint64_t
next(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

#define Q 56 // digits behind the point
#define ONE (INT64_C(1) << Q)
#define LN2 INT64_C(49946518145322873)      // ln 2
#define ROOT UINT64_C(13043817825332782212) // the root of a half, in units of 2^-64

static int64_t
product(int64_t a, int64_t b)
{
	return (int64_t)((__int128)a * b >> Q);
}

/*
 * -ln(x / 2^64), x > 0, in units of 2^-56. x is m * 2^-e, m from 0.5 to 1, and ln m = 2 artanh((m - r) / (m + r)) - ln 2 / 2 with r the root of
 * a half. Off by less than 1e-7. No floating point: the program may have asked that it traps.
 */
static int64_t
minus_log(uint64_t x)
{
	unsigned zeros = (unsigned)__builtin_clzll(x);
	uint64_t m = x << zeros;
	int64_t s = (int64_t)(((__int128)m - ROOT) * ONE / ((__int128)m + ROOT));
	int64_t s2 = product(s, s);
	int64_t series = ONE + product(s2, ONE / 3 + product(s2, ONE / 5 + product(s2, ONE / 7 + s2 / 9)));

	return zeros * LN2 + LN2 / 2 - 2 * product(s, series);
}

int64_t
chance_draw(uint64_t *state, uint64_t mean_bytes)
{
	return (int64_t)((__int128)minus_log(next(state) | 1) * mean_bytes >> Q);
}
