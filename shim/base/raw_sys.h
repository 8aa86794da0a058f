/*
 * raw_sys.h - system calls that pass no interposed function.
 *
 * Our own mmap and write must not come back to our hooks, nor to a library that another preload put in
 * between; none of these is a cancellation point either.
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
#include <time.h>
#include <unistd.h>

#include "kmem_format.h"

/* What the program has left itself of the system. */
enum raw_sys_confinement {
	RAW_SYS_FREE,
	RAW_SYS_ALLOCATOR, // a filter may be there: what every allocator does, and nothing else
	RAW_SYS_NOTHING,   // seccomp's strict mode: no call at all, nor the processor's clock
};
extern _Atomic uint32_t raw_sys_confinement;    // set by hooks_sandbox.c; grows only
extern _Atomic bool raw_sys_is_clock_forbidden; // the same: a look at it is a signal (PR_SET_TSC)

/* May calls be made that an allocator would not make? */
static inline bool
raw_sys_may_call(void)
{
	// relaxed: see where it is set
	return atomic_load_explicit(&raw_sys_confinement, memory_order_relaxed) == RAW_SYS_FREE;
}

/* May the processor's clock be looked at? */
static inline bool
raw_sys_has_clock(void)
{
	return atomic_load_explicit(&raw_sys_confinement, memory_order_relaxed) != RAW_SYS_NOTHING &&
	       !atomic_load_explicit(&raw_sys_is_clock_forbidden, memory_order_relaxed);
}

/*
 * As libc's syscall(), for our own calls: they pass no hook of ours or anybody's. EPERM, unasked, where the program has left itself no
 * such call.
 */
long raw_syscall(long number, ...);

/* The time, by the processor's clock where that may be looked at: then it is no system call. False: it cannot be known any more. */
static inline bool
raw_sys_clock(clockid_t clock, struct timespec *now)
{
	if (__builtin_expect(!raw_sys_has_clock(), 0))
		return raw_syscall(SYS_clock_gettime, clock, now) == 0;
	return clock_gettime(clock, now) == 0;
}

static inline void *
raw_mmap(void *addr, size_t bytes, int protection, int flags, int fd, int64_t offset)
{
	return (void *)raw_syscall(SYS_mmap, addr, bytes, protection, flags, fd, offset);
}

static inline int
raw_munmap(void *addr, size_t bytes)
{
	return (int)raw_syscall(SYS_munmap, addr, bytes);
}

static inline int
raw_madvise(void *addr, size_t bytes, int advice)
{
	return (int)raw_syscall(SYS_madvise, addr, bytes, advice);
}

/*
 * Zeroed private memory that costs nothing until it is touched; NULL on failure. It is remembered which addresses are ours and what
 * for, for the first 4096 of them.
 */
void *raw_reserve(enum kmem_own_part what, size_t bytes, int protection);
void *raw_reserve_shared(enum kmem_own_part what, size_t bytes); // with children that are forked later
void raw_unreserve(void *addr, size_t bytes);
uint64_t raw_reserved_bytes(void); // all of it: addresses, of which only what is used is memory

/* Is `addr` in what was reserved, and what for? *end: where that ends, or where the next one begins; UINT64_MAX = nowhere. */
bool raw_is_reserved(uint64_t addr, uint64_t *end, enum kmem_own_part *what);

/*
 * The most that one table of ours may reserve: everything where neither the address space nor private memory is limited, a 64th of the
 * limit where one is (ulimit -v, ulimit -d: all that may be written counts there, used or not), so that the program still fits.
 */
static inline size_t
raw_reserve_max(void)
{
	static const int kinds[] = { RLIMIT_AS, RLIMIT_DATA };
	size_t most = SIZE_MAX;

	// else what does not fit is refused
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && raw_sys_may_call(); i++) {
		struct rlimit limit;

		if (raw_syscall(SYS_prlimit64, 0, kinds[i], NULL, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
		    limit.rlim_cur / 64 < most)
			most = limit.rlim_cur / 64;
	}
	return most;
}

static inline int
raw_open(const char *path, int flags, int mode)
{
	return (int)raw_syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* Not libc's: fakeroot and its kind answer in its place, under a lock of theirs. */
static inline int
raw_stat(const char *path, struct stat *file)
{
	return (int)raw_syscall(SYS_newfstatat, AT_FDCWD, path, file, 0);
}

static inline int
raw_fstat(int fd, struct stat *file)
{
	return (int)raw_syscall(SYS_fstat, fd, file);
}

static inline ssize_t
raw_read(int fd, void *buffer, size_t bytes)
{
	return raw_syscall(SYS_read, fd, buffer, bytes);
}

static inline int
raw_close(int fd)
{
	return (int)raw_syscall(SYS_close, fd);
}

#endif
