/*
 * kernel.c - what the tests need of the system and qemu has not: process_vm_readv() of the own memory.
 *
 * Linked with --wrap=raw_syscall. A page can be read if the kernel takes it for a signal set, see checked_memory.c.
 */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define PAGE_BYTES UINT64_C(4096)

long __real_raw_syscall(long number, ...);
long __wrap_raw_syscall(long number, ...);

static uint64_t
readable_bytes(uint64_t addr, uint64_t bytes)
{
	uint64_t at = addr;

	while (at < addr + bytes) {
		if (__real_raw_syscall(SYS_rt_sigprocmask, -1L, at & ~(PAGE_BYTES - 1), NULL, 8L) == 0 || errno != EINVAL)
			break;
		at = (at | (PAGE_BYTES - 1)) + 1;
	}
	return at < addr + bytes ? (at > addr ? at - addr : 0) : bytes;
}

/* Whole ranges, until one cannot be read. Those that they are copied to are as long together, and may be cut elsewhere. */
static long
copy(const struct iovec *to, const struct iovec *ranges, uint64_t count)
{
	uint64_t filled = 0;
	long copied = 0;

	for (uint64_t i = 0; i < count; i++) {
		uint64_t bytes = readable_bytes((uintptr_t)ranges[i].iov_base, ranges[i].iov_len);

		if (bytes < ranges[i].iov_len)
			break;
		for (uint64_t k = 0; k < bytes; k++) {
			while (filled == to->iov_len) {
				to++;
				filled = 0;
			}
			((char *)to->iov_base)[filled++] = ((const char *)ranges[i].iov_base)[k];
		}
		copied += (long)bytes;
	}
	errno = copied == 0 ? EFAULT : errno;
	return copied == 0 ? -1 : copied;
}

long
__wrap_raw_syscall(long number, ...)
{
	long argument[6];
	va_list rest;

	va_start(rest, number);
	for (unsigned i = 0; i < 6; i++)
		argument[i] = va_arg(rest, long);
	va_end(rest);
	if (number == SYS_process_vm_readv)
		return copy((const struct iovec *)argument[1], (const struct iovec *)argument[3], (uint64_t)argument[4]);
	return __real_raw_syscall(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
}
