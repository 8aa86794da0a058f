/*
 * cmd_check.c - kmemshim check: is a run worse than the baseline?
 *
 * Exit status: 0 no; 1 yes; 2 options or baseline are wrong; 3 a capture cannot be used; 4 the program was killed or
 * failed. An earlier one in 2, 3, 4, 1 hides the later ones: figures of a run that died say nothing.
 */
#include "gate/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/output.h"
#include "base/text_clean.h"
#include "base/units.h"
#include "cli/cmd_runs.h"
#include "cli/command.h"
#include "gate/baseline.h"
#include "report/render.h"

struct run_ends {
	char *ended_badly; // verdict of the first run that did; NULL
	char *path;
	char *lost_child; // a line about a process that is gone though its run ended well; NULL
};

static char *
lost_child_text(const char *path, const struct model_process *process)
{
	char held[UNITS_TEXT_BYTES];
	char *text;

	if (asprintf(
			&text,
			"%s: its child process %s (pid %u) ended by a signal or crashed, holding %s; its figures are from that "
			"moment (only its parent knows which signal; a pool that closes sends SIGTERM)",
			path, process->name, process->identity->pid, units_bytes(process->live_bytes, held)) < 0)
		memory_exhausted();
	(void)text_clean(text, strlen(text));
	return text;
}

static bool
judge(void *context, const char *path, const struct verdict *verdict, struct fail *fail)
{
	struct run_ends *ends = context;

	if (verdict->end == VERDICT_END_RUNNING)
		return fail_set(fail, EXIT_CAPTURE, "%s: the program is still running: check it when it has ended", path);
	if (verdict->has_ended_well && verdict->lost_child != NULL && ends->lost_child == NULL)
		ends->lost_child = lost_child_text(path, verdict->lost_child);
	if (!verdict->has_ended_well && ends->ended_badly == NULL) {
		ends->ended_badly = memory_text(verdict->text);
		ends->path = memory_text(path);
	}
	return true;
}

static bool
write_junit(const struct check *check, const char *path, struct fail *fail)
{
	struct output_file *file;

	if (path == NULL) {
		render_check_junit(check, stdout);
		return true;
	}
	file = output_open(path, fail);
	if (file == NULL)
		return false;
	render_check_junit(check, output_stream(file));
	return output_close(file, fail);
}

/* Writes every format of the list; with check NULL only looks whether all are known, so that a typing error is found
 * before the captures are read. */
static bool
write_formats(const struct check *check, const char *formats, struct fail *fail)
{
	char *list = memory_text(formats);
	char *rest = list;
	bool is_done = true;

	for (char *word = strsep(&rest, ","); word != NULL && is_done; word = strsep(&rest, ",")) {
		bool is_junit = strcmp(word, "junit") == 0;
		bool is_junit_file = strncmp(word, "junit=", 6) == 0 && word[6] != '\0';

		if (strcmp(word, "text") != 0 && !is_junit && !is_junit_file)
			is_done = fail_set(fail, EXIT_USAGE, "check: --format \"%s\": not one of text, junit, junit=FILE", word);
		else if (check == NULL)
			continue;
		else if (is_junit || is_junit_file)
			is_done = write_junit(check, is_junit_file ? word + 6 : NULL, fail);
		else
			render_check_text(check, stdout);
	}
	free(list);
	return is_done;
}

static bool
compare(const struct baseline *before, const struct baseline *after, const struct run_ends *ends,
        const struct options *options, int *status, struct fail *fail)
{
	const struct check_tolerance tolerance = {
		.absolute_bytes = options->absolute_bytes,
		.relative_ppm = options->relative_ppm,
	};
	struct check *check = check_compare(before, after, tolerance);
	bool is_done;

	check->ended_badly = ends->ended_badly;
	check->ended_path = ends->path;
	check->lost_child = ends->lost_child;
	*status = ends->ended_badly != NULL ? EXIT_KILLED : check->failed_count != 0 ? EXIT_REGRESSION : EXIT_OK;
	is_done = write_formats(check, options->formats != NULL ? options->formats : "text", fail);
	check_free(check);
	return is_done && output_finish(fail);
}

bool
cmd_check(const struct options *options, int *status, struct fail *fail)
{
	struct run_ends ends = { .ended_badly = NULL };
	struct cmd_runs runs = { .judge = judge, .context = &ends, .wanted_path = options->baseline, .newest = 1 };
	struct baseline *before;
	struct baseline *after;
	bool is_done;

	if (options->baseline == NULL)
		return fail_set(fail, EXIT_USAGE, "check: no baseline given: add --baseline base.json");
	if (options->formats != NULL && !write_formats(NULL, options->formats, fail))
		return false;
	before = baseline_read(options->baseline, fail);
	if (before == NULL)
		return false;
	runs.wanted = before;
	after = cmd_runs_measure(&runs, options, fail);
	is_done = after != NULL && cmd_runs_narrow(after, before, options, fail) &&
	          compare(before, after, &ends, options, status, fail);
	free(ends.lost_child);
	free(ends.path);
	free(ends.ended_badly);
	baseline_free(before);
	baseline_free(after);
	return is_done;
}
