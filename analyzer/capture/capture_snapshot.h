/*
 * capture_snapshot.h - what did the program hold at a mark?
 *
 * Context     once all of the capture was read and checked.
 * When failing  as if nothing was written down then, and a line in the capture's `damages` says why.
 */
#ifndef CAPTURE_SNAPSHOT_H
#define CAPTURE_SNAPSHOT_H

#include <stdbool.h>

#include "capture/capture.h"
#include "kmem_format.h"

/*
 * What was held at this mark, to be read only; NULL: it has none, or it cannot be read. is_written: the program runs, and may be writing the
 * next one there, so that it is no damage when it does not fit.
 */
const struct kmem_snapshot *capture_snapshot(struct capture *capture, const struct kmem_mark *mark, bool is_written);

/*
 * Sets what each record has released to what it was at that mark, as if all that came later had been released; where the snapshot has
 * counters by generation these too, the clock and the volume. Totals and peaks stay. A mark of the guard is taken as well. False: nothing
 * was changed.
 */
bool capture_mark_rewind(struct capture *capture, const struct kmem_mark *mark, bool is_written);

#endif
