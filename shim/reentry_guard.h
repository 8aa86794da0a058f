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

/* False when this thread is inside already; then leave must not be called. */
static inline bool
reentry_guard_enter(void)
{
	if (reentry_guard_depth != 0)
		return false;
	reentry_guard_depth = 1;
	atomic_signal_fence(memory_order_seq_cst); // a signal handler on this thread must see the mark first
	return true;
}

static inline void
reentry_guard_leave(void)
{
	atomic_signal_fence(memory_order_seq_cst);
	reentry_guard_depth = 0;
}

#endif
