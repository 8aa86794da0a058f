/*
 * export.h - the report in the formats of other programs.
 *
 * Sums over all rows are the totals of the report. Address space (reserved, file) is left out: it holds no memory.
 *
 * When failing  errors stay in the stream.
 */
#ifndef EXPORT_H
#define EXPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/place.h"
#include "export/git_revision.h"
#include "report/report.h"

/* What a stack is given a number for. */
struct export_value {
	const char *name;    // "peak"
	const char *meaning; // "live at the peak": all that was asked for
	const char *heading; // "Held at the peak": of a tree, which leaves out what is not in memory
	uint64_t (*of)(const struct model_site *site);
};
extern const struct export_value export_values[]; // the last one has no name

/* What rows say of the whole run, whichever process they are of. Texts are the report's. */
struct export_run {
	const char *session;
	const char *program; // of its first process
	const char *cause;
	const char *verdict;
	uint64_t start_realtime_ns;
	size_t process_count;
	char host[65];                     // "" = the run was not on this machine, or before it was started anew
	char revision[GIT_REVISION_BYTES]; // "" = not known
};
struct export_run export_run_of(const struct report *report);

struct export_format {
	const char *name;
	bool has_value;     // only of one value
	bool is_binary;     // not for a terminal
	bool is_by_process; // export_rows_of() for each process
	void (*write)(const struct report *report, const struct export_value *value,
	              FILE *stream); // NULL = another folder does
};

/* NULL = there is none of that name. */
const struct export_value *export_value_find(const char *name);
const struct export_format *export_format_find(const char *name);

/* "folded, speedscope, ...": for messages and help. */
const char *export_format_names(char text[128]);

/* What each format does; report has all lines, ranked by rank_peak. */
void export_folded(const struct report *report, const struct export_value *value, FILE *stream);
void export_speedscope(const struct report *report, const struct export_value *value, FILE *stream);
void export_rows(const struct report *report, const struct export_value *value, FILE *stream);
/* Rows of one process: report is of it alone. */
void export_rows_of(const struct report *report, const struct export_run *run, FILE *stream);
void export_metrics(const struct report *report, const struct export_value *value, FILE *stream);

void export_pprof(const struct report *report, const struct export_value *value, FILE *stream);
void export_dhat(const struct report *report, const struct export_value *value, FILE *stream);
void export_massif(const struct report *report, const struct export_value *value, FILE *stream);

/* On a terminal that is not written to. */
void export_progress(FILE *stream, size_t done, size_t total);

bool export_is_memory(const struct report *report, unsigned domain);

#endif
