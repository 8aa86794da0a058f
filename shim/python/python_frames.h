/*
 * python_frames.h - which Python lines is this thread executing?
 *
 * Reads the interpreter's own frame chain from memory: no Python call that allocates, takes references or
 * runs code; with or without the GIL held. Offsets come from one table per interpreter family
 * (python_layout.h), chosen by a self check; without a match there are no Python frames and one note says why.
 *
 * Context     inside the reentry guard, on the thread whose frames they are.
 * Safe from   any hook; no allocation, no lock, no loader call.
 * When failing  the frames read so far; KMEM_LOST_PYTHON_FRAMES is raised.
 */
#ifndef PYTHON_FRAMES_H
#define PYTHON_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "python/python_cache.h"
#include "python/python_chain.h"

#define PYTHON_FRAMES_MAX 160 // shown, innermost ones

/* A view into the cache of the walk, good until its next walk. */
struct python_stack {
	const struct python_frame *frames; // outermost first
	uint32_t count;
	uint32_t unchanged; // frames[0, unchanged) say what they said at the cache's walk before this one
	bool is_cut;        // outer frames are left out
};
static_assert(PYTHON_FRAMES_MAX <= PYTHON_CACHE_FRAMES, "what is shown has room");
static_assert(PYTHON_FRAMES_MAX <= PYTHON_CHAIN_LEAST, "a digest covers what is shown");

/* The i-th frame, 0 is the innermost one. */
static inline const struct python_frame *
python_stack_at(const struct python_stack *stack, uint32_t i)
{
	return &stack->frames[stack->count - 1 - i];
}

/*
 * Looks for an interpreter and checks its layout. Called once when the shim starts (symbols of a linked or
 * static interpreter are visible then), outside any hook's critical part. Nothing happens without one.
 */
void python_frames_start(void);

/* False until an interpreter was found and understood: one load. */
bool python_frames_available(void);

/*
 * The calling thread's Python frames; count 0 on threads without Python.
 *
 * cache  of this thread: zeroed before its first walk; nobody else uses it meanwhile. What did not change since its last walk
 *       is not visited again, only compared: python_cache.h
 */
void python_frames_walk(struct python_cache *cache, struct python_stack *stack);

/*
 * Where python_frames_available(): a digest of the calling thread's frames: the same digest, the same frames (but for 2^-64), as
 * long as no code object died. 0 on a thread without Python. False: the chain cannot be read, or is too long for that.
 */
bool python_frames_digest(struct python_chain *chain, uint64_t *digest);

/* The current thread state, where python_frames_available(). */
uint64_t python_frames_state(void);

/*
 * The same where the interpreter's allocator asks: the thread holds the lock, so the current state is its own when it once was. (Up to
 * 3.11, where it is the state of whoever holds the lock, that is wrong for a thread that breaks this rule, whose own state was deleted,
 * and its memory became the state of the thread that does hold the lock.) Another digest than the one above, of the frames alone. False also
 * when there is no frame: then the above is to be asked.
 */
bool python_frames_digest_attached(struct python_chain *chain, uint64_t state, uint64_t *digest);

/* Has the calling thread asked for that since it last asked this? */
bool python_frames_were_attached(struct python_chain *chain);

/* Does the calling thread's state lead to a frame, of whatever kind? */
bool python_frames_are_any(void);

/* Is this address in the interpreter's own text (libpython or a static python)? */
bool python_frames_is_interpreter(uint64_t pc);

/* Does the calling thread hold the interpreter's lock? Without a lock: is it attached? */
bool python_frames_is_attached(void);

/* In a forked child: texts must be stored again in the child's own capture. */
void python_frames_forked(void);

#endif
