/*
 * cmd_check.c - kmemshim check: is a run worse than the baseline?
 *
 * Exit status: 0 no; 1 yes; 2 options, configuration or baseline are wrong; 3 a capture cannot be used; 4 the program was killed or
 * failed; 77 nothing was judged, where the configuration wants that. An earlier one in 2, 3, 4, 77, 1 hides the later ones: figures of a
 * run that died say nothing.
 */
#include "gate/check_compare.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

struct checking {
	const struct options *options;
	struct config *config;
	struct check_tolerance tolerance;
	struct run_ends ends;
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

/* What the configuration wants of a run that cannot be judged. code: of CONFIG_FAIL. */
static bool
follow(enum config_policy policy, enum exit_code code, const char *line, struct check *check, int *status,
       struct fail *fail)
{
	switch (policy) {
	case CONFIG_FAIL:
		return fail_set(fail, code, "%s", line);
	case CONFIG_SKIP:
		*status = EXIT_SKIPPED;
		check_note(check, "%s: nothing was judged", line);
		return true;
	case CONFIG_PASS:
		break;
	}
	check_note(check, "%s", line);
	return true;
}

/* For budgets of what is kept in each step. */
static bool
is_long_enough(const struct checking *checking, struct check *check, int *status, struct fail *fail)
{
	const struct config *config = checking->config;
	uint64_t steps = check->after->steps;
	char line[256];

	if (!config_has_steps(config) || steps >= config->min_steps || check->ended_badly != NULL)
		return true;
	if (steps == 0)
		(void)snprintf(line, sizeof(line),
		               "no steps were found, of at least %" PRIu64
		               ": call kmemshim.step() or kmemshim_step() in each round",
		               config->min_steps);
	else
		(void)snprintf(line, sizeof(line), "too short to judge: %" PRIu64 " step%s of at least %" PRIu64, steps,
		               steps == 1 ? "" : "s", config->min_steps);
	return follow(config->too_short, EXIT_CAPTURE, line, check, status, fail);
}

static bool
is_matched(const struct checking *checking, struct check *check, int *status, struct fail *fail)
{
	char line[256];

	if (check->unmatched_count == 0 || checking->config->unmatched == CONFIG_PASS || check->ended_badly != NULL)
		return true;
	(void)snprintf(line, sizeof(line), "%.200s", check->unmatched);
	return follow(checking->config->unmatched, EXIT_USAGE, line, check, status, fail);
}

static bool
compare(struct checking *checking, const struct baseline *before, const struct baseline *after, int *status,
        struct fail *fail)
{
	const struct options *options = checking->options;
	struct check *check = check_compare(before, after, checking->tolerance, checking->config);
	char *repeat = repeat_of(options, after);
	bool is_done;

	check->repeat = repeat;
	check->ended_badly = checking->ends.ended_badly;
	check->ended_path = checking->ends.path;
	check->lost_child = checking->ends.lost_child;
	is_done = is_long_enough(checking, check, status, fail) && is_matched(checking, check, status, fail);
	if (is_done && *status == EXIT_OK)
		*status = check->ended_badly != NULL ? EXIT_KILLED : check->failed_count != 0 ? EXIT_REGRESSION : EXIT_OK;
	is_done = is_done && check_outputs_write(check, options->formats != NULL ? options->formats : "text", fail);
	check_free(check);
	free(repeat);
	return is_done && output_finish(fail);
}

/* The command line, then the configuration. */
static struct check_tolerance
tolerance_of(const struct options *options, const struct config *config)
{
	struct check_tolerance tolerance = { options->absolute_bytes, options->relative_ppm };

	if (config->has_absolute && !options_has(options, OPTION_ABSOLUTE))
		tolerance.absolute_bytes = config->absolute_bytes;
	if (config->has_relative && !options_has(options, OPTION_RELATIVE))
		tolerance.relative_ppm = config->relative_ppm;
	return tolerance;
}

/* "2026-11-23" */
static const char *
today(char text[16])
{
	time_t now = time(NULL);
	struct tm parts;

	if (gmtime_r(&now, &parts) == NULL || strftime(text, 16, "%Y-%m-%d", &parts) == 0)
		text[0] = '\0';
	return text;
}

/* Without a baseline budgets are judged, those that need none. */
static bool
has_something_to_judge(const struct options *options, const struct config *config, struct fail *fail)
{
	if (options->baseline != NULL)
		return true;
	if (config->budget_count == 0)
		return fail_set(
			fail, EXIT_USAGE,
			"check: no baseline given: add --baseline base.json, or budgets in %s (check --init writes one)",
			config->path[0] != '\0' ? config->path : CONFIG_FILE_DEFAULT);
	for (size_t i = 0; i < config->budget_count; i++) {
		for (size_t k = 0; k < CONFIG_FIGURES; k++) {
			const struct config_amount *amount = &config->budgets[i].amounts[k];

			if (amount->is_given && amount->is_growth)
				return fail_set(fail, EXIT_USAGE, "%s:%zu: is beyond the baseline: add --baseline base.json",
				                config->path, amount->line);
		}
	}
	return true;
}

static bool
check_runs(struct checking *checking, int *status, struct fail *fail)
{
	const struct options *options = checking->options;
	struct cmd_runs runs = { .judge = judge,
		                     .context = &checking->ends,
		                     .wanted_path = options->baseline,
		                     .config = checking->config,
		                     .newest = 1 };
	struct baseline *before = options->baseline != NULL ? baseline_read(options->baseline, fail) : NULL;
	struct baseline *after;
	bool is_done;

	if (options->baseline != NULL && before == NULL)
		return false;
	runs.wanted = before;
	after = cmd_runs_measure(&runs, options, fail);
	is_done = after != NULL && cmd_runs_narrow(after, before, options, fail) &&
	          compare(checking, before, after, status, fail);
	baseline_free(before);
	baseline_free(after);
	return is_done;
}

static bool
write_template(const struct options *options, struct fail *fail)
{
	const char *path = options->config != NULL ? options->config : CONFIG_FILE_DEFAULT;
	struct output_file *file;

	if (options->argument_count != 0)
		return fail_set(fail, EXIT_USAGE, "check: --init takes no runs: it writes %s", path);
	if (!options->is_forced && access(path, F_OK) == 0)
		return fail_set(fail, EXIT_USAGE, "check: --init: %s is there already: --force writes it anew", path);
	file = output_open(path, fail);
	if (file == NULL)
		return false;
	config_template(output_stream(file));
	return output_close(file, fail);
}

bool
cmd_check(const struct options *options, int *status, struct fail *fail)
{
	struct checking checking = { .options = options };
	char day[16];
	bool is_done;

	if (options->wants_init)
		return write_template(options, fail);
	if (options->formats != NULL && !check_outputs_write(NULL, options->formats, fail))
		return false;
	checking.config = config_read(options->config, today(day), fail);
	if (checking.config == NULL)
		return false;
	checking.tolerance = tolerance_of(options, checking.config);
	is_done = has_something_to_judge(options, checking.config, fail) && check_runs(&checking, status, fail);
	config_free(checking.config);
	free(checking.ends.lost_child);
	free(checking.ends.path);
	free(checking.ends.ended_badly);
	return is_done;
}
