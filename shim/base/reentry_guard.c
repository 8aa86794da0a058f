/*
 * reentry_guard.c - the one word per thread behind reentry_guard.h, and whether the hook that set it was left by a jump.
 *
 * The event of a hook that was left is lost, and counted. What it held is given back (turn.h), but for the real allocator's. A fault for
 * want of stack leaves nothing: where there may be too little, nothing is begun that takes a turn (thread_stack_has_room()).
 *
 * Safe from   any thread, any signal handler; errno is kept. It may interrupt thread_stack_find(): what that writes is true whoever
 *             wrote it last.
 * Not covered a hook that was left in another way than by longjmp() is noticed when another is called from as far out or further out:
 *             until then calls are passed through, and counted. The same on a coroutine's stack. A coroutine whose stack is cut out of a frame of the thread's, to which a handler switches.
 *             The real allocator's own lock: a fault while that is held hangs the program without us as well, just as likely.
 */
#include "base/reentry_guard.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>

#include "base/arch.h"
#include "base/raw_sys.h"
#include "base/thread_stack.h"

__thread uint64_t reentry_guard_word __attribute__((tls_model("initial-exec")));
void (*reentry_guard_on_left)(void);

static uint64_t jump_key;
static bool is_jump_key_known;

static uint64_t
holder_frame(void)
{
	return reentry_guard_word & ~REENTRY_GUARD_KINDS;
}

/* With SS_AUTODISARM the kernel does not say; such a stack is hardly ever in the thread's own. */
static bool
is_on_signal_stack(void)
{
	stack_t now = { 0 };

	return raw_syscall(SYS_sigaltstack, NULL, &now) != 0 || (now.ss_flags & SS_ONSTACK) != 0;
}

/* `frame` is as far out as the holder's. A program that confined itself may not be asked about signal stacks. */
static bool
was_left(uint64_t frame)
{
	return raw_sys_may_call() && thread_stack_contains(holder_frame()) && thread_stack_contains(frame) &&
	       !is_on_signal_stack();
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
	if (frame < holder_frame())
		return false; // that hook is at work

	int host_errno = errno;
	bool is_taken = was_left(frame);

	if (is_taken)
		take_over(kind, frame);
	errno = host_errno;
	return is_taken;
}

/* libc mixes what it stores with a number of the process, its own: it follows from a stack pointer that is known. */
static __attribute__((noinline)) uint64_t
find_jump_key(void)
{
	jmp_buf here;

	(void)_setjmp(here);
	return arch_jump_sp(here) ^ arch_stack_pointer();
}

static __attribute__((noinline)) uint64_t
find_jump_key_deeper(void)
{
	volatile char frame[512] = { 0 };

	return find_jump_key() + (uint64_t)frame[0];
}

void
reentry_guard_start(void)
{
	jump_key = find_jump_key();
	is_jump_key_known = jump_key == find_jump_key_deeper(); // else libc does it in another way
}

void
reentry_guard_jumps(const void *target)
{
	uint64_t holder = holder_frame();
	uint64_t sp = arch_jump_sp(target) ^ jump_key;
	int host_errno = errno;

	if (is_jump_key_known && sp > holder && raw_sys_may_call() && thread_stack_contains(holder) &&
	    thread_stack_contains(sp)) {
		take_over(REENTRY_GUARD_OWN_WORK, holder);
		reentry_guard_leave();
	}
	errno = host_errno;
}

void
reentry_guard_enter_last(void)
{
	take_over(REENTRY_GUARD_OWN_WORK, (uintptr_t)__builtin_frame_address(0));
}
