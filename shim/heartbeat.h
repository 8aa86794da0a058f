/*
 * heartbeat.h - how close to the limit was it, the last time we looked?
 *
 * A beat is taken when live host bytes have grown by a step (1/256 of the limit, at least 1 MiB) since the last one, and
 * about once a second while the program allocates. No thread, no timer, no signal.
 *
 * Called by   tracker.c after each allocation; tracker decides nothing.
 * Safe from   any hook. Between beats it is one compare; a beat is five small files read (about 30 us).
 */
#ifndef HEARTBEAT_H
#define HEARTBEAT_H

#include <stdbool.h>
#include <stdint.h>

/* Live bytes of heap, mmap and shared after an allocation that changed a total. */
void heartbeat_after(uint64_t live_bytes);

/* After one that did not: is a beat due by the clock? Looks at it now and then. Then heartbeat_take() is to follow. */
bool heartbeat_is_due(void);

/* The same at once, for who counts events: once in a thousand or so. Takes the beat. */
void heartbeat_look(uint64_t live_bytes);

/* One beat now: at the start and at the end. */
void heartbeat_take(uint64_t live_bytes);

/* Monotonic nanoseconds; the clock of every *_monotonic_ns in the capture. */
uint64_t heartbeat_now_ns(void);

#endif
