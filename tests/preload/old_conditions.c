/*
 * old_conditions.c - a program that was linked to the condition variables of 2002: two threads hand a turn to and fro.
 *
 * Waits and signals of that version agree on what is in the variable; a signal of today's version wakes nobody.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

__asm__(".symver pthread_cond_init, pthread_cond_init@GLIBC_2.2.5");
__asm__(".symver pthread_cond_wait, pthread_cond_wait@GLIBC_2.2.5");
__asm__(".symver pthread_cond_signal, pthread_cond_signal@GLIBC_2.2.5");

#define TURNS 1000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition;
static int turn;

static void *
take_turns(void *own)
{
	pthread_mutex_lock(&mutex);
	for (int i = 0; i < TURNS; i++) {
		while (turn != *(int *)own)
			pthread_cond_wait(&condition, &mutex);
		turn = 1 - turn;
		pthread_cond_signal(&condition);
	}
	pthread_mutex_unlock(&mutex);
	return NULL;
}

int
main(void)
{
	int numbers[] = { 0, 1 };
	pthread_t other;

	alarm(60); // nobody was woken
	pthread_cond_init(&condition, NULL);
	if (pthread_create(&other, NULL, take_turns, &numbers[1]) != 0)
		return 1;
	take_turns(&numbers[0]);
	pthread_join(other, NULL);
	puts("done");
	return 0;
}
