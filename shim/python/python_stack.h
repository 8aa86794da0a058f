/*
 * python_stack.h - where on this thread's C stack is the evaluator?
 *
 * Context     on the thread whose stack it is.
 * Safe from   any hook; errno is kept. System calls as in thread_stack.h, and nine for a signal's or a
 *             coroutine's stack.
 * When failing  0: not found.
 */
#ifndef PYTHON_STACK_H
#define PYTHON_STACK_H

#include <stdint.h>

/*
 * An address inside the native frame of the function [text_addr, text_end) that runs `frame`, for interpreters
 * whose thread state leads to none: the innermost return address into that function which has `frame` among
 * the words of its own frame. Looks at 32 KiB of stack.
 */
uint64_t python_stack_find_evaluator(uint64_t sp, uint64_t frame, uint64_t text_addr, uint64_t text_end);

#endif
