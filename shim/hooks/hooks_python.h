/*
 * hooks_python.h - small objects of Python, and the arenas they live in.
 *
 * Safe from   see each function.
 */
#ifndef HOOKS_PYTHON_H
#define HOOKS_PYTHON_H

#include <stdbool.h>

/* Once, when the shim starts, after python_frames_start(). From then on arenas are told from other mappings. */
void hooks_python_start(void);

void hooks_python_forked(void); // forked child: one thread

/* A thread is walked that has Python frames. Inside the reentry guard. */
void hooks_python_arrived(void);

/* The interpreter begins to finalise: if it is initialised once more, its tables are as at first. */
void hooks_python_ends(void);

/* Is it recorded what lies in the arenas? */
bool hooks_python_records_objects(void);

#endif
