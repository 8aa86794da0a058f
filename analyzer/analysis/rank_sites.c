/*
 * rank_sites.c - which lines hold memory at the end (or now), and failing that, pass the most through?
 */
#include "analysis/rank.h"

static unsigned
sites_tier(const struct model *model, const struct model_site *site)
{
	unsigned tier = rank_is_import(site) ? 1 : 0;

	return tier + (domain_is_address_space(model->domains[site->domain].id.kind) ? 2 : 0);
}

static uint64_t
asked_bytes(const struct model_site *site)
{
	return site->live_bytes;
}

const struct ranking rank_sites_asked = {
	.name = "sites",
	.heading = "Live at the end",
	.tier = sites_tier,
	.bytes = asked_bytes,
};

const struct ranking rank_sites = {
	.name = "sites",
	.heading = "Live at the end",
	.tier = sites_tier,
	.bytes = rank_live_in_memory,
};
