/*
 * hooks_sandbox.c - what if the program gives up rights that we need: to system calls, to its capture, to the folder of captures?
 *
 * A seccomp filter may kill for a call that it does not know, and it cannot be asked: prctl(PR_GET_SECCOMP) is such a call itself.
 * But nobody installs one without prctl() before: PR_SET_SECCOMP, or PR_SET_NO_NEW_PRIVS ahead of the seccomp call. From there on
 * only what every allocator does (mmap, munmap, mprotect, madvise) is done: the capture gets some room beforehand, nothing is opened,
 * heartbeats know the tracked bytes alone, the end is marked and not sealed, and children are not recorded.
 *
 * A server that was started by root becomes another user (setuid), perhaps in another root (chroot). Its capture is opened by its path
 * whenever it grows: it becomes that user's before, and gets room, for the folder may be out of reach. In a child that is forked out of
 * reach of the folder nothing is recorded.
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
#include <sys/types.h>

#include "capture_disk.h"
#include "capture_file.h"
#include "capture_life.h"
#include "export.h"
#include "lifecycle.h"
#include "raw_sys.h"
#include "real_libc.h"
#include "reentry_guard.h"
#include "tracker.h"

/* A vfork child shares our memory and is about to be another program: what it may do says nothing about this one. */
static bool
begin(void)
{
	return raw_sys_may_call() && capture_file_header()->identity.pid == (uint32_t)syscall(SYS_getpid) &&
	       reentry_guard_enter_as(REENTRY_GUARD_OWN_WORK);
}

static void
confine(void)
{
	int host_errno = errno;

	if (!tracker_is_on() || !begin())
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

/* ---- another user, another root ---- */

static void
make_room_once(void)
{
	static _Atomic uint32_t made_for; // the pid; relaxed: to do it twice would do no harm
	uint32_t pid = capture_file_header()->identity.pid;

	if (atomic_exchange_explicit(&made_for, pid, memory_order_relaxed) != pid)
		capture_file_make_room();
}

/* (uid_t)-1: it stays who it is. */
static void
hand_over(uid_t user)
{
	int host_errno = errno;

	if (user != (uid_t)-1 && user != (uid_t)syscall(SYS_geteuid) && tracker_is_awake() && begin()) {
		make_room_once();
		capture_disk_hand_over(user);
		reentry_guard_leave();
	}
	errno = host_errno;
}

#define HOOK_USER(name, parameters, arguments, user)                                                  \
	EXPORT int                                                                                    \
	name parameters                                                                               \
	{                                                                                             \
		hand_over(user);                                                                      \
		real_libc_find();                                                                     \
		return real_libc.name arguments;                                                      \
	}
HOOK_USER(setuid, (uid_t user), (user), user)
HOOK_USER(seteuid, (uid_t user), (user), user)
HOOK_USER(setreuid, (uid_t real, uid_t user), (real, user), user)
HOOK_USER(setresuid, (uid_t real, uid_t user, uid_t saved), (real, user, saved), user)

EXPORT int
chroot(const char *path)
{
	int host_errno = errno;
	int result;

	if (tracker_is_awake() && begin()) {
		make_room_once();
		reentry_guard_leave();
	}
	real_libc_find();
	errno = host_errno;
	result = real_libc.chroot(path);
	host_errno = errno;
	if (result == 0 && tracker_is_awake() && begin()) {
		if (!capture_disk_is_there()) {
			lifecycle_loses_folder();
			capture_file_note("the program changed its root folder (chroot): from there on the capture had the room that was left, and "
			                  "forked children were not recorded");
		}
		reentry_guard_leave();
	}
	errno = host_errno;
	return result;
}
