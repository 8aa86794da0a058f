/*
 * cmd_lost.c - kmemshim lost: which memory of a running program does nothing hold any more?
 */
#include "base/output.h"
#include "cli/cmd_report.h"
#include "cli/command.h"
#include "cli/options.h"
#include "holders/lost.h"
#include "holders/process_look.h"

bool
cmd_lost(const struct options *options, int *status, struct fail *fail)
{
	struct model_options model_options = cmd_report_model_options(options, NULL, NULL);
	struct lost lost;

	(void)status;
	if (!lost_find(options->arguments[0], &model_options, options_stop_ns(options, PROCESS_LOOK_NS), &lost, fail))
		return false;
	if (options->is_json)
		lost_render_json(&lost, options_top(options, UINT64_MAX), stdout);
	else
		lost_render_text(&lost, options_top(options, CMD_REPORT_TABLE_TOP), stdout);
	lost_free(&lost);
	return output_finish(fail);
}
