/* checked_memory.c - see checked_memory.h. */
#include "base/checked_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/uio.h>

#include "base/raw_sys.h"
#include "kmem_format.h"

#define NO_SUCH_OPERATION (-1L) // of rt_sigprocmask: neither SIG_BLOCK, SIG_UNBLOCK nor SIG_SETMASK
#define KERNEL_SIGSET_BYTES 8L

/* How many bytes were copied: whole ranges; 0 when the first one cannot be read. */
static uint64_t
copy_ranges(void *to, const struct iovec *ranges, uint64_t count, uint64_t bytes)
{
	struct iovec here = { to, bytes };
	int host_errno = errno;

	if (!raw_sys_may_call())
		return 0;
	/* Long constants: an int on the stack of a variadic call has no upper half. */
	long copied = raw_syscall(SYS_process_vm_readv, raw_syscall(SYS_getpid), &here, 1L, ranges, count, 0L);

	errno = host_errno;
	return copied > 0 ? (uint64_t)copied : 0;
}

bool
checked_memory_copy(void *to, uint64_t addr, uint64_t bytes)
{
	struct iovec there = { (void *)(uintptr_t)addr, bytes };

	return copy_ranges(to, &there, 1, bytes) == bytes;
}

/* The same where a sandbox forbids that call. Where no call may be made it is read as it stands: what is unmapped in this moment is the risk. */
static bool
copy_by_pipe(void *to, uint64_t start, uint64_t bytes)
{
	int host_errno = errno;
	int ends[2];

	if (!raw_sys_may_call()) {
		memcpy(to, (const void *)(uintptr_t)start, bytes);
		return true;
	}
	if (raw_syscall(SYS_pipe2, ends, (long)(O_CLOEXEC | O_NONBLOCK)) != 0) {
		errno = host_errno;
		return false;
	}

	bool is_copied = raw_syscall(SYS_write, (long)ends[1], start, bytes) == (long)bytes &&
	                 raw_syscall(SYS_read, (long)ends[0], to, bytes) == (long)bytes;
	(void)raw_syscall(SYS_close, (long)ends[0]);
	(void)raw_syscall(SYS_close, (long)ends[1]);
	errno = host_errno;
	return is_copied;
}

static bool
fill(struct checked_window *window, uint64_t start)
{
	return window->needs_pipe ? copy_by_pipe(window->words, start, CHECKED_WINDOW_BYTES)
	                          : checked_memory_copy(window->words, start, CHECKED_WINDOW_BYTES);
}

bool
checked_memory_word(struct checked_window *window, uint64_t addr, uint64_t *value)
{
	uint64_t start = addr & ~(uint64_t)(CHECKED_WINDOW_BYTES - 1);

	if (addr % 8 != 0 || addr >> KMEM_ADDRESS_BITS != 0)
		return false;
	if (window->addr != start) {
		window->addr = fill(window, start) ? start : CHECKED_WINDOW_EMPTY;
		if (window->addr != start)
			return false;
	}
	*value = window->words[(addr - start) / 8];
	return true;
}

bool
checked_memory_span_word(struct checked_span *span, uint64_t addr, uint64_t *value)
{
	if (addr % 8 != 0 || addr >> KMEM_ADDRESS_BITS != 0)
		return false;
	if (addr - span->addr >= span->end - span->addr) {
		struct iovec pages[CHECKED_SPAN_BYTES / CHECKED_PAGE_BYTES + 1];
		uint64_t start = addr & ~(uint64_t)(CHECKED_WINDOW_BYTES - 1); // the next words may lie a little below
		uint64_t count = 0;

		// a range is copied whole or not at all
		for (uint64_t at = start, end; at < start + CHECKED_SPAN_BYTES; at = end, count++) {
			end = checked_memory_page_end(at);
			end = end < start + CHECKED_SPAN_BYTES ? end : start + CHECKED_SPAN_BYTES;
			pages[count] = (struct iovec){ (void *)(uintptr_t)at, end - at };
		}
		span->addr = start;
		span->end = start + copy_ranges(span->words, pages, count, CHECKED_SPAN_BYTES);
		if (addr >= span->end)
			return false;
	}
	*value = span->words[(addr - span->addr) / 8];
	return true;
}

/*
 * The kernel copies the signal set before it looks at the operation: EFAULT when it cannot, EINVAL otherwise.
 * Nothing changes in either case, and no sandbox forbids the call.
 */
static bool
is_page_readable(uint64_t page)
{
	return raw_syscall(SYS_rt_sigprocmask, NO_SUCH_OPERATION, page, NULL, KERNEL_SIGSET_BYTES) != 0 && errno == EINVAL;
}

uint64_t
checked_memory_readable_from(uint64_t addr, uint64_t end)
{
	uint64_t low = (end + CHECKED_PAGE_BYTES - 1) & ~(CHECKED_PAGE_BYTES - 1);
	int host_errno = errno;

	while (low > addr && is_page_readable(low - CHECKED_PAGE_BYTES))
		low -= CHECKED_PAGE_BYTES;
	errno = host_errno;
	return low;
}
