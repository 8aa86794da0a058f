/*
 * dive.h - a stack of any depth for unit tests of stacks. Two functions that call each other: of one that calls itself the recorder
 * keeps the first and the last call only. The comment in the assembly keeps a compiler from making one function of the two.
 */
#ifndef DIVE_H
#define DIVE_H

#include <stddef.h>
#include <stdint.h>

#define DIVE_HALF(name, other, leaf)                           \
	static __attribute__((noinline)) void name(unsigned depth) \
	{                                                          \
		if (depth == 0)                                        \
			leaf();                                            \
		else                                                   \
			other(depth - 1);                                  \
		__asm__ volatile("# " #name ::: "memory");             \
	}

/* Defines dive(depth): calls leaf() below so many frames. */
#define DIVE(leaf)                     \
	static void dive(unsigned depth);  \
	DIVE_HALF(dive_on_odd, dive, leaf) \
	DIVE_HALF(dive, dive_on_odd, leaf)

/* The same as a scene of the native walk, whose context is a pointer: here it is the depth. */
#define DIVE_SCENE_HALF(name, other, leaf)                  \
	static __attribute__((noinline)) void name(void *depth) \
	{                                                       \
		if (depth == NULL)                                  \
			leaf(NULL);                                     \
		else                                                \
			other((void *)((uintptr_t)depth - 1));          \
		__asm__ volatile("# " #name ::: "memory");          \
	}

#define DIVE_SCENE(leaf)                     \
	static void dive(void *depth);           \
	DIVE_SCENE_HALF(dive_on_odd, dive, leaf) \
	DIVE_SCENE_HALF(dive, dive_on_odd, leaf)

#endif
