/*
 * cmd_sites.c - kmemshim sites: what is live at the end, and how much went through?
 */
#include "cli/cmd_table.h"
#include "cli/command.h"

static bool
run(const struct options *options, int *status, struct fail *fail)
{
	*status = EXIT_OK;
	return cmd_table_run(&rank_sites, options, fail);
}

const struct command command_sites = {
	.name = "sites",
	.arguments = "[CAPTURE]",
	.summary = "what is live at the end, and how much went through",
	.details = "Lines by what they hold, whatever their class, with what leaks does not show: all bytes and calls that ever\n"
			   "went through a line, also of lines that hold nothing any more. Without --top, --json lists every call site of every domain.\n",
	.options = OPTIONS_OF_TABLES,
	.arguments_max = 1,
	.run = run,
};
