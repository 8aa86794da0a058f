/*
 * hooks_signal.c - when somebody cuts the capture, or its disk fails, how does the program go on?
 *
 * A touch of a mapped page that its file does not have any more is SIGBUS in whatever thread records next. A handler of ours stands
 * before the program's, for faults inside the capture alone: it puts private memory there, recording ends, and the program goes on.
 * Every other SIGBUS reaches the program as without us: the kernel has the program's own flags and mask all the time, and
 * what the program asks about or sets passes the hooks below, which leave ours out.
 *
 * Invariants, tested in tests/fault/test_truncated.py:
 *   B1  sigaction() and signal() tell the program what it set, never our handler.
 *   B2  where the program has no handler, the signal kills it as it would have, at the same instruction.
 *   B3  a signal that is ignored has no handler of ours: exec hands on what is ignored.
 *   B4  a vfork child changes its own disposition only, not what its parent's handler knows.
 *
 * Safe from   the handler: any context. The hooks: any thread.
 * Not covered a thread that blocks SIGBUS: the kernel then kills for a fault, whatever the handler. A handler set by a direct system
 *             call, sigset() or sigvec() takes the place of ours.
 *             A file that is cut and lengthened again at once (another one copied over it) may be read before any signal: its words
 *             are then somebody else's, and recording may crash the program.
 * Not chosen  a look at the file's size now and then: every event touches the file.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/capture_life.h"
#include "base/export.h"
#include "base/raw_sys.h"
#include "base/real_libc.h"
#include "hooks/hooks_signal.h"
#include "kmem_format.h"
#include "record/tracker.h"

typedef void signal_action(int signal, siginfo_t *info, void *context);

/* The part of the program's own disposition that ours hides, in one word: the handler's address, and flags above it. */
#define THEIR_HANDLER ((UINT64_C(1) << KMEM_ADDRESS_BITS) - 1)
#define RESTORER 0x04000000u // SA_RESTORER of the kernel: in what libc has set, not in what stands from the start

#define THEIR_RESET (UINT64_C(1) << 63)

static const struct {
	uint64_t bit;
	unsigned flag;
} their_flags[] = { { UINT64_C(1) << 61, SA_SIGINFO }, { UINT64_C(1) << 62, RESTORER }, { THEIR_RESET, SA_RESETHAND } };

/* relaxed everywhere: whoever sets a handler orders that with its own signals. */
static _Atomic uint64_t theirs;
static _Atomic uint32_t owner_pid; // 0 = not started

// of libc, while ours are looked up
int __sigaction(int number, const struct sigaction *wanted, struct sigaction *before);

static void on_bus_error(int number, siginfo_t *info, void *context);

static bool
is_ours(const struct sigaction *action)
{
	return action->sa_sigaction == on_bus_error;
}

/* Dies as if the program had no handler: at the same instruction again, or by the signal sent again. */
static void
die(const siginfo_t *info)
{
	struct sigaction none = { .sa_handler = SIG_DFL };
	bool comes_again = info->si_code >= BUS_ADRALN && info->si_code <= BUS_MCEERR_AR;

	real_libc.sigaction(SIGBUS, &none, NULL);
	if (!comes_again)
		raw_syscall(SYS_rt_tgsigqueueinfo, raw_syscall(SYS_getpid), raw_syscall(SYS_gettid), SIGBUS, info);
}

static void
pass_on(int number, siginfo_t *info, void *context)
{
	uint64_t word = atomic_load_explicit(&theirs, memory_order_relaxed);
	uint64_t handler = word & THEIR_HANDLER;

	if ((word & THEIR_RESET) != 0)
		atomic_store_explicit(&theirs, 0, memory_order_relaxed);
	if (handler == (uint64_t)(uintptr_t)SIG_DFL)
		die(info);
	else
		((signal_action *)(uintptr_t)handler)(number, info, context); // more arguments than a plain handler reads
}

static void
on_bus_error(int number, siginfo_t *info, void *context)
{
	int host_errno = errno;
	bool is_survived = info->si_code > 0 && capture_file_holds(info->si_addr) && capture_file_abandon();

	if (!is_survived) {
		errno = host_errno;
		pass_on(number, info, context);
		return;
	}
	uint32_t on = TRACKER_ON;

	atomic_compare_exchange_strong_explicit(tracker_state, &on, TRACKER_OFF, memory_order_relaxed,
	                                        memory_order_relaxed);
	errno = host_errno;
}

/* Puts our handler in front of the program's. */
static void
stand_before(void)
{
	struct sigaction now;

	if (real_libc.sigaction(SIGBUS, NULL, &now) != 0 || now.sa_handler == SIG_IGN || is_ours(&now)) // B3
		return;
	uint64_t word = (uint64_t)(uintptr_t)now.sa_handler;

	for (size_t i = 0; i < sizeof(their_flags) / sizeof(their_flags[0]); i++)
		word |= ((unsigned)now.sa_flags & their_flags[i].flag) != 0 ? their_flags[i].bit : 0;
	atomic_store_explicit(&theirs, word, memory_order_relaxed);
	now.sa_sigaction = on_bus_error;
	now.sa_flags = (int)((unsigned)now.sa_flags & ~(unsigned)SA_RESETHAND) | SA_SIGINFO;
	real_libc.sigaction(SIGBUS, &now, NULL);
}

void
hooks_signal_start(void)
{
	atomic_store_explicit(&owner_pid, (uint32_t)raw_syscall(SYS_getpid), memory_order_relaxed);
	stand_before();
}

static bool
is_owner(void)
{
	return atomic_load_explicit(&owner_pid, memory_order_relaxed) == (uint32_t)raw_syscall(SYS_getpid);
}

EXPORT int
sigaction(int number, const struct sigaction *wanted, struct sigaction *before)
{
	uint64_t word = atomic_load_explicit(&theirs, memory_order_relaxed);

	if (!real_libc_find())
		return __sigaction(number, wanted, before);

	int result = real_libc.sigaction(number, wanted, before);

	if (number != SIGBUS || result != 0)
		return result;
	if (before != NULL && is_ours(before)) { // B1
		before->sa_handler = (sighandler_t)(uintptr_t)(word & THEIR_HANDLER);
		for (size_t i = 0; i < sizeof(their_flags) / sizeof(their_flags[0]); i++) {
			unsigned others = (unsigned)before->sa_flags & ~their_flags[i].flag;

			before->sa_flags = (int)(others | ((word & their_flags[i].bit) != 0 ? their_flags[i].flag : 0));
		}
	}
	if (wanted != NULL && is_owner()) // B4
		stand_before();
	return result;
}

EXPORT sighandler_t
signal(int number, sighandler_t handler)
{
	uint64_t word = atomic_load_explicit(&theirs, memory_order_relaxed);

	if (!real_libc_find())
		return ssignal(number, handler);

	sighandler_t before = real_libc.signal(number, handler);

	if (number != SIGBUS || before == SIG_ERR)
		return before;
	if ((uintptr_t)before == (uintptr_t)on_bus_error) // B1
		before = (sighandler_t)(uintptr_t)(word & THEIR_HANDLER);
	if (is_owner()) // B4
		stand_before();
	return before;
}
