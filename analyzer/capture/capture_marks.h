/*
 * capture_marks.h - which moments were named, and what was held then?
 *
 * Context     capture_marks_settle() while the capture is opened; the rest once all of it was read and checked.
 * Safe from   one thread. The program may still be writing: what it writes at the moment is left out.
 * When failing  as if there was no such mark, and a line in the capture's `damages` says why.
 */
#ifndef CAPTURE_MARKS_H
#define CAPTURE_MARKS_H

#include "capture/capture.h"
#include "kmem_format.h"

/* Marks that are whole, into `marks`, oldest first. `before` is an earlier reading of the head: what differs was being written. */
void capture_marks_settle(struct capture *capture, const unsigned char *before);

/* The head's part about steps, and whether the program said where it is. */
const struct kmem_steps *capture_steps(const struct capture *capture);

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
