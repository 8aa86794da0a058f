/*
 * cmd_table.h - what the commands that read a capture have in common.
 */
#ifndef CMD_TABLE_H
#define CMD_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/rank.h"
#include "base/fail.h"
#include "cli/options.h"
#include "report/report.h"

#define CMD_TABLE_TOP 10 // lines of code in a text without --top

/*
 * capture: a file, a folder or NULL for ./kmemshim.out. session: NULL = the newest, and one line on stderr when there are others.
 */
struct model *cmd_table_load(const struct options *options, const char *capture, const char *session,
                             struct fail *fail);

/* False and *fail when a project was named that no site is in: most likely it is misspelt. NULL: none was. */
bool cmd_table_check_project(const struct model *model, const char *project, struct fail *fail);

/* What options say about rows; text_top: how many a text shows when nobody says. */
struct report_options cmd_table_rows(const struct options *options, uint64_t text_top);

/* The whole of `peak`, `leaks` and `sites`: one table, as text or JSON. */
bool cmd_table_run(const struct ranking *ranking, const struct options *options, struct fail *fail);

#endif
