/*
 * cmd_lost.c - kmemshim lost: which memory of a running program does nothing hold any more?
 */
#include "base/output.h"
#include "cli/cmd_report.h"
#include "cli/command.h"
#include "cli/options.h"
#include "holders/lost.h"
#include "holders/process_look.h"

static uint64_t
top_of(const struct options *options, uint64_t otherwise)
{
	return options_has(options, OPTION_TOP) ? options->top : otherwise;
}

static uint64_t
stop_of(const struct options *options)
{
	return options_has(options, OPTION_STOP) ? options->stop_ns : PROCESS_LOOK_NS;
}

static struct model_options
model_options_of(const struct options *options)
{
	return (struct model_options){ .sysroot = options->sysroot,
		                           .project = options->project,
		                           .wrappers = options->wrappers };
}

bool
cmd_lost(const struct options *options, int *status, struct fail *fail)
{
	struct model_options model_options = model_options_of(options);
	struct lost lost;

	(void)status;
	if (!lost_find(options->arguments[0], &model_options, stop_of(options), &lost, fail))
		return false;
	if (options->is_json)
		lost_render_json(&lost, top_of(options, UINT64_MAX), stdout);
	else
		lost_render_text(&lost, top_of(options, CMD_REPORT_TABLE_TOP), stdout);
	lost_free(&lost);
	return output_finish(fail);
}
