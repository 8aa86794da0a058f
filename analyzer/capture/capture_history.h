/*
 * capture_history.h - what was held over time?
 *
 * Context     once all of the capture was read and checked.
 * When failing  what cannot be read is left out, and a line in the capture's `damages` says why.
 */
#ifndef CAPTURE_HISTORY_H
#define CAPTURE_HISTORY_H

#include <stdbool.h>
#include <stddef.h>

#include "capture/capture.h"
#include "kmem_format.h"

/*
 * Copies of the points that are whole, oldest first, in memory that the caller frees; NULL: there are none. is_written: the program runs, and
 * may be writing some, so that it is no damage when they do not fit.
 */
struct kmem_history_point *capture_history(struct capture *capture, bool is_written, size_t *count);

#endif
