/*
 * cmd_holders.c - kmemshim holders: who holds the memory of a running program?
 */
#include <string.h>
#include <unistd.h>

#include "base/output.h"
#include "cli/command.h"
#include "cli/options.h"
#include "holders/holders.h"
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

/* There is no file of that name, and it does not look like one. */
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
	model_options->capture = options->arguments[0];
	model_options->is_salvage = options->is_salvage;
	return holders_stored(model_options, top_of(options, HOLDERS_LINES_MAX), holders, fail);
}

bool
cmd_holders(const struct options *options, int *status, struct fail *fail)
{
	struct model_options model_options = model_options_of(options);
	struct holders holders;

	(void)status;
	if (is_process(options->arguments[0]) ? !holders_find(options->arguments[0], &model_options, stop_of(options),
	                                                      top_of(options, HOLDERS_LINES_MAX), &holders, fail)
	                                      : !stored(options, &model_options, &holders, fail))
		return false;
	if (options->is_json)
		holders_render_json(&holders, stdout);
	else
		holders_render_text(&holders, stdout);
	model_holders_free(&holders);
	return output_finish(fail);
}
