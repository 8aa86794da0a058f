/*
 * doctor_try.c - does recording work here, and does it understand this Python? See doctor.h.
 *
 * The shim itself is asked: a run that does nothing, into a folder that is removed afterwards. What it says of itself on
 * its error output and in its capture are the findings.
 */
#include "base/memory.h"
#include "base/read_each.h"
#include "base/regular_file.h"
#include "doctor/doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/launcher.h"
#include "launch/program.h"
#include "model/model_load.h"

/* Versions: the rows of kmem_python.h. */
static const char
	other_python[] = "take CPython 3.8 to 3.15, as python.org or Debian builds it, to see lines of Python";

/* What to run; words[0] NULL: nothing. */
static void
choose(const struct doctor *doctor, char path[PATH_MAX], const char *words[4])
{
	const char *nothing = doctor->program.is_preload_harmful ? NULL : program_find("true", path) ? path : NULL;

	words[0] = doctor->python != NULL ? doctor->python : nothing;
	words[1] = doctor->python != NULL ? "-c" : NULL;
	words[2] = "pass";
	words[3] = NULL;
}

/* launcher_run() with the error output kept, at most `room` bytes of it. */
static bool
run(struct launch *launch, char *said, size_t room, struct fail *fail)
{
	OWNED_FILE int kept = memfd_create("doctor", MFD_CLOEXEC);
	OWNED_FILE int own = dup(STDERR_FILENO);
	ssize_t length = 0;

	if (kept >= 0 && own >= 0)
		(void)dup2(kept, STDERR_FILENO);

	bool is_done = launcher_run(launch, fail);

	if (kept >= 0 && own >= 0) {
		(void)dup2(own, STDERR_FILENO);
		length = pread(kept, said, room - 1, 0);
	}
	said[length > 0 ? length : 0] = '\0';
	return is_done;
}

static void
read_capture(struct doctor *doctor, const char *name, const char *folder, bool is_python)
{
	const struct model_options options = { .capture = folder };
	struct fail fail;
	struct model *model = model_load(&options, &fail);

	if (model == NULL || model->process_count == 0) {
		doctor_add(doctor, DOCTOR_PROBLEM, name, "run it with KMEMSHIM_LOG=debug and read the messages",
		           "a trial run left no readable capture%s%s", model == NULL ? ": " : "",
		           model == NULL ? fail.text : "");
		model_free(model);
		return;
	}

	const struct model_process *process = &model->processes[0];

	for (size_t i = 0; i < process->note_count; i++) {
		/* One that could not be read is tried again at the next stack. */
		if (i == 0 || strcmp(process->notes[i], process->notes[i - 1]) != 0)
			doctor_add(doctor, DOCTOR_NOTE, name,
			           strstr(process->notes[i], KMEM_NOTE_NATIVE_ONLY) != NULL ? other_python : "", "%s",
			           process->notes[i]);
	}
	if (is_python && process->note_count == 0 && process->python_version != 0)
		doctor_add(doctor, DOCTOR_OK, name, "", "Python %u.%u.%u: its layout was checked, Python frames are recorded",
		           process->python_version >> 24, process->python_version >> 16 & 0xff,
		           process->python_version >> 8 & 0xff);
	else if (is_python && process->note_count == 0)
		doctor_add(doctor, DOCTOR_NOTE, name, other_python, "is not a supported CPython: " KMEM_NOTE_NATIVE_ONLY);
	else if (!is_python)
		doctor_add(doctor, DOCTOR_OK, name, "", "a trial run was recorded");
	doctor_check_container(doctor, process->identity);
	model_free(model);
}

static void
remove_folder(const char *folder)
{
	EACH_NAME (name, folder)
		(void)unlink(TEXT(2 * PATH_MAX, "%s/%s", folder, name));
	(void)rmdir(folder);
}

void
doctor_try(struct doctor *doctor)
{
	struct launch launch = { .shim = doctor->shim, .is_trial = true };
	char folder[PATH_MAX + 40];
	const char *words[4];
	char path[PATH_MAX];
	struct fail fail;
	char said[4096];
	char *save;

	if (doctor->shim[0] == '\0' || doctor->folder[0] == '\0')
		return;
	choose(doctor, path, words);
	(void)snprintf(folder, sizeof(folder), "%s/.doctor.%ld", doctor->folder, (long)getpid());
	if (words[0] == NULL || mkdir(folder, 0700) != 0)
		return;
	launch.arguments = (char *const *)words;
	launch.folder = folder;
	if (!run(&launch, said, sizeof(said), &fail)) {
		doctor_add(doctor, DOCTOR_PROBLEM, words[0], "", "%s", fail.text);
	} else {
		for (char *line = strtok_r(said, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save))
			doctor_add(doctor, DOCTOR_PROBLEM, words[0], "", "prints this message in a trial run: %s", line);
		if (launch.start_error != 0 || launch.wait_status != 0)
			doctor_add(doctor, DOCTOR_PROBLEM, words[0], "check whether it also fails without kmemshim", "%s",
			           launch.start_error != 0 ? strerror(launch.start_error)
			                                   : "failed in a trial run that does nothing");
		else
			read_capture(doctor, words[0], folder, words[1] != NULL);
	}
	remove_folder(folder);
}
