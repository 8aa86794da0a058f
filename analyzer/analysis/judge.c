/*
 * judge.c - the steps that end the making of a model, in their order (see judge.h).
 */
#include "analysis/judge.h"

#include "analysis/filled_at_end.h"
#include "analysis/refused_requests.h"
#include "analysis/rank.h"

struct judged_model
model_judge(struct model *model, const struct verdict_now *now)
{
	refused_requests_settle(model, now);
	filled_at_end_settle(model, now);
	rank_leaks_classify(model);
	return (struct judged_model){ model };
}
