/*
 * resident.h - what is the resident set made of?
 *
 * Called by   heartbeat.c, teardown.c (when the interpreter begins to end), lifecycle.c (at the end).
 * Safe from   inside a hook, guard held; no allocation, no waiting for a thread. It reads /proc/self/smaps, so no more than a 256th of
 *             the time goes into it: after a look of 10 ms (2,000 mappings) the next one comes 2.5 s later.
 * When failing  the capture keeps what the last look said, or says nothing.
 */
#ifndef RESIDENT_H
#define RESIDENT_H

#include <stdbool.h>

/* Looks when it is time; is_last: it is time. */
void resident_take(bool is_last);

void resident_forked(void); // forked child: one thread

#endif
