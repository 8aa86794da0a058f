/*
 * hooks_memlock.c - a program locks all that it has in memory (mlockall): how does our memory stay out of that?
 *
 * We reserve many addresses and touch few of them. mlockall() would bring all of them into memory, and the kernel compares the whole
 * address space with RLIMIT_MEMLOCK. So mlockall(MCL_CURRENT) is done with mlock2() on each of the program's own mappings: the effect on
 * them is the same. Later mappings (MCL_FUTURE) are left to the kernel (see raw_sys.c).
 *
 * Safe from   any thread; errno is the real call's. No tracking, no lock.
 * When failing  the real call decides: all is locked, or nothing.
 * Not covered mlockall by a direct system call. With RLIMIT_MEMLOCK the libraries that we brought along count as the program's.
 * Not chosen  to lock all and to unlock ours again: then each page of ours is there already, and the limit was exceeded before.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/export.h"
#include "base/loaded_object.h"
#include "base/mappings.h"
#include "base/raw_sys.h"
#include "base/real_libc.h"
#include "kmem_format.h"

#define ALL_FLAGS (MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT)

typedef void visit(uint64_t start, uint64_t end, bool is_ours, void *context);

struct needs {
	uint64_t program_bytes;
	bool unlocks_ours; // what is locked of ours counts against the limit as well
};

static _Atomic bool locks_future; // relaxed: who calls mlockall() from two threads at once has no order to keep

/* Is `addr` ours? *end: where the next mapping begins that is not of the same owner. */
static bool
is_ours(uint64_t addr, const struct loaded_object *library, uint64_t *end)
{
	enum kmem_own_part what;

	if (raw_is_reserved(addr, end, &what))
		return true;
	if (addr >= library->start_addr && addr < library->end_addr) {
		*end = library->end_addr;
		return true;
	}
	if (library->start_addr > addr && library->start_addr < *end)
		*end = library->start_addr;
	return false;
}

struct visitor {
	const struct loaded_object *library;
	visit *each;
	void *context;
};

/* The kernel joins neighbours that are alike: one mapping may be ours and the program's. */
static bool
visit_mapping(const struct mappings_line *line, void *context)
{
	const struct visitor *visitor = context;

	for (uint64_t start = line->start; start < line->end && line->end >> KMEM_ADDRESS_BITS == 0;) {
		uint64_t part_end;
		bool is_own = is_ours(start, visitor->library, &part_end);

		part_end = part_end < line->end ? part_end : line->end;
		visitor->each(start, part_end, is_own, visitor->context);
		start = part_end;
	}
	return false;
}

/* False: they cannot be read. */
static bool
visit_all(visit *each, void *context)
{
	struct loaded_object library = { 0 };
	struct visitor visitor = { &library, each, context };

	(void)loaded_object_find((uintptr_t)visit_all, &library);
	return mappings_visit(&(struct mappings_line){ 0 }, visit_mapping, &visitor);
}

static void
add_up(uint64_t start, uint64_t end, bool is_own, void *context)
{
	struct needs *needs = context;

	if (!is_own)
		needs->program_bytes += end - start;
	else if (needs->unlocks_ours)
		(void)raw_syscall(SYS_munlock, start, end - start);
}

/* Errors are about pages that cannot be brought in: mlockall() does not report these either. */
static void
lock(uint64_t start, uint64_t end, bool is_own, void *context)
{
	const unsigned *flags = context;

	if (!is_own)
		(void)raw_syscall(SYS_mlock2, start, end - start, *flags);
}

/* Is the process free of the limit? Then more than the limit is locked for a moment, without any of these pages being in memory. */
static bool
is_privileged(uint64_t limit_bytes)
{
	size_t bytes = (size_t)limit_bytes + 8192 - (size_t)limit_bytes % 4096;
	void *addr = raw_mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (addr == MAP_FAILED)
		return false;

	bool is_so = raw_syscall(SYS_mlock2, addr, bytes, MLOCK_ONFAULT) == 0;

	raw_munmap(addr, bytes);
	return is_so;
}

/* False: the real call is to decide. */
static bool
lock_all_but_ours(int flags)
{
	unsigned lock_flags = (flags & MCL_ONFAULT) != 0 ? MLOCK_ONFAULT : 0;
	struct needs needs = { 0 };
	struct rlimit limit;

	if (!raw_sys_may_call() || (flags & ~ALL_FLAGS) != 0 ||
	    raw_syscall(SYS_prlimit64, 0, RLIMIT_MEMLOCK, NULL, &limit) != 0)
		return false;
	needs.unlocks_ours = limit.rlim_cur != RLIM_INFINITY;
	if (!visit_all(add_up, &needs) || (needs.program_bytes > limit.rlim_cur && !is_privileged(limit.rlim_cur)))
		return false;
	if ((flags & MCL_FUTURE) != 0
	        ? real_libc.mlockall(flags & ~MCL_CURRENT) != 0
	        : atomic_load_explicit(&locks_future, memory_order_relaxed) && raw_syscall(SYS_munlockall) != 0)
		return false;
	return visit_all(lock, &lock_flags);
}

EXPORT int
mlockall(int flags)
{
	int host_errno = errno;
	int result = 0;

	if (!real_libc_find() || real_libc.mlockall == NULL)
		return (int)raw_syscall(SYS_mlockall, flags);
	if ((flags & MCL_CURRENT) == 0 || !lock_all_but_ours(flags)) {
		errno = host_errno;
		result = real_libc.mlockall(flags);
	} else {
		errno = host_errno;
	}
	if (result == 0)
		atomic_store_explicit(&locks_future, (flags & MCL_FUTURE) != 0, memory_order_relaxed);
	return result;
}
