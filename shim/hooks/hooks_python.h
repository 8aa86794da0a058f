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

/* A thread with Python frames is walked. Inside the reentry guard. */
void hooks_python_arrived(void);

/* The interpreter begins to finalise: if it is initialised once more, its tables are the first ones again. */
void hooks_python_ends(void);

bool hooks_python_records_objects(void);

#endif
