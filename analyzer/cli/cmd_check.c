/*
 * cmd_check.c - kmemshim check: is a run worse than the baseline?
 *
 * Exit status: 0 no; 1 yes; 2 options, configuration or baseline are wrong; 3 a capture cannot be used; 4 the program was killed or
 * failed; 77 nothing was judged, where the configuration wants that. Where several apply, the first one of 2, 3, 4, 77, 1 is returned:
 * figures of a run that died say nothing.
 */
#include "gate/check_compare.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/items.h"
#include "base/memory.h"
#include "base/output.h"
#include "base/shell_words.h"
#include "base/text_clean.h"
#include "base/units.h"
#include "cli/cmd_runs.h"
#include "cli/command.h"
#include "gate/baseline.h"
#include "gate/check_confirm.h"
#include "gate/check_outputs.h"

struct run_ends {
	char *ended_badly; // verdict of the first run that did; NULL
	char *path;
	char *lost_child; // a line about a process that is gone though its run ended well; NULL
};

struct checking {
	const struct options *options;
	struct config *config;
	struct cmd_recorded recorded;
	char *repeat;
	struct run_ends ends;
};

static char *
lost_child_text(const char *path, const struct model_process *process)
{
	char *text = memory_printed(
		"%s: its child process %s (pid %u) ended without a clean exit, holding %s; its figures are from that "
		"moment (only its parent knows how; a pool that closes sends SIGTERM)",
		path, process->name, process->identity->pid, UNITS_BYTES(process->live_bytes));

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

/* The words as a shell takes them; "" for NULL. For free(). */
static char *
joined_words(char *const *words)
{
	OWNED char *text = NULL;
	size_t bytes;
	FILE *stream = memory_stream(&text, &bytes);

	for (; words != NULL && *words != NULL; words++)
		(void)fwrite(*words, 1, strlen(*words) + 1, stream);
	memory_stream_close(stream);
	return shell_words_join(text, bytes);
}

/*
 * The commands that do the same on another machine: the first run's program again, and this command on its capture. Where results are
 * written is left to the CI system. "" where the capture does not say what was run; for free().
 */
static char *
repeat_of(const struct options *options, const struct baseline *after)
{
	OWNED char *words = NULL;
	size_t bytes;
	FILE *stream = memory_stream(&words, &bytes);
	OWNED char *given = joined_words(options->command_line);
	const char *program = given[0] != '\0' ? given : after->command;
	char *text;
	bool has_value;

	for (int i = 0; i < options->option_word_count; i++) {
		if (!is_format(options->option_words[i], &has_value))
			(void)fwrite(options->option_words[i], 1, strlen(options->option_words[i]) + 1, stream);
		else
			i += !has_value;
	}
	memory_stream_close(stream);

	OWNED char *joined = shell_words_join(words, bytes);

	if (program[0] == '\0')
		text = memory_text("");
	else
		text = memory_printed(options->command_line != NULL
		                          ? "kmemshim check%2$s%3$s -- %1$s"
		                          : "kmemshim run -o again -- %1$s; kmemshim check again%2$s%3$s",
		                      program, joined[0] != '\0' ? " " : "", joined);
	return text;
}

/* Does what the configuration wants for a run that cannot be judged. code: the exit status for CONFIG_FAIL. */
static bool
follow(const struct checking *checking, enum config_policy policy, enum exit_code code, const char *line,
       struct check *check, struct fail *fail)
{
	switch (policy) {
	case CONFIG_FAIL:
		return fail_set(fail, code, "%s", line);
	case CONFIG_SKIP:
		*checking->options->status = EXIT_SKIPPED;
		check_note(check, "%s: nothing was judged", line);
		return true;
	case CONFIG_PASS:
		break;
	}
	check_note(check, "%s", line);
	return true;
}

/* Has the run enough steps for budgets of what is kept in each? */
static bool
is_long_enough(const struct checking *checking, struct check *check, struct fail *fail)
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
		               UNITS_S(steps), config->min_steps);
	return follow(checking, config->too_short, EXIT_CAPTURE, line, check, fail);
}

static bool
is_matched(const struct checking *checking, struct check *check, struct fail *fail)
{
	if (check->unmatched_count == 0 || checking->config->unmatched == CONFIG_PASS || check->ended_badly != NULL)
		return true;
	return follow(checking, checking->config->unmatched, EXIT_USAGE, TEXT(256, "%.200s", check->unmatched), check,
	              fail);
}

/* The tolerance from the command line or the configuration; else the one that the baseline's runs give. */
static struct check_tolerance
tolerance_of(const struct checking *checking, const struct baseline *before)
{
	const struct options *options = checking->options;
	const struct config *config = checking->config;
	bool has_absolute = options_has(options, OPTION_ABSOLUTE);
	bool has_relative = options_has(options, OPTION_RELATIVE);
	struct check_tolerance tolerance = { options->absolute_bytes, options->relative_ppm, false };

	if (!has_absolute && !has_relative && !config->has_absolute && !config->has_relative && before != NULL &&
	    before->run_count >= CHECK_NOISE_RUNS)
		return (struct check_tolerance){ CHECK_NOISE_BYTES, CHECK_NOISE_PPM, true };
	if (config->has_absolute && !has_absolute)
		tolerance.absolute_bytes = config->absolute_bytes;
	if (config->has_relative && !has_relative)
		tolerance.relative_ppm = config->relative_ppm;
	return tolerance;
}

/* Compares figures; nothing is written yet. */
static struct check *
compare(struct checking *checking, const struct baseline *before, const struct baseline *after)
{
	struct check *check = check_compare(before, after, tolerance_of(checking, before), checking->config);

	check->repeat = checking->repeat = repeat_of(checking->options, after);
	check->ended_badly = checking->ends.ended_badly;
	check->ended_path = checking->ends.path;
	check->lost_child = checking->ends.lost_child;
	if (check->failed_count != 0 && before != NULL && before->run_count < CHECK_NOISE_RUNS)
		check_note(check, "the baseline has %" PRIu64 " run%s: with %d or more it knows how much the figures vary",
		           before->run_count, UNITS_S(before->run_count), CHECK_NOISE_RUNS);
	return check;
}

static bool
finish(struct checking *checking, struct check *check, struct fail *fail)
{
	const char *formats = checking->options->formats;
	int *status = checking->options->status;
	bool is_done = is_long_enough(checking, check, fail) && is_matched(checking, check, fail);

	if (is_done && *status == EXIT_OK)
		*status = check->ended_badly != NULL ? EXIT_KILLED : check->failed_count != 0 ? EXIT_REGRESSION : EXIT_OK;
	return is_done && check_outputs_write(check, formats != NULL ? formats : "text", fail) && output_finish(fail);
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

/* Is there a baseline, or a budget that needs none? */
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
		EACH (amount, config->budgets[i].amounts, CONFIG_FIGURES) {
			if (amount->is_given && amount->is_growth)
				return fail_set(fail, EXIT_USAGE,
				                "%s:%zu: this budget is beyond the baseline: add --baseline base.json", config->path,
				                amount->line);
		}
	}
	return true;
}

/* The runs, and the baseline, which may depend on the runs' platform. */
struct sides {
	struct baseline *before; // NULL = there is none
	struct baseline *after;
	char *before_path;
};

static void
free_sides(struct sides *sides)
{
	baseline_free(sides->before);
	baseline_free(sides->after);
	free(sides->before_path);
	*sides = (struct sides){ NULL, NULL, NULL };
}

static bool
is_of_platform(const struct sides *sides, const struct options *options, struct fail *fail)
{
	if (sides->before == NULL || options->is_any_platform || sides->before->platform[0] == '\0' ||
	    strcmp(sides->before->platform, sides->after->platform) == 0)
		return true;
	return fail_set(fail, EXIT_USAGE,
	                "%s: is of %s, these runs are of %s: make a baseline there, or compare all the same with "
	                "--any-platform",
	                sides->before_path, sides->before->platform, sides->after->platform);
}

static void
forget_ends(struct run_ends *ends)
{
	free(ends->lost_child);
	free(ends->path);
	free(ends->ended_badly);
	*ends = (struct run_ends){ NULL, NULL, NULL };
}

static bool
read_sides(struct checking *checking, struct sides *sides, struct fail *fail)
{
	const struct options *options = checking->options;
	bool is_folder = options->baseline != NULL && baseline_is_folder(options->baseline);
	struct cmd_runs runs = { .judge = judge,
		                     .context = &checking->ends,
		                     .wanted_path = options->baseline,
		                     .config = checking->config,
		                     .recorded = options->command_line != NULL ? &checking->recorded : NULL,
		                     .newest = 1 };

	forget_ends(&checking->ends); // of the try before
	if (options->baseline != NULL && !is_folder) {
		sides->before_path = memory_text(options->baseline);
		sides->before = baseline_read(options->baseline, fail);
		if (sides->before == NULL)
			return false;
	}
	runs.wanted = sides->before;
	sides->after = cmd_runs_measure(&runs, options, fail);
	if (sides->after == NULL)
		return false;
	if (is_folder) {
		sides->before_path = baseline_path_in(options->baseline, sides->after->platform);
		sides->before = baseline_read(sides->before_path, fail);
		if (sides->before == NULL || !cmd_runs_is_of(sides->before, sides->before_path, sides->after, options, fail))
			return false;
	}
	if (checking->ends.ended_badly != NULL) { // its figures are not compared
		struct fail none;

		(void)cmd_runs_narrow(sides->after, sides->before, options, &none);
		return true;
	}
	return is_of_platform(sides, options, fail) && cmd_runs_narrow(sides->after, sides->before, options, fail);
}

static uint64_t
rounds_of(const struct options *options)
{
	return options->rounds != 0 ? options->rounds : CMD_RUNS_ROUNDS;
}

/* Records `count` more runs of the command behind "--"; does nothing where captures were named. */
static bool
record(struct checking *checking, uint64_t count, struct fail *fail)
{
	for (uint64_t i = 0; checking->options->command_line != NULL && i < count; i++) {
		if (!cmd_runs_record(&checking->recorded, checking->options->output, rounds_of(checking->options),
		                     checking->options, fail))
			return false;
	}
	return true;
}

/* A line that still fails must grow with the rounds, where the program can be told how many. */
static bool
confirm(struct checking *checking, struct check *check, struct fail *fail)
{
	const struct options *options = checking->options;
	struct cmd_recorded recorded = { .count = 0 };
	struct run_ends ends = { .ended_badly = NULL };
	const struct cmd_runs runs = { .judge = judge, .context = &ends, .recorded = &recorded };
	struct baseline *longer = NULL;

	if (!check_has_failed_lines(check) || !cmd_runs_has_rounds(options) || check->ended_badly != NULL)
		return true;
	(void)fprintf(stderr, "kmemshim: check: a line failed; once more with %d times the rounds\n", CHECK_CONFIRM_TIMES);
	if (cmd_runs_record(&recorded, options->output, rounds_of(options) * CHECK_CONFIRM_TIMES, options, fail))
		longer = cmd_runs_measure(&runs, options, fail);
	if (longer != NULL && ends.ended_badly == NULL)
		check_confirm(check, longer, rounds_of(options));
	forget_ends(&ends);
	free(recorded.sessions);
	baseline_free(longer);
	return longer != NULL;
}

/* To be known before a program runs for hours. Which file of a folder is meant, only the runs can say. */
static bool
is_baseline_there(const struct options *options, struct fail *fail)
{
	struct baseline *baseline;

	if (options->baseline == NULL || options->command_line == NULL || baseline_is_folder(options->baseline))
		return true;
	baseline = baseline_read(options->baseline, fail);
	baseline_free(baseline);
	return baseline != NULL;
}

/*
 * A check that fails is repeated with twice the runs before it counts. Noise only adds memory: the least of more runs is nearer to what
 * the program keeps, and what it keeps stays.
 */
static bool
check_runs(struct checking *checking, struct fail *fail)
{
	const struct options *options = checking->options;
	uint64_t retries = options->retries != UINT64_MAX ? options->retries : checking->config->retries;
	uint64_t runs = options->runs != 0 ? options->runs : 1;
	bool is_done = is_baseline_there(options, fail) && record(checking, runs, fail);
	bool is_over = false;

	for (uint64_t tried = 0; is_done && !is_over; tried++) {
		struct sides sides = { NULL, NULL, NULL };
		struct check *check = NULL;

		is_done = read_sides(checking, &sides, fail);
		if (is_done) {
			check = compare(checking, sides.before, sides.after);
			is_over = check->failed_count == 0 || check->ended_badly != NULL || options->command_line == NULL ||
			          tried >= retries;
			if (is_over)
				is_done = confirm(checking, check, fail) && finish(checking, check, fail);
			else
				(void)fprintf(stderr,
				              "kmemshim: check: %zu rule%s failed; again with %" PRIu64 " runs (%" PRIu64 " of %" PRIu64
				              ")\n",
				              check->failed_count, UNITS_S(check->failed_count), 2 * runs, tried + 1, retries);
			check_free(check);
			free(checking->repeat);
		}
		free_sides(&sides);
		is_done = is_done && (is_over || record(checking, runs, fail));
		runs *= 2;
	}
	return is_done;
}

static bool
write_template(const struct options *options, struct fail *fail)
{
	const char *path = options->config != NULL ? options->config : CONFIG_FILE_DEFAULT;

	if (options->argument_count != 0)
		return fail_set(fail, EXIT_USAGE, "check: --init takes no runs: it writes %s", path);
	if (!options->is_forced && access(path, F_OK) == 0)
		return fail_set(fail, EXIT_USAGE, "check: --init: %s is there already: --force writes it anew", path);

	struct output_file *file = output_open(path, OUTPUT_OF_ALL, fail);

	if (file == NULL)
		return false;
	config_template(output_stream(file));
	if (!output_close(file, fail))
		return false;
	(void)fprintf(stderr, "kmemshim: written: %s\n", path);
	return true;
}

/* Whose exit statuses are wanted: the one for "not judged", and the one for an error of the command. */
static const struct statuses {
	const char *name;
	int skipped;
	int wrong;
} statuses[] = {
	{ "git-bisect", 125, 128 }, // from 128 on the search ends: it would find nothing
	{ "automake", 77, 99 },     // a hard error
};

static const struct statuses *
find_statuses(const char *name)
{
	return FIRST(status, statuses, COUNT_OF(statuses), strcmp(status->name, name) == 0);
}

static int
status_for(const struct statuses *wanted, int status)
{
	return wanted == NULL || status == EXIT_OK || status == EXIT_REGRESSION ? status
	       : status == EXIT_USAGE                                           ? wanted->wrong
	                                                                        : wanted->skipped;
}

static bool
check_all(struct checking *checking, struct fail *fail)
{
	const struct options *options = checking->options;
	char day[16];

	if (options->formats != NULL && !check_outputs_write(NULL, options->formats, fail))
		return false;
	if (options->command_line != NULL && options->runs == UINT64_MAX)
		return fail_set(fail, EXIT_USAGE, "check: --runs all: of a program that is run, give a number");
	checking->config = config_read(options->config, today(day), fail);
	if (checking->config == NULL)
		return false;

	bool is_done = has_something_to_judge(options, checking->config, fail) && check_runs(checking, fail);

	config_free(checking->config);
	forget_ends(&checking->ends);
	free(checking->recorded.sessions);
	return is_done;
}

bool
cmd_check(const struct options *options, struct fail *fail)
{
	struct checking checking = { .options = options };
	const struct statuses *wanted = options->status_for != NULL ? find_statuses(options->status_for) : NULL;

	if (options->status_for != NULL && wanted == NULL)
		return fail_set(fail, EXIT_USAGE, "check: --status-for \"%s\": expected git-bisect or automake",
		                options->status_for);
	if (options->wants_init)
		return write_template(options, fail);
	if (check_all(&checking, fail)) {
		*options->status = status_for(wanted, *options->status);
		return true;
	}
	fail->code = (enum exit_code)status_for(wanted, (int)fail->code);
	return false;
}
