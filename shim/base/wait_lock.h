/*
 * wait_lock.h - a lock for what is rare and short, with a bound on how long anybody waits for it.
 *
 * The holder may be waiting for a processor, for a slow disk, or for a fork that copies a large address space: a waiter that
 * turned away too early would lose a record. A holder that never comes back (siglongjmp out of a signal handler) gives the lock back
 * with its next hook, or where its thread ends (turn.h). Until then, or where what the lock guards cannot be completed, that costs one
 * waiter a second; those after it hardly wait, until the lock was free once.
 *
 * Safe from   any thread, inside the reentry guard: so a signal handler never waits for what it interrupted. No signal handler calls CUDA.
 *             errno is kept.
 * When failing  take returns false: the caller counts what it loses.
 */
#ifndef WAIT_LOCK_H
#define WAIT_LOCK_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/arch.h"
#include "base/raw_sys.h"
#include "base/turn.h"

#define WAIT_LOCK_SPINS 64u
#define WAIT_LOCK_YIELDS 100u
#define WAIT_LOCK_TRIES 5000u // most of a second, nearly all of it asleep

struct wait_lock {
	struct turn turn;
	_Atomic bool is_given_up; // relaxed: decides how long to wait, nothing else
};

/* Zeroed is free, and then a jump out of the hook leaves nothing half changed. */
#define WAIT_LOCK_COMPLETED_BY(function)  \
	{                                     \
		.turn = {.complete = (function) } \
	}

static inline bool
wait_lock_take(struct wait_lock *lock)
{
	const struct timespec moment = { .tv_nsec = 100000 };
	unsigned most = atomic_load_explicit(&lock->is_given_up, memory_order_relaxed) ? WAIT_LOCK_SPINS : WAIT_LOCK_TRIES;
	int host_errno = errno;
	bool is_taken;

	for (unsigned tries = 0; !(is_taken = turn_take(&lock->turn)) && tries < most; tries++) {
		if (tries < WAIT_LOCK_SPINS || !raw_sys_may_call())
			arch_pause();
		else if (tries < WAIT_LOCK_YIELDS)
			raw_syscall(SYS_sched_yield);
		else
			raw_syscall(SYS_nanosleep, &moment, NULL);
	}
	if (atomic_load_explicit(&lock->is_given_up, memory_order_relaxed) == is_taken)
		atomic_store_explicit(&lock->is_given_up, !is_taken, memory_order_relaxed);
	errno = host_errno;
	return is_taken;
}

static inline void
wait_lock_give(struct wait_lock *lock)
{
	turn_give(&lock->turn);
}

#endif
