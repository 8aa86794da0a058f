/*
 * idle_threads.c - detached threads that never allocate, 50 at a time; then one that does.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static _Atomic unsigned ended;
static void *volatile block; // the compiler keeps the allocations

static void *
idle(void *unused)
{
	usleep(2000);
	atomic_fetch_add(&ended, 1);
	return unused;
}

static void *
allocate(void *unused)
{
	for (int i = 0; i < 100; i++)
		free(block = malloc(10));
	return unused;
}

int
main(int count, char **words)
{
	unsigned total = count > 1 ? (unsigned)atoi(words[1]) : 1000;
	pthread_attr_t detached;
	pthread_t last;

	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	for (unsigned begun = 0; begun < total; begun += 50) {
		for (unsigned i = 0; i < 50; i++) {
			pthread_t thread;

			if (pthread_create(&thread, &detached, idle, NULL) != 0)
				return 1;
		}
		while (atomic_load(&ended) < begun + 50)
			usleep(500);
		usleep(1500);
	}
	if (pthread_create(&last, NULL, allocate, NULL) != 0 || pthread_join(last, NULL) != 0)
		return 1;
	return 0;
}
