/*
 * model_finish.h - from a loaded model to one that may be ranked and reported.
 *
 * When failing  it cannot.
 */
#ifndef MODEL_FINISH_H
#define MODEL_FINISH_H

#include "analysis/endings.h"
#include "model/model.h"

/*
 * Puts devices back to what they held when a refused request ended a process (refused_requests.h), then gives each site its class
 * of leak (rank.h), which depends on it. The model must outlive the result, and does not change afterwards.
 */
struct finished_model model_finish(struct model *model, const struct verdict_now *now);

#endif
