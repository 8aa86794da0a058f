/*
 * hooks_python_queue.h - which line's work does a thread of a pool do?
 *
 * Safe from   see each function.
 */
#ifndef HOOKS_PYTHON_QUEUE_H
#define HOOKS_PYTHON_QUEUE_H

/* A thread is about to be created: if Python's own queue is there by now, what goes through it is noted. Outside the guard; errno is kept. */
void hooks_python_queue_look(void);

#endif
