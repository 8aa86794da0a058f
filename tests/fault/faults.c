/*
 * faults.c - what if the nth call that the shim makes to the system fails?
 *
 * Linked into a library of its own together with the shim's objects, with the linker's --wrap for each function below: only
 * calls from inside the shim come here, the shipped library knows nothing of it. The plan is a file named by FAULT_PLAN, shared by
 * all processes of a run; test_faults.py writes it and reads from it how many calls there were and which one failed.
 *
 * Not wrapped: what cannot fail (clock_gettime, getpid, _dl_find_object), and the look-up of the functions that the hooks stand in front of.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum fault_mode {
	FAULT_ONCE = 0,  // call number `at`
	FAULT_KIND = 1,  // it, and every later call of the same function (of syscall: with the same number)
	FAULT_ALL = 2,   // it, and every later call
	FAULT_NAMED = 3, // every call of the function `name`
};

struct fault_plan {
	uint64_t at; // 1, 2, ...; 0 = only count
	uint64_t mode;
	int64_t error; // 0 = the usual one of the function
	_Atomic uint64_t calls;
	_Atomic uint64_t failed;
	_Atomic uint64_t kind; // FAULT_KIND: what failed first, 0 = nothing yet
	char name[40];         // of the first call that failed
};

long __real_raw_syscall(long number, ...);

static struct fault_plan no_plan;
static struct fault_plan *_Atomic plan;

static struct fault_plan *
the_plan(void)
{
	struct fault_plan *found = atomic_load_explicit(&plan, memory_order_acquire);

	if (found == NULL && environ != NULL) { // libc has its environment
		const char *path = getenv("FAULT_PLAN");
		long fd = path != NULL ? __real_raw_syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0) : -1;

		found = fd < 0 ? MAP_FAILED
		               : (void *)__real_raw_syscall(SYS_mmap, NULL, sizeof(*found), PROT_READ | PROT_WRITE, MAP_SHARED,
		                                            fd, 0L);
		if (fd >= 0)
			__real_raw_syscall(SYS_close, fd);
		if (found == MAP_FAILED)
			found = &no_plan;
		atomic_store_explicit(&plan, found, memory_order_release);
	}
	return found != NULL ? found : &no_plan;
}

/* Shall this call fail? `kind` is an address or a number that tells functions apart. */
static bool
is_hit(uint64_t kind, const char *name, int error)
{
	struct fault_plan *wanted = the_plan();
	uint64_t number = atomic_fetch_add(&wanted->calls, 1) + 1;
	uint64_t nothing = 0;
	bool fails = false;

	if (wanted->mode == FAULT_NAMED)
		fails = strcmp(wanted->name, name) == 0;
	else if (wanted->at != 0 && number >= wanted->at)
		fails = number == wanted->at || wanted->mode == FAULT_ALL ||
		        (wanted->mode == FAULT_KIND && atomic_load(&wanted->kind) == kind);
	if (!fails)
		return false;
	if (atomic_fetch_add(&wanted->failed, 1) == 0 && wanted->mode != FAULT_NAMED)
		strncpy(wanted->name, name, sizeof(wanted->name) - 1);
	atomic_compare_exchange_strong(&wanted->kind, &nothing, kind);
	errno = wanted->error != 0 ? (int)wanted->error : error;
	return true;
}

static const struct {
	long number;
	const char *name;
	int error;
} calls[] = {
	{ SYS_openat, "openat", EMFILE },
	{ SYS_read, "read", EIO },
	{ SYS_pread64, "pread64", EIO },
	{ SYS_pwrite64, "pwrite64", ENOSPC },
	{ SYS_write, "write", EIO },
	{ SYS_close, "close", EIO },
	{ SYS_mmap, "mmap", ENOMEM },
	{ SYS_munmap, "munmap", ENOMEM },
	{ SYS_mprotect, "mprotect", ENOMEM },
	{ SYS_mremap, "mremap", ENOMEM },
	{ SYS_mincore, "mincore", EAGAIN },
	{ SYS_mlock, "mlock", ENOMEM },
	{ SYS_fallocate, "fallocate", ENOSPC },
	{ SYS_ftruncate, "ftruncate", EIO },
	{ SYS_mkdirat, "mkdirat", EACCES },
	{ SYS_unlinkat, "unlinkat", EACCES },
	{ SYS_renameat, "renameat", EACCES },
	{ SYS_renameat2, "renameat2", EACCES },
	{ SYS_fchmod, "fchmod", EPERM },
	{ SYS_fstat, "fstat", EIO },
	{ SYS_newfstatat, "stat", EIO },
	{ SYS_getcwd, "getcwd", ENOENT },
	{ SYS_readlinkat, "readlinkat", ENOENT },
	{ SYS_prlimit64, "prlimit64", EPERM },
	{ SYS_ppoll, "ppoll", EINTR },
	{ SYS_process_vm_readv, "process_vm_readv", EPERM },
	{ SYS_rt_sigprocmask, "rt_sigprocmask", EFAULT },
	{ SYS_rt_sigpending, "rt_sigpending", EFAULT },
	{ SYS_rt_sigtimedwait, "rt_sigtimedwait", EAGAIN },
};

/*
 * Variadic like the original: the caller puts the same into the same registers and places. A close that fails has closed, as the
 * kernel's has.
 */
long __wrap_raw_syscall(long number, long a, long b, long c, long d, long e, long f);

long
__wrap_raw_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		bool is_shared = number == SYS_mmap && (d & MAP_SHARED) != 0;
		const char *name = is_shared ? "mmap shared" : calls[i].name;

		if (calls[i].number != number || !is_hit((uint64_t)number + 1 + 1000 * is_shared, name, calls[i].error))
			continue;
		int error = errno;

		if (number == SYS_close)
			__real_raw_syscall(number, a);
		errno = error;
		return -1;
	}
	return __real_raw_syscall(number, a, b, c, d, e, f);
}

#define WRAP(result, name, error, failure, parameters, arguments)     \
	result __real_##name parameters;                                  \
	result __wrap_##name parameters;                                  \
	result __wrap_##name parameters                                   \
	{                                                                 \
		if (is_hit((uint64_t)(uintptr_t)__wrap_##name, #name, error)) \
			return failure;                                           \
		return __real_##name arguments;                               \
	}

WRAP(int, statvfs, EIO, -1, (const char *path, struct statvfs *status), (path, status))
WRAP(int, access, EACCES, -1, (const char *path, int mode), (path, mode))
WRAP(int, getrlimit, EPERM, -1, (__rlimit_resource_t resource, struct rlimit *limit), (resource, limit))
WRAP(int, madvise, ENOMEM, -1, (void *addr, size_t bytes, int advice), (addr, bytes, advice))
WRAP(int, sched_yield, ENOSYS, -1, (void), ())
WRAP(void *, dlopen, ENOMEM, NULL, (const char *path, int flags), (path, flags))
WRAP(int, dladdr, ENOENT, 0, (const void *addr, Dl_info *info), (addr, info))
WRAP(int, dladdr1, ENOENT, 0, (const void *addr, Dl_info *info, void **extra, int flags), (addr, info, extra, flags))
WRAP(int, getcontext, EINVAL, -1, (ucontext_t * context), (context))
WRAP(int, setenv, ENOMEM, -1, (const char *name, const char *value, int replaces), (name, value, replaces))
WRAP(int, on_exit, ENOMEM, -1, (void (*handler)(int, void *), void *context), (handler, context))
WRAP(int, at_quick_exit, ENOMEM, -1, (void (*handler)(void)), (handler))
WRAP(int, pthread_atfork, ENOMEM, ENOMEM, (void (*before)(void), void (*parent)(void), void (*child)(void)),
     (before, parent, child))
WRAP(int, pthread_key_create, EAGAIN, EAGAIN, (pthread_key_t * key, void (*release)(void *)), (key, release))
WRAP(int, pthread_setspecific, ENOMEM, ENOMEM, (pthread_key_t key, const void *value), (key, value))

/* To restore a limit can not fail where lowering it did not. */
int __real_setrlimit(__rlimit_resource_t resource, const struct rlimit *limit);
int __wrap_setrlimit(__rlimit_resource_t resource, const struct rlimit *limit);

int
__wrap_setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
	if (limit->rlim_cur == 0 && is_hit((uint64_t)(uintptr_t)__wrap_setrlimit, "setrlimit", EPERM))
		return -1;
	return __real_setrlimit(resource, limit);
}
