/*
 * wait_lock.c - does what a holder wrote reach the next one, and does nobody get in beside it?
 *
 * The same lock guards the growth of the capture (stress/capture_file.c) and the mappings (stress/range_map.c); there other orders
 * help.
 */
#include "stress.h"

#include "base/wait_lock.h"

#define TURNS 3000

static struct wait_lock lock;
static uint64_t guarded[4]; // plain: the lock alone orders them

static void
work(unsigned thread, uint64_t *random)
{
	for (unsigned i = 0; i < TURNS; i++) {
		CHECK(wait_lock_take(&lock));
		for (unsigned word = 0; word < 4; word++)
			guarded[word]++;
		CHECK(guarded[0] == guarded[3]);
		wait_lock_give(&lock);
		stress_yield(random);
	}
}

int
main(void)
{
	stress_run(4, work, random_seed());
	CHECK(guarded[0] == 4 * TURNS);

	/* A holder that never comes back: one long wait, then short ones, until it was free once. */
	CHECK(wait_lock_take(&lock));
	CHECK(!wait_lock_take(&lock));
	for (unsigned i = 0; i < 100; i++)
		CHECK(!wait_lock_take(&lock));
	wait_lock_give(&lock);
	CHECK(wait_lock_take(&lock) && !lock.is_given_up);
	return 0;
}
