/*
 * hooks_python_queue.h - which line's work does a thread of a pool do?
 *
 * Safe from   see each function.
 */
#ifndef HOOKS_PYTHON_QUEUE_H
#define HOOKS_PYTHON_QUEUE_H

/* Before a thread is created: items of Python's own queue, if it is there by now, are noted from now on. Outside the guard; keeps errno. */
void hooks_python_queue_look(void);

#endif
