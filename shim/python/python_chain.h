/*
 * python_chain.h - is the chain of Python frames the one of the last event?
 *
 * The words of the chain that the last digest read are kept, with the digest of each frame and those outside it. The next
 * digest follows the chain from the innermost frame until it meets a kept frame; from there on it only compares. What is compared is
 * the chain's own memory, in the chain's own order: a kept address is read only after a living frame was seen to lead to it. So the
 * comparison is as good as the chase, but the processor need not wait for one load before it begins the next.
 *
 * The digest is of the innermost PYTHON_CHAIN_DIGESTED frames, and of whether there are more: a polynomial over their words, so that
 * what lies outside them can be taken off again. It does not depend on what was kept before. Frames outside them are not compared.
 *
 * Not chosen  to compare less. A frame that is not the innermost one changes only after those inside it have ended, but the next
 *             ones may lie at the same addresses and say the same.
 *
 * Context     on the thread whose frames they are.
 * Safe from   any hook; no allocation, no lock.
 */
#ifndef PYTHON_CHAIN_H
#define PYTHON_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "python/python_layout.h"

#define PYTHON_CHAIN_DIGESTED 192 // each event compares them: about a nanosecond each. Not fewer than a walk visits
#define PYTHON_CHAIN_FRAMES 384
#define PYTHON_CHAIN_CUT 288 // so many innermost ones of a longer chain are kept: as many more may be called as may end
#define PYTHON_CHAIN_LOOKS 4 // kept frames that are compared with a frame that has moved

struct python_chain_frame {
	uint64_t frame_addr;
	uint64_t instruction; // its address; where the frame has none: its offset, and the code's address multiplied
	uint64_t sum;         // of this frame and all outer ones that were kept
};

/*
 * Zeroed is empty. What another thread left is as good as nothing, and does no harm.
 *
 * Kept frames lie outermost first, behind so many zeroed ones as are looked at: each leads to the one before it. Where the chain is cut
 * off, the last zeroed one has the address to which the first kept one leads; nothing is read there.
 */
struct python_chain {
	// python_frames.c: a thread state that proved to be this thread's own, and 1: there may be none, which is 0
	uint64_t state_addr;
	uint64_t last_bytes;  // from the last zeroed one to the last kept one
	uint64_t least_bytes; // where it is cut off: with fewer kept ones it is followed anew; 0 = it is whole
	struct python_chain_frame kept[PYTHON_CHAIN_LOOKS + PYTHON_CHAIN_FRAMES];
	struct python_chain_frame fresh[PYTHON_CHAIN_FRAMES]; // innermost first, while it is followed
};

/* Nothing is kept: what was left half written when a hook was left is not believed. */
void python_chain_forget(struct python_chain *chain);

/* A digest of the chain that begins at `frame`. False: there is none (0), or it cannot be read. */
bool python_chain_digest(struct python_chain *chain, const struct python_layout *layout, uint64_t frame,
                         uint64_t *digest);

#endif
