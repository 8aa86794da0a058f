/*
 * whole.c - every kind of call that the shim stands in front of, from several threads, with a sanitizer in the shim as well.
 *
 *   whole COUNT    prints as JSON what keep() has given out and not taken back
 *
 * Built with the shim inside, whose exports have other names (names.h makes malloc hooked_malloc, and so on): the sanitizer's own
 * come next in line. Each call must do what it does without us; what is recorded is for preload/test_sanitized.py.
 */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#include "base/real_libc.h"
#include "record/tracker.h"

#define THREADS 4
#define KEPT 500
#define PAGE ((size_t)4096)

#define CHECK(condition)                                                    \
	do {                                                                    \
		if (!(condition)) {                                                 \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                        \
		}                                                                   \
	} while (0)

void free_sized(void *addr, size_t bytes);
void free_aligned_sized(void *addr, size_t alignment, size_t bytes);

static unsigned rounds;
static void *kept[THREADS][KEPT];
static _Atomic(void *) mail[64]; // blocks on their way to another thread

static __attribute__((noinline, noclone)) void *
keep(size_t bytes)
{
	return malloc(bytes);
}

static void
use_heap(unsigned round)
{
	size_t bytes = round % 3000 + 1;
	char *block = malloc(bytes);
	char *volatile sink;

	block = realloc(block, 2 * bytes);
	block[2 * bytes - 1] = 1;
	block = reallocarray(block, 3, bytes);
	free_sized(block, 3 * bytes);
	block = calloc(bytes, 2);
	CHECK(block[2 * bytes - 1] == 0);
	block = atomic_exchange(&mail[round % 64], block);
	free(block);
	CHECK(posix_memalign((void **)&block, 64, bytes) == 0 && (uintptr_t)block % 64 == 0);
	free_aligned_sized(block, 64, bytes);
	sink = aligned_alloc(64, 64 * bytes);
	free(sink);
	sink = memalign(256, bytes);
	free(sink);
	sink = valloc(bytes);
	CHECK((uintptr_t)sink % PAGE == 0);
	free(sink);
	sink = pvalloc(bytes);
	CHECK(malloc_usable_size(sink) >= bytes);
	free(sink);
	free(NULL);
	free(realloc(NULL, bytes));
	if (round % 64 == 0)
		malloc_trim(0);
}

static void
use_mappings(void)
{
	char *at = mmap(NULL, 16 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CHECK(at != MAP_FAILED && mprotect(at, 8 * PAGE, PROT_READ | PROT_WRITE) == 0);
	at[PAGE] = 7;
	CHECK(madvise(at + 2 * PAGE, PAGE, MADV_DONTNEED) == 0 && munmap(at + 4 * PAGE, PAGE) == 0);
	CHECK(mmap(at + 4 * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
	      at + 4 * PAGE);
	CHECK(munmap(at + 2 * PAGE, 14 * PAGE) == 0);
	at = mremap(at, 2 * PAGE, 64 * PAGE, MREMAP_MAYMOVE);
	CHECK(at != MAP_FAILED && at[PAGE] == 7 && munmap(at, 64 * PAGE) == 0);
	CHECK(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EINVAL);

	int segment = shmget(IPC_PRIVATE, 4 * PAGE, IPC_CREAT | 0600);

	if (segment >= 0) { // a container may have none
		at = shmat(segment, NULL, 0);
		CHECK(at != (void *)-1 && shmdt(at) == 0 && shmctl(segment, IPC_RMID, NULL) == 0);
	}
}

static void
use_loader(void)
{
	void *handle = dlopen("libutil.so.1", RTLD_NOW | RTLD_LOCAL);

	CHECK(dlsym(RTLD_DEFAULT, "getpid") != NULL && dlsym(RTLD_DEFAULT, "cuMemAlloc_v3") == NULL);
	if (handle != NULL)
		CHECK(dlclose(handle) == 0);
}

static void
use_signals(void)
{
	struct sigaction none = { .sa_handler = SIG_DFL }, before;

	CHECK(sigaction(SIGUSR2, &none, NULL) == 0 && sigaction(SIGBUS, NULL, &before) == 0);
	CHECK(signal(SIGUSR2, SIG_IGN) == SIG_DFL && signal(SIGUSR2, SIG_DFL) == SIG_IGN);
}

/* The thread sanitizer of gcc 12 does not know such threads. */
#ifdef __SANITIZE_THREAD__
static void
use_c11_thread(void)
{
}
#else
static int
in_c11_thread(void *argument)
{
	free(malloc((size_t)(uintptr_t)argument));
	return 7;
}

static void
use_c11_thread(void)
{
	thrd_t thread;
	int result;

	CHECK(thrd_create(&thread, in_c11_thread, (void *)100) == thrd_success);
	CHECK(thrd_join(thread, &result) == thrd_success && result == 7);
}
#endif

static void *
work(void *argument)
{
	unsigned thread = (unsigned)(uintptr_t)argument;

	for (unsigned round = 0; round < rounds; round++) {
		use_heap(round * THREADS + thread);
		if (round % 16 == 0)
			use_mappings();
		if (round % KEPT == round) {
			kept[thread][round] = keep(round + 1);
			if (round % 2 == 1)
				free(kept[thread][round]);
		}
	}
	return NULL;
}

/* In this process alone; children of a program with threads are another matter for the sanitizers. */
static void
use_children(void)
{
	char *const argv[] = { "true", NULL };
	pid_t child = fork();
	int status;

	if (child == 0) {
		for (unsigned i = 0; i < 100; i++)
			free(malloc(i));
		use_mappings();
		CHECK(execv("/nowhere", argv) == -1 && errno == ENOENT);
		_exit(3);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3);
	child = fork();
	if (child == 0) {
		execvp("true", argv);
		_Exit(1);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	child = fork();
	if (child == 0) {
		CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
		work(0);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* As in stress/handed_on.c: does who finds that recording is on see the whole start? In a child, which starts anew. */
static uint64_t handed_on;
static _Atomic unsigned turn; // relaxed

static void *
start_recording(void *unused)
{
	handed_on = 1;
	free(malloc(1));
	atomic_fetch_add_explicit(&turn, 1, memory_order_relaxed);
	return unused;
}

static void *
ask(void *how)
{
	while (atomic_load_explicit(&turn, memory_order_relaxed) == 0)
		usleep(100);
	CHECK(how == NULL ? tracker_is_awake() : tracker_is_on());
	CHECK(handed_on == 1);
	return NULL;
}

static void
hand_on_a_start(void)
{
	void *(*const acts[])(void *) = { ask, ask, start_recording };
	pthread_t threads[3];
	int status;
	pid_t child = fork();

	if (child == 0) {
		for (unsigned i = 0; i < 3; i++) // not by our hook, which would start it
			CHECK(real_libc.pthread_create(&threads[i], NULL, acts[i], i == 0 ? NULL : &turn) == 0);
		for (unsigned i = 0; i < 3; i++)
			pthread_join(threads[i], NULL);
		exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int
main(int argc, char **argv)
{
	pthread_t threads[THREADS];

	if (argc != 2)
		return 2;
	rounds = (unsigned)atoi(argv[1]);
	hand_on_a_start();
	use_signals();
	use_children();
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
	for (unsigned i = 0; i < 20; i++)
		use_loader();
	use_c11_thread();
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < 64; i++)
		free(atomic_exchange(&mail[i], NULL));

	unsigned count = rounds < KEPT ? rounds : KEPT;
	unsigned live = 0, bytes = 0, all = 0;

	for (unsigned i = 0; i < count; i++) {
		all += i + 1;
		live += i % 2 == 0;
		bytes += i % 2 == 0 ? i + 1 : 0;
	}
	printf("{\"live_count\": %u, \"live_bytes\": %u, \"allocated_count\": %u, \"allocated_bytes\": %u}\n",
	       THREADS * live, THREADS * bytes, THREADS * count, THREADS * all);
	return 0;
}
