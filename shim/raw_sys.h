/*
 * raw_sys.h - system calls that pass no interposed function.
 *
 * Our own mmap and write must not come back to our hooks, nor to a library that another preload put in
 * between; syscall(2) is no cancellation point either.
 *
 * Safe from   anywhere. Failures are -1 (MAP_FAILED) and errno, as in libc; hooks restore errno.
 */
#ifndef RAW_SYS_H
#define RAW_SYS_H

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "kmem_format.h"

extern _Atomic bool raw_sys_is_confined; // set by hooks_sandbox.c, never cleared

/* May calls be made that an allocator would not make? */
static inline bool
raw_sys_may_call(void)
{
	return !atomic_load_explicit(&raw_sys_is_confined, memory_order_relaxed); // relaxed: see where it is set
}

static inline void *
raw_mmap(void *addr, size_t bytes, int protection, int flags, int fd, int64_t offset)
{
	return (void *)syscall(SYS_mmap, addr, bytes, protection, flags, fd, offset);
}

static inline int
raw_munmap(void *addr, size_t bytes)
{
	return (int)syscall(SYS_munmap, addr, bytes);
}

static inline int
raw_madvise(void *addr, size_t bytes, int advice)
{
	return (int)syscall(SYS_madvise, addr, bytes, advice);
}

/*
 * Zeroed private memory that costs nothing until it is touched; NULL on failure. It is remembered which addresses are ours and what
 * for, for the first 4096 of them.
 */
void *raw_reserve(enum kmem_own_part what, size_t bytes, int protection);
void raw_unreserve(void *addr, size_t bytes);
uint64_t raw_reserved_bytes(void); // all of it: addresses, of which only what is used is memory

/* Is `addr` in what was reserved, and what for? *end: where that ends, or where the next one begins; UINT64_MAX = nowhere. */
bool raw_is_reserved(uint64_t addr, uint64_t *end, enum kmem_own_part *what);

/*
 * The most that one table of ours may reserve: everything where the address space is not limited, a 64th of it where it is
 * (ulimit -v), so that the program still fits.
 */
static inline size_t
raw_reserve_max(void)
{
	struct rlimit limit;

	if (!raw_sys_may_call())
		return SIZE_MAX; // what does not fit is refused
	if (syscall(SYS_prlimit64, 0, RLIMIT_AS, NULL, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		return SIZE_MAX;
	return limit.rlim_cur / 64;
}

/* EPERM, unasked, in a program that has confined itself. */
static inline int
raw_open(const char *path, int flags, int mode)
{
	if (!raw_sys_may_call()) {
		errno = EPERM;
		return -1;
	}
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* Not libc's: fakeroot and its kind answer in its place, under a lock of theirs. */
static inline int
raw_stat(const char *path, struct stat *file)
{
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, file, 0);
}

static inline int
raw_fstat(int fd, struct stat *file)
{
	return (int)syscall(SYS_fstat, fd, file);
}

static inline ssize_t
raw_read(int fd, void *buffer, size_t bytes)
{
	return syscall(SYS_read, fd, buffer, bytes);
}

static inline int
raw_close(int fd)
{
	return (int)syscall(SYS_close, fd);
}

#endif
