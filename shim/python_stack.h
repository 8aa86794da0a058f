/*
 * python_stack.h - which addresses are on this thread's C stack, and where in it is the evaluator?
 *
 * Called by   python_frames.c, on the thread whose stack it is.
 * Safe from   any hook. python_stack_find_evaluator() makes one system call whenever the thread's stack is
 *             deeper than at any call before; errno is kept.
 * When failing  0: not found.
 */
#ifndef PYTHON_STACK_H
#define PYTHON_STACK_H

#include <stdint.h>

/* The first address after the calling thread's stack; of another stack, some address above it. */
uint64_t python_stack_end(uint64_t sp);

/*
 * An address inside the native frame of the function [text_addr, text_end) that runs `frame`, for interpreters
 * whose thread state leads to none: the innermost return address into that function which has `frame` among
 * the words of its own frame. Looks at 32 KiB of stack.
 */
uint64_t python_stack_find_evaluator(uint64_t sp, uint64_t frame, uint64_t text_addr,
                                     uint64_t text_end);

#endif
