/*
 * cmd_run_kernel.c - kmemshim run --kernel: stays between a notebook's server and its kernel, and says why the kernel died.
 *
 * The server sees what it would see without us: the same signals reach the kernel, and we end as it ended. What the next life of the
 * kernel needs, to show the verdict in its first cell, goes into the environment.
 *
 * When failing  the kernel runs all the same, unrecorded if need be, and one line on stderr (the server's log) says so.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/items.h"
#include "base/memory.h"
#include "base/output.h"
#include "capture/kill_counters.h"
#include "cli/cmd_report.h"
#include "cli/cmd_run.h"
#include "jupyter/kernel_life.h"
#include "launch/program.h"
#include "model/model_load.h"

#define DEFAULT_KEEP 10

static const char verdict_name[] = "verdict.txt";

/* Puts the extension's folder, which differs between a checkout and an installation, in front of Python's. False: there is none. */
static bool
set_extension(const char *self)
{
	static const char *const places[] = { "../share/kmemshim/python", "../python", "../../python" };
	const char *present = getenv("PYTHONPATH");

	for (size_t i = 0; i < COUNT_OF(places); i++) {
		char real[PATH_MAX];

		if (realpath(TEXT(PATH_MAX + 64, "%.*s%s", (int)(strrchr(self, '/') + 1 - self), self, places[i]), real) ==
		    NULL)
			continue;
		if (access(TEXT(PATH_MAX + 32, "%s/kmemshim/__init__.py", real), R_OK) != 0)
			continue;

		OWNED char *list = memory_printed("%s%s%s", real, present != NULL && present[0] != '\0' ? ":" : "",
		                                  present != NULL ? present : "");
		(void)setenv("PYTHONPATH", list, 1);
		return true;
	}
	return false;
}

/* The kernel's command, with a word that tells IPython to load the extension. */
static char *const *
arguments_of(const struct options *options, bool has_extension)
{
	static char extension[] = "--ext=kmemshim";
	size_t count = (size_t)options->argument_count;
	char **arguments;

	if (!has_extension || !ANY(word, options->arguments, count, strncmp(*word, "ipykernel", 9) == 0))
		return options->arguments;
	arguments = memory_zeroed(count + 2, sizeof(*arguments)); // for the life of the kernel
	memcpy(arguments, options->arguments, count * sizeof(*arguments));
	arguments[count] = extension;
	return arguments;
}

/* Returns whether there is an extension. */
static bool
set_environment(const struct kernel_life *life)
{
	char self[PATH_MAX];

	program_own(self);
	(void)unsetenv("KMEMSHIM_PREVIOUS"); // where the server itself is a program of a recorded kernel
	(void)setenv("KMEMSHIM_KERNEL", life->folder, 1);
	if (self[0] != '/')
		return false;
	(void)setenv("KMEMSHIM_COMMAND", self, 1);
	return set_extension(self);
}

/* Tells a death to readers of the server's log, and in a file of the life's folder. */
static void
publish(const char *folder, const char *text)
{
	const char *path = TEXT(PATH_MAX + sizeof(verdict_name), "%s/%s", folder, verdict_name);
	struct fail fail;
	struct output_file *file = output_open(path, OUTPUT_OWN, &fail);

	if (file != NULL)
		(void)fputs(text, output_stream(file));
	(void)fputs(text, stderr);
	if (file != NULL && output_close(file, &fail))
		(void)fprintf(stderr, "kmemshim: this verdict is also in %s\n", path);
	else
		(void)fprintf(stderr, "kmemshim: %s\n", fail.text);
}

static void
tell_death(const struct options *options, const struct launch *launch, const struct program *program,
           const struct kernel_life *life, const char **cause)
{
	OWNED char *text = NULL;
	FILE *stream = memory_stream(&text, NULL);
	struct fail fail;

	if (launch->capture[0] == '\0')
		cmd_run_say_nothing_recorded(launch, program, stream);
	else if (!cmd_run_summarise(options, launch, stream, cause, &fail))
		(void)fprintf(stream, "kmemshim: %s\n", fail.text);
	memory_stream_close(stream);
	if (life->folder[0] != '\0')
		publish(life->folder, text);
	else
		(void)fputs(text, stderr);
}

/* Has the kernel killed for memory in the cgroup of one of these processes, since that one began? */
static bool
has_killed(const struct model *model)
{
	for (size_t i = 0; i < model->process_count; i++) {
		const struct kmem_kill_counters *before = &model->processes[i].identity->before;
		struct kmem_kill_counters now;

		kill_counters_read(model->processes[i].identity, &now);
		if (now.cgroup_oom_kill != UINT64_MAX
		        ? now.cgroup_oom_kill > before->cgroup_oom_kill
		        : now.machine_oom_kill != UINT64_MAX && now.machine_oom_kill > before->machine_oom_kill)
			return true; // a counter that was not known before is UINT64_MAX: nothing is above that
	}
	return false;
}

/*
 * The launcher of that life was killed together with its kernel: by a user who restarts a kernel that does not answer, or by the OOM
 * killer, which ends a whole group where it is told to. It is told as a death only where a counter proves the latter.
 */
static bool
judge_past(const struct options *options, struct kernel_life *past)
{
	const struct report_options rows = { .top = 0 };
	struct kernel_end end = { .exit_status = -1, .cause = "" };
	struct fail fail;
	struct model *model = cmd_report_load(options, past->folder, NULL, &fail);
	struct report *report = model != NULL ? report_build(model, &rank_peak, &rows, &fail) : NULL;

	if (report != NULL) {
		end.cause = verdict_cause_name(report->verdict.cause);
		end.is_death = (report->verdict.cause == VERDICT_CONTAINER_LIMIT ||
		                report->verdict.cause == VERDICT_MACHINE_MEMORY) &&
		               has_killed(model);
	}
	kernel_life_end(past, &end);
	report_free(report);
	model_free(model);
	return end.is_death;
}

/* Finds what is to be told about earlier lives, and removes old ones. */
static void
look_back(const struct options *options, const struct kernel_life *life, const char *home)
{
	struct kernel_life later = *life;
	struct kernel_life past;
	enum kernel_past what;

	while ((what = kernel_life_previous(&later, home, &past)) == KERNEL_PAST_UNKNOWN && !judge_past(options, &past))
		later = past;
	if (what != KERNEL_PAST_NONE)
		(void)setenv("KMEMSHIM_PREVIOUS", past.folder, 1);
	else
		past.folder[0] = '\0';
	kernel_life_prune(home, options_has(options, OPTION_KEEP) ? options->keep : DEFAULT_KEEP, past.folder);
}

/* Did it end without being asked to? Then it was neither shut down nor sent away. */
static bool
is_death(const struct launch *launch)
{
	bool was_asked = launch->passed_on == SIGTERM || launch->passed_on == SIGHUP || launch->passed_on == SIGQUIT;

	return launch->start_error == 0 && launch->wait_status != 0 && !was_asked;
}

/* Ends as the kernel ended: the server reads our status as the kernel's. */
static void
end_alike(const struct launch *launch)
{
	const struct rlimit no_core = { 0, 0 };

	if (launch->start_error != 0 || !WIFSIGNALED(launch->wait_status))
		return;
	(void)fflush(NULL);
	(void)setrlimit(RLIMIT_CORE, &no_core); // the core that there is to read is the kernel's
	(void)prctl(PR_SET_DUMPABLE, 0);
	(void)signal(WTERMSIG(launch->wait_status), SIG_DFL);
	(void)raise(WTERMSIG(launch->wait_status));
}

bool
cmd_run_kernel(const struct options *options, struct launch *launch, struct fail *fail)
{
	char shim[PATH_MAX];
	char home[PATH_MAX];
	struct kernel_life life = { .file = -1 };
	struct program program;
	struct fail why;

	program_examine(options->arguments, &program);
	if (!kernel_life_home(options->output, home, &why) || !kernel_life_begin(&life, home, options->arguments, &why)) {
		(void)fprintf(stderr, "kmemshim: the kernel is not recorded: %s\n", why.text);
	} else {
		launch->arguments = arguments_of(options, set_environment(&life));
		look_back(options, &life, home);
		launch->folder = life.folder;
		if (!launcher_find_shim(NULL, shim, &why))
			(void)fprintf(stderr, "kmemshim: the kernel is not recorded: %s\n", why.text);
		else if (!program.is_preload_harmful)
			launch->shim = shim;
	}
	if (!launcher_run(launch, fail))
		return false;
	*options->status = cmd_run_status(launch);
	(void)signal(SIGPIPE, SIG_IGN);
	if (launch->start_error != 0)
		cmd_run_say_not_started(launch, &program);

	struct kernel_end end = {
		.is_death = is_death(launch),
		.exit_status = WIFEXITED(launch->wait_status) ? WEXITSTATUS(launch->wait_status) : -1,
		.signal = WIFSIGNALED(launch->wait_status) ? WTERMSIG(launch->wait_status) : 0,
		.cause = "",
	};

	if (end.is_death && launch->folder != NULL)
		tell_death(options, launch, &program, &life, &end.cause);
	kernel_life_end(&life, &end);
	end_alike(launch);
	return true;
}
