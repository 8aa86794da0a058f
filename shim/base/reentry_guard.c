/*
 * reentry_guard.c - the one word per thread behind reentry_guard.h, and whether the hook that set it was left by a jump.
 *
 * The event of a hook that was left is lost, and counted. What it held stays held: a lock (wait_lock.h bounds how long anybody waits
 * for it), one of the shared memories for stacks. A fault for want of stack leaves none of them: where there may be too little,
 * nothing is begun that takes one (thread_stack_has_room()).
 *
 * Safe from   any thread, any signal handler; errno is kept. It may interrupt thread_stack_find(): what that writes is true whoever
 *             wrote it last.
 * Not covered a hook that was left is noticed when another is called from 1 KiB further out: until then calls are passed through,
 *             and counted. A coroutine whose stack is cut out of a frame of the thread's, to which a handler switches.
 *             The real allocator's own lock: a fault while that is held hangs the program without us as well, just as likely.
 * Not chosen  to give locks back: what they guard may be half changed.
 */
#include "base/reentry_guard.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>

#include "base/raw_sys.h"
#include "base/thread_stack.h"

__thread uint64_t reentry_guard_word __attribute__((tls_model("initial-exec")));
void (*reentry_guard_on_left)(void);

/* A hook may enter in a function of its own: what it notes is then further in than what it calls later, by less than this. */
#define ENTER_BYTES 1024u

/* With SS_AUTODISARM the kernel does not say; such a stack is hardly ever in the thread's own. */
static bool
is_on_signal_stack(void)
{
	stack_t now = { 0 };

	return raw_syscall(SYS_sigaltstack, NULL, &now) != 0 || (now.ss_flags & SS_ONSTACK) != 0;
}

/* What is called from inside a hook has its stack further in. A program that confined itself may not be asked about signal stacks. */
static bool
was_left(uint64_t sp)
{
	uint64_t holder_sp = reentry_guard_word & ~REENTRY_GUARD_KINDS;

	return sp >= holder_sp + ENTER_BYTES && raw_sys_may_call() && thread_stack_contains(holder_sp) &&
	       thread_stack_contains(sp) && !is_on_signal_stack();
}

bool
reentry_guard_take_over(enum reentry_guard_kind kind)
{
	uint64_t sp = (uintptr_t)__builtin_frame_address(0);
	int host_errno = errno;
	bool is_taken = was_left(sp);

	if (is_taken) {
		reentry_guard_word = sp | kind;
		atomic_signal_fence(memory_order_seq_cst);
		if (reentry_guard_on_left != NULL)
			reentry_guard_on_left();
	}
	errno = host_errno;
	return is_taken;
}
