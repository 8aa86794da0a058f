/*
 * resident.h - what is the resident set made of?
 *
 * Safe from   inside a hook, guard held; no allocation, no waiting for a thread.
 * How often   A look asks for all pages: 0.7 ms per GiB of small pages, 4 to 14 where the process has read much that it never wrote to
 *             (page_look.h). An event does 2 ms of it, and a later one goes on: so a look is of a span of time, and what is stored
 *             is the time of its beginning. At the end of the process it is made at once. The part of the time that looks may take is
 *             limited. The report says how old the last one is.
 *               usually           a 1024th of the time: the next look begins 20 s after one of 20 ms
 *               much has changed  a 32nd of the time: the process, or its group, has grown by a quarter since the last look, or a
 *                                 quarter of what was live was freed and not given back. If it was half, the time that half a quiet
 *                                 second has saved (16 ms) may be used up at once: such a phase is short, and no event may follow it.
 *               limit is near     a 25th of the time: in the last eighth before the limit, each time that the process has grown by a
 *                                 64th of the limit. The time that two seconds have saved may be used up at once.
 *             The pieces of one look are taken at heartbeats, and no more than an 8th of its time, half of it where the limit is near.
 * When failing  the capture keeps the last sample, or has none.
 */
#ifndef RESIDENT_H
#define RESIDENT_H

#include <stdbool.h>
#include <stdint.h>

#include "periodic/page_look.h"
#include "periodic/rate_limit.h"

/* For tests: so much is done at once, PAGE_LOOK_PIECE_WORK; what is a large process; how far the look is. */
#define RESIDENT_CHEAP_BYTES (UINT64_C(256) << 20)
extern uint64_t resident_piece_work __attribute__((visibility("hidden")));
extern uint64_t resident_cheap_bytes __attribute__((visibility("hidden")));
extern struct page_look resident_pages __attribute__((visibility("hidden")));

/* Looks, or goes on, when it is time, and nothing is torn down. now: NULL = at once, and all; but see rate_limit.h of forked children. live_bytes: as of a heartbeat; 0 = not known. */
struct memory_limits_now;
void resident_take(const struct memory_limits_now *now, uint64_t live_bytes);

enum rate_limit_reason resident_reason(const struct memory_limits_now *now, uint64_t live_bytes);

bool resident_saw_cuda_driver(void); // libcuda.so.* was mapped at a look; after the last one
void resident_forked(void);          // forked child: one thread

#endif
