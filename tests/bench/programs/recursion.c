/*
 * recursion.c - what do stacks cost that are very deep, or another one at each event, or of coroutines?
 *
 *   recursion deep UNITS      100,000 nested calls of one function, each allocates; on the way back they release
 *   recursion trees UNITS     a tree of 2^14 - 1 nodes, built and released by functions that call themselves
 *   recursion switch UNITS    1,000 rounds of eight coroutines that allocate at some depth and hand on
 *   recursion pages UNITS     the same, at a depth of two pages and more
 *   recursion handed UNITS    the same coroutines as in switch, resumed by four threads in turn
 *   recursion never UNITS     1,000 blocks, each at another depth in bytes: hardly a stack comes again
 *
 * UNITS times, after a tenth as many to warm up. Called by bench.py.
 */
#include <alloca.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "steady.h"

#define NOINLINE __attribute__((noinline))
#define STACK_BYTES ((size_t)256 << 20)
#define DEEP 100000
#define TREE_DEPTH 13
#define COROUTINES 8
#define COROUTINE_BYTES ((size_t)64 << 10)
#define SWITCHES 1000
#define THREADS 4

static void *volatile kept;

static NOINLINE long
nest(int depth)
{
	void *block = malloc(40);
	long below;

	kept = block;
	below = depth > 0 ? nest(depth - 1) + 1 : 0;
	free(block);
	return below;
}

static void
deep_once(void)
{
	(void)nest(DEEP);
}

struct node {
	struct node *left;
	struct node *right;
};

static NOINLINE struct node *
build(int depth)
{
	struct node *node = malloc(sizeof(*node));

	if (node == NULL)
		abort();
	node->left = depth > 0 ? build(depth - 1) : NULL;
	node->right = depth > 0 ? build(depth - 1) : NULL;
	return node;
}

static NOINLINE void
release(struct node *node)
{
	if (node == NULL)
		return;
	release(node->left);
	release(node->right);
	free(node);
}

static void
tree_once(void)
{
	release(build(TREE_DEPTH));
}

/* Resumed by whoever holds it. */
struct coroutine {
	ucontext_t context;
	ucontext_t resumer;
	char *stack;
	unsigned left; // switches
	int depth;     // at least, of each allocation
};
static struct coroutine coroutines[COROUTINES];

static NOINLINE void
allocate_at(int depth)
{
	if (depth > 0) {
		allocate_at(depth - 1);
	} else {
		void *block = malloc(100);

		kept = block;
		free(block);
	}
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void
allocate_deep(int depth)
{
	char frame[128];

	__asm__ volatile("" ::"r"(frame) : "memory");
	if (depth > 0)
		allocate_deep(depth - 1);
	else
		allocate_at(3);
	__asm__ volatile("" ::: "memory");
}

static void
coroutine_main(int number)
{
	struct coroutine *mine = &coroutines[number];

	while (mine->left > 0) {
		mine->left--;
		if (mine->depth > 0)
			allocate_deep(mine->depth + (int)(mine->left % 5));
		else
			allocate_at(3 + (int)(mine->left % 5));
		(void)swapcontext(&mine->context, &mine->resumer);
	}
}

static void
make_coroutines(int depth)
{
	for (int i = 0; i < COROUTINES; i++) {
		struct coroutine *one = &coroutines[i];

		if (one->stack == NULL && (one->stack = malloc(COROUTINE_BYTES)) == NULL)
			abort();
		(void)getcontext(&one->context);
		one->context.uc_stack.ss_sp = one->stack;
		one->context.uc_stack.ss_size = COROUTINE_BYTES;
		one->context.uc_link = &one->resumer;
		one->left = SWITCHES;
		one->depth = depth;
		makecontext(&one->context, (void (*)(void))coroutine_main, 1, i);
	}
}

static void
resume_all(int depth)
{
	make_coroutines(depth);
	for (int round = 0; round < SWITCHES; round++) {
		for (int i = 0; i < COROUTINES; i++)
			(void)swapcontext(&coroutines[i].resumer, &coroutines[i].context);
	}
}

static void
switch_once(void)
{
	resume_all(0);
}

static void
pages_once(void)
{
	resume_all(60);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct coroutine *ready[COROUTINES]; // under the lock: a ring
static unsigned ready_first;
static unsigned ready_count;

static void *
resume_any(void *unused)
{
	(void)unused;
	for (;;) {
		struct coroutine *one = NULL;

		(void)pthread_mutex_lock(&lock);
		if (ready_count > 0) {
			one = ready[ready_first];
			ready_first = (ready_first + 1) % COROUTINES;
			ready_count--;
		}
		(void)pthread_mutex_unlock(&lock);
		if (one == NULL) // the others have those that are left: as many as they are, or less
			return NULL;
		for (int i = 0; i < 8 && one->left > 0; i++)
			(void)swapcontext(&one->resumer, &one->context);
		(void)pthread_mutex_lock(&lock);
		if (one->left > 0)
			ready[(ready_first + ready_count++) % COROUTINES] = one;
		(void)pthread_mutex_unlock(&lock);
	}
}

static void
handed_once(void)
{
	pthread_t threads[THREADS];

	make_coroutines(0);
	for (ready_count = 0; ready_count < COROUTINES; ready_count++)
		ready[ready_count] = &coroutines[ready_count];
	for (int i = 0; i < THREADS; i++) {
		if (pthread_create(&threads[i], NULL, resume_any, NULL) != 0)
			abort();
	}
	for (int i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
}

static NOINLINE void
allocate_below(size_t bytes)
{
	char *frame = alloca(bytes);

	__asm__ volatile("" ::"r"(frame) : "memory");
	allocate_at(0);
	__asm__ volatile("" ::: "memory");
}

static void
never_once(void)
{
	static uint64_t drawn;

	for (int i = 0; i < 1000; i++) {
		drawn = drawn * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		allocate_below(drawn >> 42);
	}
}

struct job {
	const char *name;
	void (*once)(void);
	unsigned long units;
};

static void *
work(void *argument)
{
	const struct job *job = argument;
	struct steady_time start;

	for (unsigned long i = 0; i < job->units / 10; i++)
		job->once();
	start = steady_now();
	for (unsigned long i = 0; i < job->units; i++)
		job->once();
	steady_report(start, steady_now(), job->units);
	return NULL;
}

int
main(int count, char **words)
{
	static struct job jobs[] = { { "deep", deep_once, 0 },   { "trees", tree_once, 0 },    { "switch", switch_once, 0 },
		                         { "pages", pages_once, 0 }, { "handed", handed_once, 0 }, { "never", never_once, 0 } };
	pthread_attr_t attributes;
	pthread_t thread;

	for (size_t i = 0; count > 2 && i < sizeof(jobs) / sizeof(jobs[0]); i++) {
		if (strcmp(words[1], jobs[i].name) != 0)
			continue;
		jobs[i].units = strtoul(words[2], NULL, 10);
		(void)pthread_attr_init(&attributes);
		(void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
		return pthread_create(&thread, &attributes, work, &jobs[i]) != 0 || pthread_join(thread, NULL) != 0;
	}
	(void)fputs("usage: recursion deep|trees|switch|pages|handed|never UNITS\n", stderr);
	return 1;
}
