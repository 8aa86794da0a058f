/*
 * heartbeat.h - how close to the limit was it, the last time we looked?
 *
 * A beat is what live bytes, resident memory, limits and free memory were at one moment. beat_due.h says when one is due. Other work
 * that is done now and then is done at a beat: the census of live objects, the sample of resident memory, giving pages back.
 *
 * Safe from   any hook. Five small files are read (about 30 us).
 */
#ifndef HEARTBEAT_H
#define HEARTBEAT_H

#include <stdint.h>

/* One beat now. live_bytes: of heap, mmap, shared, python/arena and library. Keeps errno. */
void heartbeat_take(uint64_t live_bytes);

#endif
