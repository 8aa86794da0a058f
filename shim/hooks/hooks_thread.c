/*
 * hooks_thread.c - a thread is created: on behalf of which Python line? And a line of Python goes into a library.
 *
 * Only a creator with Python frames (or one that was given some) is of interest; every other call goes on unchanged. The new thread
 * takes its record and jumps to the program's own routine: no frame of ours stays on its stack.
 *
 * Safe from   where pthread_create() and thrd_create() are.
 * When failing  the thread has no creator; it is created all the same.
 */
#include <errno.h>
#include <pthread.h>
#include <threads.h>

#include "base/export.h"
#include "base/raw_sys.h"
#include "base/real_libc.h"
#include "base/reentry_guard.h"
#include "hooks/hooks_python_queue.h"
#include "hooks/lifecycle.h"
#include "moments/other_limits.h"
#include "record/library_due.h"
#include "record/tracker.h"
#include "record/tracker_library.h"
#include "sites/thread_start.h"
#include "unwind/unwind_libunwind.h"

#define HERE __builtin_frame_address(0)

/* Two words, to be returned in two registers. */
struct start {
	void *(*routine)(void *);
	void *argument;
};

/* hooks_thread_begin_*.c has the second, in assembly, which calls the first. */
struct start hooks_thread_started(struct thread_start *start) ASSEMBLY_CALLS;
void *hooks_thread_begin(void *start) __attribute__((visibility("hidden")));

struct start
hooks_thread_started(struct thread_start *start)
{
	struct start program = { start->routine, start->argument };
	int host_errno = errno;

	if (tracker_is_on() && reentry_guard_enter()) {
		thread_start_begin(start);
		reentry_guard_leave();
	} else {
		thread_start_forget(start);
	}
	errno = host_errno;
	return program;
}

/* NULL: the thread is to be created without us. errno is kept. */
static struct thread_start *
prepare(void *(*routine)(void *), void *argument)
{
	struct thread_start *start = NULL;
	int host_errno = errno;

	if (tracker_is_on() && reentry_guard_enter_as(REENTRY_GUARD_OWN_WORK)) {
		lifecycle_needs_file();
		unwind_libunwind_open();
		reentry_guard_leave();
	}
	hooks_python_queue_look();
	if (tracker_is_on() && reentry_guard_enter()) {
		start = thread_start_prepare(routine, argument);
		reentry_guard_leave();
	}
	errno = host_errno;
	return start;
}

/* errno is kept: these functions return their error. */
static __attribute__((noinline, cold)) void
refused(struct thread_start *start, int error)
{
	int host_errno = errno;

	thread_start_forget(start);
	if (tracker_is_on() && reentry_guard_enter()) {
		other_limits_thread(error);
		reentry_guard_leave();
	}
	errno = host_errno;
}

EXPORT int
pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *), void *argument)
{
	if (!real_libc_find() || real_libc.pthread_create == NULL)
		return EAGAIN;

	struct thread_start *start = prepare(routine, argument);

	if (start == NULL)
		return real_libc.pthread_create(thread, attributes, routine, argument);

	int result = real_libc.pthread_create(thread, attributes, hooks_thread_begin, start);

	if (result != 0)
		refused(start, result);
	return result;
}

/*
 * The interpreter gives its lock away, and takes it, with this function: a line of Python goes into a library now, or comes back.
 * Nothing is done where no library manages memory of its own. Without the real function no thread would be woken: a thread that comes
 * while another one looks it up waits for that.
 */
EXPORT int
pthread_cond_signal(pthread_cond_t *condition)
{
	while (__builtin_expect(real_libc.pthread_cond_signal == NULL, 0) && !real_libc_find())
		raw_syscall(SYS_sched_yield);
	if (__builtin_expect(library_due_is_switch(), 0) && tracker_is_awake() && reentry_guard_enter()) {
		tracker_library_sample(HERE);
		reentry_guard_leave();
	}
	return real_libc.pthread_cond_signal(condition);
}

/* The thread returns an int: what the program's function leaves in rax passes through. */
EXPORT int
thrd_create(thrd_t *thread, thrd_start_t routine, void *argument)
{
	if (!real_libc_find() || real_libc.thrd_create == NULL)
		return thrd_error;

	struct thread_start *start = prepare((void *(*)(void *))(void *)routine, argument);

	if (start == NULL)
		return real_libc.thrd_create(thread, routine, argument);

	int result = real_libc.thrd_create(thread, (thrd_start_t)(void *)hooks_thread_begin, start);

	if (result != thrd_success)
		refused(start, result == thrd_nomem ? ENOMEM : EAGAIN);
	return result;
}
