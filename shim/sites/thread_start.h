/*
 * thread_start.h - where was this thread created?
 *
 * The creator's Python frames are noted for the thread that it is about to create, and become what its stacks are given: `started by` of
 * thread_attribution.h.
 *
 * Context     inside the reentry guard.
 * Safe from   hooks of pthread_create and the first code of a thread; no allocation, no lock.
 * When full   (too many threads that have not begun) nothing is noted.
 */
#ifndef THREAD_START_H
#define THREAD_START_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "python/python_frames.h"

/* A thread that is being created. */
struct thread_start {
	_Atomic bool is_taken;
	void *(*routine)(void *);
	void *argument;
	uint32_t count;
	uint32_t user; // the first one of the user's; count: there is none
	uint64_t frames[PYTHON_FRAMES_MAX];
};

/* Notes the calling thread's Python frames for the thread that it is about to create. NULL: there are none, or no room. */
struct thread_start *thread_start_prepare(void *(*routine)(void *), void *argument);
void thread_start_begin(struct thread_start *start);  // on the new thread; gives back
void thread_start_forget(struct thread_start *start); // it was not created; gives back

void thread_start_forked(void); // forked child: one thread

#endif
