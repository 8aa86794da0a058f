/*
 * hooks_python_queue.h - which line's work does a thread of a pool do?
 *
 * Safe from   see each function.
 */
#ifndef HOOKS_PYTHON_QUEUE_H
#define HOOKS_PYTHON_QUEUE_H

/*
 * To be called before a thread is created: if Python's own queue is there by now, items that go through it are noted from now on.
 * Outside the guard; errno is kept.
 */
void hooks_python_queue_look(void);

#endif
