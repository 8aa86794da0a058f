/*
 * cmd_report.h - the commands that read a capture: report, why, peak, leaks, sites, tree, waste, annotate.
 *
 * Each is a question: a ranking, and what of the report its text shows. JSON is the same for all.
 */
#ifndef CMD_REPORT_H
#define CMD_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/rank.h"
#include "base/fail.h"
#include "cli/options.h"
#include "model/model_load.h"
#include "report/grouping.h"
#include "report/report.h"

#define CMD_REPORT_PAGE_TOP 5 // lines of code per table without --top
#define CMD_REPORT_TABLE_TOP 10

struct document;
/* Adds the text. top: lines per table. False and *fail: it cannot be told. */
typedef bool cmd_report_show(struct report *report, const struct options *options, uint64_t top,
                             struct document *document, struct fail *fail);

struct question {
	const struct ranking *ranking;
	uint64_t text_top;    // lines of code in a text without --top
	bool is_verdict_only; // no lines and sites in the JSON either; with --domain the verdict is of that alone
	cmd_report_show *show;
	int capture_argument; // which of the arguments names the capture
};

cmd_report_show cmd_report_page;    // verdict, totals, peak, leaks, losses
cmd_report_show cmd_report_table;   // one table, and what must be known of its figures
cmd_report_show cmd_report_verdict; // and what was held when the guard was passed
cmd_report_show cmd_report_waste;
cmd_report_show cmd_report_annotate;
cmd_report_show cmd_report_tree;

/* The options for reading a capture, made of the command's options. */
struct model_options cmd_report_model_options(const struct options *options, const char *capture, const char *session);

/*
 * capture: a file, a folder or NULL for ./kmemshim.out. session: NULL = the newest, and one line on stderr when there are others.
 */
struct model *cmd_report_load(const struct options *options, const char *capture, const char *session,
                              struct fail *fail);

/* Reads a capture once more, without saying anything about it. */
struct model *cmd_report_load_quietly(const struct options *options, const char *capture, struct fail *fail);

/* A report, and the models that it points into. */
struct opened_report {
	struct model *model;
	struct model *then; // when the guard was passed; NULL = it was not
	struct report *report;
};

/* model: may be NULL; the opened report owns it from now on. False and *fail: nothing is open. */
bool cmd_report_open(const struct options *options, struct model *model, const struct ranking *ranking,
                     const struct report_options *rows, struct opened_report *opened, struct fail *fail);
void cmd_report_close(struct opened_report *opened);

/* The grouping that --by names; by line without it. False and *fail: there is no such grouping. */
bool cmd_report_grouping(const struct options *options, enum grouping *grouping, struct fail *fail);

/* False and *fail: figures that are compared must be complete. */
bool cmd_report_is_whole(const struct model *model, const char *path, struct fail *fail);

/* False and *fail when no site is in the named project: most likely its name is misspelt. NULL: none was named. */
bool cmd_report_check_project(const struct model *model, const char *project, struct fail *fail);

#endif
