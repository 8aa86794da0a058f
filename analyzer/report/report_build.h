/*
 * report_build.h - what do the files share that make a report (report.h)?
 *
 * report.c          the whole, its domains, processes and refused requests
 * report_lines.c    a line of code, a site, a frame
 * report_places.c   where a line is, and what it says
 * report_names.c    words for numbers
 * report_steps.c    steps and marks of a process
 * report_timeline.c what a process held over time
 * report_guard.c    who passed its guard, and what it held then
 */
#ifndef REPORT_BUILD_H
#define REPORT_BUILD_H

#include "base/place.h"
#include "report/report.h"
#include "verdict/verdict.h"

struct report_rows {
	struct finished_model finished;
	const struct model *model; // the same
	struct ranked *ranked;
	struct verdict verdict;
	struct report_finding findings[VERDICT_FINDINGS_MAX];
	char places[VERDICT_FINDINGS_MAX][PLACE_TEXT_BYTES];
	struct report_memory memory;
	struct source_lines *sources;
	char **texts; // made here, freed with the report
	size_t text_count;
};

/* ---- report.c ---- */

/* site: NULL = it is a whole domain. */
struct report_estimate report_estimate_of(const struct model *model, unsigned domain, uint64_t live_bytes,
                                          uint64_t peak_bytes, const struct model_site *site, uint64_t samples);

/* ---- report_places.c ---- */

/* What stands for a name that is not known. */
uint64_t report_offset_of(const struct model_frame *frame);
struct report_place report_place_of_frame(const struct model_frame *frame);
/* Of the site's line. site: NULL = not known. The second one without the text of the line, which takes time. */
struct report_place report_place_of(const struct report_rows *rows, const struct model_site *site);
struct report_place report_place_without_source(const struct model_site *site);

/* ---- report_steps.c, report_timeline.c, report_guard.c ---- */

struct report_steps report_steps_of(const struct model_process *process, uint64_t end_ns);
struct report_mark *report_marks_of(const struct model_process *process); // freed by the caller
void report_timeline_build(const struct report_rows *rows, const struct model_process *process,
                           struct report_timeline *made);
void report_timeline_free(struct report_timeline *timeline);
/* All of report->guard but the lines, which are of another moment. */
void report_guard_build(struct report *report, const struct model *model, const struct verdict *verdict);

#endif
