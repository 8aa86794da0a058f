/*
 * cmd_diff.c - kmemshim diff: what changed between two runs, or two processes of one?
 *
 * An argument is a CAPTURE, CAPTURE@PID for one process of a session, or CAPTURE@SNAPSHOT for what was live then (@end: at the end). One argument is a folder: the run before its newest, and that.
 *
 * When failing  one line that names the argument. Figures of a damaged capture are not compared, unless --salvage asks for it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/rank.h"
#include "base/document.h"
#include "base/memory.h"
#include "base/output.h"
#include "base/progress.h"
#include "base/terminal.h"
#include "capture/capture_folder.h"
#include "cli/cmd_report.h"
#include "cli/command.h"
#include "diff/diff.h"
#include "model/model_load.h"

/* What an argument means. */
struct chosen {
	const char *argument; // as it was given
	char *path;           // without the process
	char *file;           // of that process; NULL = all of the session
	char *session;        // NULL = the newest
	const char *at;       // a snapshot; NULL = the end
};

static void
free_chosen(struct chosen *chosen)
{
	free(chosen->path);
	free(chosen->file);
	free(chosen->session);
}

/* The newest image of the process: before an exec it was another program. */
static bool
find_process(const struct options *options, struct chosen *chosen, uint32_t pid, struct fail *fail)
{
	const struct model_options wanted = { .capture = chosen->path, .is_salvage = options->is_salvage };
	struct model *model = model_load(&wanted, fail);
	char pids[256] = "";

	if (model == NULL)
		return false;
	for (size_t i = 0; i < model->process_count; i++) {
		uint32_t found = model->processes[i].identity->pid;

		if (strlen(pids) < sizeof(pids) - 16)
			TEXT_ADD(pids, "%s%" PRIu32, i != 0 ? ", " : "", found);
		if (found != pid)
			continue;
		free(chosen->file);
		chosen->file = memory_text(model->processes[i].path);
	}
	if (chosen->file == NULL)
		(void)fail_set(fail, EXIT_USAGE, "diff: %s: no process %" PRIu32 " there: its newest session has %s",
		               chosen->path, pid, pids);
	model_free(model);
	return chosen->file != NULL;
}

/* Reads CAPTURE, CAPTURE@PID or CAPTURE@SNAPSHOT; a file that has exactly this name is meant itself. */
static bool
choose(const struct options *options, const char *argument, struct chosen *chosen, struct fail *fail)
{
	const char *at = strrchr(argument, '@');
	char *end;
	unsigned long pid;

	*chosen = (struct chosen){ .argument = argument, .path = memory_text(argument) };
	if (at == NULL || access(argument, F_OK) == 0)
		return true;
	pid = strtoul(at + 1, &end, 10);
	chosen->path[at - argument] = '\0';
	if (at[1] < '0' || at[1] > '9' || *end != '\0' || pid > UINT32_MAX) {
		chosen->at = strcmp(at + 1, "end") != 0 ? at + 1 : NULL;
		return true;
	}
	return find_process(options, chosen, (uint32_t)pid, fail);
}

/* The two newest sessions of a folder. */
static bool
choose_sessions(const struct options *options, struct chosen chosen[2], struct fail *fail)
{
	const char *folder = options->arguments[0];
	struct session_list sessions;

	if (!capture_folder_sessions(folder, options->is_salvage, &sessions, fail))
		return false;
	if (sessions.count < 2) {
		session_list_free(&sessions);
		return fail_set(fail, EXIT_USAGE,
		                "diff: %s: has one session: name a second capture, or two processes as CAPTURE@PID", folder);
	}
	for (size_t i = 0; i < 2; i++)
		chosen[i] = (struct chosen){ .argument = folder,
			                         .path = memory_text(folder),
			                         .session = memory_text(sessions.names[sessions.count - 2 + i]) };
	session_list_free(&sessions);
	return true;
}

/* Only one model is in memory at a time. NULL and *fail. */
static struct diff_side *
read_side(const struct options *options, const struct chosen *chosen, struct fail *fail)
{
	const struct report_options rows = { .top = UINT64_MAX };
	const char *path = chosen->file != NULL ? chosen->file : chosen->path;
	struct model_options wanted = cmd_report_model_options(options, path, chosen->session);
	struct diff_side *side = NULL;
	struct report *report = NULL;

	wanted.at = chosen->at;

	struct model *model = model_load(&wanted, fail);

	if (model != NULL && (options->is_salvage || cmd_report_is_whole(model, path, fail)) &&
	    cmd_report_check_project(model, options->project, fail))
		report = report_build(model, &rank_sites, &rows, fail);
	if (report != NULL) {
		if (model->distrusted != NULL)
			(void)fprintf(stderr, "kmemshim: %s\n", model->distrusted);
		if (chosen->session == NULL && model->session_count > 1)
			(void)fprintf(stderr,
			              "kmemshim: %s: has %zu sessions, this is the newest: give a file to see another one\n",
			              chosen->argument, model->session_count);
		side = diff_side_new(report, chosen->session != NULL ? model->argument : chosen->argument, options->domain);
		side->is_snapshot = chosen->at != NULL;
	}
	report_free(report);
	model_free(model);
	return side;
}

static bool
check_domain(const struct options *options, const struct diff_side *before, const struct diff_side *after,
             struct fail *fail)
{
	return options->domain == NULL || before->domain_count != 0 || after->domain_count != 0 ||
	       fail_set(fail, EXIT_USAGE, "diff: --domain %s: nothing was recorded there, in neither of the two",
	                options->domain);
}

static bool
show(const struct options *options, const struct diff_side *before, const struct diff_side *after, struct fail *fail)
{
	bool is_by_function = options->by != NULL && strcmp(options->by, "function") == 0;
	uint64_t top = options_top(options, CMD_REPORT_TABLE_TOP);
	bool is_for_terminal = !options->is_json && !options->is_markdown && isatty(STDOUT_FILENO) == 1;
	struct diff *diff = diff_compare(before, after, is_by_function ? DIFF_BY_FUNCTION : DIFF_BY_LINE,
	                                 is_for_terminal ? terminal_columns(stdout)
	                                                 : SIZE_MAX); // a name is one line of it at most
	struct document document = { .count = 0 };

	if (options->is_json)
		render_diff_json(diff, options_top(options, UINT64_MAX), stdout);
	else
		render_diff(diff, top, &document);
	(options->is_markdown ? document_put_markdown : document_put)(&document, stdout);
	diff_free(diff);
	return output_finish(fail);
}

bool
cmd_diff(const struct options *options, struct fail *fail)
{
	struct chosen chosen[2] = { { .argument = NULL }, { .argument = NULL } };
	struct diff_side *before = NULL;
	struct diff_side *after = NULL;

	progress_allow();
	if (options->by != NULL && strcmp(options->by, "line") != 0 && strcmp(options->by, "function") != 0)
		return fail_set(fail, EXIT_USAGE, "diff: --by \"%s\": expected line or function", options->by);
	if (options->is_json && options->is_markdown)
		return fail_set(fail, EXIT_USAGE, "diff: give --json or --markdown, not both");

	bool is_done = options->argument_count == 1 ? choose_sessions(options, chosen, fail)
	                                            : choose(options, options->arguments[0], &chosen[0], fail) &&
	                                                  choose(options, options->arguments[1], &chosen[1], fail);
	before = is_done ? read_side(options, &chosen[0], fail) : NULL;
	after = before != NULL ? read_side(options, &chosen[1], fail) : NULL;
	is_done = after != NULL && check_domain(options, before, after, fail) && show(options, before, after, fail);
	diff_side_free(before);
	diff_side_free(after);
	free_chosen(&chosen[0]);
	free_chosen(&chosen[1]);
	return is_done;
}
