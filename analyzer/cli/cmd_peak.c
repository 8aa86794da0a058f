/*
 * cmd_peak.c - kmemshim peak: which lines of code held the memory at the peak?
 */
#include "cli/cmd_table.h"
#include "cli/command.h"

static bool
run(const struct options *options, int *status, struct fail *fail)
{
	*status = EXIT_OK;
	return cmd_table_run(&rank_peak, options, fail);
}

const struct command command_peak = {
	.name = "peak",
	.arguments = "[CAPTURE]",
	.summary = "which lines of code held the memory at the peak",
	.details = "Rows are lines of code, sums of the call sites below them; --json lists the sites too.\n"
			   "What imports leave behind comes after them, address space (reserved, file) last.\n",
	.options = OPTIONS_OF_TABLES,
	.arguments_max = 1,
	.run = run,
};
