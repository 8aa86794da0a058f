/*
 * heartbeat.h - how close to the limit was it, the last time we looked?
 *
 * A beat is taken when live host bytes have grown by a step (1/256 of the limit, at least 1 MiB) since the last one, and
 * about once a second while the program allocates. The same step of resident memory makes one: what was asked for long ago is touched
 * late. That is asked for once in some milliseconds, of programs that allocate meanwhile. And where a quarter of what was live at the
 * last beat was freed, at least 16 MiB: no allocation may follow. No thread, no timer, no signal.
 *
 * Context     after each allocation, and after a release that changed a total; tracker decides nothing.
 * Safe from   any hook. Between beats it is one compare; a beat is five small files read (about 30 us).
 */
#ifndef HEARTBEAT_H
#define HEARTBEAT_H

#include <stdbool.h>
#include <stdint.h>

/* Live bytes of heap, mmap, shared, python/arena and library after an allocation that changed a total. */
void heartbeat_after(uint64_t live_bytes);

/*
 * After releases that changed a total: has so much been freed that a beat is wanted? The second takes it, and is for when the memory
 * was really given back: else a look would see it.
 */
bool heartbeat_has_fallen(uint64_t live_bytes);
void heartbeat_after_release(uint64_t live_bytes);

/* After one that did not: is a beat due by the clock? Looks at it now and then. Then heartbeat_take() is to follow. */
bool heartbeat_is_due(void);

/* The same at once, for who counts events: once in a thousand or so. Takes the beat. */
void heartbeat_sample(uint64_t live_bytes);

/* One beat now: at the start and at the end. */
void heartbeat_take(uint64_t live_bytes);

/* None was taken at the start: the first is due at so many live bytes, at 16 MiB that are resident, and when a second is over. */
void heartbeat_wait_for(uint64_t live_bytes);

/*
 * lifecycle.c: what is recorded here is worth a file from now on, if it has none yet. Before a first heartbeat, a refused request, a
 * thread, and before rights are given up. Weak: unit tests have no life cycle.
 */
void lifecycle_needs_file(void) __attribute__((weak));

#endif
