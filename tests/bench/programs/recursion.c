/*
 * recursion.c - what do stacks cost that are very deep, or another one at each event, or of coroutines?
 *
 *   recursion deep UNITS      100,000 nested calls of one function, each allocates; on the way back they release
 *   recursion trees UNITS     a tree of 2^14 - 1 nodes, built and released by functions that call themselves
 *   recursion switch UNITS    1,000 rounds of eight coroutines that allocate at some depth and hand on
 *
 * UNITS times, after a tenth as many to warm up. Called by bench.py.
 */
#include <pthread.h>
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

static ucontext_t scheduler;
static ucontext_t coroutines[COROUTINES];
static char *stacks[COROUTINES];
static int current;

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

static void
coroutine_main(void)
{
	for (int i = 0; i < SWITCHES; i++) {
		allocate_at(3 + i % 5);
		(void)swapcontext(&coroutines[current], &scheduler);
	}
}

static void
switch_once(void)
{
	for (int i = 0; i < COROUTINES; i++) {
		if (stacks[i] == NULL && (stacks[i] = malloc(COROUTINE_BYTES)) == NULL)
			abort();
		(void)getcontext(&coroutines[i]);
		coroutines[i].uc_stack.ss_sp = stacks[i];
		coroutines[i].uc_stack.ss_size = COROUTINE_BYTES;
		coroutines[i].uc_link = &scheduler;
		makecontext(&coroutines[i], coroutine_main, 0);
	}
	for (int round = 0; round < SWITCHES; round++) {
		for (current = 0; current < COROUTINES; current++)
			(void)swapcontext(&scheduler, &coroutines[current]);
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
	static struct job jobs[] = { { "deep", deep_once, 0 }, { "trees", tree_once, 0 }, { "switch", switch_once, 0 } };
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
	(void)fputs("usage: recursion deep|trees|switch UNITS\n", stderr);
	return 1;
}
