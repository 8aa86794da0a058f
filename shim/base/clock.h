/*
 * clock.h - what time is it?
 *
 * Safe from   anywhere. In a program that confined itself, where asking is a system call that may kill it, the last answer is given again.
 */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>

/* Monotonic nanoseconds; the clock of every *_monotonic_ns in the capture. */
uint64_t clock_now_ns(void);

#endif
