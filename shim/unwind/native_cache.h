/*
 * native_cache.h - which part of this walk is the same as in a walk before?
 *
 * A thread remembers its last walk. The next one goes from the leaf by rule until it stands where the remembered one
 * stood; then the words of the stack that led on from there are re-read, and when none of them changed, neither did the
 * rest of the walk. No rule is looked up for that part, no pointer followed, nothing copied: frames are given out where
 * they are remembered.
 *
 * Context     inside the reentry guard.
 * Safe from   any hook, any signal handler, on the thread whose cache it is. Reads only what lies in that thread's own stack, or in
 *             the page in which it stands.
 * When failing  what is not remembered is walked by rule; what a cache cannot hold (walks on other stacks that leave the page,
 *             signals, libunwind's frames, deeper than NATIVE_CACHE_FRAMES_DEEP) is walked without it.
 * Not chosen  a running hash or the site for each frame: `kept` of struct native_stack lets the caller keep along what
 *             it wants to know of them, in the order from the root.
 */
#ifndef NATIVE_CACHE_H
#define NATIVE_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/thread_stack.h"
#include "unwind/native_frames.h"
#include "unwind/native_walk.h"

/* For the walk from that hook. */
static inline struct native_cache *
native_cache_choose(struct native_caches *caches, const void *hook_frame)
{
	return __builtin_expect(thread_stack_contains((uintptr_t)hook_frame + 16), 1) ? &caches->own : &caches->alternate;
}

/* Both are empty: another thread gets them. */
static inline void
native_cache_clear(struct native_caches *caches)
{
	caches->own.stack_end = caches->alternate.stack_end = 0;
}

/*
 * Walks from *place on.
 *
 * returns  true: `stack` has the walk, which is remembered now. False: the walk is at *place, behind the step_count frames in
 *          steps[], and someone else has to go on; the cache is as it was.
 */
bool native_cache_walk(struct native_cache *cache, struct native_place *place, uint64_t stop_sp,
                       struct native_stack *stack);

/*
 * The same walk, of which nothing is given out: a digest of the frames that would be, and of whose stack it is, all of which say the same
 * when it is the same, but for one pair of stacks in 2^64. 0: the walk is not remembered, or has no end.
 */
uint64_t native_cache_digest(struct native_cache *cache, const void *hook_frame);

/*
 * At the end of the hook that made the walk, if that is remembered (else the frames are those of an earlier one, N5), when the stack still is as the walk has found it (N5): what the hook takes is not counted.
 * Without that the time stays an older one, and more is compared than need be.
 */
void native_cache_note_time(struct native_cache *cache);

/* Digest of all that a recursion left out of the remembered walk; 0 = it left nothing out. */
uint64_t native_cache_path(const struct native_cache *cache);

void native_cache_release(struct native_caches *caches); // gives mappings back, if there are any: what had one is empty

/*
 * The words of the stack on which the remembered walk depends, besides the return address of its first frame.
 *
 * offsets    out: from the sp of the first frame, in words
 * needs_rbp  out: does it depend on the rbp of the first frame too?
 * returns    false: there are more than `room`, or one is too far away
 */
bool native_cache_offsets(const struct native_cache *cache, uint16_t *offsets, uint32_t room, uint32_t *count,
                          bool *needs_rbp);

#endif
