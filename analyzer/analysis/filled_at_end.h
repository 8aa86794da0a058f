/*
 * filled_at_end.h - was a large block being filled when the process ended?
 *
 * Safe from   one thread.
 */
#ifndef FILLED_AT_END_H
#define FILLED_AT_END_H

#include "analysis/endings.h"
#include "model/model.h"

/*
 * A step of model_finish(). A block that fills a container in less time than lies between two looks was seen untouched, and is what the
 * process died of. Where the kernel counted the kill, what was missing to the limit at the last look, and is in nothing that was
 * allocated since, was touched in what had been asked for before: of each site its share. The same holds of what the launcher saw in memory beyond any look,
 * however the process ended.
 */
void filled_at_end_settle(struct model *model, const struct verdict_now *now);

#endif
