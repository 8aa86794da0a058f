/*
 * cmd_report.h - the one-page report, also at the end of `kmemshim run`.
 */
#ifndef CMD_REPORT_H
#define CMD_REPORT_H

#include <stdio.h>

#include "cli/options.h"
#include "report/report.h"

/* Verdict, totals, peak, leaks, losses. top: lines per table. On failure nothing of the tables is missing silently. */
bool cmd_report_page(struct report *report, const struct options *options, uint64_t top, FILE *stream,
                     struct fail *fail);

#endif
