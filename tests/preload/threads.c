/*
 * threads.c - threads, signals, small stacks and jumps, each as inconvenient as a program may make it; the first argument says which.
 *
 * sequence     10,000 threads one after the other; prints by how many KiB the last 9,000 made the process grow
 * destructors  64 threads, again and again, that allocate in destructors of thread-local storage and of keys
 * small        handlers on a signal stack that leaves them 4 KiB, in threads and as the first thing that a forked child does
 * coroutines   on stacks of 4 KiB, with nothing below
 * jumps        longjmp across frames that allocated
 * interrupts   a handler that maps and unmaps memory while its thread allocates
 * cancel       threads that are cancelled, at a point for it and anywhere
 * loader       allocates in the callback of dl_iterate_phdr() while another thread loads and unloads
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE ((size_t)4096)
#define THREADS 64

static __attribute__((noinline)) void
come_and_go(size_t bytes)
{
	void *volatile block = malloc(bytes);

	free(block);
}

static void
run_threads(unsigned count, void *(*work)(void *))
{
	pthread_t thread[THREADS];

	for (unsigned i = 0; i < count; i++) {
		if (pthread_create(&thread[i], NULL, work, NULL) != 0)
			abort();
	}
	for (unsigned i = 0; i < count; i++)
		pthread_join(thread[i], NULL);
}

/* ---- many threads ---- */

static void *
allocate_a_little(void *unused)
{
	for (size_t i = 0; i < 20; i++)
		come_and_go(100 + i);
	return unused;
}

static long
resident_kib(void)
{
	static char line[256]; // statm is off by some hundred pages for each processor
	long kib = -1;
	FILE *file = fopen("/proc/self/smaps_rollup", "r");

	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		sscanf(line, "Rss: %ld", &kib);
	if (kib < 0)
		abort();
	fclose(file);
	return kib;
}

static void
sequence(void)
{
	long before = 0;

	for (int i = 0; i < 10000; i++) {
		run_threads(1, allocate_a_little);
		if (i == 1000)
			before = resident_kib();
	}
	printf("%ld\n", resident_kib() - before);
}

/* ---- destructors ---- */

#define ROUNDS 4
#define VALUE ((void *)1)

extern void *__dso_handle;
extern int __cxa_thread_atexit_impl(void (*destructor)(void *), void *object, void *handle);

static pthread_key_t key;

static void
key_destructor(void *unused)
{
	void *volatile kept = malloc(1000);

	(void)kept;
	(void)unused;
	come_and_go(70);
	pthread_setspecific(key, VALUE); // it will be called again, PTHREAD_DESTRUCTOR_ITERATIONS times in all
}

static void
tls_destructor(void *unused)
{
	void *volatile kept = malloc(500);

	(void)kept;
	(void)unused;
	come_and_go(80);
}

static void *
leave_destructors(void *unused)
{
	come_and_go(90);
	pthread_setspecific(key, VALUE);
	__cxa_thread_atexit_impl(tls_destructor, NULL, &__dso_handle);
	return unused;
}

static void
destructors(void)
{
	pthread_key_create(&key, key_destructor);
	for (int i = 0; i < ROUNDS; i++)
		run_threads(THREADS, leave_destructors);
}

/* ---- small stacks ---- */

/* The lowest page of memory that faults below. */
static char *
guarded(size_t bytes)
{
	/* Unseen: the first event of a thread is to come on the small stack. */
	char *memory = (char *)syscall(SYS_mmap, NULL, PAGE + bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
	                               -1, 0);

	if (memory == MAP_FAILED || mprotect(memory, PAGE, PROT_NONE) != 0)
		abort();
	return memory + PAGE;
}

static _Atomic int handled;

static void
allocate_in_handler(int number)
{
	(void)number;
	come_and_go(200);
	atomic_fetch_add(&handled, 1);
}

static size_t
signal_stack_bytes(void)
{
	return ((size_t)sysconf(_SC_MINSIGSTKSZ) + PAGE + 63) & ~(size_t)63; // of the kernel's frame, and of the handler
}

static void *
handle_on_small_stack(void *unused)
{
	stack_t stack = { .ss_size = signal_stack_bytes() }, none = { .ss_flags = SS_DISABLE };

	stack.ss_sp = guarded((stack.ss_size + PAGE - 1) & ~(PAGE - 1));
	if (sigaltstack(&stack, NULL) != 0)
		abort();
	for (int i = 0; i < 100; i++)
		pthread_kill(pthread_self(), SIGUSR1);
	sigaltstack(&none, NULL);
	return unused;
}

static void
small(void)
{
	struct sigaction action = { .sa_handler = allocate_in_handler, .sa_flags = SA_ONSTACK };

	come_and_go(60); // bound: the dynamic linker takes 3 KiB, too
	sigaction(SIGUSR1, &action, NULL);
	run_threads(3, handle_on_small_stack); // as a thread's first event
	handle_on_small_stack(NULL);
	printf("handled %d\n", handled);
	for (int i = 0; i < 3; i++) {
		int status = -1;
		pid_t child = fork();

		if (child == 0) {
			handle_on_small_stack(NULL);
			_exit(0);
		}
		printf("child %d", waitpid(child, &status, 0) == child);
		printf(" status %x\n", status);
	}
}

#define COROUTINES 64
#define SWITCHES 20

static ucontext_t scheduler, coroutine[COROUTINES];
static int current;

static __attribute__((noinline)) void
at_depth(int depth)
{
	if (depth > 0)
		at_depth(depth - 1);
	come_and_go(100 + (size_t)depth);
	__asm__ volatile(""); // no tail call
}

static void
coroutine_main(void)
{
	for (int i = 0; i < SWITCHES; i++) {
		at_depth(i % 5);
		swapcontext(&coroutine[current], &scheduler);
	}
}

static void
coroutines(void)
{
	come_and_go(60);
	for (int i = 0; i < COROUTINES; i++) {
		getcontext(&coroutine[i]);
		coroutine[i].uc_stack.ss_sp = guarded(PAGE);
		coroutine[i].uc_stack.ss_size = PAGE;
		coroutine[i].uc_link = &scheduler;
		makecontext(&coroutine[i], coroutine_main, 0);
	}
	for (int i = 0; i <= SWITCHES; i++) {
		for (current = 0; current < COROUTINES; current++)
			swapcontext(&scheduler, &coroutine[current]);
	}
}

/* ---- jumps ---- */

static jmp_buf target;
static volatile bool is_far = true;

static __attribute__((noinline)) void
jump_from(int depth)
{
	come_and_go(100);
	if (depth > 0)
		jump_from(depth - 1);
	if (is_far)
		longjmp(target, 1);
}

static void
jumps(void)
{
	for (volatile int i = 0; i < 300; i++) {
		if (setjmp(target) == 0)
			jump_from(i % 60);
		come_and_go(100);
		at_depth(i % 7);
	}
}

/* ---- interruptions ---- */

static void
map_in_handler(int number)
{
	void *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)number;
	if (memory == MAP_FAILED || munmap(memory, PAGE) != 0)
		abort();
	atomic_fetch_add(&handled, 1);
}

static void *
allocate_until_handled(void *unused)
{
	while (atomic_load(&handled) < 300) {
		at_depth(20);
		void *volatile mapped = malloc((size_t)1 << 20); // grows and shrinks the heap's mappings
		free(mapped);
	}
	return unused;
}

static void
interrupts(void)
{
	struct sigaction action = { .sa_handler = map_in_handler, .sa_flags = SA_RESTART };
	struct itimerval every = { { 0, 500 }, { 0, 500 } }, never = { { 0, 0 }, { 0, 0 } };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	run_threads(2, allocate_until_handled);
	setitimer(ITIMER_REAL, &never, NULL);
}

/* ---- cancellation ---- */

static void
release(void *block)
{
	free(block);
}

static pthread_barrier_t is_there;

static void *
wait_for_deferred(void *unused)
{
	void *block = malloc(3000);

	pthread_cleanup_push(release, block);
	pthread_barrier_wait(&is_there);
	for (;;) {
		at_depth(5);
		pthread_testcancel();
	}
	pthread_cleanup_pop(1);
	return unused;
}

static void *
wait_for_any(void *unused)
{
	void *block = malloc(3000);
	volatile unsigned long turns = 0;

	pthread_cleanup_push(release, block);
	at_depth(5);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	pthread_barrier_wait(&is_there);
	for (;;)
		turns++;
	pthread_cleanup_pop(1);
	return unused;
}

static void
cancel(void)
{
	pthread_barrier_init(&is_there, NULL, 2);
	for (int i = 0; i < 200; i++) {
		pthread_t thread;
		void *result;

		if (pthread_create(&thread, NULL, i % 2 != 0 ? wait_for_deferred : wait_for_any, NULL) != 0)
			abort();
		pthread_barrier_wait(&is_there);
		pthread_cancel(thread);
		pthread_join(thread, &result);
		if (result != PTHREAD_CANCELED)
			abort();
	}
}

/* ---- the loader's lock ---- */

static _Atomic bool is_over;

static int
allocate_in_callback(struct dl_phdr_info *info, size_t bytes, void *unused)
{
	(void)info;
	(void)unused;
	come_and_go(bytes);
	return 0;
}

static void *
iterate(void *unused)
{
	while (!atomic_load(&is_over)) {
		dl_iterate_phdr(allocate_in_callback, NULL);
		at_depth(3);
	}
	return unused;
}

static void *
load(void *unused)
{
	for (int i = 0; i < 200; i++) {
		void *library = dlopen("libresolv.so.2", RTLD_NOW);

		if (library == NULL)
			abort();
		at_depth(4);
		dlclose(library);
	}
	return unused;
}

static void
loader(void)
{
	pthread_t iterating[2], loading;

	for (int i = 0; i < 2; i++)
		pthread_create(&iterating[i], NULL, iterate, NULL);
	pthread_create(&loading, NULL, load, NULL);
	pthread_join(loading, NULL);
	atomic_store(&is_over, true);
	for (int i = 0; i < 2; i++)
		pthread_join(iterating[i], NULL);
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{ "sequence", sequence }, { "destructors", destructors }, { "small", small },   { "coroutines", coroutines },
		{ "jumps", jumps },       { "interrupts", interrupts },   { "cancel", cancel }, { "loader", loader },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (argc > 1 && strcmp(argv[1], cases[i].name) == 0) {
			cases[i].run();
			puts("done");
			return 0;
		}
	}
	return 2;
}
