/*
 * capture_guard.h - what did the program hold when it passed its guard?
 *
 * Context     once all of the capture was read and checked.
 * When failing  as if the guard was never passed, and a line in the capture's `damages` says why.
 */
#ifndef CAPTURE_GUARD_H
#define CAPTURE_GUARD_H

#include "capture/capture_reader.h"

/* The newest passing; NULL: there was none, or it cannot be read. */
const struct kmem_guard *capture_guard_newest(struct capture *capture);

/* Sets what each record has released to what it was at that moment; totals, peaks and generations stay. False: there is none. */
bool capture_guard_rewind(struct capture *capture);

/* The same for the passing whose record is there: index + 1. */
bool capture_guard_rewind_to(struct capture *capture, uint32_t index_plus_one);

#endif
