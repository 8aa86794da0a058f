/*
 * hooks_jump.c - a signal handler jumps out of the hook that it interrupted: the guard is left before the jump (reentry_guard.h).
 *
 * Safe from   anywhere; errno is kept.
 * Not covered other ways out of a hook: the end of the thread, a C++ exception, setcontext(). The guard notices those by itself, later.
 */
#include <setjmp.h>

#include "base/export.h"
#include "base/raw_sys.h"
#include "base/real_libc.h"
#include "base/reentry_guard.h"

/* glibc's longjmp() of programs that were built with _FORTIFY_SOURCE. */
EXPORT __attribute__((noreturn)) void __longjmp_chk(struct __jmp_buf_tag target[1], int value);

static void
begin(const struct __jmp_buf_tag *target)
{
	if (!reentry_guard_is_outside())
		reentry_guard_jumps(target);
	while (!real_libc_find()) // another thread is looking them up
		raw_syscall(SYS_sched_yield);
}

#define JUMP(name, member)                                      \
	EXPORT void name(struct __jmp_buf_tag target[1], int value) \
	{                                                           \
		begin(target);                                          \
		real_libc.member(target, value);                        \
	}

JUMP(longjmp, longjmp)
JUMP(_longjmp, _longjmp)
JUMP(siglongjmp, siglongjmp)
JUMP(__longjmp_chk, longjmp_chk)
