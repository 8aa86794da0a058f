/*
 * beat_due.h - is a heartbeat due?
 *
 * A beat (heartbeat.h) is due
 *   - when live host bytes have grown by a step since the last one: 1/256 of the limit, at least 1 MiB; less where the guard is near
 *   - when resident memory has grown by the same step, for memory may be touched long after it was asked for: this is asked for once in
 *     some milliseconds, while the program allocates
 *   - when the page faults of a forked child have grown by a quarter, for it may have copied what it reads: asked for as often
 *   - when a quarter of what was live at the last beat was freed, and 16 MiB: perhaps no allocation follows
 *   - about once a second, while the program allocates
 * No thread, no timer, no signal.
 *
 * live_bytes: of heap, mmap, shared, python/arena and library. Each question that is answered by true lets one thread through, which
 * is to take the beat.
 *
 * Safe from   any hook. Between beats it is one compare; errno is kept.
 */
#ifndef BEAT_DUE_H
#define BEAT_DUE_H

#include <stdbool.h>
#include <stdint.h>

/* After an allocation that changed a total. */
bool beat_due_after(uint64_t live_bytes);

/*
 * After releases that changed a total: was so much freed that a beat is wanted? beat_due_after_release() returns true to one thread. It
 * is to be called when the memory was really given back: earlier a sample would still see it.
 */
bool beat_due_has_fallen(uint64_t live_bytes);
bool beat_due_after_release(uint64_t live_bytes);

/* After an event that changed no total: is a beat due by the clock? Looks at it now and then. */
bool beat_due_by_clock(void);

/* The same at once, for callers that count events themselves: once in a thousand or so. */
bool beat_due_now(void);

/*
 * A beat was taken: the next one counts from here.
 *
 * limit_bytes  UINT64_MAX is none
 * room_bytes   to the guard; UINT64_MAX: nothing is to be passed. The step is a quarter of it at most, and 256 KiB at least.
 */
void beat_due_restart(uint64_t live_bytes, uint64_t resident_bytes, uint64_t limit_bytes, uint64_t room_bytes,
                      uint64_t now_ns);

/* What looks at memory in pieces goes on then: the next one is due no later. */
void beat_due_by(uint64_t at_ns);

/* No beat was taken at the start: the first one is due at so many live bytes, at 16 MiB that are resident, or after a second. */
void beat_due_wait_for(uint64_t live_bytes);

#endif
