/*
 * reentry_guard.h - is this our own work?
 *
 * Between enter and leave, every hook on this thread passes calls through untracked: our own work, the real
 * allocator's inner calls, and signal handlers that interrupt us (those are counted as lost).
 *
 * Safe from   anywhere: one initial-exec thread-local word, no call.
 */
#ifndef REENTRY_GUARD_H
#define REENTRY_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>

extern __thread unsigned reentry_guard_depth __attribute__((tls_model("initial-exec")));

enum reentry_guard_depth {
	REENTRY_GUARD_OUTSIDE = 0,
	REENTRY_GUARD_HOOK = 1,     // a call that comes now is the program's: a signal handler's, or the real allocator's
	REENTRY_GUARD_OWN_WORK = 2, // start and end: a call that comes now is ours, and no loss
	REENTRY_GUARD_PYTHON = 3,   // the interpreter's allocator is at work: a call that comes now is part of an event already
	REENTRY_GUARD_NEW = 4,      // an allocator's operator new is at work: a call of malloc that comes now is the program's (its new
	                            // handler, an exception) and an event of its own, after which the guard is left
};

static inline bool
reentry_guard_enter_as(enum reentry_guard_depth depth)
{
	if (reentry_guard_depth != REENTRY_GUARD_OUTSIDE)
		return false;
	reentry_guard_depth = depth;
	atomic_signal_fence(memory_order_seq_cst); // a signal handler on this thread must see the mark first
	return true;
}

/* False when this thread is inside already; then leave must not be called. */
static inline bool
reentry_guard_enter(void)
{
	return reentry_guard_enter_as(REENTRY_GUARD_HOOK);
}

static inline void
reentry_guard_leave(void)
{
	atomic_signal_fence(memory_order_seq_cst);
	reentry_guard_depth = REENTRY_GUARD_OUTSIDE;
}

/* Where an allocator's operator new is at work: what comes now is an event of its own. */
static inline void
reentry_guard_leave_new(void)
{
	if (reentry_guard_depth == REENTRY_GUARD_NEW)
		reentry_guard_leave();
}

#endif
