/*
 * beyond.c - what does an event cost when there are many of something? (cliffs.py; of Python: beyond.py)
 *
 *   beyond stacks N EVENTS            N stacks of calls, one after the other
 *   beyond sites N EVENTS             N call sites: 200, 400 ... 20,000; of cudaMalloc in beyond-cuda
 *   beyond blocks N EVENTS            N blocks that live, one is replaced at random
 *   beyond threads N EVENTS           N threads that live, EVENTS of each
 *   beyond libraries N EVENTS FOLDER  a call site in each of N libraries: FOLDER/0.so and so on (beyond_library.c)
 *   beyond reservations N EVENTS      N mappings of a library's own allocator; an event maps and unmaps other memory
 *
 * Else an event is a block that is allocated and released. EVENTS in whole passes, after some to warm up.
 *
 * On failure  a message and exit 1.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "steady.h"

#define NOINLINE __attribute__((noinline))
#define PASSES 3
#define STACKS_PASSES 20 // of very many stacks one in 16 is remembered at a time
#define THREAD_STACK_BYTES ((size_t)64 << 10)

static void *volatile kept;
static unsigned long size;
static unsigned long events;
static const char *folder;
static void **blocks;
static void (**functions)(void);

static void
require(bool holds, const char *what)
{
	if (holds)
		return;
	(void)fprintf(stderr, "beyond: %s\n", what);
	exit(1);
}

/* ---- stacks: each bit of the number chooses what is called next. No function calls itself: a run of one frame is recorded once ---- */

typedef void *descend_function(unsigned long number, unsigned depth);
static descend_function left_even, right_even, left_odd, right_odd;

#define DESCEND(name, left, right)                                                             \
	static NOINLINE void *name(unsigned long number, unsigned depth)                           \
	{                                                                                          \
		void *block = depth == 0        ? malloc(100)                                          \
		              : number % 2 == 0 ? left(number / 2, depth - 1)                          \
		                                : right(number / 2, depth - 1);                        \
		__asm__ volatile("# " #name : "+r"(block)); /* what is done after a call is no jump */ \
		return block;                                                                          \
	}
DESCEND(left_even, left_odd, right_odd)
DESCEND(right_even, left_odd, right_odd)
DESCEND(left_odd, left_even, right_even)
DESCEND(right_odd, left_even, right_even)

static unsigned long
pass_stacks(void)
{
	unsigned depth = 4;

	while (1ul << depth < size)
		depth++;
	for (unsigned long i = 0; i < size; i++)
		free(left_even(i, depth));
	return size;
}

static unsigned long
pass_blocks(void)
{
	static uint64_t drawn = 1;

	for (unsigned long i = 0; i < size; i++) {
		drawn = drawn * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		free(blocks[(drawn >> 33) % size]);
		blocks[(drawn >> 33) % size] = malloc(100);
	}
	return size;
}

/* ---- call sites: 100 functions of 200 ---- */

#ifdef CUDA // over the doubles of tests/cuda
#include "../../../shim/gpu/cuda_abi.h"
#define PAIR() ((void)cudaMalloc((void **)&kept, 4096), (void)cudaFree(kept));
#else
#define PAIR() (kept = malloc(100), free(kept));
#endif
#define TIMES10(what) what what what what what what what what what what
#define PAIR10() PAIR() PAIR() PAIR() PAIR() PAIR() PAIR() PAIR() PAIR() PAIR() PAIR()
#define EACH10(row, n) \
	row(n##0) row(n##1) row(n##2) row(n##3) row(n##4) row(n##5) row(n##6) row(n##7) row(n##8) row(n##9)
#define EACH50(row, n) EACH10(row, n##0) EACH10(row, n##1) EACH10(row, n##2) EACH10(row, n##3) EACH10(row, n##4)
#define SITES 200
#define SITES_OF(n)                         \
	static NOINLINE void sites_##n(void)    \
	{                                       \
		__asm__ volatile("# " #n);          \
		TIMES10(PAIR10()) TIMES10(PAIR10()) \
	}
#define NAME_OF(n) sites_##n,
EACH50(SITES_OF, a)
EACH50(SITES_OF, b)
static void (*const sites[])(void) = { EACH50(NAME_OF, a) EACH50(NAME_OF, b) };

static unsigned long
pass_sites(void)
{
	require(size % SITES == 0 && size / SITES <= sizeof(sites) / sizeof(sites[0]), "200, 400 ... 20,000 sites");
	for (unsigned long i = 0; i < size / SITES; i++)
		sites[i]();
	return size;
}

/* ---- libraries, and what they reserve ---- */

static unsigned long
pass_libraries(void)
{
	for (unsigned long i = 0; i < size; i++) {
		if (functions[i] == NULL) {
			char path[4096];
			void *library;

			(void)snprintf(path, sizeof(path), "%s/%lu.so", folder, i);
			library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
			require(library != NULL, "a library cannot be loaded");
			*(void **)&functions[i] = dlsym(library, "beyond_pair");
		}
		functions[i]();
	}
	return size;
}

static void *
map(size_t bytes, int protection, int flags)
{
	void *mapped = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	require(mapped != MAP_FAILED, "no memory");
	return mapped;
}

static unsigned long
pass_reservations(void)
{
	static unsigned long made;

	for (; made < size; made++) {
		(void)map((size_t)1 << 20, PROT_READ | PROT_WRITE, MAP_NORESERVE);
		(void)map((size_t)64 << 10, PROT_NONE, 0); // two of them would be one if nothing lay between
	}
	return munmap(map((size_t)64 << 10, PROT_READ | PROT_WRITE, 0), (size_t)64 << 10) == 0;
}

/* ---- threads: all wait until the last one is there ---- */

static pthread_barrier_t barrier;

static void *
thread_events(void *unused)
{
	for (unsigned long i = 0; i < STACKS_PASSES + events; i++) {
		if (i == STACKS_PASSES) {
			(void)pthread_barrier_wait(&barrier);
			(void)pthread_barrier_wait(&barrier);
		}
		free(left_even(0, 10));
	}
	(void)pthread_barrier_wait(&barrier);
	return unused;
}

static void
measure_threads(void)
{
	struct steady_time start;
	pthread_attr_t attributes;
	pthread_t thread;

	(void)pthread_barrier_init(&barrier, NULL, (unsigned)size + 1);
	(void)pthread_attr_init(&attributes);
	(void)pthread_attr_setstacksize(&attributes, THREAD_STACK_BYTES);
	for (unsigned long i = 0; i < size; i++)
		require(pthread_create(&thread, &attributes, thread_events, NULL) == 0, "no thread");
	(void)pthread_barrier_wait(&barrier);
	start = steady_now();
	(void)pthread_barrier_wait(&barrier);
	(void)pthread_barrier_wait(&barrier);
	steady_report(start, steady_now(), events * size);
}

/* All passes from one place: from another one they would be other stacks. */
static void
measure(unsigned long pass(void), unsigned long passes)
{
	struct steady_time start;
	unsigned long done;

	for (int phase = 0; phase < 2; phase++) { // the first one warms up
		start = steady_now();
		done = 0;
		for (unsigned long i = 0; i < passes; i++)
			done += pass();
		passes = (events * passes + done - 1) / done;
	}
	steady_report(start, steady_now(), done);
}

static const struct {
	const char *name;
	unsigned long (*pass)(void); // makes what it needs when it is called first; returns how many events it did
	unsigned long warm_up;       // passes
} modes[] = {
	{ "stacks", pass_stacks, STACKS_PASSES },
	{ "sites", pass_sites, PASSES },
	{ "blocks", pass_blocks, PASSES },
	{ "libraries", pass_libraries, PASSES },
	{ "reservations", pass_reservations, PASSES },
};

int
main(int word_count, char **words)
{
	require(word_count > 3, "usage: beyond stacks|sites|blocks|threads|libraries|reservations N EVENTS [FOLDER]");
	size = strtoul(words[2], NULL, 10);
	events = strtoul(words[3], NULL, 10);
	folder = word_count > 4 ? words[4] : ".";
	blocks = calloc(size, sizeof(*blocks));
	functions = calloc(size, sizeof(*functions));
#ifdef CUDA
	(void)clearenv(); // the double looks for settings in each call
#endif
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(words[1], modes[i].name) == 0)
			measure(modes[i].pass, modes[i].warm_up);
	}
	if (strcmp(words[1], "threads") == 0)
		measure_threads();
	return 0;
}
