/*
 * rank_peak.c - which lines held the memory when the domain was at its highest?
 *
 * What imports leave behind is real memory and is listed, after the lines that a person can do something about.
 */
#include "analysis/device_parts.h"
#include "analysis/rank.h"

static unsigned
peak_tier(const struct model *model, const struct model_site *site)
{
	/* The tensors are listed by their own lines. */
	unsigned tier = rank_is_import(site) || device_parts_is_cache(model, site) ? 1 : 0;

	return tier + (domain_is_address_space(model->domains[site->domain].id.kind) ? 2 : 0);
}

static uint64_t
asked_bytes(const struct model_site *site)
{
	return site->peak_bytes;
}

const struct ranking rank_peak_asked = {
	.name = "peak",
	.heading = "Held at the peak",
	.tier = peak_tier,
	.bytes = asked_bytes,
};

const struct ranking rank_peak = {
	.name = "peak",
	.heading = "Held at the peak",
	.tier = peak_tier,
	.bytes = rank_peak_in_memory,
};
