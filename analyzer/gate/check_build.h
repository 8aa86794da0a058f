/*
 * check_build.h - what those share that add rules to a check: check_compare.c and check_budget.c.
 */
#ifndef CHECK_BUILD_H
#define CHECK_BUILD_H

#include <stdbool.h>
#include <stdint.h>

#include "gate/check.h"

/* Valid until the next one is added. */
struct check_rule *check_add_rule(struct check *check, struct check_rule rule);

/* What a site, or a domain, of the runs under test counts with; of the baseline it is the most. */
uint64_t check_now_bytes(const struct baseline_figure *figure, bool is_peak);

/* What suppressed lines of these hold more than in the baseline. domain: NULL = of all memory of the host. */
uint64_t check_suppressed_bytes(const struct check *check, const char *domain, bool is_peak);

/* By so much two estimates of the same memory may differ by chance. */
uint64_t check_chance_bytes(const struct check *check, enum domain_kind kind, uint64_t before, uint64_t after);

/* Sets file, line and text of the rule; NULL: none is known. */
void check_name_place(struct check_rule *rule, const struct baseline_site *site);

#endif
