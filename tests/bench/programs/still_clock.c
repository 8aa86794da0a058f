/*
 * still_clock.c - a preload under which it is always the same moment: what a recorder does from time to time it does not do.
 *
 * Under callgrind a program is 50 times slower, on one machine more than on another: its instructions must not depend on that.
 *
 * Called by   the gate of instructions (tests/gates).
 */
#include <time.h>

__attribute__((visibility("default"))) int
clock_gettime(clockid_t clock, struct timespec *now)
{
	(void)clock;
	now->tv_sec = 1000000;
	now->tv_nsec = 0;
	return 0;
}
