/*
 * swept_at_end.h - did a line accumulate until the peak, and was it released as the program ended?
 *
 * A history that main() clears, a queue that nobody reads and that goes with its function, tasks that are cancelled at the end: when the
 * program exits nothing of them is live, and generations of survivors say nothing. What each line held over time does.
 *
 * Safe from   one thread.
 * When failing  where there are too few points nothing is concluded.
 */
#ifndef SWEPT_AT_END_H
#define SWEPT_AT_END_H

#include "model/model.h"

/*
 * Gives the class `swept` to sites of lines that grew in nearly each part of the run until their peak, held less than half of what was
 * allocated meanwhile, and then were released while next to nothing else was allocated any more, by a program that ended by itself; sets
 * their `swept_bytes`. After rank_leaks_classify(): what is a leak at the end stays one.
 */
void swept_at_end_classify(struct model *model);

#endif
