/*
 * cmd_run.c - kmemshim run: preload, run, print the verdict and a summary, return the program's status.
 *
 * Whatever happens to the report, the exit status is the program's: somebody's pipeline depends on it. The exceptions
 * come before anything was started. For the same reason standard output is the program's alone.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>

#include "base/memory.h"
#include "base/owner.h"
#include "base/terminal.h"
#include "base/text_clean.h"
#include "cli/cmd_report.h"
#include "cli/cmd_run.h"
#include "cli/command.h"
#include "holders/holders.h"
#include "report/render.h"

#define FILE_COLUMNS 120   // of what is read in a file, or by a notebook
#define EXIT_NOT_FOUND 127 // as shells say it
#define EXIT_NOT_EXECUTABLE 126

/* Is it a name that some capture may have? To be known before the program runs for hours. */
static bool
check_domain(const char *wanted, struct fail *fail)
{
	static const char *const names[] = {
		"heap",        "mmap",         "reserved",        "file",          "shared",     "python/arena",
		"cuda/pinned", "cuda/managed", "cuda/registered", "cuda/imported", "cuda/graph", "library",
		"hip/pinned",  "hip/managed",  "hip/registered",  "hip/imported"
	};
	const char *device = strncmp(wanted, "cuda:", 5) == 0  ? wanted + 5
	                     : strncmp(wanted, "hip:", 4) == 0 ? wanted + 4
	                                                       : "";
	size_t digits = strspn(device, "0123456789");

	if (digits != 0 && (device[digits] == '\0' || strcmp(device + digits, "/tensors") == 0))
		return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (rank_domain_matches(names[i], wanted))
			return true;
	}
	return fail_set(
		fail, EXIT_USAGE,
		"run: --domain %s: unknown domain; valid: heap, mmap, reserved, file, shared, library, python/arena, "
		"cuda:0, cuda:0/tensors, cuda (all devices), cuda/pinned, cuda/managed, cuda/registered, "
		"cuda/imported, cuda/graph; for AMD's HIP hip:0, ...",
		wanted);
}

/* Loads the whole session; only the program's own capture when something else in the folder is in the way. */
static struct model *
load_session(const struct options *options, const struct launch *launch, struct fail *fail)
{
	struct model *model = cmd_report_load(options, launch->folder, launch->session, fail);

	return model != NULL ? model : cmd_report_load(options, launch->capture, NULL, fail);
}

/* Where the domain was not used, the lines of all domains are shown. */
static bool
put_glance(struct report *report, const struct glance_options *wanted, FILE *stream, struct fail *fail)
{
	struct glance_options of_all = *wanted;

	if (render_glance(report, wanted, stream, fail))
		return true;
	(void)fprintf(stream, "kmemshim: %s\n", fail->text);
	of_all.domain = NULL;
	return render_glance(report, &of_all, stream, fail);
}

bool
cmd_run_summarise(const struct options *options, const struct launch *launch, FILE *stream, const char **cause,
                  struct fail *fail)
{
	const struct report_options all = { .top = 0 };
	enum terminal_color color = TERMINAL_COLOR_AUTO;
	struct opened_report opened;
	bool is_done = cmd_report_open(options, load_session(options, launch, fail), &rank_peak, &all, &opened, fail);

	if (options->color != NULL)
		(void)terminal_color_of(options->color, &color);
	if (is_done) {
		const struct glance_options wanted = { .columns = stream == stderr ? terminal_columns(stream) : FILE_COLUMNS,
			                                   .has_color = stream == stderr && terminal_has_color(stream, color),
			                                   .domain = options->domain };

		if (cause != NULL)
			*cause = verdict_cause_name(opened.report->verdict.cause);
		is_done = put_glance(opened.report, &wanted, stream, fail);
		(void)fprintf(stream, "More: kmemshim report %s\n", opened.report->argument);
	}
	cmd_report_close(&opened);
	return is_done;
}

void
cmd_run_say_nothing_recorded(const struct launch *launch, const struct program *program, FILE *stream)
{
	if (program->obstacle != NULL)
		(void)fprintf(stream, "kmemshim: %s: nothing was recorded: %s: %s\n", launch->arguments[0], program->obstacle,
		              program->remedy);
	else
		(void)fprintf(stream,
		              "kmemshim: %s: nothing was recorded: no capture of process %ld in %s: check whether it clears "
		              "LD_PRELOAD, whether the disk is full, and what KMEMSHIM_LOG=debug prints\n",
		              launch->arguments[0], (long)launch->pid, launch->folder);
}

void
cmd_run_say_not_started(const struct launch *launch, const struct program *program)
{
	const char *name = launch->arguments[0];
	const char *hint = "";
	const char *what = "";

	if (launch->start_error == ENOENT && program->missing[0] != '\0') {
		hint = "; its interpreter is not found: ";
		what = program->missing;
	} else if (launch->start_error == ENOENT && strchr(name, '/') == NULL && access(name, F_OK) == 0) {
		hint = "; there is such a file here: run ./";
		what = name;
	} else if (launch->start_error == EACCES && access(name, F_OK) == 0 && access(name, X_OK) != 0) {
		hint = "; chmod +x it, or put its interpreter before it";
	}

	OWNED char *clean = text_cleaned(
		memory_printed("%s: cannot be run: %s%s%s", name, strerror(launch->start_error), hint, what));

	(void)fprintf(stderr, "kmemshim: %s\n", clean);
}

int
cmd_run_status(const struct launch *launch)
{
	if (launch->start_error != 0)
		return launch->start_error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
	return WIFSIGNALED(launch->wait_status) ? 128 + WTERMSIG(launch->wait_status) : WEXITSTATUS(launch->wait_status);
}

static bool
run_program(const struct options *options, struct launch *launch, struct fail *fail)
{
	char shim[PATH_MAX];
	char folder[PATH_MAX];
	bool is_named;
	const char *wanted = launcher_folder(options->output, &is_named);
	struct program program;
	struct fail late;
	uid_t owner;

	if (!launcher_find_shim(NULL, shim, fail) || !launcher_make_folder(options->output, folder, fail))
		return false;
	if (owner_is_anothers(wanted, &owner))
		(void)fprintf(stderr, "kmemshim: %s: belongs to %s: that user can replace and remove the captures\n", wanted,
		              owner_text(owner, OWNER_ROOM));
	program_examine(options->arguments, &program);
	launch->folder = folder;
	launch->shim = program.is_preload_harmful ? NULL : shim;
	if (!launcher_run(launch, fail))
		return false;
	*options->status = cmd_run_status(launch);
	if (launch->start_error != 0) {
		if (!is_named)
			(void)rmdir(folder); // nothing ran: if it is empty, it was made for nothing
		cmd_run_say_not_started(launch, &program);
		return true;
	}
	(void)signal(SIGPIPE, SIG_IGN);
	if (options->is_quiet)
		return true;
	if (launch->capture[0] == '\0')
		cmd_run_say_nothing_recorded(launch, &program, stderr);
	else if (!cmd_run_summarise(options, launch, stderr, NULL, &late))
		(void)fprintf(stderr, "kmemshim: %s\n", late.text);
	else if (program.obstacle != NULL)
		(void)fprintf(stderr, "kmemshim: %s: not all was recorded: %s: %s\n", launch->arguments[0], program.obstacle,
		              program.remedy);
	return true;
}

bool
cmd_run(const struct options *options, struct fail *fail)
{
	struct launch launch = {
		.arguments = options->arguments,
		.is_kernel = options->is_kernel,
		.sample = options->sample,
		.has_python_objects = options->wants_python_objects,
		.has_system_allocators = options->wants_system_allocators,
		.guard = options->guard,
		.snapshots = options->snapshots,
		.guard_action = options->guard_action,
		.look = options->has_no_holders ? NULL : holders_keep,
		.look_stop_ns = options->holders_stop_ns,
	};

	if (options->domain != NULL && !check_domain(options->domain, fail))
		return false;
	if (options_has(options, OPTION_KEEP) && !options->is_kernel)
		return fail_set(fail, EXIT_USAGE, "run: --keep: is for --kernel: give both");
	if (options->guard_action != NULL && options->guard == NULL && getenv("KMEMSHIM_GUARD") == NULL)
		return fail_set(fail, EXIT_USAGE,
		                "run: --guard-action %s: needs a guard: give --guard too, such as --guard 90%%",
		                options->guard_action);
	return options->is_kernel ? cmd_run_kernel(options, &launch, fail) : run_program(options, &launch, fail);
}
