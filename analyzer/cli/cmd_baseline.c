/*
 * cmd_baseline.c - kmemshim baseline: what good runs held, for `check` to compare with.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/make_folders.h"
#include "base/memory.h"
#include "base/output.h"
#include "base/text_clean.h"
#include "base/units.h"
#include "cli/cmd_runs.h"
#include "cli/command.h"
#include "gate/baseline.h"

#define RUNS_OF_PROGRAM 5 // `check` learns from three, and two may be unlike the others

/* A run that did not come to its end is no measure for other runs. */
static bool
judge(void *context, const char *path, const struct verdict *verdict, struct fail *fail)
{
	(void)context;
	if (verdict->end == VERDICT_END_RUNNING)
		return fail_set(fail, EXIT_CAPTURE, "%s: the program is still running: make the baseline when it has ended",
		                path);
	return verdict->end == VERDICT_END_OK ||
	       fail_set(fail, EXIT_KILLED, "%s: not a good run, no baseline was written: %s", path, verdict->text);
}

/* A baseline is made anew again and again. Another file has to be meant. */
static bool
may_replace(const char *path, bool is_forced, struct fail *fail)
{
	struct fail unread = { 0 };
	struct baseline *before = is_forced || access(path, F_OK) != 0 ? NULL : baseline_read(path, &unread);
	bool is_baseline = before != NULL;

	baseline_free(before);
	return is_baseline || output_may_write(path, is_forced, fail);
}

static bool
write_baseline(const struct baseline *baseline, const char *wanted, struct fail *fail)
{
	OWNED char *path = baseline_is_folder(wanted) ? baseline_path_in(wanted, baseline->platform) : memory_text(wanted);
	struct output_file *file;

	if (baseline_is_folder(wanted))
		(void)make_folders(wanted, 0777); // where it cannot be made, the file says so
	file = output_open(path, OUTPUT_OF_ALL, fail);

	bool is_done = file != NULL;

	if (is_done) {
		baseline_write(baseline, output_stream(file));
		is_done = output_close(file, fail);
	}
	if (is_done && strcmp(path, "-") != 0) {
		(void)text_clean(path, strlen(path));
		(void)fprintf(stderr, "kmemshim: written: %s, from %" PRIu64 " run%s\n", path, baseline->run_count,
		              UNITS_S(baseline->run_count));
	}
	return is_done;
}

bool
cmd_baseline(const struct options *options, struct fail *fail)
{
	struct cmd_recorded recorded = { .count = 0 };
	const struct cmd_runs runs = { .judge = judge,
		                           .recorded = options->command_line != NULL ? &recorded : NULL,
		                           .newest = UINT64_MAX };
	uint64_t count = options->runs != 0 ? options->runs : RUNS_OF_PROGRAM;
	struct baseline *baseline = NULL;
	bool is_done = true;

	if (options->output == NULL)
		return fail_set(fail, EXIT_USAGE, "baseline: no file given: add -o base.json");
	if (!baseline_is_folder(options->output) && !may_replace(options->output, options->is_forced, fail))
		return false;
	if (options->command_line != NULL && options->runs == UINT64_MAX)
		return fail_set(fail, EXIT_USAGE, "baseline: --runs all: of a program that is run, give a number");
	for (uint64_t i = 0; options->command_line != NULL && i < count && is_done; i++)
		is_done = cmd_runs_record(&recorded, NULL, options->rounds != 0 ? options->rounds : CMD_RUNS_ROUNDS, options,
		                          fail);
	if (is_done)
		baseline = cmd_runs_measure(&runs, options, fail);
	is_done = baseline != NULL && cmd_runs_narrow(baseline, NULL, options, fail) &&
	          write_baseline(baseline, options->output, fail);
	baseline_free(baseline);
	free(recorded.sessions);
	return is_done;
}
