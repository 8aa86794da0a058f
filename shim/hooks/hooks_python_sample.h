/*
 * hooks_python_sample.h - small objects of Python, one of many: an unbiased sample by bytes.
 *
 * Context     inside the reentry guard, but for what is said otherwise.
 */
#ifndef HOOKS_PYTHON_SAMPLE_H
#define HOOKS_PYTHON_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>

#include "python/python_runtime.h"

/*
 * Wraps the interpreter's allocators of MEM and OBJ. The caller holds the interpreter's lock. False: nothing was done, because small
 * objects are not in arenas (malloc serves them, and records each), or because malloc would not serve a slightly larger request.
 */
bool hooks_python_sample_start(const struct python_allocators *allocators);

/*
 * Puts the wrappers in again where the tables are as they were found (an interpreter that was initialised once more). Called now and
 * then; the caller holds the interpreter's lock. False, once: another library's allocators are there, and do not call ours.
 */
bool hooks_python_sample_stays(const struct python_allocators *allocators);

void hooks_python_sample_forked(void); // forked child: one thread

/*
 * For the hooks of malloc: takes the block that malloc returned while REENTRY_GUARD_SAMPLE is set, and leaves the guard, so that only
 * the first block counts that is large enough. Another one is a signal handler's, or of an allocator below: it is lost, and counted.
 * Returns addr.
 */
void *hooks_python_sample_served(void *addr, size_t bytes);

#endif
