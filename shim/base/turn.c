/*
 * turn.c - what a hook had taken when it was left (see turn.h)?
 */
#include "base/turn.h"

#include <stddef.h>

uint64_t turn_life;
__thread struct turn_list turn_list __attribute__((tls_model("initial-exec"), visibility("hidden")));

void
turn_left(void)
{
	uint64_t own = turn_own();

	while (turn_list.count != 0) {
		struct turn *turn = turn_list.taken[turn_list.count - 1];

		/* relaxed: it was this thread that took it, if it did (T2). What stands there may be old, then another turn's place or none. */
		if (turn != NULL && atomic_load_explicit(&turn->holder, memory_order_relaxed) == own) {
			if (turn->complete != NULL)
				turn->complete();
			turn_give(turn);
		} else {
			turn_list.count--;
		}
	}
}

void
turn_forked(void)
{
	turn_life = (turn_life + 1) & (UINT64_MAX >> TURN_LIFE_SHIFT);
}
