/*
 * hooks_sandbox.c - what if the program gives up rights that we need: to system calls, to its capture, to the folder of captures?
 *
 * A seccomp filter may kill for a call that it does not know, and it cannot be asked: prctl(PR_GET_SECCOMP) is such a call itself.
 * But few install one without prctl() or syscall() before: PR_SET_SECCOMP, seccomp, PR_SET_NO_NEW_PRIVS ahead of either. From there on
 * only what every allocator does (mmap, munmap, mprotect, mremap, madvise) is done, in strict mode nothing at all (raw_syscall.c refuses
 * it): the capture gets some room beforehand, nothing is opened, heartbeats know the tracked bytes alone, the end is marked and not
 * sealed, and children are not recorded.
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
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/types.h>

#include "base/capture_life.h"
#include "base/export.h"
#include "base/raw_sys.h"
#include "base/real_libc.h"
#include "base/reentry_guard.h"
#include "capture/capture_disk.h"
#include "capture/capture_file.h"
#include "hooks/hooks_sandbox.h"
#include "hooks/lifecycle.h"
#include "periodic/launcher_pipe.h"
#include "record/tracker.h"

/* A vfork child shares our memory and is about to be another program: its rights say nothing about this one's. */
static bool
is_this_process(void)
{
	return capture_file_header()->identity.pid == (uint32_t)raw_syscall(SYS_getpid);
}

static inline __attribute__((always_inline)) bool
begin(void)
{
	return raw_sys_may_call() && is_this_process() && reentry_guard_enter_as(REENTRY_GUARD_OWN_WORK);
}

/*
 * Reduces the rights to `left`, and returns whether there were more before. relaxed: other threads are bound by a filter when the
 * program puts them under it.
 */
static bool
leave_only(enum raw_sys_confinement left)
{
	uint32_t before = atomic_load_explicit(&raw_sys_confinement, memory_order_relaxed);

	while (before < left && !atomic_compare_exchange_weak_explicit(&raw_sys_confinement, &before, left,
	                                                               memory_order_relaxed, memory_order_relaxed))
		;
	return before < left;
}

/* True: it is bound more than before. */
static bool
confine(enum raw_sys_confinement left)
{
	int host_errno = errno;
	bool is_first = raw_sys_may_call();

	if (is_first && tracker_is_on() && !is_this_process())
		return false;
	if (is_first && begin()) {
		lifecycle_needs_file();
		capture_file_make_room();
		capture_file_note(
			"the program confined itself (no_new_privs, seccomp). From then on the capture could not grow, the memory of "
			"the machine was not read, and forked children were not recorded");
		reentry_guard_leave();
	}
	errno = host_errno;
	return leave_only(left);
}

static bool
before_prctl(unsigned long operation, unsigned long second)
{
	if (operation == PR_SET_SECCOMP)
		return confine(second == SECCOMP_MODE_STRICT ? RAW_SYS_NOTHING : RAW_SYS_ALLOCATOR);
	if (operation == PR_SET_PTRACER)
		launcher_pipe_names_tracer(second != 0);
	if (operation == PR_SET_TSC)
		atomic_store_explicit(&raw_sys_is_clock_forbidden, second == PR_TSC_SIGSEGV, memory_order_relaxed);
	return operation == PR_SET_NO_NEW_PRIVS && confine(RAW_SYS_ALLOCATOR);
}

void
hooks_sandbox_before(long number, unsigned long operation, unsigned long second, const void *third)
{
	if (number == SYS_prctl)
		(void)before_prctl(operation, second);
	else if (operation == SECCOMP_SET_MODE_STRICT)
		(void)confine(RAW_SYS_NOTHING);
	else if (operation == SECCOMP_SET_MODE_FILTER && third != NULL) // without a filter it asks what the kernel can do
		(void)confine(RAW_SYS_ALLOCATOR);
}

EXPORT int
prctl(int operation, ...)
{
	uint32_t before = atomic_load_explicit(&raw_sys_confinement, memory_order_relaxed);
	unsigned long a[4];
	va_list rest;

	va_start(rest, operation);
	for (size_t i = 0; i < sizeof(a) / sizeof(a[0]); i++)
		a[i] = va_arg(rest, unsigned long); // as libc reads them: those that were not given are not looked at
	va_end(rest);

	bool is_bound = before_prctl((unsigned long)operation, a[0]);

	if (!real_libc_find() || real_libc.prctl == NULL)
		return (int)raw_syscall(SYS_prctl, operation, a[0], a[1], a[2], a[3]);

	int result = real_libc.prctl(operation, a[0], a[1], a[2], a[3]);

	if (is_bound && result != 0) // it was refused
		atomic_store_explicit(&raw_sys_confinement, before, memory_order_relaxed);
	return result;
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

	if (user != (uid_t)-1 && user != (uid_t)raw_syscall(SYS_geteuid) && tracker_is_awake() && begin()) {
		lifecycle_needs_file();
		make_room_once();
		capture_disk_hand_over(user);
		reentry_guard_leave();
	}
	errno = host_errno;
}

#define HOOK_USER(name, parameters, arguments, user) \
	EXPORT int name parameters                       \
	{                                                \
		hand_over(user);                             \
		real_libc_find();                            \
		return real_libc.name arguments;             \
	}
HOOK_USER(setuid, (uid_t user), (user), user)
HOOK_USER(seteuid, (uid_t user), (user), user)
HOOK_USER(setreuid, (uid_t real, uid_t user), (real, user), user)
HOOK_USER(setresuid, (uid_t real, uid_t user, uid_t saved), (real, user, saved), user)

EXPORT int
chroot(const char *path)
{
	int host_errno = errno;

	if (tracker_is_awake() && begin()) {
		lifecycle_needs_file();
		make_room_once();
		reentry_guard_leave();
	}
	real_libc_find();
	errno = host_errno;

	int result = real_libc.chroot(path);

	host_errno = errno;
	if (result == 0 && tracker_is_awake() && begin()) {
		if (!capture_disk_is_there()) {
			lifecycle_loses_folder();
			capture_file_note(
				"the program changed its root folder (chroot). From then on the capture could not grow, and forked children "
				"were not recorded");
		}
		reentry_guard_leave();
	}
	errno = host_errno;
	return result;
}
