/*
 * check_compare.h - the runs under test against the baseline and the budgets: makes the result that check.h describes.
 */
#ifndef CHECK_COMPARE_H
#define CHECK_COMPARE_H

#include "gate/check.h"

/*
 * before  NULL = there is none: only budgets are judged
 * config  NULL = without budgets and suppressions
 *
 * All must outlive the result.
 */
struct check *check_compare(const struct baseline *before, const struct baseline *after,
                            struct check_tolerance tolerance, const struct config *config);

#endif
