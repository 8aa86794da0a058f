/*
 * held_over_time.h - is a line a leak, by what it held over time? For lines about which their generations do not tell enough.
 *
 * Three kinds of growth have no blocks of most generations at the end. A list that main() clears before it returns, or a queue that is
 * released with its function, holds nothing when the program exits. A queue that is filled faster than it is drained has blocks of its
 * latest generations alone, as a queue of constant length has. A line that began late has few generations. But the points of the history
 * show that they grew.
 *
 * When failing  where there are too few points nothing is concluded.
 */
#ifndef HELD_OVER_TIME_H
#define HELD_OVER_TIME_H

#include "model/model.h"

/*
 * Of lines that grew in nearly each part of the run until their peak, and held less than half of what was allocated meanwhile: gives their
 * sites the class
 *
 *   swept    where they were released then, while next to nothing else was allocated any more, by a program that ended by itself; sets their
 *            `swept_bytes`
 *   backlog  where the peak is the end, and generations say `steady`; and what would be a leak, but waits in a transport to be written
 *   leak     the same, where they are too few to judge
 *
 * After rank_leaks_classify(): what is a leak by its generations stays one.
 */
void held_over_time_classify(struct model *model);

#endif
