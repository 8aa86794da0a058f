/*
 * cmd_holders.c - kmemshim holders: who holds the memory of a running program?
 */
#include <string.h>
#include <unistd.h>

#include "base/output.h"
#include "cli/cmd_report.h"
#include "cli/command.h"
#include "cli/options.h"
#include "holders/holders.h"
#include "holders/process_look.h"

#define CORE_NS UINT64_C(600000000000) // nobody waits

/* Is it a process? There is no file of that name, and it does not look like one. */
static bool
is_process(const char *argument)
{
	return access(argument, F_OK) != 0 && strpbrk(argument, "/.") == NULL;
}

static bool
stored(const struct options *options, struct model_options *model_options, struct holders *holders, struct fail *fail)
{
	if (options_has(options, OPTION_STOP))
		return fail_set(fail, EXIT_USAGE, "holders: --stop: is for a program that runs: give its number");
	model_options->wants_symbols = false; // the look has its names
	return holders_stored(model_options, options_top(options, HOLDERS_LINES_MAX), holders, fail);
}

bool
cmd_holders(const struct options *options, struct fail *fail)
{
	struct model_options model_options = cmd_report_model_options(options, options->arguments[0], NULL);
	struct holders holders;

	if (options->core != NULL) {
		if (!holders_find_in_core(options->core, &model_options, options_stop_ns(options, CORE_NS),
		                          options_top(options, HOLDERS_LINES_MAX), &holders, fail))
			return false;
	} else if (is_process(options->arguments[0])
	               ? !holders_find(options->arguments[0], &model_options, options_stop_ns(options, PROCESS_LOOK_NS),
	                               options_top(options, HOLDERS_LINES_MAX), &holders, fail)
	               : !stored(options, &model_options, &holders, fail))
		return false;
	if (options->is_json)
		holders_render_json(&holders, stdout);
	else
		holders_render_text(&holders, stdout);
	model_holders_free(&holders);
	return output_finish(fail);
}
