/*
 * check.c - applies the rules of check.h.
 *
 * When failing  it cannot.
 */
#include "gate/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/rank.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/text_clean.h"

const char *
check_rule_name(const struct check_rule *rule)
{
	static const char *const names[] = { [CHECK_PEAK] = "peak", [CHECK_LIVE] = "live", [CHECK_LEAK] = "line" };

	return rule->is_leak ? "leak" : rule->is_grown ? "grown" : names[rule->kind];
}

const char *
check_where_word(const struct check_rule *rule)
{
	return rule->domain_kind == DOMAIN_PYTHON_ARENA ? "in" : "allocated at";
}

static struct check_rule *
add_rule(struct check *check, enum check_kind kind, uint64_t before, uint64_t after, struct check_tolerance tolerance)
{
	struct check_rule *rule = &check->rules[check->rule_count++];

	*rule = (struct check_rule){
		.kind = kind,
		.is_judged = true,
		.where = "",
		.before_bytes = before,
		.after_bytes = after,
		.file = "",
		.limit_bytes = check_limit(before, tolerance),
	};
	rule->has_failed = after > rule->limit_bytes;
	return rule;
}

/* The line that a domain's growth came from, as far as one stands out. */
static const struct baseline_site *
most_grown(const struct check *check, const char *domain, bool is_peak)
{
	const struct baseline_site *grown = NULL;
	uint64_t most = 0;

	for (size_t i = 0; i < check->after->site_count; i++) {
		const struct baseline_site *now = &check->after->sites[i];
		const struct baseline_site *then = check->then[i];
		uint64_t after = is_peak ? now->peak_bytes.median : now->live_bytes.min;
		uint64_t before = then == NULL ? 0 : is_peak ? then->peak_bytes.max : then->live_bytes.max;

		if (strcmp(now->domain, domain) == 0 && after > before && after - before > most) {
			most = after - before;
			grown = now;
		}
	}
	return grown;
}

static void
name_place(struct check_rule *rule, const struct baseline_site *site)
{
	if (site == NULL)
		return;
	rule->where = site->where;
	rule->file = site->file;
	rule->line = site->line;
}

static uint64_t
objects_bytes(const struct baseline *baseline)
{
	const struct baseline_domain *objects = baseline_find_domain(baseline, "python/object");

	return objects != NULL ? objects->peak_bytes.max : 0;
}

/*
 * By so much two estimates of the same memory may differ by chance. What is left of Python's arenas is what they take, which is exact,
 * less an estimate.
 */
static uint64_t
chance_bytes(const struct check *check, enum domain_kind kind, uint64_t before, uint64_t after)
{
	uint64_t estimated_bytes = kind == DOMAIN_PYTHON_OBJECT ? before + after
	                           : kind == DOMAIN_PYTHON_ARENA
	                               ? objects_bytes(check->before) + objects_bytes(check->after)
	                               : 0;

	return model_estimate_error(KMEM_PYTHON_SAMPLE_BYTES, estimated_bytes);
}

static void
allow_chance(const struct check *check, struct check_rule *rule, enum domain_kind kind)
{
	uint64_t bytes = chance_bytes(check, kind, rule->before_bytes, rule->after_bytes);

	rule->limit_bytes = rule->limit_bytes > UINT64_MAX - bytes ? UINT64_MAX : rule->limit_bytes + bytes;
	rule->has_failed = rule->after_bytes > rule->limit_bytes;
}

/* Either may be NULL: nothing was recorded there. */
static void
compare_domain(struct check *check, const struct baseline_domain *then, const struct baseline_domain *found,
               struct check_tolerance tolerance)
{
	static const struct baseline_domain nothing;
	const struct baseline_domain *known = then != NULL ? then : &nothing;
	const struct baseline_domain *now = found != NULL ? found : &nothing;
	const struct baseline_domain *domain = found != NULL ? found : then;

	for (enum check_kind kind = CHECK_PEAK; kind <= CHECK_LIVE; kind++) {
		bool is_peak = kind == CHECK_PEAK;
		struct check_rule *rule = add_rule(check, kind, is_peak ? known->peak_bytes.max : known->live_bytes.max,
		                                   is_peak ? now->peak_bytes.median : now->live_bytes.min, tolerance);

		rule->domain = domain->name;
		rule->domain_kind = domain->kind;
		rule->is_new = then == NULL;
		rule->is_judged = !domain_is_address_space(domain->kind);
		allow_chance(check, rule, domain->kind);
		rule->has_failed = rule->has_failed && rule->is_judged;
		if (rule->has_failed)
			name_place(rule, most_grown(check, domain->name, is_peak));
	}
}

static void
compare_site(struct check *check, size_t index, struct check_tolerance tolerance)
{
	const struct baseline_site *now = &check->after->sites[index];
	const struct baseline_site *then = check->then[index];
	bool is_telling = now->leak == MODEL_LEAK_LEAK || now->may_accumulate || now->has_accumulated;
	const struct baseline_domain *domain = baseline_find_domain(check->before, now->domain);
	struct check_rule *rule;

	if (domain_is_address_space(now->domain_kind) || now->leak == MODEL_LEAK_IMPORT || now->is_elsewhere)
		return;
	check->compared_sites++;
	if (then == NULL && !is_telling)
		return;
	if (then != NULL && then->family != now->family && is_telling && now->live_bytes.min > check_limit(0, tolerance))
		check->renamed[check->renamed_count++] = (struct check_renamed){ then, now };
	rule = add_rule(check, CHECK_LEAK, then != NULL ? then->live_bytes.max : 0, now->live_bytes.min, tolerance);
	rule->domain = now->domain;
	rule->domain_kind = now->domain_kind;
	name_place(rule, now);
	rule->family = now->family;
	rule->is_new = then == NULL;
	rule->is_leak = now->leak == MODEL_LEAK_LEAK;
	rule->is_grown = now->has_accumulated;
	allow_chance(check, rule, now->domain_kind);
	if (domain != NULL && domain->elsewhere_bytes < UINT64_MAX - rule->limit_bytes)
		rule->limit_bytes += domain->elsewhere_bytes;
	rule->has_failed = now->live_bytes.min > rule->limit_bytes;
	if (rule->has_failed)
		return;
	check->rule_count--;
	if (then != NULL || now->leak != MODEL_LEAK_LEAK || now->live_bytes.min == 0)
		return;
	check->small_leak_count++;
	if (check->small_leak == NULL || now->live_bytes.min > check->small_leak->live_bytes.min)
		check->small_leak = now;
}

static uint64_t
excess(const struct check_rule *rule)
{
	return rule->after_bytes > rule->limit_bytes ? rule->after_bytes - rule->limit_bytes : 0;
}

static int
compare_rules(const void *a, const void *b)
{
	const struct check_rule *left = a;
	const struct check_rule *right = b;
	int order = order_numbers(right->has_failed, left->has_failed);

	if (order == 0 && left->has_failed) // the line itself says most
		order = order_numbers(right->kind, left->kind) ?: order_numbers(excess(right), excess(left));
	order = order ?: strcmp(left->domain, right->domain);
	order = order ?: order_numbers(left->kind, right->kind);
	return order ?: order_numbers(left->family, right->family);
}

struct check *
check_compare(const struct baseline *before, const struct baseline *after, struct check_tolerance tolerance)
{
	struct check *check = memory_zeroed(1, sizeof(*check));

	check->before = before;
	check->after = after;
	check->tolerance = tolerance;
	check->repeat = "";
	check->rules = memory_zeroed(after->site_count + 2 * (before->domain_count + after->domain_count) + 1,
	                             sizeof(*check->rules));
	check->then = check_match(before, after, tolerance);
	check->renamed = memory_zeroed(after->site_count + 1, sizeof(*check->renamed));
	for (size_t i = 0; i < after->domain_count; i++)
		compare_domain(check, baseline_find_domain(before, after->domains[i].name), &after->domains[i], tolerance);
	for (size_t i = 0; i < before->domain_count; i++) {
		if (baseline_find_domain(after, before->domains[i].name) == NULL)
			compare_domain(check, &before->domains[i], NULL, tolerance);
	}
	for (size_t i = 0; i < after->site_count; i++)
		compare_site(check, i, tolerance);
	qsort(check->rules, check->rule_count, sizeof(*check->rules), compare_rules);
	while (check->failed_count < check->rule_count && check->rules[check->failed_count].has_failed)
		check->failed_count++;
	return check;
}

void
check_note(struct check *check, const char *format, ...)
{
	va_list values;
	char *text;

	va_start(values, format);
	if (vasprintf(&text, format, values) < 0)
		memory_exhausted();
	va_end(values);
	(void)text_clean(text, strlen(text));
	check->notes = memory_grown(check->notes, &check->note_room, check->note_count + 1, sizeof(*check->notes));
	check->notes[check->note_count++] = text;
}

void
check_free(struct check *check)
{
	if (check == NULL)
		return;
	for (size_t i = 0; i < check->note_count; i++)
		free(check->notes[i]);
	free(check->notes);
	free(check->rules);
	free(check->renamed);
	free(check->then);
	free(check);
}
