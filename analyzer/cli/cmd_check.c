/*
 * cmd_check.c - kmemshim check: is a run worse than the baseline?
 *
 * Exit status: 0 no; 1 yes; 2 options or baseline are wrong; 3 a capture cannot be used; 4 the program was killed or
 * failed. An earlier one in 2, 3, 4, 1 hides the later ones: figures of a run that died say nothing.
 */
#include "gate/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/output.h"
#include "base/shell_words.h"
#include "base/text_clean.h"
#include "base/units.h"
#include "cli/cmd_runs.h"
#include "cli/command.h"
#include "gate/baseline.h"
#include "gate/check_outputs.h"

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

/* Others have written into the file, or will. */
static bool
append(const struct check *check, const struct check_output *output, const char *path, struct fail *fail)
{
	FILE *stream = fopen(path, "ae");
	bool is_written;

	if (stream == NULL)
		return fail_set(fail, EXIT_USAGE, "%s: cannot write: %s", path, strerror(errno));
	output->render(check, stream);
	is_written = ferror(stream) == 0;
	if (fclose(stream) != 0 || !is_written)
		return fail_set(fail, EXIT_USAGE, "%s: cannot write: %s", path, strerror(errno));
	return true;
}

static bool
write_output(const struct check *check, const struct check_output *output, const char *path, struct fail *fail)
{
	struct output_file *file;

	if (path[0] == '\0' && output->environment != NULL && getenv(output->environment) != NULL)
		path = getenv(output->environment);
	if (path[0] == '\0') {
		output->render(check, stdout);
		return true;
	}
	if (output->is_appended)
		return append(check, output, path, fail);
	file = output_open(path, fail);
	if (file == NULL)
		return false;
	output->render(check, output_stream(file));
	return output_close(file, fail);
}

static bool
refuse_format(const char *word, struct fail *fail)
{
	char names[256] = "";

	for (size_t i = 0; i < check_output_count; i++) {
		size_t used = strlen(names);

		(void)snprintf(names + used, sizeof(names) - used, "%s%s", i != 0 ? ", " : "", check_outputs[i].name);
	}
	return fail_set(fail, EXIT_USAGE, "check: --format \"%s\": not one of %s, nor one of them with =FILE", word, names);
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
		const char *path;
		const struct check_output *output = check_output_find(word, &path);

		if (output == NULL)
			is_done = refuse_format(word, fail);
		else if (check != NULL)
			is_done = write_output(check, output, path, fail);
	}
	free(list);
	return is_done;
}

/* Is it --format, or what getopt takes for it? */
static bool
is_format(const char *word, bool *has_value)
{
	size_t length = strcspn(word, "=");

	*has_value = word[length] == '=';
	return length >= strlen("--f") && length <= strlen("--format") && strncmp(word, "--format", length) == 0;
}

/*
 * What does the same on another machine: the program of the first run again, and this command of its capture. Where results are written is the
 * CI system's business. "" where the capture does not say what was run; for free().
 */
static char *
repeat_of(const struct options *options, const struct baseline *after)
{
	char *words = NULL;
	size_t bytes = 0;
	FILE *stream = open_memstream(&words, &bytes);
	char *joined;
	char *text;
	bool has_value;

	if (stream == NULL)
		memory_exhausted();
	for (int i = 0; i < options->option_word_count; i++) {
		if (!is_format(options->option_words[i], &has_value))
			(void)fwrite(options->option_words[i], 1, strlen(options->option_words[i]) + 1, stream);
		else
			i += !has_value;
	}
	if (fclose(stream) != 0)
		memory_exhausted();
	joined = shell_words_join(words, bytes);
	if (after->command[0] == '\0')
		text = memory_text("");
	else if (asprintf(&text, "kmemshim run -o again -- %s; kmemshim check again %s", after->command, joined) < 0)
		memory_exhausted();
	free(joined);
	free(words);
	return text;
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
	char *repeat = repeat_of(options, after);
	bool is_done;

	check->repeat = repeat;
	check->ended_badly = ends->ended_badly;
	check->ended_path = ends->path;
	check->lost_child = ends->lost_child;
	*status = ends->ended_badly != NULL ? EXIT_KILLED : check->failed_count != 0 ? EXIT_REGRESSION : EXIT_OK;
	is_done = write_formats(check, options->formats != NULL ? options->formats : "text", fail);
	check_free(check);
	free(repeat);
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
