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

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "python/python_chain.h"

#define PYTHON_FRAMES_MAX 160      // shown, innermost ones
#define PYTHON_FRAMES_VISITED 512u // a power of two

struct python_frame {
	uint32_t code;        // index of its struct kmem_code in RECORDS (units of 8 bytes)
	uint32_t offset;      // of the first instruction of the line that is executed, in bytes
	uint16_t code_flags;  // enum kmem_code_flags
	uint64_t anchor_addr; // an address inside the native frame of the evaluator that runs it; 0 = unknown
};

/*
 * A frame that a walk met, and what it showed. Equal words show the same as long as no code object has died: what is read besides is in the
 * code object, and never changes while that lives.
 */
struct python_visited {
	uint64_t frame_addr; // 0 = none; written last
	uint64_t code_word;
	uint64_t instruction_word;
	uint64_t deaths; // python_code_deaths(), before the walk
	uint32_t owner_word;
	uint32_t code; // these as in struct python_frame
	uint32_t offset;
	uint16_t code_flags;
};

/* One thread's at a time; zeroed is empty. What other walks than the last one left is as good. */
struct python_stack {
	uint32_t count;
	bool is_cut;     // outer frames are left out
	bool is_scanned; // the anchor of the innermost one was looked for on the C stack (3.8, 3.9)
	struct python_frame frames[PYTHON_FRAMES_MAX]; // innermost first
	struct python_visited visited[PYTHON_FRAMES_VISITED];
};
static_assert(PYTHON_FRAMES_MAX <= PYTHON_CHAIN_DIGESTED, "a digest covers what is shown");

static inline void
python_stack_clear(struct python_stack *stack)
{
	stack->count = 0;
	stack->is_cut = stack->is_scanned = false;
}

/*
 * Looks for an interpreter and checks its layout. Called once when the shim starts (symbols of a linked or
 * static interpreter are visible then), outside any hook's critical part. Nothing happens without one.
 */
void python_frames_start(void);

/* False until an interpreter was found and understood: one load. */
bool python_frames_available(void);

/* The calling thread's Python frames; count 0 on threads without Python. */
void python_frames_walk(struct python_stack *stack);

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

/* In the function that runs Python frames? Compilers may have split off a part, in which it is not. */
bool python_frames_is_evaluator(uint64_t pc);

/* Does the calling thread hold the interpreter's lock? Without a lock: is it attached? */
bool python_frames_is_attached(void);

/* In a forked child: texts must be stored again in the child's own capture. */
void python_frames_forked(void);

#endif
