/*
 * real_libc.h - the functions that our hooks stand in front of: the next ones in line, which may be another preload's.
 *
 * When failing  a function that does not exist here stays NULL (free_sized, malloc_trim).
 */
#ifndef REAL_LIBC_H
#define REAL_LIBC_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <threads.h>

typedef int real_libc_main(int count, char **arguments, char **variables);

struct real_libc {
	long (*syscall)(long number, ...); // first: hooks_syscall.c
	void *(*malloc)(size_t bytes);
	void *(*calloc)(size_t count, size_t bytes);
	void *(*realloc)(void *old, size_t bytes);
	void (*free)(void *addr);
	int (*posix_memalign)(void **addr, size_t alignment, size_t bytes);
	void *(*aligned_alloc)(size_t alignment, size_t bytes);
	void *(*memalign)(size_t alignment, size_t bytes);
	void *(*valloc)(size_t bytes);
	void *(*pvalloc)(size_t bytes);
	int (*malloc_trim)(size_t pad_bytes);
	void (*free_sized)(void *addr, size_t bytes);
	void (*free_aligned_sized)(void *addr, size_t alignment, size_t bytes);
	void *(*mmap)(void *addr, size_t bytes, int protection, int flags, int fd, off_t offset);
	int (*munmap)(void *addr, size_t bytes);
	void *(*mremap)(void *old, size_t old_bytes, size_t bytes, int flags, ...);
	int (*mprotect)(void *addr, size_t bytes, int protection);
	int (*madvise)(void *addr, size_t bytes, int advice);
	int (*mlockall)(int flags);
	void *(*shmat)(int segment, const void *addr, int flags);
	int (*shmdt)(const void *addr);
	int (*sigaction)(int signal, const struct sigaction *wanted, struct sigaction *before);
	sighandler_t (*signal)(int signal, sighandler_t handler);
	int (*pipe2)(int ends[2], int flags);
	int (*prctl)(int operation, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
	int (*pthread_create)(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *),
	                      void *argument);
	int (*pthread_cond_signal)(pthread_cond_t *condition);
	int (*thrd_create)(thrd_t *thread, thrd_start_t routine, void *argument);
	void (*_exit)(int status) __attribute__((noreturn));
	void (*exit)(int status) __attribute__((noreturn));
	void (*quick_exit)(int status) __attribute__((noreturn));
	int (*cxa_atexit)(void (*handler)(void *argument), void *argument, void *object); // __cxa_atexit
	int (*on_exit)(void (*handler)(int status, void *argument), void *argument);
	int (*start_main)(real_libc_main *main, int count, char **arguments, void (*init)(void), void (*end)(void),
	                  void (*loader_end)(void), void *stack_end); // __libc_start_main
	int (*setuid)(uid_t user);
	int (*seteuid)(uid_t user);
	int (*setreuid)(uid_t real, uid_t user);
	int (*setresuid)(uid_t real, uid_t user, uid_t saved);
	int (*chroot)(const char *path);
	int (*daemon)(int keeps_folder, int keeps_streams);
	int (*execve)(const char *path, char *const argv[], char *const envp[]);
	int (*execvpe)(const char *file, char *const argv[], char *const envp[]);
	int (*fexecve)(int fd, char *const argv[], char *const envp[]);
	int (*execveat)(int folder_fd, const char *path, char *const argv[], char *const envp[], int flags);
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
 * Who defines this function first, for the program? NULL: nobody. Not dlsym(RTLD_DEFAULT), for which it is a place in a program that takes
 * a function's address and is not position-independent, whoever defines the function. While the library is loaded.
 */
void *real_libc_first(const char *name);

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
