/*
 * cmd_annotate.c - kmemshim annotate: a source file, and beside each line what it held.
 */
#include "base/document.h"
#include "base/output.h"
#include "cli/cmd_report.h"
#include "cli/command.h"
#include "report/render.h"

bool
cmd_annotate(const struct options *options, int *status, struct fail *fail)
{
	const struct report_options all = { .top = UINT64_MAX, .domain = options->domain };
	const struct annotate_options wanted = { .file = options->arguments[0], .has_all = options->has_all };
	struct model *model = cmd_report_load(options, options->argument_count > 1 ? options->arguments[1] : NULL, NULL,
	                                      fail);
	struct document document = { .count = 0 };
	struct opened_report opened;
	bool is_done = cmd_report_open(options, model, &rank_sites, &all, &opened, fail);

	(void)status;
	is_done = is_done && render_annotate(opened.report, &wanted, &document, stderr, fail);
	document_put(&document, stdout);
	is_done = is_done && output_finish(fail);
	cmd_report_close(&opened);
	return is_done;
}
