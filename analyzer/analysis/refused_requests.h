/*
 * refused_requests.h - what became of the requests that were refused, and which one ended the program?
 */
#ifndef REFUSED_REQUESTS_H
#define REFUSED_REQUESTS_H

#include "model/model.h"
#include "analysis/endings.h"

enum refusal_state { REFUSAL_FATAL, REFUSAL_PENDING, REFUSAL_RECOVERED, REFUSAL_STATES };

const char *refusal_state_name(unsigned state); // "fatal", "pending", "recovered"; NULL behind the last

/*
 * A request to a device is recovered when its thread got as much later, or enough to go on
 * with; what PyTorch asked of the driver for a tensor is what became of the tensor. Of host memory that is known of all that the thread
 * was given since, not of single blocks: half of it, or more than telling an error takes.
 */
enum refusal_state refusal_state(const struct model *model, const struct verdict_now *now,
                                 const struct model_failed *failed);

/* Of the fatal ones of a process, the one to tell: see refused_requests.c. NULL = none. */
const struct model_failed *refusal_of_end(const struct model *model, const struct verdict_now *now, unsigned process);

/*
 * A step of model_finish(). Where a refusal of a device ended a process, what it held on that device becomes that of the
 * moment of the refusal: the exception released it on its way out, or the driver did at the end, and neither says who filled it.
 */
void refused_requests_settle(struct model *model, const struct verdict_now *now);

#endif
