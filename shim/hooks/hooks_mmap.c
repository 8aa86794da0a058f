/* hooks_mmap.c - mappings. Exported names; the only logic is which kind of memory a mapping is. */
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/export.h"
#include "base/raw_sys.h"
#include "base/real_libc.h"
#include "base/reentry_guard.h"
#include "gpu/real_cuda.h"
#include "hooks/hooks_python.h"
#include "record/library_due.h"
#include "record/tracker.h"
#include "record/tracker_library.h"

#define HERE __builtin_frame_address(0)
#define PAGE_BYTES ((size_t)4096) // mappings are made of these on x86-64, whatever else the kernel can do

static size_t
whole_pages(size_t bytes)
{
	return (bytes + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
}

/* Private pages of /dev/zero are memory like any other. */
static bool
is_dev_zero(int fd)
{
	int host_errno = errno;
	struct stat status;
	bool is_so = raw_sys_may_call() && raw_fstat(fd, &status) == 0 && S_ISCHR(status.st_mode) &&
	             status.st_rdev == makedev(1, 5);

	errno = host_errno;
	return is_so;
}

static enum kmem_domain
domain_of(int protection, int flags, int fd)
{
	bool is_shared = (flags & MAP_TYPE) != MAP_PRIVATE;

	if (is_shared && ((flags & MAP_ANONYMOUS) != 0 || (protection & PROT_WRITE) != 0))
		return KMEM_DOMAIN_SHARED;
	if ((flags & MAP_ANONYMOUS) == 0 && (is_shared || !is_dev_zero(fd)))
		return KMEM_DOMAIN_FILE;
	if (protection == PROT_NONE || (flags & MAP_NORESERVE) != 0)
		return KMEM_DOMAIN_RESERVED;
	return KMEM_DOMAIN_MMAP;
}

/* For calls before libc's own mmap was looked up. */
static void *
map(void *addr, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	if (!real_libc_is_found())
		return raw_mmap(addr, bytes, protection, flags, fd, offset);
	return real_libc.mmap(addr, bytes, protection, flags, fd, offset);
}

/*
 * Is this call to be tracked? Then the guard is held. A mapping that the interpreter's allocator makes while it works is an arena: it
 * belongs to no line, and is only address space where the objects in it are recorded.
 */
static inline __attribute__((always_inline)) bool
enter(bool *is_arena)
{
	if (!tracker_is_on())
		return false;
	*is_arena = false;
	if (reentry_guard_enter())
		return true;
	*is_arena = reentry_guard_is(REENTRY_GUARD_PYTHON);
	if (*is_arena)
		reentry_guard_change(REENTRY_GUARD_HOOK);
	return *is_arena;
}

/* hook_frame: NULL = no mapping was made or given back that libraries' own allocators may have asked for. */
static void
leave(bool is_arena, const void *hook_frame)
{
	if (hook_frame != NULL && library_due_is() && !is_arena)
		tracker_library_sample(hook_frame);
	if (is_arena)
		reentry_guard_change(REENTRY_GUARD_PYTHON);
	else
		reentry_guard_leave();
}

static enum kmem_domain
arena_domain(enum kmem_domain domain)
{
	if (domain != KMEM_DOMAIN_MMAP)
		return domain;
	return hooks_python_records_objects() ? KMEM_DOMAIN_RESERVED : KMEM_DOMAIN_PYTHON_ARENA;
}

static void *
map_tracked(const void *hook_frame, void *addr, size_t bytes, int protection, int flags, int fd, off_t offset,
            bool is_arena)
{
	enum kmem_domain domain = domain_of(protection, flags, fd);
	bool overlays = (flags & MAP_FIXED) != 0;
	struct range_pieces below = { 0 };

	if (is_arena)
		domain = arena_domain(domain);
	if (domain != KMEM_DOMAIN_RESERVED)
		(void)tracker_attempt(domain, bytes, 0); // never refused
	if (overlays)
		tracker_unmap_begin(addr, whole_pages(bytes), &below);

	void *mapped = map(addr, bytes, protection, flags, fd, offset);
	int host_errno = errno;

	if (overlays)
		tracker_unmap_end(&below, mapped != MAP_FAILED);
	/* Mappings that the CUDA driver makes for itself are not the program's. */
	if (mapped != MAP_FAILED && real_cuda_depth == 0)
		tracker_mapped(is_arena ? NULL : hook_frame, domain, mapped, bytes);
	if (mapped != MAP_FAILED && real_cuda_depth == 0 && domain == KMEM_DOMAIN_RESERVED &&
	    (protection & PROT_WRITE) != 0 && !is_arena)
		tracker_library_reserved(hook_frame, mapped, bytes);
	else if (mapped == MAP_FAILED && host_errno == ENOMEM)
		tracker_failed(hook_frame, domain, bytes, host_errno);
	leave(is_arena, hook_frame);
	errno = host_errno;
	return mapped;
}

EXPORT void *
mmap(void *addr, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	bool is_arena;

	if (!enter(&is_arena))
		return map(addr, bytes, protection, flags, fd, offset);
	return map_tracked(HERE, addr, bytes, protection, flags, fd, offset, is_arena);
}

EXPORT void *
mmap64(void *addr, size_t bytes, int protection, int flags, int fd, off64_t offset)
{
	bool is_arena;

	if (!enter(&is_arena))
		return map(addr, bytes, protection, flags, fd, offset);
	return map_tracked(HERE, addr, bytes, protection, flags, fd, offset, is_arena);
}

EXPORT int
munmap(void *addr, size_t bytes)
{
	struct range_pieces taken;
	bool is_arena;

	if (!real_libc_is_found())
		return raw_munmap(addr, bytes);
	if (!enter(&is_arena))
		return real_libc.munmap(addr, bytes);
	tracker_unmap_begin(addr, whole_pages(bytes), &taken);
	int result = real_libc.munmap(addr, bytes);
	int host_errno = errno;

	tracker_unmap_end(&taken, result == 0);
	tracker_look_after_release();
	leave(is_arena, HERE);
	errno = host_errno;
	return result;
}

EXPORT void *
mremap(void *old, size_t old_bytes, size_t bytes, int flags, ...)
{
	struct range_pieces taken;
	struct range_pieces below = { 0 };
	va_list rest;
	bool is_arena;

	va_start(rest, flags);

	void *target = (flags & MREMAP_FIXED) != 0 ? va_arg(rest, void *) : NULL;

	va_end(rest);
	if (!real_libc_is_found())
		return (void *)raw_syscall(SYS_mremap, old, old_bytes, bytes, flags, target);
	if (!enter(&is_arena))
		return real_libc.mremap(old, old_bytes, bytes, flags, target);

	/* old_bytes 0 makes a second mapping of the same pages, and DONTUNMAP leaves the old range in place. */
	bool keeps_old = old_bytes == 0 || (flags & MREMAP_DONTUNMAP) != 0;
	tracker_unmap_begin(old, whole_pages(old_bytes), &taken);
	if (target != NULL)
		tracker_unmap_begin(target, whole_pages(bytes), &below);
	void *moved = real_libc.mremap(old, old_bytes, bytes, flags, target);
	int host_errno = errno;

	tracker_unmap_end(&below, moved != MAP_FAILED);
	if (moved != MAP_FAILED && !keeps_old) {
		tracker_remapped(HERE, &taken, moved, bytes);
	} else {
		tracker_unmap_end(&taken, false);
		if (moved != MAP_FAILED)
			tracker_mapped(HERE, old_bytes == 0 ? KMEM_DOMAIN_SHARED : KMEM_DOMAIN_MMAP, moved, bytes);
	}
	leave(is_arena, NULL);
	errno = host_errno;
	return moved;
}

EXPORT int
mprotect(void *addr, size_t bytes, int protection)
{
	bool is_arena;

	if (!real_libc_is_found())
		return (int)raw_syscall(SYS_mprotect, addr, bytes, protection);
	int result = real_libc.mprotect(addr, bytes, protection);
	int host_errno = errno;

	if (result == 0 && (protection & PROT_WRITE) != 0 && enter(&is_arena)) {
		if (!is_arena)
			tracker_writable(HERE, addr, whole_pages(bytes));
		leave(is_arena, HERE);
	}
	errno = host_errno;
	return result;
}

EXPORT int
madvise(void *addr, size_t bytes, int advice)
{
	bool is_arena;

	if (!real_libc_is_found())
		return (int)raw_syscall(SYS_madvise, addr, bytes, advice);
	int result = real_libc.madvise(addr, bytes, advice);
	int host_errno = errno;

	if (result == 0 && (advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE) && enter(&is_arena)) {
		tracker_returned(addr, whole_pages(bytes));
		if (advice == MADV_DONTNEED) // the others keep the pages for a while
			tracker_library_returned((uint64_t)addr, (uint64_t)addr + whole_pages(bytes));
		leave(is_arena, HERE);
	}
	errno = host_errno;
	return result;
}

/* ---- System V shared memory ---- */

EXPORT void *
shmat(int segment, const void *addr, int flags)
{
	struct shmid_ds status = { 0 };
	bool is_arena;

	if (!real_libc_is_found())
		return (void *)raw_syscall(SYS_shmat, segment, addr, flags);
	if (!enter(&is_arena))
		return real_libc.shmat(segment, addr, flags);
	void *mapped = real_libc.shmat(segment, addr, flags);
	int host_errno = errno;

	if (mapped != (void *)-1 && raw_sys_may_call() && raw_syscall(SYS_shmctl, segment, IPC_STAT, &status) == 0) {
		struct range_pieces below;

		tracker_unmap_begin(mapped, whole_pages(status.shm_segsz), &below); // with SHM_REMAP there may be something
		tracker_unmap_end(&below, true);
		tracker_mapped(HERE, KMEM_DOMAIN_SHARED, mapped, status.shm_segsz);
	}
	leave(is_arena, NULL);
	errno = host_errno;
	return mapped;
}

EXPORT int
shmdt(const void *addr)
{
	struct range_pieces taken;
	bool is_arena;

	if (!real_libc_is_found())
		return (int)raw_syscall(SYS_shmdt, addr);
	if (!enter(&is_arena))
		return real_libc.shmdt(addr);
	tracker_detach_begin((void *)(uintptr_t)addr, &taken);
	int result = real_libc.shmdt(addr);
	int host_errno = errno;

	tracker_unmap_end(&taken, result == 0);
	leave(is_arena, NULL);
	errno = host_errno;
	return result;
}
