/*
 * test_tracker_library.c - may a line that goes into a library ask, when others have to wait?
 */
#include "record/tracker_books.h"

#include "base/raw_sys.h"
#include "record/library_due.h"

#define MILLISECOND_TICKS UINT64_C(1000000) // of the slowest clock

static NOINLINE void
ask(void)
{
	tracker_library_sample(HERE);
	KEEP_FRAME();
}

static int
start_reserved(void **state)
{
	char *at = raw_mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	(void)start_empty(state);
	assert_ptr_not_equal(at, MAP_FAILED);
	tracker_library_reserved(NULL, at, PAGE);
	atomic_store_explicit(&library_due_next_ticks, 0, memory_order_relaxed);
	atomic_store_explicit(&library_due_next_switch_ticks, 0, memory_order_relaxed);
	return 0;
}

/* Else what its pools take is booked at the line before it. No clock is compared: another program may have the processor. */
TEST(a_switch_is_due_soon_after_a_question)
{
	assert_true(library_due_is());
	assert_true(library_due_is_switch());
	ask();
	assert_true(library_due_next_switch_ticks + 10 * MILLISECOND_TICKS < library_due_next_ticks);
}

/* Else threads of a library that wake each other use up what lines that grow would need. */
TEST(where_nothing_grew_the_next_switch_waits)
{
	bool waits = false;

	for (unsigned i = 0; i < 100 && !waits; i++) { // the first finds all that is there, perhaps another one some more
		uint64_t before = arch_ticks();

		ask();
		waits = library_due_next_switch_ticks >= before + LIBRARY_DUE_TICKS;
	}
	assert_true(waits);
}

TEST(switches_use_up_what_they_may)
{
	for (unsigned i = 0; i < 5000; i++)
		ask();
	assert_true(library_due_next_switch_ticks > library_due_next_ticks); // more than was theirs
}

int
main(void)
{
	native_stack_start();
	thread_slot_start();
	return test_run(NULL, NULL, start_reserved, NULL);
}
