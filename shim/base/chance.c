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

/* -ln(x / 2^64), x > 0. Without libm: x is m * 2^e, m near 1, and ln m = 2 artanh((m - 1) / (m + 1)). Off by less than 1e-7. */
static double
minus_log(uint64_t x)
{
	static const double ln2 = 0.69314718055994530942;
	unsigned zeros = (unsigned)__builtin_clzll(x);
	double m = (double)(x << zeros >> 11) * 0x1p-53; // 0.5 to 1
	double s = (m - 0.70710678118654752440) / (m + 0.70710678118654752440);
	double s2 = s * s;
	double log_m = 2 * s * (1 + s2 * (1.0 / 3 + s2 * (1.0 / 5 + s2 * (1.0 / 7 + s2 / 9)))) - ln2 / 2;

	return zeros * ln2 - log_m;
}

int64_t
chance_draw(uint64_t *state, double mean_bytes)
{
	return (int64_t)(minus_log(next(state) | 1) * mean_bytes);
}
