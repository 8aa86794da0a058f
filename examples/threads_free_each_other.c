// expect: leaks heap where=threads_free_each_other.c:26 class=leak live_count=3125 live_bytes=800000
/*
 * threads_free_each_other.c - blocks are taken by one thread and given back by another.
 *
 * Four producers hand messages to one consumer, which gives back all but every 64th.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define PRODUCERS 4
#define MESSAGES 50000 // of each producer
#define MESSAGE_BYTES 256
#define SLOTS 512

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static void *slots[SLOTS];
static size_t sent, received;

static void *
produce(void *unused)
{
	(void)unused;
	for (int i = 0; i < MESSAGES; i++) {
		void *message = malloc(MESSAGE_BYTES);

		pthread_mutex_lock(&lock);
		while (sent - received == SLOTS)
			pthread_cond_wait(&changed, &lock);
		slots[sent++ % SLOTS] = message;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

int
main(void)
{
	pthread_t threads[PRODUCERS];

	for (int i = 0; i < PRODUCERS; i++)
		pthread_create(&threads[i], NULL, produce, NULL);
	while (received < PRODUCERS * MESSAGES) {
		pthread_mutex_lock(&lock);
		while (sent == received)
			pthread_cond_wait(&changed, &lock);
		void *message = slots[received++ % SLOTS];
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
		if (received % 64 != 0)
			free(message);
	}
	for (int i = 0; i < PRODUCERS; i++)
		pthread_join(threads[i], NULL);
	return printf("%zu messages\n", received) < 0;
}
