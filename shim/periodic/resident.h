/*
 * resident.h - what is the resident set made of?
 *
 * Safe from   inside a hook, guard held; no allocation, no waiting for a thread. It reads /proc/self/smaps, for which the kernel looks at
 *             each page: so no more than a 1024th of the time goes into it. After a look of 20 ms (4 GiB of small pages) the next one
 *             comes 20 s later; how old the last one is, the report says. Sooner, after 0.6 s, when the process, or what is charged
 *             to its group, has grown by a quarter since the last look, or a quarter of what was live was freed and not given back: at
 *             most a 32nd of the time. Where that was half, what half a quiet second has saved may be used up at once (16 ms): such a
 *             phase is short, and no event may follow it. So may what two seconds have saved in the last eighth before the limit,
 *             whenever the process has grown by a 64th of the limit since the last look: at most a 25th of the time, for the eight
 *             steps that it takes to the end.
 * When failing  the capture keeps what the last look said, or says nothing.
 */
#ifndef RESIDENT_H
#define RESIDENT_H

#include <stdbool.h>
#include <stdint.h>

#include "periodic/rate_limit.h"

/* Looks when it is time, and nothing is torn down. NULL: it is time, whatever is known. live_bytes: as of a heartbeat; 0 = not known. */
struct memory_limits_now;
void resident_take(const struct memory_limits_now *now, uint64_t live_bytes);

/* Why is a look wanted? */
enum rate_limit_reason resident_reason(const struct memory_limits_now *now, uint64_t live_bytes);

bool resident_saw_cuda_driver(void); // libcuda.so.* was mapped at a look; after the last one
void resident_forked(void);          // forked child: one thread

#endif
