/*
 * cmd_jupyter.c - kmemshim jupyter: installs, lists and removes kernels that are recorded.
 *
 * When failing  one line, and nothing is changed.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/items.h"
#include "base/memory.h"
#include "base/output.h"
#include "cli/command.h"
#include "cli/options.h"
#include "jupyter/kernel_spec.h"
#include "launch/launcher.h"
#include "launch/program.h"

#define DEFAULT_KERNEL "python3"
#define DEFAULT_GUARD "92%"
#define DEFAULT_GUARD_ACTION "interrupt"
#define WORDS_MAX 16

#define INSTALL_OPTIONS                                                                                              \
	(OPTION_BIT(OPTION_WRAP) | OPTION_BIT(OPTION_USER) | OPTION_BIT(OPTION_SYS_PREFIX) | OPTION_BIT(OPTION_PREFIX) | \
	 OPTION_BIT(OPTION_FORCE) | OPTION_BIT(OPTION_GUARD) | OPTION_BIT(OPTION_GUARD_ACTION) |                         \
	 OPTION_BIT(OPTION_NO_GUARD) | OPTION_BIT(OPTION_KEEP))

static bool
check_name(const char *name, struct fail *fail)
{
	return (kernel_spec_is_name(name) && strlen(name) < 100) ||
	       fail_set(fail, EXIT_USAGE, "jupyter: --name %s: a kernel's name has only letters, digits, dots, - and _",
	                name);
}

static bool
check_install(const struct options *options, struct fail *fail)
{
	uint64_t places = options->given &
	                  (OPTION_BIT(OPTION_USER) | OPTION_BIT(OPTION_SYS_PREFIX) | OPTION_BIT(OPTION_PREFIX));

	if ((places & (places - 1)) != 0)
		return fail_set(fail, EXIT_USAGE, "jupyter: give one of --user, --sys-prefix and --prefix");
	return !options->has_no_guard || (options->guard == NULL && options->guard_action == NULL) ||
	       fail_set(fail, EXIT_USAGE, "jupyter: --no-guard: give it without --guard and --guard-action");
}

/*
 * A kernel must start even if this program was moved, removed, or has lost a library. $0 is our path, and the words up to "--" are ours.
 * The shell is replaced, so that no process is between the server and us.
 */
static const char start_script
	[] = "\"$0\" --version >/dev/null 2>&1 && exec \"$0\" \"$@\"; "
		 "echo \"kmemshim: $0: is gone or does not run: the kernel is not recorded (jupyter kernelspec remove %s removes it)\" >&2; "
		 "while [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"";

/* The words in front of the kernel's own command. `self`, `script` and `keep` hold texts that live nowhere else. */
static void
launcher_words(const struct options *options, const char *self, const char *script, char keep[24],
               const char *words[WORDS_MAX])
{
	size_t count = 0;

	words[count++] = "/bin/sh";
	words[count++] = "-c";
	words[count++] = script;
	words[count++] = self;
	words[count++] = "run";
	words[count++] = "--kernel";
	if (options_has(options, OPTION_KEEP)) {
		(void)snprintf(keep, 24, "%llu", (unsigned long long)options->keep);
		words[count++] = "--keep";
		words[count++] = keep;
	}
	if (!options->has_no_guard) {
		words[count++] = "--guard";
		words[count++] = options->guard != NULL ? options->guard : DEFAULT_GUARD;
		words[count++] = "--guard-action";
		words[count++] = options->guard_action != NULL ? options->guard_action : DEFAULT_GUARD_ACTION;
	}
	words[count++] = "--";
	words[count] = NULL;
}

/* By a kernel of ours with another name. */
static bool
is_title_taken(const char *title, const char *name)
{
	OWNED_KERNELS struct kernel_specs all = kernel_specs_list(false);

	return ANY(spec, all.specs, all.count,
	           strcmp(spec->name, name) != 0 && strcmp(kernel_spec_title(spec), title) == 0);
}

static bool
install(const struct options *options, struct fail *fail)
{
	enum kernel_spec_place place = options->is_in_environment ? KERNEL_SPEC_OF_ENVIRONMENT
	                               : options->prefix != NULL  ? KERNEL_SPEC_OF_PREFIX
	                                                          : KERNEL_SPEC_OF_USER;
	const char *wrapped = options->wrap != NULL ? options->wrap : DEFAULT_KERNEL;
	const char *words[WORDS_MAX];
	char self[PATH_MAX];
	char shim[PATH_MAX];
	char keep[24];
	char name[NAME_MAX + 1];
	char kernels[PATH_MAX];
	char written[PATH_MAX];
	struct kernel_spec spec;

	program_own(self);
	(void)snprintf(name, sizeof(name), "%.80s-kmemshim", wrapped);
	if (options->name != NULL)
		(void)snprintf(name, sizeof(name), "%s", options->name);
	for (char *at = name; *at != '\0'; at++)
		*at = (char)tolower((unsigned char)*at); // Jupyter's are
	if (!check_install(options, fail) || !check_name(name, fail) || !launcher_find_shim(NULL, shim, fail) ||
	    !kernel_spec_place(place, options->prefix, kernels, fail) || !kernel_spec_find(wrapped, &spec, fail))
		return false;
	if (kernel_spec_wraps(&spec) != NULL) {
		(void)fail_set(fail, EXIT_USAGE, "jupyter: --wrap %s: this kernel is recorded already: wrap %s", wrapped,
		               kernel_spec_wraps(&spec));
		kernel_spec_free(&spec);
		return false;
	}

	bool is_ipython = kernel_spec_is_ipython(&spec);

	launcher_words(options, self, TEXT(sizeof(start_script) + NAME_MAX, start_script, name), keep, words);
	kernel_spec_wrap(&spec, words);
	if (is_title_taken(kernel_spec_title(&spec), name))
		kernel_spec_tell_name(&spec, name);

	bool is_written = kernel_spec_write(&spec, kernels, name, options->is_forced, written, fail);

	if (is_written) {
		(void)printf("Installed the kernel \"%s\" in %s.\n", kernel_spec_title(&spec), written);
		if (is_ipython)
			(void)printf("Choose it in the notebook. When it dies, the next cell that you run says why.\n");
		else
			(void)printf(
				"Choose it in the notebook. It is not an IPython kernel: when it dies, the server's log says why; "
				"so does kmemshim why --kernel.\n");
	}
	if (is_written && options->prefix != NULL)
		(void)printf("If Jupyter does not list it, set JUPYTER_PATH=%s/share/jupyter.\n", options->prefix);
	kernel_spec_free(&spec);
	return is_written;
}

static bool
list(void)
{
	OWNED_KERNELS struct kernel_specs all = kernel_specs_list(false);

	if (all.count == 0)
		(void)printf("No kernel that Jupyter finds is recorded. Install one: kmemshim jupyter install\n");
	EACH (spec, all.specs, all.count)
		(void)printf("%-24s wraps %-16s %s\n", spec->name, kernel_spec_wraps(spec), spec->folder);
	return true;
}

static bool
remove_specs(const struct kernel_spec *specs, size_t count, struct fail *fail)
{
	for (size_t i = 0; i < count; i++) {
		if (!kernel_spec_remove(&specs[i], fail))
			return false;
		(void)printf("Removed the kernel %s from %s.\n", specs[i].name, specs[i].folder);
	}
	return true;
}

static bool
uninstall(const struct options *options, struct fail *fail)
{
	OWNED_KERNELS struct kernel_specs all = kernel_specs_list(false);
	size_t chosen = 0;

	while (chosen < all.count && options->name != NULL && strcasecmp(options->name, all.specs[chosen].name) != 0)
		chosen++;
	if (chosen == all.count)
		(void)fail_set(fail, EXIT_USAGE,
		               "jupyter uninstall: %s: no such kernel of kmemshim's: kmemshim jupyter list shows them",
		               options->name != NULL ? options->name : "no name given");
	else if (all.count > 1 && options->name == NULL && !options->has_all)
		(void)fail_set(
			fail, EXIT_USAGE,
			"jupyter uninstall: there are %zu kernels: give --name or --all, kmemshim jupyter list shows them",
			all.count);
	else
		return remove_specs(&all.specs[chosen], options->has_all ? all.count : 1, fail);
	return false;
}

bool
cmd_jupyter(const struct options *options, int *status, struct fail *fail)
{
	const char *what = options->arguments[0];
	bool is_done;

	(void)status;
	if (strcmp(what, "install") != 0 && (options->given & INSTALL_OPTIONS) != 0)
		return fail_set(fail, EXIT_USAGE, "jupyter %s: takes only --name", what);
	if (strcmp(what, "uninstall") != 0 && options->has_all)
		return fail_set(fail, EXIT_USAGE, "jupyter %s: --all is for uninstall", what);
	if (options->has_all && options->name != NULL)
		return fail_set(fail, EXIT_USAGE, "jupyter uninstall: give one of --name and --all");
	if (strcmp(what, "install") == 0)
		is_done = install(options, fail);
	else if (strcmp(what, "list") == 0)
		is_done = list();
	else if (strcmp(what, "uninstall") == 0)
		is_done = uninstall(options, fail);
	else
		return fail_set(fail, EXIT_USAGE, "jupyter %s: there is install, list, and uninstall", what);
	return is_done && output_finish(fail);
}
