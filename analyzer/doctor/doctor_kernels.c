/*
 * doctor_kernels.c - which of the notebook's kernels are recorded? See doctor.h.
 *
 * A kernel starts also when the installation that would record it is gone: its user does not notice, until it dies and nothing is said.
 */
#include "doctor/doctor.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/items.h"
#include "base/memory.h"
#include "jupyter/kernel_spec.h"
#include "launch/launcher.h"

#define NEXT_BYTES (2 * NAME_MAX + 80)
#define WHERE_BYTES (NAME_MAX + 16)

/* As the kernel's start asks it. */
static bool
does_run(const char *launcher)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

		for (int file = STDIN_FILENO; file <= STDERR_FILENO; file++)
			(void)dup2(nothing, file);
		(void)execl(launcher, launcher, "--version", (char *)NULL);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static void
check_ours(struct doctor *doctor, const struct kernel_spec *spec, const char *where)
{
	const char *launcher = kernel_spec_launcher(spec);
	const char *program = kernel_spec_program(spec);
	char shim[PATH_MAX];
	struct fail fail;

	const char *next = TEXT(NEXT_BYTES, "kmemshim jupyter install --wrap %s --name %s", kernel_spec_wraps(spec),
	                        spec->name);
	if (launcher == NULL || program == NULL)
		doctor_add(doctor, DOCTOR_NOTE, where, next,
		           "%s/kernel.json was changed by hand: whether it is recorded is unknown", spec->folder);
	else if (access(launcher, X_OK) != 0 || !does_run(launcher))
		doctor_add(doctor, DOCTOR_PROBLEM, where, next, "is not recorded: %s is gone or does not run", launcher);
	else if (!launcher_find_shim(launcher, shim, &fail))
		doctor_add(doctor, DOCTOR_PROBLEM, where, next, "is not recorded: the library of %s is gone", launcher);
	else if (program[0] == '/' && access(program, X_OK) != 0)
		doctor_add(doctor, DOCTOR_PROBLEM, where, next, "does not start: its interpreter %s is gone", program);
	else
		doctor_add(doctor, DOCTOR_OK, where, "", "is recorded%s%s", strcmp(shim, doctor->shim) != 0 ? ", by " : "",
		           strcmp(shim, doctor->shim) != 0 ? launcher : "");
}

/* The library in LD_PRELOAD of its "env"; NULL = it is not there. */
static char *
find_preload(const struct kernel_spec *spec)
{
	const char *value = json_string_value(json_object_get(json_object_get(spec->root, "env"), "LD_PRELOAD"));
	OWNED char *list = memory_text(value != NULL ? value : "");
	char *found = NULL;
	char *save;

	for (char *entry = strtok_r(list, " :", &save); entry != NULL && found == NULL;
	     entry = strtok_r(NULL, " :", &save)) {
		if (strstr(entry, "libkmemshim.so") != NULL)
			found = memory_text(entry);
	}
	return found;
}

static bool
is_wrapped(const struct kernel_spec *specs, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++) {
		const char *wraps = kernel_spec_wraps(&specs[i]);

		if (wraps != NULL && strcasecmp(wraps, name) == 0)
			return true;
	}
	return false;
}

static void
check_others(struct doctor *doctor, const struct kernel_spec *spec, const char *where, bool has_recorded)
{
	OWNED char *preload = find_preload(spec);
	char next[NEXT_BYTES + PATH_MAX];

	if (preload != NULL && access(preload, R_OK) == 0) {
		doctor_add(doctor, DOCTOR_OK, where, "", "is recorded, by LD_PRELOAD in its \"env\"");
	} else if (preload != NULL) {
		(void)snprintf(next, sizeof(next), "correct LD_PRELOAD in %s/kernel.json", spec->folder);
		doctor_add(doctor, DOCTOR_PROBLEM, where, next, "is not recorded: %s in its \"env\" is gone", preload);
	} else if (!has_recorded) {
		(void)snprintf(next, sizeof(next), "kmemshim jupyter install --wrap %s", spec->name);
		doctor_add(doctor, DOCTOR_NOTE, where, next, "is not recorded");
	}
}

static bool
is_before(const struct kernel_spec *specs, size_t count, const char *name)
{
	return ANY(spec, specs, count, strcasecmp(spec->name, name) == 0);
}

void
doctor_check_kernels(struct doctor *doctor)
{
	OWNED_KERNELS struct kernel_specs all = kernel_specs_list(true);
	const struct kernel_spec *specs = all.specs;
	size_t count = all.count;

	for (size_t i = 0; i < count; i++) {

		const char *where = TEXT(WHERE_BYTES, "kernel %s", specs[i].name);
		if (!kernel_spec_is_name(specs[i].name) || is_before(specs, i, specs[i].name))
			continue; // Jupyter does not see it
		if (kernel_spec_wraps(&specs[i]) != NULL)
			check_ours(doctor, &specs[i], where);
		else
			check_others(doctor, &specs[i], where, is_wrapped(specs, count, specs[i].name));
	}
}
