/*
 * check_budget.h - is more used than the configuration allows?
 *
 *   peak total, live total   all memory of the host; its peak is the sum of the domains' peaks
 *   peak NAME, live NAME     a domain, or all that begin so ("cuda")
 *   peak PATTERN, ...        the sum of the lines that fit: "train.py:41 epoch", or the file's path and line
 *   step ...                 what lines that grow keep in each step
 *
 * When failing  it cannot. A budget that fits nothing is counted in check.unmatched_count, and told by a note.
 */
#ifndef CHECK_BUDGET_H
#define CHECK_BUDGET_H

#include <stdbool.h>

#include "gate/check.h"

void check_budgets(struct check *check);

/* Is it judged by a budget, and not by the baseline? */
bool check_has_domain_budget(const struct config *config, const char *domain, enum check_kind kind);
bool check_has_line_budget(const struct config *config, const struct baseline_site *site);

#endif
