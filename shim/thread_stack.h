/*
 * thread_stack.h - which memory is the stack that this thread was started on?
 *
 * libc knows, but tells it under a lock that the program may be holding when it comes to a hook:
 * pthread_getattr_np() itself allocates. So the answer is worked out from addresses alone.
 *
 * Called by   native_stack.c, python_frames.c, python_stack.c, on the thread in question.
 * Safe from   any hook, any signal handler: no lock, no allocation; errno is kept. System calls only when
 *             the thread is deeper in its stack than at any question before, one a page.
 * When failing  the stack is not known: thread_stack_contains() is false.
 */
#ifndef THREAD_STACK_H
#define THREAD_STACK_H

#include <stdbool.h>
#include <stdint.h>

/* Once, on the main thread, before the first question; without it that thread's stack is not known. */
void thread_stack_start(void);

/*
 * The first address after this thread's stack, if sp is in that; otherwise some address not below sp. No
 * system call.
 */
uint64_t thread_stack_end(uint64_t sp);

/*
 * Is sp, the stack pointer of a frame that is alive, in this thread's own stack? Then everything from sp to
 * thread_stack_end(sp) can be read. Signal stacks and coroutines are not in it.
 */
bool thread_stack_contains(uint64_t sp);

#endif
