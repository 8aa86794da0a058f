/*
 * cmd_run.c - kmemshim run: preload, run, print the verdict and a summary, return the program's status.
 *
 * Whatever happens to the report, the exit status is the program's: somebody's pipeline depends on it. The exceptions
 * come before anything was started.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>

#include "cmd_report.h"
#include "cmd_table.h"
#include "command.h"
#include "launcher.h"
#include "model.h"
#include "output.h"
#include "program.h"
#include "process_tree.h"

#define SUMMARY_TOP 3
#define EXIT_NOT_FOUND 127      // as shells say it
#define EXIT_NOT_EXECUTABLE 126

/* The whole session; the program's own capture alone when another session in the folder is newer or in the way. */
static struct model *
load_session(const struct options *options, const struct launch *launch, const char *capture, struct fail *fail)
{
	struct model *model = cmd_table_load(options, launch->folder, fail);

	if (model != NULL && strcmp(model->session, launch->session) == 0)
		return model;
	model_free(model);
	return cmd_table_load(options, capture, fail);
}

/* On stdout, after the program's own output. */
static bool
summarise(const struct options *options, const struct launch *launch, const char *capture, struct fail *fail)
{
	const struct report_options rows = { .top = SUMMARY_TOP };
	struct model *model = load_session(options, launch, capture, fail);
	struct report *report = model != NULL ? report_build(model, &rank_peak, &rows, fail) : NULL;
	bool is_done = report != NULL;

	if (is_done) {
		(void)fputs("\n--- kmemshim ---\n", stdout);
		is_done = cmd_report_page(report, options, SUMMARY_TOP, stdout, fail);
		(void)printf("More: kmemshim report %s\n", model->process_count > 1 ? launch->folder : capture);
	}
	is_done = is_done && output_finish(fail);
	report_free(report);
	model_free(model);
	return is_done;
}

static void
say_nothing_recorded(const struct launch *launch, const struct program *program)
{
	if (program->obstacle != NULL)
		(void)fprintf(stderr, "kmemshim: %s: nothing was recorded: %s: %s\n", launch->arguments[0], program->obstacle,
		              program->remedy);
	else
		(void)fprintf(stderr,
		              "kmemshim: %s: nothing was recorded: no capture of process %ld is in %s: see whether it clears "
		              "LD_PRELOAD, whether the disk is full, and what KMEMSHIM_LOG=debug says\n",
		              launch->arguments[0], (long)launch->pid, launch->folder);
}

static int
status_of(const struct launch *launch)
{
	return WIFSIGNALED(launch->wait_status) ? 128 + WTERMSIG(launch->wait_status) : WEXITSTATUS(launch->wait_status);
}

static bool
run(const struct options *options, int *status, struct fail *fail)
{
	char shim[PATH_MAX];
	char folder[PATH_MAX];
	char capture[PATH_MAX];
	const char *wanted = options->output != NULL ? options->output : getenv("KMEMSHIM_OUT");
	struct program program;
	struct launch launch = { .arguments = options->arguments, .shim = shim, .folder = folder };
	struct fail late;

	if (wanted == NULL || wanted[0] == '\0')
		wanted = PROCESS_TREE_DEFAULT_FOLDER;
	if (!launcher_find_shim(shim, fail) || !launcher_make_folder(wanted, folder, fail))
		return false;
	program_examine(options->arguments, &program);
	launch.has_python_objects = options->wants_python_objects;
	if (program.is_preload_harmful)
		launch.shim = NULL;
	if (!launcher_run(&launch, fail))
		return false;
	if (launch.start_error != 0) {
		const char *name = options->arguments[0];
		bool is_here = launch.start_error == ENOENT && strchr(name, '/') == NULL && access(name, F_OK) == 0;

		if (options->output == NULL && getenv("KMEMSHIM_OUT") == NULL)
			(void)rmdir(folder); // nothing ran: if it is empty, it was made for nothing
		(void)fprintf(stderr, "kmemshim: %s: cannot be run: %s%s%s\n", name, strerror(launch.start_error),
		              is_here ? "; the file is here: name its interpreter, or run ./" : "", is_here ? name : "");
		*status = launch.start_error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
		return true;
	}
	*status = status_of(&launch);
	(void)signal(SIGPIPE, SIG_IGN);
	if (!launcher_sign(&launch, capture))
		say_nothing_recorded(&launch, &program);
	else if (!summarise(options, &launch, capture, &late))
		(void)fprintf(stderr, "kmemshim: %s\n", late.text);
	else if (program.obstacle != NULL)
		(void)fprintf(stderr, "kmemshim: %s: not all was recorded: %s: %s\n", launch.arguments[0], program.obstacle,
		              program.remedy);
	return true;
}

const struct command command_run = {
	.name = "run",
	.arguments = "[--] CMD...",
	.summary = "preload, run, print the verdict and a summary, return CMD's status",
	.details = "Captures go to the folder of -o, else of KMEMSHIM_OUT, else to ./kmemshim.out. Exit status: that of CMD,\n"
	           "128 + n when signal n ended it, 126 or 127 when it cannot be run; 2 when nothing was started.\n",
	.options = OPTION_BIT(OPTION_OUTPUT) | OPTION_BIT(OPTION_PROJECT) | OPTION_BIT(OPTION_PYTHON_OBJECTS),
	.arguments_min = 1,
	.arguments_max = -1,
	.is_launcher = true,
	.run = run,
};
