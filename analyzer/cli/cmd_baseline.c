/*
 * cmd_baseline.c - kmemshim baseline: what good runs held, for `check` to compare with.
 */
#include "base/output.h"
#include "cli/cmd_runs.h"
#include "cli/command.h"
#include "gate/baseline.h"

/* What a run held that did not come to its end is no measure for others. */
static bool
judge(void *context, const char *path, const struct verdict *verdict, struct fail *fail)
{
	(void)context;
	if (verdict->end == VERDICT_END_RUNNING)
		return fail_set(fail, EXIT_CAPTURE, "%s: the program is still running: make the baseline when it has ended",
		                path);
	if (verdict->end != VERDICT_END_OK)
		return fail_set(fail, EXIT_KILLED, "%s: not a good run, no baseline was written: %s", path, verdict->text);
	return true;
}

static bool
run(const struct options *options, int *status, struct fail *fail)
{
	const struct cmd_runs runs = { .judge = judge, .newest = UINT64_MAX };
	struct baseline *baseline;
	struct output_file *file;
	bool is_done;

	*status = EXIT_OK;
	if (options->output == NULL)
		return fail_set(fail, EXIT_USAGE, "baseline: where to write is missing: add -o base.json");
	baseline = cmd_runs_measure(&runs, options, fail);
	file = baseline != NULL && cmd_runs_narrow(baseline, NULL, options, fail) ? output_open(options->output, fail)
	                                                                          : NULL;
	is_done = file != NULL;
	if (is_done) {
		baseline_write(baseline, output_stream(file));
		is_done = output_close(file, fail);
	}
	baseline_free(baseline);
	return is_done;
}

const struct command command_baseline = {
	.name = "baseline",
	.arguments = "RUN... -o FILE",
	.summary = "write down what good runs held, for check",
	.details = "RUN is a .kmem file, or a folder of which every session is a run. Several runs of the same code make a\n"
			   "better baseline: noise shows as their spread. A run that was killed or failed is refused (status 4).\n"
			   "With --domain it is of that domain alone, and so is what check compares with it.\n",
	.options = OPTIONS_OF_READERS | OPTION_BIT(OPTION_OUTPUT) | OPTION_BIT(OPTION_DOMAIN) | OPTION_BIT(OPTION_RUNS) |
	           OPTION_BIT(OPTION_PROGRAM),
	.arguments_min = 1,
	.arguments_max = -1,
	.run = run,
};
