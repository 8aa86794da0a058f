/*
 * model_finish.c - the steps that end the making of a model, in their order (see model_finish.h).
 */
#include "analysis/model_finish.h"

#include "analysis/filled_at_end.h"
#include "analysis/refused_requests.h"
#include "analysis/rank.h"
#include "analysis/held_over_time.h"
#include "base/items.h"

/* What is live and not in memory now is taken not to have been in memory at the peak, as far as it was there. */
static void
sum_untouched_at_peak(struct model *model)
{
	for (size_t i = 0; i < model->domain_count; i++)
		model->domains[i].peak_untouched_bytes = 0;
	EACH (site, model->sites, model->site_count)
		model->domains[site->domain].peak_untouched_bytes += site->peak_bytes - rank_peak_in_memory(site);
}

struct finished_model
model_finish(struct model *model, const struct verdict_now *now)
{
	refused_requests_settle(model, now);
	filled_at_end_settle(model, now);
	sum_untouched_at_peak(model);
	rank_leaks_classify(model);
	held_over_time_classify(model);
	return (struct finished_model){ model };
}
