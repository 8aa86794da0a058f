/*
 * turn.h - work that one thread does at a time. Who finds that another one is at it leaves the work out, or waits (wait_lock.h).
 *
 * A fork copies what another thread has taken, and that thread is not in the child. So who has a turn is told with the life in which
 * it was taken: what is of another life is free, wherever the child comes from.
 *
 * A signal handler may jump out of the hook that it interrupted, or end the thread (reentry_guard.h). What that hook had taken is given
 * back then, for nobody else will: each thread knows what it has taken.
 *
 * Invariants, tested by number in tests/unit/shim/base/test_turn.c:
 *   T1  one thread at a time has it; who takes it sees what the one before wrote.
 *   T2  turn_left() gives back what this thread has, and nothing that another one has.
 *   T3  where what it guards may be half changed, that is completed first.
 *   T4  a forked child takes what was taken when its life began.
 *
 * Safe from   any thread, inside the reentry guard, and around fork.
 * When full   a thread that has TURNS_MAX already takes no more.
 */
#ifndef TURN_H
#define TURN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TURNS_MAX 8u

/* Zeroed is free. */
struct turn {
	_Atomic uint64_t holder; // a thread's pointer, and the life in its highest bits; 0 = nobody has it
	void (*complete)(void);  // what was half changed; NULL = nothing can be, all is written anew each time
};

/* Of this process since its last fork. Written by a child's only thread. */
extern uint64_t turn_life __attribute__((visibility("hidden")));
#define TURN_LIFE_SHIFT 48 // a thread's pointer has no more bits

static inline uint64_t
turn_own(void)
{
	return (uint64_t)(uintptr_t)__builtin_thread_pointer() | turn_life << TURN_LIFE_SHIFT;
}

/* What this thread has. It is noted before it is taken, and until it is given back. */
struct turn_list {
	unsigned count;
	struct turn *taken[TURNS_MAX];
};
extern __thread struct turn_list turn_list __attribute__((tls_model("initial-exec"), visibility("hidden")));

static inline bool
turn_take(struct turn *turn)
{
	unsigned count = turn_list.count;
	uint64_t holder = 0;
	uint64_t own = turn_own();

	if (count == TURNS_MAX)
		return false;
	turn_list.count = count + 1; // first: a handler that takes another one in between uses the next place
	atomic_signal_fence(memory_order_seq_cst);
	turn_list.taken[count] = turn;
	atomic_signal_fence(memory_order_seq_cst);
	/* acquire: what the one before wrote (T1). Pairs with turn_give(). */
	if (atomic_compare_exchange_strong_explicit(&turn->holder, &holder, own, memory_order_acquire,
	                                            memory_order_relaxed))
		return true;
	/* T4. relaxed: who had it is not here, and the fork came between. */
	if (holder >> TURN_LIFE_SHIFT != turn_life &&
	    atomic_compare_exchange_strong_explicit(&turn->holder, &holder, own, memory_order_relaxed,
	                                            memory_order_relaxed)) {
		if (turn->complete != NULL)
			turn->complete();
		return true;
	}
	turn_list.count = count;
	return false;
}

/* By who has it. */
static inline void
turn_give(struct turn *turn)
{
	/* release: pairs with turn_take() (T1). */
	atomic_store_explicit(&turn->holder, 0, memory_order_release);
	for (unsigned i = turn_list.count; i-- > 0;) {
		if (turn_list.taken[i] == turn) {
			turn_list.taken[i] = turn_list.taken[turn_list.count - 1];
			atomic_signal_fence(memory_order_seq_cst);
			turn_list.count--;
			break;
		}
	}
}

void turn_left(void);   // a hook of this thread was left in the middle
void turn_forked(void); // a child's life begins

#endif
