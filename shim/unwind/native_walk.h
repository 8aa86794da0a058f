/*
 * native_walk.h - how does a thread remember a walk of its native stack?
 *
 * The type alone: native_cache.c compares and remembers walks, native_cache_room.c gives them room.
 */
#ifndef NATIVE_WALK_H
#define NATIVE_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/call_clock.h"

#define NATIVE_CACHE_FRAMES 2048u           // and as many words: in the thread's own memory
#define NATIVE_CACHE_FRAMES_DEEP (1u << 20) // the same of a thread whose stack was deeper, in a mapping
#define NATIVE_CACHE_SURE 256u              // so many frames are compared whatever the clock says

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

/* Where the function of a return address begins; 0 = not known. */
struct native_function {
	uint64_t pc;
	uint64_t begin;
};
#define NATIVE_CACHE_FUNCTIONS 128u // a power of two

/* What is known of a frame and those outside of it. */
struct native_run {
	uint32_t length;         // frames from here on, outwards, that are in the same function
	uint32_t shown;          // frames from here on that are given out, without what recursion leaves out
	uint64_t callers_digest; // digest of the return addresses from here on
	uint64_t given;          // the same of the frames that are given out
	uint64_t last;           // that of the outermost frame of this run
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
 * Invariants, tested by number in tests/unit/shim/unwind/test_native_cache.c and native_walker.h. "The walk" is that of `version`, to `stop_sp`, on the
 * stack that ends at `stack_end`.
 *   N1  A walk that is in frame k, that is at pc(k) and sp(k), with rbp(k) if needs_bp(k) and any other one if not, gets to
 *       frame k + 1 in the same sense, if sp(k + 1) - 8 and the words of k hold what is remembered of them.
 *   N2  A walk that is in the last frame ends there if the words of that frame hold what is remembered of them, with
 *       `is_complete` as remembered. (That frame is where stop_sp lies, or code that nothing calls, or code without
 *       tables; or it has pc 0 and is none. is_last_hidden: it is not given out.)
 *   N3  sp(k) < sp(k + 1) < stack_end - 7, and the words of k lie between sp(k) and stack_end. All are aligned.
 *   N4  Frames are changed only when a walk ended; when version, stop_sp or stack_end are other ones, all frames go.
 *   N5  Of the thread's own stack: at `time`, or later and before the thread went on from the walk, the frames were those of this thread's stack.
 *   N6  runs[k] says what its comment says, of the frames k to the last one. A frame that is not given out is in no other one's run.
 *
 * Why the rest of a walk is the remembered one: let it be in frame k, and all words of k and of the frames after it, and
 * their return addresses, hold what is remembered. By N1 it gets to k + 1, in the same sense, and so on to the last one,
 * where by N2 it ends. Nothing is said about when they were remembered, or whether k returned in between. They may be
 * read: k is alive, so the stack is readable from sp(k) to its end, and by N3 they lie there.
 *
 * Of another stack (signal stacks, coroutines) it is not known how far it reaches, nor who takes it away and when. But the hook runs
 * on it: the page where its return address lies is there until it returns. For a cache of such a walk the stack ends one word behind
 * that page, so that a frame may begin at the page's end; no word of such a frame is read. Stacks of threads end at multiples of 16:
 * the two never have the same end.
 *
 * Why the words of k + 1 to the last one need to be compared once a walk only: nothing else runs on this stack meanwhile
 * but signal handlers, which return.
 *
 * Why those of a deep stack need not all be compared: a call takes a turn of the processor's clock at least, so in the time since N5 no
 * more than some frames were entered (call_clock.h). Only the innermost ones of the stack can be among them. Let more frames than that, from
 * the leaf on, be walked or compared: the last of these was there at N5, at the same place, with the same return address, and has not
 * returned since; so it is one of the remembered ones, and by N5 what lay outside of it then lies there now. Without
 * a clock everything is compared.
 */
struct native_cache {
	uint64_t version; // of unwind_rules.h, all bits
	uint64_t stop_sp;
	uint64_t stack_end;
	uint32_t frame_count;
	uint32_t first; // frame of the latest walk: room - frame_count, if it is remembered
	uint32_t step_count;
	bool is_complete;
	bool is_last_hidden;
	bool is_alternate;     // `stack_end` is that of a page in another stack
	bool has_no_mapping;   // tried once
	struct call_time time; // N5
	// by the address; void when the frames go for another version (N4)
	struct native_function functions[NATIVE_CACHE_FUNCTIONS];

	/* The arrays, of `room` places, the sp one more that no sp reaches. */
	uint32_t room;
	uint32_t *sp_offsets;  // from 4 GiB below stack_end
	uint32_t *word_firsts; // place of its first word; NATIVE_CACHE_NEEDS_BP
	uint64_t *pcs;
	uint64_t *rbps; // where needs_bp
	struct native_run *runs;
	uint32_t *word_offsets;
	uint64_t *words;
	struct native_step *steps; // of the walk that is under way, innermost first

	/* Where they are as long as stacks are not deep. */
	uint32_t own_sp_offsets[NATIVE_CACHE_FRAMES + 1];
	uint32_t own_word_firsts[NATIVE_CACHE_FRAMES];
	uint64_t own_pcs[NATIVE_CACHE_FRAMES];
	uint64_t own_rbps[NATIVE_CACHE_FRAMES];
	struct native_run own_runs[NATIVE_CACHE_FRAMES];
	uint32_t own_word_offsets[NATIVE_CACHE_FRAMES];
	uint64_t own_words[NATIVE_CACHE_FRAMES];
	struct native_step own_steps[NATIVE_CACHE_FRAMES];
};

/* Two walks: a thread that goes to coroutines and back remembers both. Each cache is as above. */
struct native_caches {
	struct native_cache own;
	struct native_cache alternate;
};

#endif
