/*
 * stress.h - threads that start together and yield at random, for the programs in this folder.
 *
 * ORDERS.md says which acquire and release each program is about, and what happened when one of them was weakened. Threads hand
 * things to each other through relaxed atomics only, so that no order but the one under test can help.
 */
#ifndef STRESS_H
#define STRESS_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "random.h"

#define STRESS_THREADS 8

#define CHECK(condition)                                                    \
	do {                                                                    \
		if (!(condition)) {                                                 \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			exit(1);                                                        \
		}                                                                   \
	} while (0)

typedef void stress_work(unsigned thread, uint64_t *random);

struct stress_thread {
	pthread_t id;
	pthread_barrier_t *start;
	stress_work *work;
	unsigned number;
	uint64_t random;
};

static inline void *
stress_thread_main(void *context)
{
	struct stress_thread *thread = context;

	pthread_barrier_wait(thread->start);
	thread->work(thread->number, &thread->random);
	return NULL;
}

/* Runs work(0) to work(count - 1), all at once. */
static inline void
stress_run(unsigned count, stress_work *work, uint64_t seed)
{
	struct stress_thread threads[STRESS_THREADS];
	pthread_barrier_t start;

	pthread_barrier_init(&start, NULL, count);
	for (unsigned i = 0; i < count; i++) {
		threads[i] = (struct stress_thread){ .start = &start, .work = work, .number = i, .random = seed + i };
		CHECK(pthread_create(&threads[i].id, NULL, stress_thread_main, &threads[i]) == 0);
	}
	for (unsigned i = 0; i < count; i++)
		pthread_join(threads[i].id, NULL);
	pthread_barrier_destroy(&start);
}

static inline void
stress_yield(uint64_t *random)
{
	if (random_below(random, 8) == 0)
		sched_yield();
}

#endif
