/*
 * rank_held.c - which lines held the memory when the domain was at its highest, and which hold it at the end (or now)?
 *
 * What imports leave behind is real memory and is listed, after the lines that a person can do something about.
 */
#include "analysis/device_parts.h"
#include "analysis/rank.h"

static unsigned
tier_of(const struct model *model, const struct model_site *site, bool is_minor)
{
	return (is_minor ? 1u : 0) + (domain_is_address_space(model->domains[site->domain].id.kind) ? 2 : 0);
}

static unsigned
peak_tier(const struct model *model, const struct model_site *site)
{
	/* The tensors are listed by their own lines. */
	return tier_of(model, site, rank_is_import(site) || device_parts_is_cache(model, site));
}

static unsigned
sites_tier(const struct model *model, const struct model_site *site)
{
	return tier_of(model, site, rank_is_import(site));
}

#define HELD_AT_PEAK .of = RANK_PEAK, .heading = "Held at the peak", .tier = peak_tier
#define LIVE .of = RANK_SITES, .heading = "Held at the end", .tier = sites_tier

const struct ranking rank_peak_asked = { HELD_AT_PEAK, .bytes = model_site_peak };
const struct ranking rank_peak = { HELD_AT_PEAK, .bytes = rank_peak_in_memory };
const struct ranking rank_sites_asked = { LIVE, .bytes = model_site_live };
const struct ranking rank_sites = { LIVE, .bytes = rank_live_in_memory };
