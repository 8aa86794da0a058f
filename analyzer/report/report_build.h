/*
 * report_build.h - the report while it is being made: what its parts share.
 *
 *   report.c           verdict, totals, processes, lines, sites
 *   report_memory.c    where what was in memory was
 *   report_requests.c  requests that were refused
 */
#ifndef REPORT_BUILD_H
#define REPORT_BUILD_H

#include "model/model.h"
#include "report/report.h"

/* site NULL: unknown. */
struct report_place report_place_of(const struct report_rows *rows, const struct model_site *site);

struct verdict_memory;
/* NULL: nobody looked. */
const struct report_memory *report_memory_of(const struct report_rows *rows, const struct verdict_memory *from,
                                             struct report_memory *to);
struct report_fragmentation report_fragmentation_of(const struct model *model, const struct model_process *process);

void report_build_requests(struct report *report, const struct model *model);

#endif
