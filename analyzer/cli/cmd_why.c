/*
 * cmd_why.c - kmemshim why: why did it end?
 */
#include <stdio.h>

#include "base/output.h"
#include "cli/cmd_table.h"
#include "cli/command.h"
#include "model/model_load.h"
#include "report/render.h"

static bool
run(const struct options *options, int *status, struct fail *fail)
{
	const struct report_options none = { .domain = options->domain, .is_verdict_of_domain = options->domain != NULL };
	struct model *model = cmd_table_load(options, options->argument_count != 0 ? options->arguments[0] : NULL, NULL,
	                                     fail);
	struct report *report = model != NULL ? report_build(model, &rank_peak, &none, fail) : NULL;
	bool is_done = report != NULL;

	*status = EXIT_OK;
	if (is_done && options->is_json)
		render_json(report, stdout);
	else if (is_done)
		render_text_verdict(report, stdout);
	is_done = is_done && output_finish(fail);
	report_free(report);
	model_free(model);
	return is_done;
}

const struct command command_why = {
	.name = "why",
	.arguments = "[CAPTURE]",
	.summary = "why did the program end",
	.details = "The paragraph says how sure it is: certain, likely, possible, unknown. --json is the report without rows.\n"
			   "With --domain it is about that domain alone: what held it, whether it grows, what was refused.\n",
	.options = OPTIONS_OF_READERS | OPTION_BIT(OPTION_JSON) | OPTION_BIT(OPTION_DOMAIN),
	.arguments_max = 1,
	.run = run,
};
