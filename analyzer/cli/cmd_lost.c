/*
 * cmd_lost.c - kmemshim lost: which memory of a running program does nothing hold any more?
 */
#include <limits.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/memory.h"
#include "base/output.h"
#include "cli/cmd_report.h"
#include "cli/command.h"
#include "cli/options.h"
#include "holders/lost.h"
#include "holders/process_look.h"
#include "launch/launcher.h"
#include "launch/launcher_preload.h"

#define STOP_AT_EXIT_NS UINT64_C(600000000000) // nobody waits for a program that ends

static bool
set_environment(const struct options *options, struct fail *fail)
{
	char folder[PATH_MAX];
	char shim[PATH_MAX];

	if (!launcher_find_shim(NULL, shim, fail) || !launcher_make_folder(options->output, folder, fail))
		return false;

	OWNED char *preload = launcher_preload(shim, true);

	(void)setenv("LD_PRELOAD", preload, 1);
	(void)setenv("KMEMSHIM_OUT", folder, 1);
	return true;
}

static bool
find(const struct options *options, struct model_options *model_options, struct lost *lost, struct fail *fail)
{
	uint64_t stop_ns = options_stop_ns(options, options->is_at_exit ? STOP_AT_EXIT_NS : PROCESS_LOOK_NS);
	int ended;

	if (!options->is_at_exit)
		return lost_find(options->arguments[0], model_options, stop_ns, lost, fail);
	if (!set_environment(options, fail) ||
	    !lost_at_exit(options->command_line, model_options, stop_ns, lost, &ended, fail))
		return false;
	*options->status = WIFSIGNALED(ended) ? 128 + WTERMSIG(ended) : WEXITSTATUS(ended);
	return true;
}

bool
cmd_lost(const struct options *options, struct fail *fail)
{
	struct model_options model_options = cmd_report_model_options(options, NULL, NULL);
	struct lost lost;

	if (options->is_at_exit != (options->command_line != NULL) || (options->argument_count == 0) != options->is_at_exit)
		return fail_set(fail, EXIT_USAGE, "lost: give the number of a process, or --at-exit -- and a program");
	if (!find(options, &model_options, &lost, fail))
		return false;
	if (options->is_json)
		lost_render_json(&lost, options_top(options, UINT64_MAX), stdout);
	else
		lost_render_text(&lost, options_top(options, CMD_REPORT_TABLE_TOP), stdout);
	lost_free(&lost);
	return output_finish(fail);
}
