/*
 * check_build.h - what those share that add rules to a check: check_compare.c and check_budget.c.
 */
#ifndef CHECK_BUILD_H
#define CHECK_BUILD_H

#include <stdbool.h>
#include <stdint.h>

#include "gate/check.h"

void check_add_rule(struct check *check, struct check_rule rule);

/* The figure of a site or domain under test that counts; of the baseline it is the most. */
uint64_t check_now_bytes(const struct baseline_figure *figure, bool is_peak);

/* How much more the line of this number holds than in the baseline. */
uint64_t check_grown_bytes(const struct check *check, size_t site, bool is_peak);

/* How much more the suppressed lines of these runs hold than in the baseline. domain: NULL = in all memory of the host. */
uint64_t check_suppressed_bytes(const struct check *check, const char *domain, bool is_peak);

/* How far two estimates of the same memory may differ by chance. */
uint64_t check_chance_bytes(const struct check *check, enum domain_kind kind, uint64_t before, uint64_t after);

/* Sets file, line and text of the rule. site: NULL = no line is known. */
void check_name_place(struct check_rule *rule, const struct baseline_site *site);

#endif
