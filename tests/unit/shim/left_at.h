/*
 * left_at.h - a signal handler jumps out of the work after so many instructions, for good: what is left behind? See each_instruction.h.
 */
#ifndef LEFT_AT_H
#define LEFT_AT_H

#include "unwind/each_instruction.h"

#include <setjmp.h>
#include <stddef.h>

static sigjmp_buf left_at_target;
static volatile unsigned left_at_count;
static volatile unsigned left_at_half;
static void (*left_at_halfway)(void); // NULL, or what another thread does meanwhile

static __attribute__((unused)) bool
left_at_look(void)
{
	if (left_at_count == left_at_half && left_at_halfway != NULL)
		left_at_halfway();
	if (left_at_count-- == 0)
		siglongjmp(left_at_target, 1);
	return true;
}

static __attribute__((unused)) bool
left_at_no_more(void)
{
	return false;
}

/* Sanitizers make ten times as many instructions of the work. What they look for does not depend on the very instruction. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LEFT_AT_PART 2
#else
#define LEFT_AT_PART 64
#endif

/* Where to leave it next: everywhere at its beginning, then at distances that grow with it. Each try steps through all that comes before. */
static inline unsigned
left_at_next(unsigned instruction)
{
	return instruction + 1 + instruction / LEFT_AT_PART;
}

/* The same where each `distance` instructions are tried to the end; sanitizers try fewer. */
static __attribute__((unused)) unsigned
left_at_next_but(unsigned distance, unsigned instruction)
{
	return LEFT_AT_PART < 64 ? left_at_next(instruction) : instruction + distance;
}

/* False: the work was done before. */
static inline bool
left_at(unsigned instruction, void (*work)(void))
{
	left_at_count = instruction;
	left_at_half = instruction / 2;
	if (sigsetjmp(left_at_target, 1) != 0)
		return true;
	each_instruction(left_at_look);
	work();
	each_instruction_look = left_at_no_more;
	return false;
}

#endif
