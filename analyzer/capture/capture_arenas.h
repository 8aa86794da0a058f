/*
 * capture_arenas.h - which part of Python's arenas is known by line?
 *
 * Context     once all of the capture was read and checked, and set back (capture_exit.h).
 * Safe from   one thread.
 */
#ifndef CAPTURE_ARENAS_H
#define CAPTURE_ARENAS_H

#include "capture/capture_reader.h"

/*
 * Where small objects of Python were sampled (domain python/object), takes them out of the arenas that they lie in: afterwards domain
 * python/arena is the rest of these, as one site, and the two domains add up to what the arenas take. Where chance makes the samples
 * stand for more than there is, each stands for less. Does nothing where they were not sampled.
 *
 * A forked child's objects also lie in what was free in the arenas that it inherited: its two domains may add up to more than its own
 * arenas take, by as much as that was.
 */
void capture_arenas_split(struct capture *capture);

/* For so many bytes each sample stands; 0 = small objects were not sampled. */
uint64_t capture_arenas_sample_bytes(const struct capture *capture);

#endif
