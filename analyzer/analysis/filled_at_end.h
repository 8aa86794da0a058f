/*
 * filled_at_end.h - was a large block being filled when the process ended?
 */
#ifndef FILLED_AT_END_H
#define FILLED_AT_END_H

#include "analysis/endings.h"
#include "model/model.h"

/*
 * A step of model_finish(). A block may fill a container in less time than lies between two samples: the last sample saw it untouched,
 * and yet the process died of it. If the kernel counted the kill, memory was full. What the last sample had below the limit, less what was
 * allocated since, must have been touched in blocks that were untouched then: each site gets its share. The same is done, however the
 * process ended, if the launcher saw more in memory than any sample.
 */
void filled_at_end_settle(struct model *model, const struct verdict_now *now);

#endif
