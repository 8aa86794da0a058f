/*
 * cmd_report.c - kmemshim report: one page: verdict, totals, peak, leaks, losses.
 */
#include "cli/cmd_report.h"

#include "base/output.h"
#include "cli/cmd_table.h"
#include "cli/command.h"
#include "model/model_load.h"
#include "report/render.h"

#define PAGE_TOP 5

static bool
has_devices(const struct report *report)
{
	for (size_t i = 0; i < report->domain_count; i++) {
		if (report->domains[i].is_device)
			return true;
	}
	return false;
}

bool
cmd_report_page(struct report *report, const struct options *options, uint64_t top, FILE *stream, struct fail *fail)
{
	const struct {
		const struct ranking *ranking;
		enum render_scope scope;
		const char *heading;
	} tables[] = {
		{ &rank_peak, RENDER_HOST, NULL },
		{ &rank_leaks, RENDER_HOST, NULL },
		{ &rank_peak, RENDER_DEVICES, "Held on devices at the peak" },
		{ &rank_leaks, RENDER_DEVICES, "Still held on devices, leaks first" },
	};
	const struct report_options rows = cmd_table_rows(options, top);

	render_text_verdict(report, stream);
	(void)fputc('\n', stream);
	render_text_totals(report, stream);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		const struct render_options look = {
			.is_native = options->is_native,
			.scope = options->domain != NULL ? RENDER_ALL : tables[i].scope,
			.heading = tables[i].heading,
		};

		if (report->domain_count == 0 ||
		    (tables[i].scope == RENDER_DEVICES && (options->domain != NULL || !has_devices(report))))
			continue; // nothing was allocated there
		if (!report_rank(report, tables[i].ranking, &rows, fail))
			return false;
		(void)fputc('\n', stream);
		render_text_lines(report, &look, stream);
	}
	(void)fputc('\n', stream);
	render_text_remarks(report, stream);
	return true;
}

static bool
run(const struct options *options, int *status, struct fail *fail)
{
	const struct report_options rows = cmd_table_rows(options, PAGE_TOP);
	struct model *model = cmd_table_load(options, options->argument_count != 0 ? options->arguments[0] : NULL, NULL,
	                                     fail);
	struct report *report = model != NULL ? report_build(model, &rank_peak, &rows, fail) : NULL;
	bool is_done = report != NULL;

	*status = EXIT_OK;
	if (is_done && options->is_json)
		render_json(report, stdout);
	else if (is_done)
		is_done = cmd_report_page(report, options, PAGE_TOP, stdout, fail);
	is_done = is_done && output_finish(fail);
	report_free(report);
	model_free(model);
	return is_done;
}

const struct command command_report = {
	.name = "report",
	.arguments = "[CAPTURE]",
	.summary = "one page: verdict, peak, leaks, devices, losses",
	.details = "CAPTURE is a .kmem file or a folder of them; without it, the newest session in ./kmemshim.out.\n",
	.options = OPTIONS_OF_TABLES,
	.arguments_max = 1,
	.run = run,
};
