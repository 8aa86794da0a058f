/*
 * cmd_leaks.c - kmemshim leaks: what grows and is never released?
 */
#include "cli/cmd_table.h"
#include "cli/command.h"

static bool
run(const struct options *options, int *status, struct fail *fail)
{
	*status = EXIT_OK;
	return cmd_table_run(&rank_leaks, options, fail);
}

const struct command command_leaks = {
	.name = "leaks",
	.arguments = "[CAPTURE]",
	.summary = "what grows and is never released",
	.details = "A leak still holds blocks from nearly every generation (a tick of allocated bytes or blocks) since it appeared.\n"
			   "Classes: leak, leak? (the same, or a data set that was loaded), too-short (too few generations to judge),\n"
			   "backlog (released late, in bursts), steady, import, none.\n",
	.options = OPTIONS_OF_TABLES,
	.arguments_max = 1,
	.run = run,
};
