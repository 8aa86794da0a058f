/*
 * thread_attribution.h - on whose behalf does a thread without Python frames allocate?
 *
 * Threads of pools (XLA, TensorFlow, OpenMP) and threads that a library starts allocate what a line of Python asked for, but have
 * no Python stack. So their stacks are given Python frames of another thread, and are marked as given:
 *
 *   while       the line of the user's code at which a Python thread allocated last. If there are several Python threads, it is the one
 *               that was the last to bring a stack which it had not remembered. One line, without its callers: with them there would be
 *               as many sites as worker stacks times Python stacks.
 *   started by  the Python frames of the thread that created this one, at that moment; or, if it had none, those that it was given.
 *
 * The same holds for a thread that runs Python, but none of the user's code, and was created by a line of the user's: a pool's thread that was
 * given a library's function, a reader of pandas. Its stack keeps its own frames. If the user's code created it itself, `started by` says
 * all. Where it is known which line gave it the item that it works on (work_items.h), that line alone is given, as `started by`.
 *
 * A stack gets both if both are known. `while` comes first and decides where the bytes are shown, for a pool outlives the line that
 * made it. It is the last line known and no proof: if Python sleeps while the program's native threads work, they get the line before
 * the sleep. A thread that has run Python code itself never gets its own last line.
 *
 * Context     inside the reentry guard.
 * Safe from   any hook; no allocation, no lock. Never reads another thread's interpreter state: only the number of a site.
 * When full   (too many lines, sites or threads that have not begun) no `while`, or no `started by`.
 */
#ifndef THREAD_ATTRIBUTION_H
#define THREAD_ATTRIBUTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "sites/stack_frames.h"

#define THREAD_ATTRIBUTION_LINES_MAX 256u             // in a process; a power of two
#define THREAD_ATTRIBUTION_KNOWN 64u                  // a power of two
#define THREAD_ATTRIBUTION_IMPORT (UINT64_C(1) << 62) // the line imports something: what is left behind is the import's

/* Of one thread, in its slot. */
struct thread_attribution {
	const _Atomic uint32_t *last_site; // of this thread, which others read
	// what the last thread_attribution_find() found: a frame word, marked with THREAD_ATTRIBUTION_IMPORT; 0 = none
	uint64_t while_line;
	uint64_t library_line; // what the last thread_attribution_find_library() found
	bool is_work;          // library_line is the line that gave the thread its work
	// number of the line that put in the work item which this thread took last (work_items.h); 0 = not known
	uint32_t work_line;
	uint32_t put_line; // number of the line at which this thread puts items in, when its frames have put_digest
	uint64_t put_digest;
	uint64_t started_hash; // of started[], 0 = none
	uint32_t started_count;
	uint32_t started_user;               // the first one of the user's
	bool has_kept_library;               // the event cache holds stacks of libraries that were given nothing
	uint64_t started[PYTHON_FRAMES_MAX]; // innermost first
	struct {
		uint32_t site; // 0 = empty
		uint64_t line;
	} known[THREAD_ATTRIBUTION_KNOWN]; // what find_line() found
};

/* The calling thread's; NULL: it has no slot. Set by thread_slot.c. */
extern __thread struct thread_attribution *thread_attribution_current
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* A number for a line that may be given to stacks, as a frame word; 0: it may not, for there are too many. */
uint32_t thread_attribution_admit(uint64_t line);

/* Has any thread ever had something to give? relaxed: a thread that sees it late asks one event later. */
extern _Atomic bool thread_attribution_is_any __attribute__((visibility("hidden")));
uint64_t thread_attribution_find_closely(void); // of thread_attribution_find()

/* Looks whose line it is now, for a thread without Python frames. Returns what tells parents apart; 0 = none. */
static inline uint64_t
thread_attribution_find(void)
{
	return __builtin_expect(atomic_load_explicit(&thread_attribution_is_any, memory_order_relaxed), 0)
	           ? thread_attribution_find_closely()
	           : 0;
}

/* Adds what the last thread_attribution_find() found to a stack of native frames. */
void thread_attribution_append(struct call_stack *stack);

/*
 * Looks whose line it is now, for a thread that runs Python, but perhaps none of the user's code. Returns what tells parents apart; 0 = it is
 * given nothing.
 */
uint64_t thread_attribution_find_library(struct thread_attribution *parent);

/* Adds what the last thread_attribution_find_library() found to a stack whose Python frames are all of libraries. */
void thread_attribution_append_library(struct call_stack *stack);

/* The calling thread has just walked these frames: if some are of the user's own, it is the one that was seen last. */
void thread_attribution_claim(const struct thread_attribution *own, const struct python_stack *python);

/* No Python thread is at any line: the interpreter is gone. */
void thread_attribution_over(void);

/* This thread ends. */
void thread_attribution_ended(const struct thread_attribution *own);

void thread_attribution_forked(void); // forked child: one thread; the capture is empty

#endif
