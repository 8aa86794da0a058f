/*
 * hooks_pipe.c - libunwind opens a pipe at its first use. We have no use for it, and the program may have no descriptors left.
 *
 * Safe from   anywhere; errno is the real call's.
 */
#include <errno.h>
#include <unistd.h>

#include "base/export.h"
#include "base/raw_sys.h"
#include "base/real_libc.h"
#include "unwind/unwind_libunwind.h"

EXPORT int
pipe2(int ends[2], int flags)
{
	if (unwind_libunwind_needs_no_pipe) {
		errno = EMFILE;
		return -1;
	}
	if (!real_libc_find())
		return (int)raw_syscall(SYS_pipe2, ends, flags);
	return real_libc.pipe2(ends, flags);
}
