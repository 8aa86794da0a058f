/*
 * raw_syscall.c - may this system call be made, and what did the kernel say (see raw_sys.h)?
 *
 * libc's syscall() is one of our hooks (hooks_syscall_*.c): ours are made here, so that they reach no hook.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/arch.h"
#include "base/effort.h"
#include "base/raw_sys.h"

#define ARGUMENTS_MAX 6
#define ERRORS_MAX 4095ul

_Atomic uint32_t raw_sys_confinement;
_Atomic bool raw_sys_is_clock_forbidden;

static bool
is_allowed(long number)
{
	// relaxed: see where it is set
	uint32_t confinement = atomic_load_explicit(&raw_sys_confinement, memory_order_relaxed);

	if (__builtin_expect(confinement == RAW_SYS_FREE, 1))
		return true;
	return confinement == RAW_SYS_ALLOCATOR && (number == SYS_mmap || number == SYS_munmap || number == SYS_mprotect ||
	                                            number == SYS_madvise || number == SYS_mremap);
}

/* The sixth argument lies on the caller's stack: where it was not given, something else does, which the address sanitizer would report. */
__attribute__((no_sanitize("address"))) long
raw_syscall(long number, ...)
{
	long argument[ARGUMENTS_MAX];
	va_list rest;

	if (!is_allowed(number)) {
		errno = EPERM;
		return -1;
	}
	va_start(rest, number);
	for (unsigned i = 0; i < ARGUMENTS_MAX; i++)
		argument[i] = va_arg(rest, long); // as libc reads them: the kernel does not look at those that were not given
	va_end(rest);

	effort_count_call();

	long result = arch_syscall(number, argument);

	if ((unsigned long)result >= -ERRORS_MAX) {
		errno = (int)-result;
		return -1;
	}
	return result;
}
