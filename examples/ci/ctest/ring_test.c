/*
 * ring_test.c - a test of a ring of messages: what is taken out of it is released.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __has_include("kmemshim.h")
#include "kmemshim.h"
#else
#define kmemshim_step() ((void)0)
#endif

#define PLACES 16
#define MESSAGE_BYTES 4096

static char *ring[PLACES];

static char *
message(int number)
{
	char *text = malloc(MESSAGE_BYTES);

	if (text != NULL)
		snprintf(text, MESSAGE_BYTES, "message %d", number);
	return text;
}

static int
pass(int number)
{
	char **place = &ring[number % PLACES];
	int is_right = *place == NULL || strncmp(*place, "message ", 8) == 0;

#ifndef FORGETS
	free(*place);
#endif
	*place = message(number);
	return is_right;
}

int
main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 100;

	for (int i = 0; i < rounds; i++) {
		kmemshim_step();
		if (!pass(i))
			return 1;
	}
	for (int i = 0; i < PLACES; i++)
		free(ring[i]);
	return 0;
}
