/*
 * cmd_schema.c - kmemshim schema: what does the JSON of a report consist of?
 */
#include <stdio.h>

#include "base/output.h"
#include "cli/command.h"
#include "report/render.h"

static bool
run(const struct options *options, int *status, struct fail *fail)
{
	(void)options;
	*status = EXIT_OK;
	render_json_schema(stdout);
	return output_finish(fail);
}

const struct command command_schema = {
	.name = "schema",
	.arguments = "",
	.summary = "print the JSON schema of reports",
	.details = "It describes what report, why, peak, leaks and sites print with --json.\n",
	.run = run,
};
