/*
 * cmd_top.c - kmemshim top: what does a running program hold now?
 */

#include "base/memory.h"
#include "base/output.h"
#include "base/terminal.h"
#include "capture/capture_folder.h"
#include "capture/running_capture.h"
#include "cli/cmd_report.h"
#include "cli/command.h"
#include "cli/options.h"
#include "top/top.h"

#define ONCE_ROWS 24

bool
cmd_top(const struct options *options, struct fail *fail)
{
	const char *argument = options->argument_count != 0 ? options->arguments[0] : NULL;
	char path[RUNNING_CAPTURE_PATH_BYTES];
	OWNED char *running = NULL;
	struct top_options wanted = {
		.captures = cmd_report_model_options(options, argument, NULL),
		.domain = options->domain,
		.has_color = terminal_has_color(stdout, TERMINAL_COLOR_AUTO),
		.rows = ONCE_ROWS,
		.columns = (unsigned)terminal_columns(stdout),
	};

	if (running_capture_is_process(argument)) {
		if (!running_capture_path("top", argument, path, fail))
			return false;
		wanted.captures.capture = path;
	} else {
		wanted.captures.session = running = capture_folder_running(argument, options->is_salvage);
	}
	bool is_done = options->is_once ? top_once(&wanted, fail) : top_watch(&wanted, fail);

	return is_done && output_finish(fail);
}
