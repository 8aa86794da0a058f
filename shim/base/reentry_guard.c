/*
 * reentry_guard.c - the one word per thread behind reentry_guard.h, and whether the hook that set it was left by a jump.
 *
 * The event of a hook that was left is lost, and counted. What it held is given back (turn.h), but for the real allocator's. A fault for
 * want of stack leaves nothing: where there may be too little, nothing is begun that takes a turn (thread_stack_has_room()).
 *
 * Safe from   any thread, any signal handler; errno is kept. It may interrupt thread_stack_find(): what that writes is true whoever
 *             wrote it last.
 * Not covered a hook that was left is noticed when another is called from as far out or further out: until then calls are passed through,
 *             and counted. A coroutine whose stack is cut out of a frame of the thread's, to which a handler switches.
 *             The real allocator's own lock: a fault while that is held hangs the program without us as well, just as likely.
 */
#include "base/reentry_guard.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>

#include "base/raw_sys.h"
#include "base/thread_stack.h"

__thread uint64_t reentry_guard_word __attribute__((tls_model("initial-exec")));
void (*reentry_guard_on_left)(void);

/* With SS_AUTODISARM the kernel does not say; such a stack is hardly ever in the thread's own. */
static bool
is_on_signal_stack(void)
{
	stack_t now = { 0 };

	return raw_syscall(SYS_sigaltstack, NULL, &now) != 0 || (now.ss_flags & SS_ONSTACK) != 0;
}

/* A program that confined itself may not be asked about signal stacks. */
static bool
was_left(uint64_t frame)
{
	uint64_t holder_frame = reentry_guard_word & ~REENTRY_GUARD_KINDS;

	return frame >= holder_frame && raw_sys_may_call() && thread_stack_contains(holder_frame) &&
	       thread_stack_contains(frame) && !is_on_signal_stack();
}

static void
take_over(enum reentry_guard_kind kind, uint64_t frame)
{
	bool is_left = reentry_guard_word != 0;

	reentry_guard_word = frame | kind;
	atomic_signal_fence(memory_order_seq_cst);
	if (is_left && reentry_guard_on_left != NULL)
		reentry_guard_on_left();
}

bool
reentry_guard_take_over(enum reentry_guard_kind kind, uint64_t frame)
{
	int host_errno = errno;
	bool is_taken = was_left(frame);

	if (is_taken)
		take_over(kind, frame);
	errno = host_errno;
	return is_taken;
}

void
reentry_guard_enter_last(void)
{
	take_over(REENTRY_GUARD_OWN_WORK, (uintptr_t)__builtin_frame_address(0));
}
