/*
 * check.c - what becomes of a check: its rules, their words, notes. check_compare.c makes it.
 *
 * When failing  it cannot.
 */
#include "gate/check.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/rank.h"
#include "base/amount.h"
#include "base/memory.h"
#include "base/text_clean.h"
#include "base/text_start.h"
#include "gate/check_build.h"

const char *
check_rule_name(const struct check_rule *rule)
{
	static const char *const names[] = {
		[CHECK_PEAK] = "peak", [CHECK_LIVE] = "live", [CHECK_STEP] = "step", [CHECK_LEAK] = "line"
	};

	return rule->is_leak ? "leak" : rule->is_grown ? "grown" : names[rule->kind];
}

const char *
check_where_word(const struct check_rule *rule)
{
	if (rule->where_kind != DOMAIN_PYTHON_ARENA)
		return "allocated at ";
	return text_starts(rule->where, "free in ") ? "" : "in ";
}

void
check_add_rule(struct check *check, struct check_rule rule)
{
	*MEMORY_NEXT(check->rules, check->rule_count) = rule;
}

uint64_t
check_now_bytes(const struct baseline_figure *figure, bool is_peak)
{
	return is_peak ? figure->median : figure->min;
}

void
check_name_place(struct check_rule *rule, const struct baseline_site *site)
{
	if (site == NULL)
		return;
	rule->where_kind = site->domain_kind;
	if (rule->kind >= CHECK_STEP && site->growing.where[0] != '\0') {
		rule->where = site->growing.where;
		rule->file = site->growing.file;
		rule->line = site->growing.line;
		return;
	}
	rule->where = site->where;
	rule->file = site->file;
	rule->line = site->line;
}

uint64_t
check_grown_bytes(const struct check *check, size_t site, bool is_peak)
{
	const struct baseline_site *now = &check->after->sites[site];
	const struct baseline_site *then = check->then[site];
	uint64_t before = then == NULL ? 0 : (is_peak ? then->peak_bytes.max : then->live_bytes.max);

	return amount_less(check_now_bytes(is_peak ? &now->peak_bytes : &now->live_bytes, is_peak), before);
}

uint64_t
check_suppressed_bytes(const struct check *check, const char *domain, bool is_peak)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < check->after->site_count; i++) {
		const struct baseline_site *now = &check->after->sites[i];

		if (now->suppression != 0 &&
		    (domain == NULL ? domain_is_host(now->domain_kind) : rank_domain_matches(now->domain, domain)))
			bytes = amount_sum(bytes, check_grown_bytes(check, i, is_peak));
	}
	return bytes;
}

static uint64_t
objects_bytes(const struct baseline *baseline)
{
	const struct baseline_domain *objects = baseline_find_domain(baseline, "python/object");

	return objects != NULL ? objects->peak_bytes.max : 0;
}

/* What Python's arenas take is exact. What is left of them is that, less an estimate: it is off as the estimate is. */
uint64_t
check_chance_bytes(const struct check *check, enum domain_kind kind, uint64_t before, uint64_t after)
{
	uint64_t heap_sample_bytes = amount_greater(check->before->heap_sample_bytes, check->after->heap_sample_bytes);

	if (kind == DOMAIN_HEAP_SAMPLE)
		return model_estimate_error(heap_sample_bytes, before + after);

	uint64_t estimated_bytes = kind == DOMAIN_PYTHON_OBJECT ? before + after
	                           : kind == DOMAIN_PYTHON_ARENA
	                               ? objects_bytes(check->before) + objects_bytes(check->after)
	                               : 0;

	return model_estimate_error(amount_greater(KMEM_PYTHON_SAMPLE_BYTES, heap_sample_bytes), estimated_bytes);
}

void
check_note(struct check *check, const char *format, ...)
{
	va_list values;

	va_start(values, format);

	char *text = memory_vprinted(format, values);

	va_end(values);
	(void)text_clean(text, strlen(text));
	*MEMORY_NEXT(check->notes, check->note_count) = text;
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
	free(check->suppressed);
	free(check->renamed);
	free(check->then);
	free(check);
}
