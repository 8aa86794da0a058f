/*
 * native_memo.h - which part of this walk is the same as in a walk before?
 *
 * A thread remembers its last walk. The next one goes from the leaf by rule until it stands where the remembered one
 * stood; then the words of the stack that led on from there are re-read, and when none of them changed, neither did the
 * rest of the walk. No rule is looked up for that part, no pointer followed, nothing copied: frames are given out where
 * they are remembered.
 *
 * Called by   native_stack.c, inside the reentry guard.
 * Safe from   any hook, any signal handler, on the thread whose memo it is. Reads only what lies in that thread's own stack.
 * When failing  what is not remembered is walked by rule; what a memo cannot hold (other stacks, signals, libunwind's
 *             frames, deeper than NATIVE_MEMO_FRAMES) is walked without it.
 * Not chosen  a running hash or the site for each frame: `kept` of struct native_stack lets the caller keep along what
 *             it wants to know of them, in the order from the root.
 */
#ifndef NATIVE_MEMO_H
#define NATIVE_MEMO_H

#include <stdbool.h>
#include <stdint.h>

#include "native_stack.h"

#define NATIVE_MEMO_FRAMES 2048u
#define NATIVE_MEMO_WORDS  2048u

/* Where a walk is: in the frame of `pc`, whose callee was called at `sp`. */
struct native_place {
	uint64_t pc;
	uint64_t sp;
	uint64_t rbp;
};

/* A frame that was walked by rule. */
struct native_step {
	struct native_place place;
	uint64_t rule; // packed, see unwind_rules.h; 0 = no frame: the caller of the outermost one
};

/*
 * All zero = empty. For one thread, and zeroed before another one gets it; never used twice at a time on it.
 *
 * Frames lie in the order of a walk, innermost first, in the last `frame_count` places of the arrays; frame k + 1 is the
 * caller of k, and so its return address lies at sp(k + 1) - 8. The words of k are the others that a walk reads to get from
 * k to k + 1: the slot of the CFA when the stack was realigned there, and the slot of the rbp that k saved, when
 * needs_bp(k + 1). They lie in the order of their frames, at the end of their arrays.
 *
 *     needs_bp(k)  the CFA of k is computed from rbp, or k does not save rbp and needs_bp(k + 1)
 *
 * Invariants, tested by number in tests/unit/test_native_memo.c. "The walk" is that of `generation`, to `stop_sp`, on the
 * stack that ends at `stack_end`.
 *   N1  A walk that is in frame k, that is at pc(k) and sp(k), with rbp(k) if needs_bp(k) and any other one if not, gets to
 *       frame k + 1 in the same sense, if sp(k + 1) - 8 and the words of k hold what is remembered of them.
 *   N2  A walk that is in the last frame ends there if the words of that frame hold what is remembered of them, with
 *       `is_complete` as remembered. (That frame is where stop_sp lies, or code that nothing calls, or code without
 *       tables; or it has pc 0 and is none. is_last_hidden: it is not given out.)
 *   N3  sp(k) < sp(k + 1) < stack_end - 7, and the words of k lie between sp(k) and stack_end. All are aligned.
 *   N4  Frames are changed only when a walk ended; when generation, stop_sp or stack_end are other ones, all frames go.
 *
 * Why the rest of a walk is the remembered one: let it be in frame k, and all words of k and of the frames after it, and
 * their return addresses, hold what is remembered. By N1 it gets to k + 1, in the same sense, and so on to the last one,
 * where by N2 it ends. Nothing is said about when they were remembered, or whether k returned in between. They may be
 * read: k is alive, so the stack is readable from sp(k) to its end, and by N3 they lie there.
 *
 * Why the words of k + 1 to the last one need to be compared once a walk only: nothing else runs on this stack meanwhile
 * but signal handlers, which return.
 */
struct native_memo {
	uint64_t generation; // of unwind_rules.h, all bits
	uint64_t stop_sp;
	uint64_t stack_end;
	uint32_t frame_count;
	uint32_t step_count;
	bool is_complete;
	bool is_last_hidden;

	uint32_t sp_offsets[NATIVE_MEMO_FRAMES + 1]; // from 4 GiB below stack_end; one more that no sp reaches
	uint16_t word_firsts[NATIVE_MEMO_FRAMES];    // place of its first word; NATIVE_MEMO_NEEDS_BP
	uint64_t pcs[NATIVE_MEMO_FRAMES];
	uint64_t rbps[NATIVE_MEMO_FRAMES];           // where needs_bp

	uint32_t word_offsets[NATIVE_MEMO_WORDS];
	uint64_t words[NATIVE_MEMO_WORDS];

	struct native_step steps[NATIVE_MEMO_FRAMES]; // of the walk that is under way, innermost first
};

/*
 * Walks from *place on.
 *
 * returns  true: `stack` has the walk, which is remembered now. False: the walk is at *place, behind the step_count frames in
 *          steps[], and someone else has to go on; the memo is as it was.
 */
bool native_memo_walk(struct native_memo *memo, struct native_place *place, uint64_t stop_sp,
                      struct native_stack *stack);

/*
 * The words of the stack on which the remembered walk depends, besides the return address of its first frame.
 *
 * offsets    out: from the sp of the first frame, in words
 * needs_rbp  out: does it depend on the rbp of the first frame too?
 * returns    false: there are more than `room`, or one is too far away
 */
bool native_memo_offsets(const struct native_memo *memo, uint16_t *offsets, uint32_t room, uint32_t *count,
                         bool *needs_rbp);

#endif
