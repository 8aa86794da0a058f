/*
 * filled_at_end.h - was a large block being filled when the process ended?
 */
#ifndef FILLED_AT_END_H
#define FILLED_AT_END_H

#include "analysis/endings.h"
#include "model/model.h"

/*
 * A step of model_finish(). A block may fill a container in less time than lies between two samples: the last sample saw it untouched,
 * and yet the process died of it. What was in memory at the end is known from the kernel's line about the kill, from a counted kill, for
 * which memory was full, or from the launcher. What of that neither the last sample nor what was allocated since explains was touched in
 * blocks that were untouched then: each site gets its share, those first that the sample before did not have. Of these it is unknown at a
 * sudden end whether they were filled: they count as memory, as far as the limit has room.
 */
void filled_at_end_settle(struct model *model, const struct verdict_now *now);

#endif
