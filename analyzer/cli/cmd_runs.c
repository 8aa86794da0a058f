/*
 * cmd_runs.c - reduces the runs that the arguments mean (see cmd_runs.h), one model in memory at a time.
 *
 * When failing  the first run that cannot be used ends it.
 */
#include "cli/cmd_runs.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/model_finish.h"
#include "analysis/rank.h"
#include "base/items.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/units.h"
#include "capture/capture_folder.h"
#include "cli/cmd_report.h"
#include "launch/launcher.h"
#include "launch/program.h"
#include "model/model_load.h"

struct measuring {
	const struct cmd_runs *runs;
	const struct options *options;
	struct baseline_builder *builder;
};

/* A baseline that does not name its program fits every program. */
static bool
is_wanted_program(const struct baseline *wanted, const char *wanted_path, const char *path, const char *program,
                  const struct options *options, struct fail *fail)
{
	const char *allowed = options->program;

	if (allowed != NULL && (strcmp(allowed, "any") == 0 || fnmatch(allowed, program, 0) == 0))
		return true;
	if (allowed != NULL)
		return fail_set(fail, EXIT_USAGE,
		                "%s: measured %s, which is not %s (--program): compare runs of the same program", path, program,
		                allowed);
	if (wanted != NULL && wanted->program[0] != '\0' && strcmp(wanted->program, program) != 0)
		return fail_set(fail, EXIT_USAGE,
		                "%s: measured %s, the baseline is of %s (%s): compare runs of the same program, or allow "
		                "its name with --program",
		                path, program, wanted->program, wanted_path);
	return true;
}

bool
cmd_runs_is_of(const struct baseline *before, const char *before_path, const struct baseline *measured,
               const struct options *options, struct fail *fail)
{
	return is_wanted_program(before, before_path, "the runs", measured->program, options, fail);
}

static bool
is_same_program(const struct measuring *measuring, const char *path, const char *program, struct fail *fail)
{
	const char *first = baseline_builder_program(measuring->builder);

	if (!is_wanted_program(measuring->runs->wanted, measuring->runs->wanted_path, path, program, measuring->options,
	                       fail))
		return false;
	return measuring->options->program != NULL || first[0] == '\0' || strcmp(first, program) == 0 ||
	       fail_set(fail, EXIT_USAGE, "%s: measured %s, the runs before it are of %s: all runs must be of one program",
	                path, program, first);
}

/* A full budget of call sites is no fault: totals are complete, and it is known which lines have bytes of other lines booked on them. */
static bool
are_lines_usable(const struct model *model, const char *path, bool is_salvage, struct fail *fail)
{
	uint64_t elsewhere = rank_elsewhere_bytes(model, NULL);

	const char *bytes = UNITS_BYTES(elsewhere);
	if (!is_salvage && model_could_not_grow(model) && rank_elsewhere_worth_bytes(model) != 0)
		return fail_set(fail, EXIT_CAPTURE,
		                "%s: the capture could not grow: %s is counted at callers or at an unknown place; a gate needs "
		                "the lines: record again with more room (disk, ulimit -v), or use --salvage to compare "
		                "what was recorded",
		                path, bytes);
	if (elsewhere != 0)
		(void)fprintf(
			stderr,
			"kmemshim: %s: %s is counted at callers or at an unknown place, for lack of room for its stacks (%s): "
			"totals are exact; only lines with complete stacks are compared\n",
			path, bytes,
			model_could_not_grow(model) ? "the capture could not grow" : "KMEMSHIM_SITES_MAX, KMEMSHIM_CAPTURE_MAX");
	return true;
}

static bool
add_run(const struct measuring *measuring, const char *path, const char *session, struct fail *fail)
{
	const struct model_options wanted = cmd_report_model_options(measuring->options, path, session);
	char program[BASELINE_PROGRAM_BYTES];
	struct verdict verdict;

	progress_allow();

	struct model *model = model_load(&wanted, fail);

	if (model == NULL)
		return false;
	if (!measuring->options->is_salvage && !cmd_report_is_whole(model, path, fail)) {
		model_free(model);
		return false;
	}
	if (model->distrusted != NULL)
		(void)fprintf(stderr, "kmemshim: %s\n", model->distrusted);

	struct finished_model finished = model_finish(model, verdict_now());

	verdict_decide(finished, verdict_now(), &verdict);

	bool is_usable = are_lines_usable(model, path, measuring->options->is_salvage, fail) &&
	                 cmd_report_check_project(model, measuring->options->project, fail) &&
	                 is_same_program(measuring, model->processes[0].path, baseline_program(model, program), fail) &&
	                 measuring->runs->judge(measuring->runs->context, model->processes[0].path, &verdict, fail);
	if (is_usable)
		baseline_add_run(measuring->builder, finished);
	model_free(model);
	return is_usable;
}

static bool
add_argument(const struct measuring *measuring, const char *path, struct fail *fail)
{
	struct session_list sessions;
	bool is_done = capture_folder_sessions(path, measuring->options->is_salvage, &sessions, fail);

	uint64_t newest = measuring->options->runs != 0 ? measuring->options->runs : measuring->runs->newest;
	size_t first = sessions.count > newest ? sessions.count - (size_t)newest : 0;

	for (size_t i = first; is_done && i < sessions.count; i++)
		is_done = add_run(measuring, path, sessions.names[i], fail);
	if (is_done && first != 0)
		(void)fprintf(stderr, "kmemshim: %s: has %zu sessions; the newest %s used: --runs N uses more\n", path,
		              sessions.count, sessions.count - first == 1 ? "is" : "are");
	else if (is_done && sessions.count > 1)
		(void)fprintf(stderr, "kmemshim: %s: has %zu sessions, each of them a run\n", path, sessions.count);
	session_list_free(&sessions);
	return is_done;
}

/* The program's standard output goes to standard error. */
static bool
launch_apart(struct launch *launch, struct fail *fail)
{
	(void)fflush(stdout);

	int out = dup(STDOUT_FILENO);

	if (out < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return fail_set(fail, EXIT_USAGE, "standard output: %s", strerror(errno));
	(void)fcntl(out, F_SETFD, FD_CLOEXEC);
	(void)signal(SIGPIPE, SIG_DFL); // main ignores it, and the program would inherit that

	bool is_done = launcher_run(launch, fail);

	(void)signal(SIGPIPE, SIG_IGN);
	(void)dup2(out, STDOUT_FILENO);
	(void)close(out);
	return is_done;
}

static const char rounds_mark[] = "{n}";

bool
cmd_runs_has_rounds(const struct options *options)
{
	for (char **word = options->command_line; word != NULL && *word != NULL; word++) {
		if (strstr(*word, rounds_mark) != NULL)
			return true;
	}
	return false;
}

/* The word with the number in place of each "{n}"; for free(). */
static char *
word_with_rounds(const char *word, uint64_t rounds)
{
	char *text;
	FILE *stream = memory_stream(&text, NULL);
	const char *mark;

	for (; (mark = strstr(word, rounds_mark)) != NULL; word = mark + strlen(rounds_mark))
		(void)fprintf(stream, "%.*s%" PRIu64, (int)(mark - word), word, rounds);
	(void)fputs(word, stream);
	memory_stream_close(stream);
	return text;
}

static char **
words_with_rounds(char *const *words, uint64_t rounds)
{
	size_t count = 0;
	char **made;

	while (words[count] != NULL)
		count++;
	made = memory_zeroed(count + 1, sizeof(*made));
	for (size_t i = 0; i < count; i++)
		made[i] = word_with_rounds(words[i], rounds);
	return made;
}

static bool
record_words(struct cmd_recorded *recorded, char *const *words, struct fail *fail)
{
	char shim[PATH_MAX];
	struct program program;
	struct launch launch = { .arguments = words, .folder = recorded->folder, .shim = shim };

	if (!launcher_find_shim(NULL, shim, fail))
		return false;
	program_examine(words, &program);
	if (program.obstacle != NULL && program.is_preload_harmful)
		return fail_set(fail, EXIT_CAPTURE, "%s: cannot be recorded: %s: %s", words[0], program.obstacle,
		                program.remedy);
	if (!launch_apart(&launch, fail))
		return false;
	if (launch.start_error != 0)
		return fail_set(fail, EXIT_CAPTURE, "%s: cannot be run: %s", words[0], strerror(launch.start_error));
	if (launch.capture[0] == '\0')
		return fail_set(fail, EXIT_CAPTURE, "%s: nothing was recorded: kmemshim doctor -- CMD says why", words[0]);
	memcpy(MEMORY_NEXT(recorded->sessions, recorded->count), launch.session, sizeof(launch.session));
	return true;
}

bool
cmd_runs_record(struct cmd_recorded *recorded, const char *folder, uint64_t rounds, const struct options *options,
                struct fail *fail)
{
	if (!launcher_make_folder(folder, recorded->folder, fail))
		return false;

	OWNED char **words = words_with_rounds(options->command_line, rounds);
	bool is_done = record_words(recorded, words, fail);

	for (char **word = words; *word != NULL; word++)
		free(*word);
	return is_done;
}

struct baseline *
cmd_runs_measure(const struct cmd_runs *runs, const struct options *options, struct fail *fail)
{
	const struct measuring measuring = { runs, options, baseline_begin() };
	bool is_done = true;

	baseline_watch(measuring.builder, runs->config);
	for (size_t i = 0; runs->recorded != NULL && i < runs->recorded->count && is_done; i++)
		is_done = add_run(&measuring, runs->recorded->folder, runs->recorded->sessions[i], fail);
	for (int i = 0; i < options->argument_count && is_done; i++)
		is_done = add_argument(&measuring, options->arguments[i], fail);

	struct baseline *measured = baseline_finish(measuring.builder);

	if (is_done)
		return measured;
	baseline_free(measured);
	return NULL;
}

static bool
has_domain(const struct baseline *baseline, const char *domain)
{
	return ANY(row, baseline->domains, baseline->domain_count, rank_domain_matches(row->name, domain));
}

bool
cmd_runs_narrow(struct baseline *measured, struct baseline *before, const struct options *options, struct fail *fail)
{
	const char *of_baseline = before != NULL ? before->domain : "";
	const char *domain = options->domain != NULL ? options->domain : of_baseline;
	char present[512] = "";

	if (domain[0] == '\0')
		return true;
	if (of_baseline[0] != '\0' && !rank_domain_matches(domain, of_baseline))
		return fail_set(fail, EXIT_USAGE,
		                "--domain %s: %s is of %s alone: make a baseline of %s, or one without --domain", domain,
		                options->baseline, of_baseline, domain);
	if (!has_domain(measured, domain) && (before == NULL || !has_domain(before, domain))) {
		for (size_t i = 0; i < measured->domain_count; i++)
			TEXT_ADD(present, "%s%s", i != 0 ? ", " : "", measured->domains[i].name);
		return fail_set(fail, EXIT_USAGE, "--domain %s: nothing was recorded there; these runs have: %s", domain,
		                present[0] != '\0' ? present : "no domain at all");
	}
	baseline_narrow(measured, domain);
	if (before != NULL)
		baseline_narrow(before, domain);
	return true;
}
