/*
 * hooks_python_sample.h - small objects of Python, one of many: an unbiased sample by bytes.
 *
 * Context     inside the reentry guard, but for what is said otherwise.
 */
#ifndef HOOKS_PYTHON_SAMPLE_H
#define HOOKS_PYTHON_SAMPLE_H

#include <stdbool.h>

#include "python/python_runtime.h"

/*
 * Wraps the interpreter's allocators of MEM and OBJ. The caller holds the interpreter's lock. False: nothing was done, for small objects
 * are not in arenas (malloc gives them out, and sees each), or an object that is larger would not come from malloc.
 */
bool hooks_python_sample_start(const struct python_allocators *allocators);

/* Have the wrappers gone? Asked now and then; the caller holds the interpreter's lock. Says true once. */
bool hooks_python_sample_has_gone(const struct python_allocators *allocators);

void hooks_python_sample_forked(void); // forked child: one thread

/*
 * For the hooks of malloc: what malloc gave while REENTRY_GUARD_SAMPLE is set. It leaves the guard, so that only the first counts.
 * Returns addr.
 */
void *hooks_python_sample_served(void *addr);

#endif
