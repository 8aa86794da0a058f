/*
 * tracker_library.c - is what two threads ask about the memory of libraries one thread's at a time?
 *
 * Each asks over and over; the process does not grow, so that after the first time nobody takes the lock of the map, which would order
 * them, too.
 */
#include "stress.h"

#include "base/reentry_guard.h"
#include "capture/capture_file.h"
#include "record/library_due.h"
#include "record/tracker_library.h"
#include "sites/thread_slot.h"
#include "unwind/native_stack.h"

#define QUESTIONS 3000

static void
work(unsigned thread, uint64_t *random)
{
	for (unsigned i = 0; i < QUESTIONS; i++) {
		atomic_store_explicit(&library_due_next_ticks, 0, memory_order_relaxed); // it is time
		if (reentry_guard_enter()) {
			tracker_library_sample(__builtin_frame_address(0));
			reentry_guard_leave();
		}
		stress_yield(random);
	}
}

int
main(void)
{
	static char reserved[1 << 20] __attribute__((aligned(4096)));

	capture_file_header()->identity.page_bytes = 4096;
	native_stack_start();
	thread_slot_start();
	tracker_library_reserved(__builtin_frame_address(0), reserved, sizeof(reserved));
	stress_run(2, work, random_seed());
	return 0;
}
