/* check_confirm.c - see check_confirm.h. */
#include "gate/check_confirm.h"

#include <inttypes.h>

#include "base/amount.h"
#include "base/units.h"

bool
check_has_failed_lines(const struct check *check)
{
	return check->failed_count != 0 && check->rules[0].kind == CHECK_LEAK; // lines come first
}

static bool
has_grown(const struct check_rule *rule, uint64_t longer_bytes)
{
	double once = (double)amount_less(rule->after_bytes, rule->before_bytes);
	double longer = (double)amount_less(longer_bytes, rule->before_bytes);

	return longer >= once * CHECK_CONFIRM_TIMES / 2;
}

void
check_confirm(struct check *check, const struct baseline *longer, uint64_t rounds)
{
	size_t kept = 0;

	for (size_t i = 0; i < check->rule_count; i++) {
		const struct check_rule rule = check->rules[i];
		const struct baseline_site *site = baseline_find_site(longer, rule.family);
		uint64_t longer_bytes = site != NULL ? site->live_bytes.min : 0;

		if (rule.kind != CHECK_LEAK || !rule.has_failed || has_grown(&rule, longer_bytes)) {
			check->rules[kept++] = rule;
			continue;
		}
		check->failed_count--;
		check_note(check, "%s is not a leak: it held %s after %" PRIu64 " rounds, and %s after %" PRIu64, rule.where,
		           UNITS_BYTES(rule.after_bytes), rounds, UNITS_BYTES(longer_bytes), rounds * CHECK_CONFIRM_TIMES);
	}
	check->rule_count = kept;
}
