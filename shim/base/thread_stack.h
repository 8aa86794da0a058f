/*
 * thread_stack.h - which memory is the stack that this thread was started on?
 *
 * libc knows, but tells it under a lock that the program may be holding when it comes to a hook:
 * pthread_getattr_np() itself allocates. So the answer is worked out from addresses alone.
 *
 * Context     on the thread in question.
 * Safe from   any hook, any signal handler: no lock, no allocation; errno is kept. System calls only when
 *             the thread is deeper in its stack than at any question before, one a page.
 * When failing  the stack is not known: thread_stack_contains() is false.
 */
#ifndef THREAD_STACK_H
#define THREAD_STACK_H

#include <stdbool.h>
#include <stdint.h>

/*
 * [low, end) holds the sp that was asked about last and found in the thread's own stack; low == end = none yet. Everything
 * from a live sp in it to its end can be read. A stack never moves, so what was found stays true. Only the thread itself
 * writes, inside the reentry guard.
 */
struct thread_stack_range {
	uint64_t low_addr;
	uint64_t end_addr;
};
extern __thread struct thread_stack_range thread_stack_known
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Once, on the main thread, before the first question; without it that thread's stack is not known. */
void thread_stack_start(void);

/* The rest of the functions below. */
bool thread_stack_find(uint64_t sp);
uint64_t thread_stack_find_end(uint64_t sp);

static inline bool
thread_stack_is_known(uint64_t sp)
{
	uint64_t low = thread_stack_known.low_addr;

	return sp - low < thread_stack_known.end_addr - low;
}

/*
 * The first address after this thread's stack, if sp is in that; otherwise some address not below sp. No
 * system call.
 */
static inline uint64_t
thread_stack_end(uint64_t sp)
{
	return thread_stack_is_known(sp) ? thread_stack_known.end_addr : thread_stack_find_end(sp);
}

/*
 * Is sp, the stack pointer of a frame that is alive, in this thread's own stack? Then everything from sp to
 * thread_stack_end(sp) can be read. Signal stacks and coroutines are not in it.
 */
static inline bool
thread_stack_contains(uint64_t sp)
{
	return thread_stack_is_known(sp) || thread_stack_find(sp);
}

/*
 * What the longest way of an event needs of the stack, from where it is asked: what gcc -fcallgraph-info says of mmap's, without our
 * messages. Others need 3.5 KiB, most of them less than 2.
 */
#define THREAD_STACK_ROOM_BYTES UINT64_C(6144)

/* Of this thread's own stack, where there was room last. low == end = not asked yet. */
extern __thread struct thread_stack_range thread_stack_room
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

bool thread_stack_find_room(uint64_t low); // the rest of the function below; errno is kept

/*
 * Is there so much left of this thread's own stack? Where there is not, a step that takes a lock or changes what others look at is not
 * begun: the fault would be in the middle, and its handler may jump out of it. True where the stack is not the thread's own: how much
 * there is of a signal stack or a coroutine's nobody knows.
 */
static inline bool
thread_stack_has_room(void)
{
	uint64_t low = (uint64_t)(uintptr_t)__builtin_frame_address(0) - THREAD_STACK_ROOM_BYTES;

	return low - thread_stack_room.low_addr < thread_stack_room.end_addr - thread_stack_room.low_addr ||
	       thread_stack_find_room(low);
}

#endif
