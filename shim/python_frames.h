/*
 * python_frames.h - which Python lines is this thread executing?
 *
 * Reads the interpreter's own frame chain from memory: no Python call that allocates, takes references or
 * runs code; with or without the GIL held. Offsets come from one table per interpreter family
 * (python_layout.h), chosen by a self check; without a match there are no Python frames and one note says why.
 *
 * Called by   call_stack.c, inside the reentry guard, on the thread whose frames they are.
 * Safe from   any hook; no allocation, no lock, no loader call.
 * When failing  the frames read so far; KMEM_LOST_PYTHON_FRAMES is raised.
 */
#ifndef PYTHON_FRAMES_H
#define PYTHON_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#define PYTHON_FRAMES_MAX 160         // kept, innermost ones
#define PYTHON_FRAMES_VISITS_MAX 4096

struct python_frame {
	uint32_t code;          // index of its struct kmem_code in RECORDS (units of 8 bytes)
	uint32_t offset;        // of the first instruction of the line that is executed, in bytes
	uint16_t code_flags;    // enum kmem_code_flags
	uint64_t anchor_addr;   // an address inside the native frame of the evaluator that runs it; 0 = unknown
};

struct python_stack {
	uint32_t count;         // innermost first
	uint32_t omitted;       // outer frames left out
	struct python_frame frames[PYTHON_FRAMES_MAX];
};

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
 * A digest of the calling thread's frames: the same digest, the same frames (but for 2^-64), as long as no code object died. 0
 * without frames. False: the chain cannot be read, or is too long for that.
 */
bool python_frames_digest(uint64_t *digest);

/* Is this address in the interpreter's own text (libpython or a static python)? */
bool python_frames_is_interpreter(uint64_t pc);

/* Has the interpreter begun to finalise? One load; false without an interpreter. */
bool python_frames_is_finalizing(void);

/* In a forked child: texts must be stored again in the child's own capture. */
void python_frames_forked(void);

#endif
