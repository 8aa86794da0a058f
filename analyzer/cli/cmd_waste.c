/*
 * cmd_waste.c - kmemshim waste: what was wasted, and at which lines.
 */
#include "base/document.h"
#include "base/output.h"
#include "cli/cmd_report.h"
#include "cli/command.h"
#include "report/render.h"

#define LINES_SHOWN 5

bool
cmd_waste(const struct options *options, int *status, struct fail *fail)
{
	const struct report_options all = { .top = UINT64_MAX, .domain = options->domain };
	const char *capture = options->argument_count != 0 ? options->arguments[0] : NULL;
	struct document document = { .count = 0 };
	struct opened_report opened;
	bool is_done = cmd_report_open(options, cmd_report_load(options, capture, NULL, fail), &rank_sites, &all, &opened,
	                               fail);

	(void)status;
	if (is_done) {
		render_waste(opened.report, options_top(options, LINES_SHOWN), &document);
		document_put(&document, stdout);
		is_done = output_finish(fail);
	}
	cmd_report_close(&opened);
	return is_done;
}
