/*
 * stacks.c - allocates on every kind of stack that a thread can run on; the first argument says which.
 *
 * lock   a thread whose first allocation is made by libc under the thread's own lock
 * small  the default stack, which the limit makes a small one
 * kinds  default, small, the program's own and coroutine stacks, shallow and deep
 * files  prints which descriptors are open
 */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define STACK_BYTES ((size_t)1 << 20)

static void *
ask_for_own_stack(void *unused)
{
	pthread_attr_t attributes;

	pthread_getattr_np(pthread_self(), &attributes); // reallocs under the lock that it needs itself
	pthread_attr_destroy(&attributes);
	return unused;
}

static __attribute__((noinline)) void
dive(int depth)
{
	volatile char room[400];

	room[0] = 1;
	void *volatile block = malloc(100 + (size_t)depth % 10);
	free(block);
	if (depth > 0)
		dive(depth - 1);
	room[1] = 1;
}

static void *
shallow_and_deep(void *unused)
{
	dive(3);
	dive(100);
	dive(5);
	return unused;
}

static ucontext_t resumer, coroutine;

static void
coroutine_main(void)
{
	dive(50);
}

/* The coroutine's stack is as near below the thread's as the kernel puts it. */
static void *
run_coroutine(void *unused)
{
	void *memory = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	dive(3);
	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = memory;
	coroutine.uc_stack.ss_size = STACK_BYTES;
	coroutine.uc_link = &resumer;
	makecontext(&coroutine, coroutine_main, 0);
	swapcontext(&resumer, &coroutine);
	dive(3);
	munmap(memory, STACK_BYTES);
	return unused;
}

static void
run_thread(void *(*work)(void *), void *stack, size_t bytes)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	if (stack != NULL)
		pthread_attr_setstack(&attributes, stack, bytes);
	else if (bytes != 0)
		pthread_attr_setstacksize(&attributes, bytes);
	if (pthread_create(&thread, &attributes, work, NULL) != 0)
		abort();
	pthread_join(thread, NULL);
}

static void *
small(void *unused)
{
	dive(30);
	return unused;
}

static void
kinds(void)
{
	void *own = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *from_heap = aligned_alloc(4096, STACK_BYTES);

	run_thread(shallow_and_deep, NULL, 0);
	run_thread(shallow_and_deep, NULL, (size_t)128 << 10);
	run_thread(shallow_and_deep, own, STACK_BYTES);
	run_thread(shallow_and_deep, from_heap, STACK_BYTES);
	run_thread(run_coroutine, NULL, 0);
	run_thread(run_coroutine, own, STACK_BYTES);
	run_coroutine(NULL);
	shallow_and_deep(NULL);
}

static int
show_file(const struct dirent *entry)
{
	char path[300], target[300];
	ssize_t bytes;

	snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
	bytes = readlink(path, target, sizeof target - 1);
	if (bytes > 0)
		printf("%s %.*s\n", entry->d_name, (int)bytes, target);
	return 0;
}

static void
files(void)
{
	struct dirent **names;

	shallow_and_deep(NULL);
	scandir("/proc/self/fd", &names, show_file, alphasort);
}

int
main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (strcmp(what, "lock") == 0)
		run_thread(ask_for_own_stack, NULL, 0);
	else if (strcmp(what, "kinds") == 0)
		kinds();
	else if (strcmp(what, "small") == 0) {
		dive(30);
		run_thread(small, NULL, 0);
	} else if (strcmp(what, "files") == 0)
		files();
	else
		return 2;
	puts("done");
	return 0;
}
