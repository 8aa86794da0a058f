/* check_budget.c - see check_budget.h. */
#include "gate/check_budget.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/rank.h"
#include "base/amount.h"
#include "base/items.h"
#include "gate/check_build.h"
#include "gate/check_words.h"
#include "gate/pattern.h"

#define LINE_BYTES 4608 // of a path with its line and function

static bool
line_fits(const char *pattern, const struct baseline_site *site)
{
	const char *name = strchr(site->where, ' ');
	char line[LINE_BYTES];

	if (pattern_fits(pattern, site->where))
		return true;
	if (!check_has_file(site->file))
		return false;
	(void)snprintf(line, sizeof(line), "%s:%" PRIu32 "%s", check_relative(site->file), site->line,
	               name != NULL ? name : "");
	return pattern_fits(pattern, line);
}

static bool
site_fits(const struct config_budget *budget, const struct baseline_site *site)
{
	switch (budget->scope) {
	case CONFIG_TOTAL:
		return domain_is_host(site->domain_kind);
	case CONFIG_DOMAIN:
		return rank_domain_matches(site->domain, budget->name);
	case CONFIG_LINES:
		break;
	}
	return !domain_is_address_space(site->domain_kind) && line_fits(budget->name, site);
}

static bool
domain_fits(const struct config_budget *budget, const struct baseline_domain *domain)
{
	return budget->scope == CONFIG_TOTAL ? domain_is_host(domain->kind)
	                                     : rank_domain_matches(domain->name, budget->name);
}

static enum config_figure
figure_of(enum check_kind kind)
{
	return kind == CHECK_PEAK ? CONFIG_PEAK : kind == CHECK_LIVE ? CONFIG_LIVE : CONFIG_PER_STEP;
}

bool
check_has_domain_budget(const struct config *config, const char *domain, enum check_kind kind)
{
	return config != NULL && ANY(budget, config->budgets, config->budget_count,
	                             budget->scope == CONFIG_DOMAIN && budget->amounts[figure_of(kind)].is_given &&
	                                 rank_domain_matches(domain, budget->name));
}

bool
check_has_line_budget(const struct config *config, const struct baseline_site *site)
{
	return config != NULL &&
	       ANY(budget, config->budgets, config->budget_count,
	           budget->scope == CONFIG_LINES &&
	               (budget->amounts[CONFIG_LIVE].is_given || budget->amounts[CONFIG_PER_STEP].is_given) &&
	               site_fits(budget, site));
}

/* What a budget is compared with. */
struct sum {
	uint64_t before;
	uint64_t after;
	uint64_t chance;                   // check_chance_bytes()
	size_t count;                      // of lines or domains that fit
	enum domain_kind kind;             // of the first
	const struct baseline_site *grown; // the line that grew most, or holds most
	uint64_t most;
};

static void
add_domain(struct sum *sum, const struct check *check, const struct baseline_domain *now,
           const struct baseline_domain *then, bool is_peak)
{
	uint64_t before = then == NULL ? 0 : (is_peak ? then->peak_bytes.max : then->live_bytes.max);
	uint64_t after = now == NULL ? 0 : check_now_bytes(is_peak ? &now->peak_bytes : &now->live_bytes, is_peak);
	enum domain_kind kind = now != NULL ? now->kind : then->kind;

	sum->kind = sum->count++ == 0 ? kind : sum->kind;
	sum->before = amount_sum(sum->before, before);
	sum->after = amount_sum(sum->after, after);
	sum->chance = amount_sum(sum->chance, check_chance_bytes(check, kind, before, after));
}

static void
add_domains(struct sum *sum, const struct check *check, const struct config_budget *budget, bool is_peak)
{
	EACH (now, check->after->domains, check->after->domain_count) {
		if (domain_fits(budget, now))
			add_domain(sum, check, now, baseline_find_domain(check->before, now->name), is_peak);
	}
	EACH (then, check->before->domains, check->before->domain_count) {
		if (domain_fits(budget, then) && baseline_find_domain(check->after, then->name) == NULL)
			add_domain(sum, check, NULL, then, is_peak);
	}
}

/* The error of what a line keeps in a step: the same part of it as of what is live. */
static uint64_t
chance_of_step(const struct check *check, const struct baseline_site *now)
{
	uint64_t chance = check_chance_bytes(check, now->domain_kind, 0, now->live_bytes.min);

	return now->live_bytes.min == 0
	           ? 0
	           : (uint64_t)((double)chance * (double)now->step_bytes.min / (double)now->live_bytes.min);
}

/* is_counted: false for a line of a domain that is counted already: the line only says where the domain grew. */
static void
add_site(struct sum *sum, const struct check *check, size_t index, enum check_kind kind, bool is_counted)
{
	const struct baseline_site *now = &check->after->sites[index];
	const struct baseline_site *then = check->then[index];
	bool is_peak = kind == CHECK_PEAK;
	uint64_t before = then == NULL || kind == CHECK_STEP ? 0 : (is_peak ? then->peak_bytes.max : then->live_bytes.max);
	uint64_t after = kind == CHECK_STEP ? now->step_bytes.min
	                                    : check_now_bytes(is_peak ? &now->peak_bytes : &now->live_bytes, is_peak);

	if (after > before && after - before > sum->most) {
		sum->most = after - before;
		sum->grown = now;
	}
	if (!is_counted)
		return;
	sum->kind = sum->count++ == 0 ? now->domain_kind : sum->kind;
	sum->before = amount_sum(sum->before, before);
	sum->after = amount_sum(sum->after, after);
	sum->chance = amount_sum(sum->chance, kind == CHECK_STEP
	                                          ? chance_of_step(check, now)
	                                          : check_chance_bytes(check, now->domain_kind, before, after));
}

static struct sum
sum_of(const struct check *check, const struct config_budget *budget, enum check_kind kind)
{
	bool is_by_line = budget->scope == CONFIG_LINES || kind == CHECK_STEP;
	struct sum sum = { .count = 0 };

	for (size_t i = 0; i < check->after->site_count; i++) {
		if (check->after->sites[i].suppression == 0 && site_fits(budget, &check->after->sites[i]))
			add_site(&sum, check, i, kind, is_by_line);
	}
	if (!is_by_line)
		add_domains(&sum, check, budget, kind == CHECK_PEAK);
	return sum;
}

static uint64_t
limit_of(const struct config_amount *amount, uint64_t before)
{
	if (!amount->is_growth)
		return amount->bytes;
	return amount_sum(before, amount->is_share ? (uint64_t)((double)before * amount->ppm / 1e6) : amount->bytes);
}

static void
judge(struct check *check, const struct config_budget *budget, enum check_kind kind)
{
	const struct config_amount *amount = &budget->amounts[figure_of(kind)];
	struct sum sum = sum_of(check, budget, kind);
	struct check_rule rule = {
		.kind = kind,
		.is_judged = true,
		.has_before = amount->is_growth,
		.budget = amount,
		.domain = budget->name,
		.domain_kind = sum.kind,
		.where = "",
		.file = "",
		.before_bytes = sum.before,
		.after_bytes = sum.after,
		// estimates are of parts of the arenas, whose sum is exact
		.estimated_bytes = budget->scope == CONFIG_TOTAL && kind != CHECK_STEP ? 0 : sum.chance,
	};

	if (budget->scope != CONFIG_LINES && kind != CHECK_STEP)
		rule.suppressed_bytes = check_suppressed_bytes(check, budget->scope == CONFIG_TOTAL ? NULL : budget->name,
		                                               kind == CHECK_PEAK);
	rule.limit_bytes = amount_sum(limit_of(amount, sum.before),
	                              amount_sum(rule.estimated_bytes, rule.suppressed_bytes));
	rule.has_failed = rule.after_bytes > rule.limit_bytes;
	if (rule.has_failed)
		check_name_place(&rule, sum.grown);
	check_add_rule(check, rule);
}

/* Was nothing recorded to which the budget's name applies? */
static bool
fits_nothing(const struct check *check, const struct config_budget *budget)
{
	for (size_t i = 0; i < check->after->site_count; i++) {
		if (site_fits(budget, &check->after->sites[i]))
			return false;
	}
	return budget->scope != CONFIG_TOTAL &&
	       (budget->scope != CONFIG_DOMAIN ||
	        !ANY(domain, check->after->domains, check->after->domain_count, domain_fits(budget, domain)));
}

void
check_budgets(struct check *check)
{
	for (size_t i = 0; check->config != NULL && i < check->config->budget_count; i++) {
		const struct config_budget *budget = &check->config->budgets[i];

		if (fits_nothing(check, budget)) {
			check_note(check, "%s:%zu: %s \"%s\" fits nothing in these runs", check->config->path, budget->line,
			           budget->scope == CONFIG_DOMAIN ? "domain" : "pattern", budget->name);
			check->unmatched = check->unmatched_count++ == 0 ? check->notes[check->note_count - 1] : check->unmatched;
		}
		for (enum check_kind kind = CHECK_PEAK; kind <= CHECK_STEP; kind++) {
			if (budget->amounts[figure_of(kind)].is_given)
				judge(check, budget, kind);
		}
	}
}
