/*
 * open_early.c - a library whose constructor starts a thread that opens and closes one file all the time, and a program that asks whether
 * it ever failed. Both are this file: LIBRARY says which.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

int open_early_errors(void);

#ifdef LIBRARY
static _Atomic int is_over;
static _Atomic int opened;
static _Atomic int first_error;
static pthread_t thread;

static void *
open_and_close(void *unused)
{
	while (!is_over) {
		int fd = open("/dev/null", O_RDONLY);

		if (fd < 0 && first_error == 0)
			first_error = errno;
		if (fd >= 0)
			close(fd);
		opened++;
	}
	return unused;
}

__attribute__((constructor)) static void
start(void)
{
	if (pthread_create(&thread, NULL, open_and_close, NULL) != 0)
		_exit(99);
	while (opened < 10) // it runs: the next constructors are beside it
		;
}

int
open_early_errors(void)
{
	is_over = 1;
	pthread_join(thread, NULL);
	return first_error;
}
#else
int
main(void)
{
	return open_early_errors();
}
#endif
