/*
 * survivors.h - what kinds of Python objects are alive where most memory is held?
 *
 * Safe from   inside a hook, guard held; no allocation, no lock. survivors.c says why the objects stay while they are looked at.
 * When failing  the capture keeps what the last look said, or says nothing.
 */
#ifndef SURVIVORS_H
#define SURVIVORS_H

#include <stdbool.h>

/* From now on objects are in the pointer map. Without this call nothing is ever looked at. */
void survivors_begin(void);

/* Looks, when this thread may and it is time; is_last: it is time. */
void survivors_take(bool is_last);

void survivors_forked(void); // forked child: one thread

#endif
