/*
 * resident.h - what is the resident set made of?
 *
 * Safe from   inside a hook, guard held; no allocation, no waiting for a thread.
 * How often   It reads /proc/self/smaps, for which the kernel looks at each page. A sample of 4 GiB of small pages takes 20 ms. So the
 *             part of the time that samples may take is limited. The report says how old the last one is.
 *               usually           a 1024th of the time: the next sample comes 20 s after one of 20 ms
 *               much has changed  a 32nd of the time: the process, or its group, has grown by a quarter since the last sample, or a
 *                                 quarter of what was live was freed and not given back. If it was half, the time that half a quiet
 *                                 second has saved (16 ms) may be used up at once: such a phase is short, and no event may follow it.
 *               limit is near     a 25th of the time: in the last eighth before the limit, each time that the process has grown by a
 *                                 64th of the limit. The time that two seconds have saved may be used up at once.
 * When failing  the capture keeps the last sample, or has none.
 */
#ifndef RESIDENT_H
#define RESIDENT_H

#include <stdbool.h>
#include <stdint.h>

#include "periodic/rate_limit.h"

/* Looks when it is time, and nothing is torn down. now: NULL = always, but see rate_limit.h of forked children. live_bytes: as of a heartbeat; 0 = not known. */
struct memory_limits_now;
void resident_take(const struct memory_limits_now *now, uint64_t live_bytes);

enum rate_limit_reason resident_reason(const struct memory_limits_now *now, uint64_t live_bytes);

bool resident_saw_cuda_driver(void); // libcuda.so.* was mapped at a look; after the last one
void resident_forked(void);          // forked child: one thread
bool resident_has_lived(void);       // a forked child: long enough for a look. See rate_limit.h

#endif
