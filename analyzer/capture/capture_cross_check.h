/*
 * capture_cross_check.h - do the counters of a capture without a seal agree with each other?
 *
 * Context     only when nobody writes the file any more.
 * When failing  it says so in the capture's `damages`; the counters are taken as they are.
 */
#ifndef CAPTURE_CROSS_CHECK_H
#define CAPTURE_CROSS_CHECK_H

#include "capture/capture_reader.h"

/*
 * What is held back by a thread, or belongs to the request that a thread was making when the program was stopped, is no
 * disagreement: so much for each thread. A larger request is one for some tens of instructions (shim/record/tracker_parts.h): not met in 240
 * kills at random instants of an allocator test, so it is told as what may be damage.
 */
#define CAPTURE_CROSS_CHECK_BYTES 65536

void capture_cross_check(struct capture *capture);

/* In salvage: leaves out the records of sites that contradict themselves, or hold what their domain cannot have held. */
void capture_drop_bad(struct capture *capture);

/* What the domain can have been given in all, and so can hold, at most. */
uint64_t capture_most_bytes(const struct capture *capture, unsigned domain);

#endif
