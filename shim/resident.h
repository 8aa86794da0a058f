/*
 * resident.h - what is the resident set made of?
 *
 * Called by   heartbeat.c, teardown.c (when the interpreter begins to end), lifecycle.c (at the end).
 * Safe from   inside a hook, guard held; no allocation, no waiting for a thread. It reads /proc/self/smaps, for which the kernel looks at
 *             each page: so no more than a 1024th of the time goes into it. After a look of 20 ms (4 GiB of small pages) the next one
 *             comes 20 s later; how old the last one is, the report says. Sooner, after 2 s, when the process is larger by a quarter
 *             than any look has found it: looks like that take a hundredth of the time at most, and there are 27 of them in all from
 *             10 MiB to 4 GiB.
 * When failing  the capture keeps what the last look said, or says nothing.
 */
#ifndef RESIDENT_H
#define RESIDENT_H

#include <stdbool.h>
#include <stdint.h>

/* Looks when it is time, and nothing is torn down; is_last: it is time. resident_bytes: of the process now; 0 = not known. */
void resident_take(bool is_last, uint64_t resident_bytes);

bool resident_has_grown(uint64_t resident_bytes); // by so much that the last look says little

bool resident_saw_cuda_driver(void); // libcuda.so.* was mapped at a look; after the last one
void resident_forked(void); // forked child: one thread

#endif
