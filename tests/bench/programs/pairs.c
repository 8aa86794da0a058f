/*
 * pairs.c - what does one malloc and one free cost, by stack depth, threads and who frees?
 *
 *   pairs MODE THREADS DEPTH PAIRS [PATHS]     PAIRS for each thread, after a quarter as many to warm up
 *
 *   own      each thread replaces random blocks of its own 10,000, from a call site of its own (8 sites in turn)
 *   same     the same, all threads from one call site
 *   cross    each thread frees what its neighbour allocated, through a ring of 1,024 blocks
 *   window   8,192 blocks of 16 to 4,096 bytes, allocated, then freed in random order
 *
 * DEPTH frames lie between the thread's function and the one that allocates. With PATHS > 1 each event descends by one
 * of that many ways (half of the frames differ from the way before), instead of by the one way that is always the same.
 * Every thread is a second thread, also when there is one: 1 and 2 threads then differ in nothing else.
 *
 * On failure  a message and exit 1.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "steady.h"

#define NOINLINE __attribute__((noinline))
#define THREADS_MAX 64
#define SLOTS 10000
#define WINDOW 8192
#define RING 1024 // a power of two

enum mode { OWN, SAME, CROSS, WINDOWS };
static const char *const mode_names[] = { "own", "same", "cross", "window" };

/*
 * Blocks on their way to the neighbour: one thread puts, one takes.
 *   R1  put - taken is the number of blocks inside, at most RING.
 */
struct ring {
	_Alignas(64) _Atomic uint64_t put;
	_Alignas(64) _Atomic uint64_t taken;
	void *blocks[RING];
};

struct worker {
	_Alignas(64) void *block; // what the leaf frees, then what it allocated
	size_t bytes;
	uint64_t path; // one bit a frame
	uint64_t random;
	bool frees;
	bool allocates;
	void (*leaf)(struct worker *worker);
	void *held[SLOTS > WINDOW ? SLOTS : WINDOW];
	struct ring *to;
	struct ring *from;
	pthread_t thread;
};

static enum mode mode;
static unsigned thread_count;
static unsigned depth;
static unsigned path_count = 1;
static uint64_t pair_count;
static struct worker workers[THREADS_MAX];
static struct ring rings[THREADS_MAX];
static pthread_barrier_t barrier;

static uint64_t
random_next(struct worker *worker)
{
	worker->random ^= worker->random << 13;
	worker->random ^= worker->random >> 7;
	worker->random ^= worker->random << 17;
	return worker->random;
}

/* Call sites: one function each, and a different text in each so that the compiler does not fold them into one. */
#define LEAF(number)                                          \
	static NOINLINE void leaf_##number(struct worker *worker) \
	{                                                         \
		if (worker->frees)                                    \
			free(worker->block);                              \
		if (worker->allocates) {                              \
			worker->block = malloc(worker->bytes);            \
			if (worker->block == NULL)                        \
				abort();                                      \
			memset(worker->block, 1, 16);                     \
		}                                                     \
		__asm__ volatile("# leaf " #number ::: "memory");     \
	}
LEAF(0)
LEAF(1)
LEAF(2)
LEAF(3)
LEAF(4)
LEAF(5)
LEAF(6)
LEAF(7)

static void (*const leaves[])(struct worker *) = { leaf_0, leaf_1, leaf_2, leaf_3, leaf_4, leaf_5, leaf_6, leaf_7 };

static int descend_right(struct worker *worker, unsigned frames);

/* The work after the call keeps it from becoming a jump. */
#define DESCEND(name)                                                \
	static NOINLINE int name(struct worker *worker, unsigned frames) \
	{                                                                \
		int below = 0;                                               \
		if (frames == 0)                                             \
			worker->leaf(worker);                                    \
		else if (worker->path >> (frames & 63) & 1)                  \
			below = descend_right(worker, frames - 1);               \
		else                                                         \
			below = descend_left(worker, frames - 1);                \
		__asm__ volatile("# " #name : "+r"(below));                  \
		return below + 1;                                            \
	}
static int descend_left(struct worker *worker, unsigned frames);
DESCEND(descend_left)
DESCEND(descend_right)

static void
event(struct worker *worker, bool frees, bool allocates)
{
	worker->frees = frees;
	worker->allocates = allocates;
	if (path_count > 1) {
		uint64_t which = random_next(worker) % path_count + 1;

		worker->path = which * 0x9e3779b97f4a7c15u;
	}
	(void)descend_left(worker, depth);
}

static void
replace_pairs(struct worker *worker, uint64_t pairs)
{
	for (uint64_t i = 0; i < pairs; i++) {
		uint64_t random = random_next(worker);
		void **slot = &worker->held[(random >> 32) % SLOTS];

		worker->bytes = 16 + random % 1024;
		worker->block = *slot;
		event(worker, true, true);
		*slot = worker->block;
	}
}

static void
window_pairs(struct worker *worker, uint64_t pairs)
{
	for (uint64_t done = 0; done < pairs; done += WINDOW) {
		for (unsigned i = 0; i < WINDOW; i++) {
			worker->bytes = 16 + random_next(worker) % 4081;
			event(worker, false, true);
			worker->held[i] = worker->block;
		}
		for (unsigned left = WINDOW; left > 0; left--) {
			unsigned pick = (unsigned)(random_next(worker) % left);

			worker->block = worker->held[pick];
			worker->held[pick] = worker->held[left - 1];
			event(worker, true, false);
		}
	}
}

/* Puts `pairs` blocks and takes as many; a thread that can do neither lets the other run. */
static void
cross_pairs(struct worker *worker, uint64_t pairs)
{
	uint64_t made = 0, freed = 0;

	while (made < pairs || freed < pairs) {
		// relaxed: the own index, nobody else writes it. acquire on the other's: pairs with its release below.
		uint64_t put = atomic_load_explicit(&worker->to->put, memory_order_relaxed);
		uint64_t taken = atomic_load_explicit(&worker->from->taken, memory_order_relaxed);
		bool has_room = made < pairs && put - atomic_load_explicit(&worker->to->taken, memory_order_acquire) < RING;
		bool has_block = false;

		if (has_room) {
			worker->bytes = 16 + random_next(worker) % 1024;
			event(worker, false, true);
			worker->to->blocks[put % RING] = worker->block;
			atomic_store_explicit(&worker->to->put, put + 1, memory_order_release);
			made++;
		}
		has_block = freed < pairs && atomic_load_explicit(&worker->from->put, memory_order_acquire) != taken;
		if (has_block) {
			worker->block = worker->from->blocks[taken % RING];
			event(worker, true, false);
			atomic_store_explicit(&worker->from->taken, taken + 1, memory_order_release);
			freed++;
		}
		if (!has_room && !has_block)
			(void)sched_yield();
	}
}

static void
work(struct worker *worker, uint64_t pairs)
{
	if (mode == CROSS)
		cross_pairs(worker, pairs);
	else if (mode == WINDOWS)
		window_pairs(worker, pairs);
	else
		replace_pairs(worker, pairs);
}

static void *
worker_run(void *argument)
{
	struct worker *worker = argument;

	work(worker, pair_count / 4);
	(void)pthread_barrier_wait(&barrier);
	(void)pthread_barrier_wait(&barrier);
	work(worker, pair_count);
	(void)pthread_barrier_wait(&barrier);
	return NULL;
}

static bool
read_arguments(int count, char **words)
{
	if (count < 5)
		return false;
	for (mode = OWN; mode <= WINDOWS && strcmp(words[1], mode_names[mode]) != 0; mode++)
		;
	thread_count = (unsigned)atoi(words[2]);
	depth = (unsigned)atoi(words[3]);
	pair_count = strtoull(words[4], NULL, 10);
	if (mode == WINDOWS) // whole windows only: what is reported is what was done
		pair_count = (pair_count + WINDOW - 1) / WINDOW * WINDOW;
	if (count > 5)
		path_count = (unsigned)atoi(words[5]);
	return mode <= WINDOWS && thread_count >= 1 && thread_count <= THREADS_MAX && pair_count > 0 && path_count > 0;
}

int
main(int count, char **words)
{
	struct steady_time start, end;

	if (!read_arguments(count, words)) {
		(void)fputs("usage: pairs own|same|cross|window THREADS(1-64) DEPTH PAIRS [PATHS]\n", stderr);
		return 1;
	}
	(void)pthread_barrier_init(&barrier, NULL, thread_count + 1);
	for (unsigned i = 0; i < thread_count; i++) {
		struct worker *worker = &workers[i];

		worker->random = 0x9e3779b97f4a7c15u * (i + 1);
		worker->leaf = leaves[mode == OWN ? i % (sizeof(leaves) / sizeof(leaves[0])) : 0];
		worker->to = &rings[i];
		worker->from = &rings[(i + 1) % thread_count];
		if (pthread_create(&worker->thread, NULL, worker_run, worker) != 0) {
			(void)fputs("pairs: no thread\n", stderr);
			return 1;
		}
	}
	(void)pthread_barrier_wait(&barrier);
	start = steady_now();
	(void)pthread_barrier_wait(&barrier);
	(void)pthread_barrier_wait(&barrier);
	end = steady_now();
	for (unsigned i = 0; i < thread_count; i++)
		(void)pthread_join(workers[i].thread, NULL);
	steady_report(start, end, (unsigned long)(pair_count * thread_count));
	return 0;
}
