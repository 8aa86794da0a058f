/*
 * real_libc.h - the functions that our hooks stand in front of: the next ones in line, which may be another preload's.
 *
 * When failing  a function that does not exist here stays NULL (free_sized, malloc_trim).
 */
#ifndef REAL_LIBC_H
#define REAL_LIBC_H

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <threads.h>

typedef int real_libc_main(int count, char **arguments, char **variables);

/* Result, member, parameters, name in the libraries, may it be missing? */
#define REAL_LIBC_FUNCTIONS(ROW)                                                                                      \
	ROW(long, syscall, (long number, ...), "syscall", false)                                                          \
	ROW(void *, malloc, (size_t bytes), "malloc", false)                                                              \
	ROW(void *, calloc, (size_t count, size_t bytes), "calloc", false)                                                \
	ROW(void *, realloc, (void *old, size_t bytes), "realloc", false)                                                 \
	ROW(void, free, (void *addr), "free", false)                                                                      \
	ROW(int, posix_memalign, (void **addr, size_t alignment, size_t bytes), "posix_memalign", false)                  \
	ROW(void *, aligned_alloc, (size_t alignment, size_t bytes), "aligned_alloc", false)                              \
	ROW(void *, memalign, (size_t alignment, size_t bytes), "memalign", false)                                        \
	ROW(void *, valloc, (size_t bytes), "valloc", false)                                                              \
	ROW(void *, pvalloc, (size_t bytes), "pvalloc", false)                                                            \
	ROW(int, malloc_trim, (size_t pad_bytes), "malloc_trim", true)                                                    \
	ROW(void, free_sized, (void *addr, size_t bytes), "free_sized", true)                                             \
	ROW(void, free_aligned_sized, (void *addr, size_t alignment, size_t bytes), "free_aligned_sized", true)           \
	ROW(void *, mmap, (void *addr, size_t bytes, int protection, int flags, int fd, off_t offset), "mmap", false)     \
	ROW(int, munmap, (void *addr, size_t bytes), "munmap", false)                                                     \
	ROW(void *, mremap, (void *old, size_t old_bytes, size_t bytes, int flags, ...), "mremap", false)                 \
	ROW(int, mprotect, (void *addr, size_t bytes, int protection), "mprotect", false)                                 \
	ROW(int, madvise, (void *addr, size_t bytes, int advice), "madvise", false)                                       \
	ROW(int, mlockall, (int flags), "mlockall", false)                                                                \
	ROW(void *, shmat, (int segment, const void *addr, int flags), "shmat", false)                                    \
	ROW(int, shmdt, (const void *addr), "shmdt", false)                                                               \
	ROW(int, sigaction, (int signal, const struct sigaction *wanted, struct sigaction *before), "sigaction", false)   \
	ROW(sighandler_t, signal, (int signal, sighandler_t handler), "signal", false)                                    \
	ROW(int, pipe2, (int ends[2], int flags), "pipe2", false)                                                         \
	ROW(int, prctl, (int operation, unsigned long a, unsigned long b, unsigned long c, unsigned long d), "prctl",     \
	    false)                                                                                                        \
	ROW(int, pthread_create,                                                                                          \
	    (pthread_t * thread, const pthread_attr_t *attributes, void *(*routine)(void *), void *argument),             \
	    "pthread_create", false)                                                                                      \
	ROW(int, pthread_cond_signal, (pthread_cond_t * condition), "pthread_cond_signal", true)                          \
	ROW(int, thrd_create, (thrd_t * thread, thrd_start_t routine, void *argument), "thrd_create", true)               \
	ROW(void, longjmp, (struct __jmp_buf_tag target[1], int value) __attribute__((noreturn)), "longjmp", false)       \
	ROW(void, _longjmp, (struct __jmp_buf_tag target[1], int value) __attribute__((noreturn)), "_longjmp", false)     \
	ROW(void, siglongjmp, (struct __jmp_buf_tag target[1], int value) __attribute__((noreturn)), "siglongjmp", false) \
	ROW(void, longjmp_chk, (struct __jmp_buf_tag target[1], int value) __attribute__((noreturn)), "__longjmp_chk",    \
	    false)                                                                                                        \
	ROW(void, _exit, (int status) __attribute__((noreturn)), "_exit", false)                                          \
	ROW(void, exit, (int status) __attribute__((noreturn)), "exit", false)                                            \
	ROW(void, quick_exit, (int status) __attribute__((noreturn)), "quick_exit", true)                                 \
	ROW(int, cxa_atexit, (void (*handler)(void *argument), void *argument, void *object), "__cxa_atexit", false)      \
	ROW(int, on_exit, (void (*handler)(int status, void *argument), void *argument), "on_exit", false)                \
	ROW(int, start_main,                                                                                              \
	    (real_libc_main * main, int count, char **arguments, void (*init)(void), void (*end)(void),                   \
	     void (*loader_end)(void), void *stack_end),                                                                  \
	    "__libc_start_main", false)                                                                                   \
	ROW(int, setuid, (uid_t user), "setuid", false)                                                                   \
	ROW(int, seteuid, (uid_t user), "seteuid", false)                                                                 \
	ROW(int, setreuid, (uid_t real, uid_t user), "setreuid", false)                                                   \
	ROW(int, setresuid, (uid_t real, uid_t user, uid_t saved), "setresuid", false)                                    \
	ROW(int, chroot, (const char *path), "chroot", false)                                                             \
	ROW(pid_t, fork, (void), "fork", false)                                                                           \
	ROW(int, daemon, (int keeps_folder, int keeps_streams), "daemon", false)                                          \
	ROW(int, execve, (const char *path, char *const argv[], char *const envp[]), "execve", false)                     \
	ROW(int, execvpe, (const char *file, char *const argv[], char *const envp[]), "execvpe", false)                   \
	ROW(int, fexecve, (int fd, char *const argv[], char *const envp[]), "fexecve", false)                             \
	ROW(int, execveat, (int folder_fd, const char *path, char *const argv[], char *const envp[], int flags),          \
	    "execveat", true)

struct real_libc {
#define REAL_LIBC_MEMBER(result, member, parameters, name, is_optional) result(*member) parameters;
	REAL_LIBC_FUNCTIONS(REAL_LIBC_MEMBER) // syscall first: hooks_syscall_*.c
};

/*
 * Another library, or the program itself, may come before us in the order of lookup and bring a heap of its own. Then its functions
 * are here, and the program calls them and not our hooks. A function that it does not define (reallocarray, free_sized) leads to our
 * hook, with a block of its heap: the hook passes the block on. NULL: nobody comes before us.
 */
struct real_libc_front {
	void *(*malloc)(size_t bytes);
	void *(*realloc)(void *old, size_t bytes);
	void (*free)(void *addr);
};

extern struct real_libc real_libc;
extern struct real_libc_front real_libc_front;

/* False while another call (or this thread, further down its stack) is looking them up: use the boot arena. */
bool real_libc_find(void);

/*
 * Have they been looked up? For hooks that may be called from inside another allocator (mmap): a look-up there would
 * allocate, and wait for a lock that the allocator holds.
 */
bool real_libc_is_found(void);

/*
 * Does glibc itself serve the heap, no other allocator in line? Its blocks are never closer than 32 bytes. After
 * real_libc_find(); false also where it cannot be told (before glibc 2.35).
 */
bool real_libc_heap_is_glibc(void);

#endif
