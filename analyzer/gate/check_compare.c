/*
 * check_compare.c - applies the rules of check.h.
 *
 * When failing  it cannot.
 */
#include "gate/check_compare.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/amount.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/units.h"
#include "gate/check_budget.h"
#include "gate/check_build.h"

#define GENERATIONS_MIN 6 // of a leak: rank.h

/* The line of a domain that grew most; NULL: none grew. */
static const struct baseline_site *
most_grown(const struct check *check, const char *domain, bool is_peak)
{
	const struct baseline_site *grown = NULL;
	uint64_t most = 0;

	for (size_t i = 0; i < check->after->site_count; i++) {
		uint64_t bytes = check_grown_bytes(check, i, is_peak);

		if (strcmp(check->after->sites[i].domain, domain) == 0 && bytes > most) {
			most = bytes;
			grown = &check->after->sites[i];
		}
	}
	return grown;
}

static const struct baseline_figure nothing;

static uint64_t
limit_of(const struct check *check, enum domain_kind kind, const struct baseline_figure *before, uint64_t after)
{
	return amount_sum(check_limit(before, check->tolerance), check_chance_bytes(check, kind, before->max, after));
}

/* A side where nothing was recorded is NULL. */
static void
compare_domain(struct check *check, const struct baseline_domain *then, const struct baseline_domain *found)
{
	static const struct baseline_domain empty;
	const struct baseline_domain *known = then != NULL ? then : &empty;
	const struct baseline_domain *now = found != NULL ? found : &empty;
	const struct baseline_domain *domain = found != NULL ? found : then;

	for (enum check_kind kind = CHECK_PEAK; kind <= CHECK_LIVE; kind++) {
		bool is_peak = kind == CHECK_PEAK;
		const struct baseline_figure *before = is_peak ? &known->peak_bytes : &known->live_bytes;
		struct check_rule rule = {
			.kind = kind,
			.is_judged = !domain_is_address_space(domain->kind),
			.has_before = true,
			.is_new = then == NULL,
			.domain = domain->name,
			.domain_kind = domain->kind,
			.where = "",
			.file = "",
			.before_bytes = before->max,
			.after_bytes = check_now_bytes(is_peak ? &now->peak_bytes : &now->live_bytes, is_peak),
		};

		if (check_has_domain_budget(check->config, domain->name, kind))
			continue;
		rule.limit_bytes = amount_sum(limit_of(check, domain->kind, before, rule.after_bytes),
		                              check_suppressed_bytes(check, domain->name, is_peak));
		rule.has_failed = rule.is_judged && rule.after_bytes > rule.limit_bytes;
		if (rule.has_failed)
			check_name_place(&rule, most_grown(check, domain->name, is_peak));
		check_add_rule(check, rule);
	}
}

/* A leak that is known, or would fail. */
static void
suppress(struct check *check, const struct baseline_site *now)
{
	struct check_suppressed *suppressed = &check->suppressed[now->suppression - 1];

	suppressed->line_count++;
	suppressed->bytes = amount_sum(suppressed->bytes, now->live_bytes.min);
}

static void
note_small_leak(struct check *check, const struct baseline_site *now)
{
	check->small_leak_count++;
	if (check->small_leak == NULL || now->live_bytes.min > check->small_leak->live_bytes.min)
		check->small_leak = now;
}

static void
compare_site(struct check *check, size_t index)
{
	const struct baseline_site *now = &check->after->sites[index];
	const struct baseline_site *then = check->then[index];
	bool is_telling = now->leak == MODEL_LEAK_LEAK || now->may_accumulate || now->has_accumulated;
	const struct baseline_domain *domain = baseline_find_domain(check->before, now->domain);

	if (domain_is_address_space(now->domain_kind) || now->leak == MODEL_LEAK_IMPORT || now->is_elsewhere)
		return;
	check->compared_sites++;
	if (then == NULL && !is_telling)
		return;
	if (then != NULL && then->family != now->family && is_telling &&
	    now->live_bytes.min > check_limit(&nothing, check->tolerance))
		check->renamed[check->renamed_count++] = (struct check_renamed){ then, now };

	struct check_rule rule = (struct check_rule){
		.kind = CHECK_LEAK,
		.is_judged = true,
		.has_before = true,
		.is_new = then == NULL,
		.is_leak = now->leak == MODEL_LEAK_LEAK,
		.is_grown = now->has_accumulated,
		.domain = now->domain,
		.domain_kind = now->domain_kind,
		.family = now->family,
		.before_bytes = then != NULL ? then->live_bytes.max : 0,
		.after_bytes = now->live_bytes.min,
	};
	check_name_place(&rule, now);
	rule.limit_bytes = amount_sum(
		limit_of(check, now->domain_kind, then != NULL ? &then->live_bytes : &nothing, rule.after_bytes),
		domain != NULL ? domain->elsewhere_bytes : 0);
	rule.has_failed = rule.after_bytes > rule.limit_bytes;
	if (now->suppression != 0 && (rule.has_failed || rule.is_leak))
		suppress(check, now);
	else if (check_has_line_budget(check->config, now))
		return;
	else if (rule.has_failed)
		check_add_rule(check, rule);
	else if (then == NULL && rule.is_leak && rule.after_bytes != 0)
		note_small_leak(check, now);
}

static void
compare_with_baseline(struct check *check)
{
	const struct baseline *before = check->before;
	const struct baseline *after = check->after;

	for (size_t i = 0; i < after->domain_count; i++)
		compare_domain(check, baseline_find_domain(before, after->domains[i].name), &after->domains[i]);
	for (size_t i = 0; i < before->domain_count; i++) {
		if (baseline_find_domain(after, before->domains[i].name) == NULL)
			compare_domain(check, &before->domains[i], NULL);
	}
	for (size_t i = 0; i < after->site_count; i++)
		compare_site(check, i);
}

/* Without a baseline: known leaks are reported all the same. */
static void
suppress_leaks(struct check *check)
{
	for (size_t i = 0; i < check->after->site_count; i++) {
		const struct baseline_site *now = &check->after->sites[i];

		if (now->suppression != 0 && now->leak == MODEL_LEAK_LEAK)
			suppress(check, now);
	}
}

static void
note_suppressions(struct check *check)
{
	for (size_t i = 0; check->config != NULL && i < check->config->suppression_count; i++) {
		const struct config_suppression *row = &check->config->suppressions[i];
		const struct check_suppressed *found = &check->suppressed[i];

		if (row->is_expired)
			check_note(check, "%s:%zu: the suppression of \"%s\" expired on %s and is not in force", row->path,
			           row->line, row->pattern, row->expires);
		else if (found->line_count == 0)
			check_note(check, "%s:%zu: the suppression of \"%s\" fits no leak of these runs: remove it", row->path,
			           row->line, row->pattern);
		else
			check_note(check, "%s:%zu: %s in %zu line%s suppressed by \"%s\"%s%s", row->path, row->line,
			           UNITS_BYTES(found->bytes), found->line_count, found->line_count == 1 ? " is" : "s are",
			           row->pattern, row->reason[0] != '\0' ? ": " : "", row->reason);
	}
}

/* Of those that failed the line itself says most. */
ORDER_OF(compare_rules, struct check_rule,
	order_numbers(b->has_failed, a->has_failed) ?: (a->has_failed ? order_numbers(b->kind, a->kind) : 0)
	?: (a->has_failed ? order_numbers(amount_less(b->after_bytes, b->limit_bytes), amount_less(a->after_bytes, a->limit_bytes)) : 0)
	?: strcmp(a->domain, b->domain) ?: order_numbers(a->kind, b->kind) ?: order_numbers(a->family, b->family))

/* In a run that was too short no line can be a leak, whatever it keeps. */
static void
note_short_run(struct check *check)
{
	if (check->after->generations < GENERATIONS_MIN && check->after->run_count != 0)
		check_note(check,
		           "this run is too short to tell leaks (%" PRIu64
		           " generation%s of at least %d): totals are judged, and lines "
		           "that the baseline has",
		           check->after->generations, UNITS_S(check->after->generations), GENERATIONS_MIN);
}

struct check *
check_compare(const struct baseline *before, const struct baseline *after, struct check_tolerance tolerance,
              const struct config *config)
{
	static const struct baseline none = { .command = "" };
	struct check *check = memory_zeroed(1, sizeof(*check));

	check->before = before != NULL ? before : &none;
	check->after = after;
	check->config = config;
	check->tolerance = tolerance;
	check->repeat = "";
	check->suppressed = memory_zeroed(config != NULL ? config->suppression_count : 0, sizeof(*check->suppressed));
	check->then = check_match(check->before, after, tolerance);
	check->renamed = memory_zeroed(after->site_count + 1, sizeof(*check->renamed));
	if (before != NULL) {
		compare_with_baseline(check);
		note_short_run(check);
	} else {
		suppress_leaks(check);
	}
	check_budgets(check);
	note_suppressions(check);
	SORT(check->rules, check->rule_count, compare_rules);
	while (check->failed_count < check->rule_count && check->rules[check->failed_count].has_failed)
		check->failed_count++;
	return check;
}
