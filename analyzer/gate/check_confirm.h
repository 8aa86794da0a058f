/*
 * check_confirm.h - does a line that failed grow with the work that the program does?
 *
 * A new cache, pool or table holds as much after four times the rounds; a leak holds four times as much. Twice as much is taken for a
 * leak.
 */
#ifndef CHECK_CONFIRM_H
#define CHECK_CONFIRM_H

#include <stdbool.h>
#include <stdint.h>

#include "gate/check.h"

#define CHECK_CONFIRM_TIMES 4

/* Has a line failed? Totals are not asked: they may rise with the work. */
bool check_has_failed_lines(const struct check *check);

/*
 * Takes the failed lines away that did not grow, and adds a note for each.
 *
 * longer   a run of the same program with CHECK_CONFIRM_TIMES the rounds
 * rounds   of the runs under test
 */
void check_confirm(struct check *check, const struct baseline *longer, uint64_t rounds);

#endif
