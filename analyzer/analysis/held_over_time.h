/*
 * held_over_time.h - what does that which a line held over time say of it, where the survivors of its generations do not?
 *
 * A history that main() clears, a queue that nobody reads and that goes with its function, tasks that are cancelled at the end: when the
 * program exits nothing of them is live. A queue that is drained more slowly than it is filled has survivors of its latest generations
 * alone, as one of constant length has. A line that began late has few generations. What each held over time tells.
 *
 * Safe from   one thread.
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
 *   backlog  where the peak is the end, and generations say `steady`
 *   leak     the same, where they are too few to judge
 *
 * After rank_leaks_classify(): what is a leak by its generations stays one.
 */
void held_over_time_classify(struct model *model);

#endif
