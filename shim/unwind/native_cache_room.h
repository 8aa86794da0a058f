/*
 * native_cache_room.h - where do the frames of native_cache.h lie, and which of them are given out?
 *
 * Context     inside the reentry guard, on the thread whose cache it is.
 * Safe from   any hook, any signal handler: a mapping is made once in a thread's life, no other call.
 * When failing  false: the cache keeps the room that it has.
 */
#ifndef NATIVE_CACHE_ROOM_H
#define NATIVE_CACHE_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/native_frames.h"
#include "unwind/native_walk.h"

#define NATIVE_CACHE_NEEDS_BP UINT32_C(0x80000000)

/* For a cache that never had room: the thread's own memory. */
void native_cache_first_room(struct native_cache *cache);

/* Gives the mapping back, if there is one: then the cache is empty. */
void native_cache_release_room(struct native_cache *cache);

/*
 * The walk needs more room: the frames, and the steps so far, move to a mapping, each as far from the end as it is. False: there is none.
 */
bool native_cache_more_room(struct native_cache *cache, uint64_t step_count);

/* Gives out a walk that is too long to be shown as a whole, or in which functions called themselves: frames [first, end). */
void native_cache_give_parts(const struct native_cache *cache, uint64_t first, uint64_t end,
                             struct native_stack *stack);

#endif
