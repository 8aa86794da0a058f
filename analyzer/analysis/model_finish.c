/*
 * model_finish.c - the steps that end the making of a model, in their order (see model_finish.h).
 */
#include "analysis/model_finish.h"

#include "analysis/filled_at_end.h"
#include "analysis/refused_requests.h"
#include "analysis/rank.h"
#include "analysis/held_over_time.h"

struct finished_model
model_finish(struct model *model, const struct verdict_now *now)
{
	refused_requests_settle(model, now);
	filled_at_end_settle(model, now);
	rank_leaks_classify(model);
	held_over_time_classify(model);
	return (struct finished_model){ model };
}
