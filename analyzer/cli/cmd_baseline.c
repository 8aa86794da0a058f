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

bool
cmd_baseline(const struct options *options, int *status, struct fail *fail)
{
	const struct cmd_runs runs = { .judge = judge, .newest = UINT64_MAX };
	struct baseline *baseline;
	struct output_file *file;
	bool is_done;

	(void)status;
	if (options->output == NULL)
		return fail_set(fail, EXIT_USAGE, "baseline: no file given: add -o base.json");
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
