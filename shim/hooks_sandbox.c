/*
 * hooks_sandbox.c - what if the program gives up the right to make system calls that we make?
 *
 * A seccomp filter may kill for a call that it does not know, and it cannot be asked: prctl(PR_GET_SECCOMP) is such a call itself.
 * But nobody installs one without prctl() before: PR_SET_SECCOMP, or PR_SET_NO_NEW_PRIVS ahead of the seccomp call. From there on
 * only what every allocator does (mmap, munmap, mprotect, madvise) is done: the capture gets some room beforehand, nothing is opened,
 * heartbeats know the tracked bytes alone, the end is marked and not sealed, and children are not recorded.
 *
 * A filter that was there before exec (a container's) is another case: it let the loader work, and it refuses rather than kills.
 *
 * Safe from   any thread; errno is the real call's.
 * Not chosen  descriptors kept open for heartbeats: read() may be forbidden as well, and programs close all descriptors.
 */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "capture_file.h"
#include "capture_life.h"
#include "export.h"
#include "raw_sys.h"
#include "real_libc.h"
#include "reentry_guard.h"
#include "tracker.h"

static void
confine(void)
{
	int host_errno = errno;

	/* A vfork child shares our memory and is about to be another program: what it may do says nothing about this one. */
	if (!raw_sys_may_call() || !tracker_is_on() ||
	    capture_file_header()->identity.pid != (uint32_t)syscall(SYS_getpid) ||
	    !reentry_guard_enter_as(REENTRY_GUARD_OWN_WORK))
		return;
	capture_file_make_room();
	capture_file_note("the program confined itself (no_new_privs, seccomp): from there on the capture had the room that was left, "
	                  "heartbeats do not know the machine, and forked children were not recorded");
	/* relaxed: other threads are bound by the filter when the program puts them under it. */
	atomic_store_explicit(&raw_sys_is_confined, true, memory_order_relaxed);
	reentry_guard_leave();
	errno = host_errno;
}

EXPORT int
prctl(int operation, ...)
{
	unsigned long a[4];
	va_list rest;

	va_start(rest, operation);
	for (size_t i = 0; i < sizeof(a) / sizeof(a[0]); i++)
		a[i] = va_arg(rest, unsigned long); // as libc reads them: those that were not given are not looked at
	va_end(rest);
	if (operation == PR_SET_SECCOMP || operation == PR_SET_NO_NEW_PRIVS)
		confine();
	if (!real_libc_find() || real_libc.prctl == NULL)
		return (int)syscall(SYS_prctl, operation, a[0], a[1], a[2], a[3]);
	return real_libc.prctl(operation, a[0], a[1], a[2], a[3]);
}
