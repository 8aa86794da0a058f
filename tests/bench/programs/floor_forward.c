/*
 * floor_forward.c - the floor of every preload: each call goes on to glibc, nothing else happens.
 */
#include "floor.h"

static inline void
floor_made(void *block, size_t bytes)
{
	(void)block;
	(void)bytes;
}

static inline void
floor_gone(void *block)
{
	(void)block;
}
