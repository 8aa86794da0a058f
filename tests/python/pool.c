/*
 * pool.c - threads that allocate what Python asks for and have no Python frames.
 *
 * Built without debug information: what it allocates is shown at the Python line.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <threads.h>

static sem_t wanted;
static sem_t done;
static size_t wanted_bytes;
static void *volatile kept[4096];
static unsigned kept_count;

static void *
work(void *unused)
{
	for (;;) {
		sem_wait(&wanted);
		kept[kept_count++] = malloc(wanted_bytes);
		sem_post(&done);
	}
	return unused;
}

void
pool_start(void)
{
	pthread_t thread;

	sem_init(&wanted, 0, 0);
	sem_init(&done, 0, 0);
	pthread_create(&thread, NULL, work, NULL);
	pthread_detach(thread);
}

/* A thread of C11 starts another one, which takes its place. */
static int
work_through_another(void *unused)
{
	(void)unused;
	pool_start();
	sem_post(&done);
	return 7;
}

void
pool_start_deep(void)
{
	thrd_t thread;
	int result = 0;

	if (thrd_create(&thread, work_through_another, NULL) != thrd_success ||
	    thrd_join(thread, &result) != thrd_success || result != 7)
		abort();
	sem_wait(&done);
}

void
pool_run(size_t bytes)
{
	wanted_bytes = bytes;
	sem_post(&wanted);
	sem_wait(&done);
}

/* On the calling thread. */
void
pool_keep(size_t bytes)
{
	kept[kept_count++] = malloc(bytes);
}

static void *
call_back(void *function)
{
	((void (*)(void))function)();
	((void (*)(void))function)();
	return NULL;
}

/* On a thread that Python knows nothing of. */
void
pool_call(void (*function)(void))
{
	pthread_t thread;

	pthread_create(&thread, NULL, call_back, (void *)function);
	pthread_join(thread, NULL);
}
