/*
 * doctor_program.c - the program and its libraries: see doctor.h.
 *
 * Which libraries a program gets is asked of its own dynamic loader, with ours preloaded: it searches as it will search at
 * the start, and runs nothing.
 */
#include "base/place.h"
#include "doctor/doctor.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/ask_command.h"
#include "launch/program.h"

/* Commands that do not start their program themselves, or not with our environment. */
static const struct {
	const char *name;
	const char *what;
	const char *next;
} wrappers[] = {
	{ "sudo", "clears LD_PRELOAD for the program that it starts", "sudo kmemshim run -- CMD" },
	{ "doas", "clears LD_PRELOAD for the program that it starts", "doas kmemshim run -- CMD" },
	{ "docker", "starts its program through a daemon",
	  "put kmemshim into the image: docker run ... kmemshim run -- CMD" },
	{ "podman", "starts its program in a container",
	  "put kmemshim into the image: podman run ... kmemshim run -- CMD" },
	{ "kubectl", "starts its program on another machine", "put kmemshim into the image's command" },
	{ "ssh", "starts its program on another machine", "ssh HOST kmemshim run -- CMD" },
	{ "systemd-run", "starts its program through systemd", "systemd-run ... kmemshim run -- CMD" },
};

static void
check_command(struct doctor *doctor, const char *command)
{
	const char *name = place_base(command);

	for (size_t i = 0; i < sizeof(wrappers) / sizeof(wrappers[0]); i++) {
		if (strcmp(name, wrappers[i].name) == 0)
			doctor_add(doctor, DOCTOR_PROBLEM, command, wrappers[i].next, "%s", wrappers[i].what);
	}
	if (strncmp(name, "jupyter", 7) == 0)
		doctor_add(doctor, DOCTOR_NOTE, command,
		           "to record kernels of any server, and to see why one died in the notebook: kmemshim jupyter install",
		           "each kernel that it starts is recorded in a capture of its own; those of another server are not");
}

/* How many words of Python's begin here; 0: it is the script. -1: there is no script. */
static int
python_words(const char *word)
{
	size_t at = 1;

	if (word[0] != '-')
		return 0;
	if (word[1] == '\0' || strcmp(word, "--") == 0)
		return -1;
	if (word[1] == '-')
		return strcmp(word, "--check-hash-based-pycs") == 0 ? 2 : 1;
	while (word[at] != '\0' && strchr("cmWX", word[at]) == NULL)
		at++;
	if (word[at] == 'c' || word[at] == 'm')
		return -1;
	return word[at] != '\0' && word[at + 1] == '\0' ? 2 : 1;
}

static void
check_script(struct doctor *doctor, char *const *arguments)
{
	const char *script = NULL;

	if (strncmp(place_base(arguments[0]), "python", 6) != 0)
		return;
	for (int words = 1; *arguments != NULL && words > 0; words = *arguments != NULL ? python_words(*arguments) : -1) {
		for (int i = 0; i < words && *arguments != NULL; i++)
			arguments++;
		script = *arguments;
	}
	if (script != NULL && script[0] != '-' && access(script, F_OK) != 0)
		doctor_add(doctor, DOCTOR_PROBLEM, script, "correct the path, or change to the script's folder",
		           "was not found");
}

/* "libm.so.6 => /lib/libm.so.6 (0x...)" and "/lib64/ld-linux-x86-64.so.2 (0x...)". */
static void
keep_library(struct doctor *doctor, const char *line)
{
	const char *arrow = strstr(line, " => ");
	const char *path = arrow != NULL ? arrow + 4 : line;
	int length = (int)strcspn(path, " ");
	char *kept;

	if (path[0] != '/' || asprintf(&kept, "%.*s", length, path) < 0)
		return;
	*MEMORY_NEXT(doctor->libraries, doctor->library_count) = kept;
}

struct listing {
	struct doctor *doctor;
	const char *path;
	bool has_shim;
};

/* One line of what the loader lists, or says on its error output. */
static void
read_line(void *context, char *line)
{
	static const char shim_name[] = "libkmemshim.so";
	static const char loading[] = "error while loading shared libraries: ";
	const char *error = strstr(line, loading);
	struct listing *listing = context;
	struct doctor *doctor = listing->doctor;
	const char *path = listing->path;

	while (*line == '\t' || *line == ' ')
		line++;
	if (strstr(line, "version `") != NULL && strstr(line, shim_name) != NULL)
		doctor_add(doctor, DOCTOR_PROBLEM, path, "build kmemshim on the oldest system where you use it",
		           "its C library is too old for kmemshim: %s", line);
	else if (strstr(line, "cannot be preloaded") != NULL)
		doctor_add(doctor, DOCTOR_PROBLEM, path, "check that the file exists and has the program's architecture", "%s",
		           line);
	else if (error != NULL)
		doctor_add(doctor, DOCTOR_PROBLEM, path,
		           "install it or set LD_LIBRARY_PATH: the program cannot start without it", "%s",
		           error + sizeof(loading) - 1);
	else if (strstr(line, "libasan.so") != NULL || strstr(line, "libclang_rt.asan") != NULL)
		doctor_add(doctor, DOCTOR_PROBLEM, path, "record a build without -fsanitize=address",
		           "%.*s replaces malloc, and must be loaded first", (int)strcspn(line, " "), line);
	else if (strstr(line, shim_name) != NULL)
		listing->has_shim = true;
	else
		keep_library(doctor, line);
}

static void
check_libraries(struct doctor *doctor, const struct program *program)
{
	const char *const words[] = { program->loader, "--list", program->path, NULL };
	struct listing listing = { .doctor = doctor, .path = program->path };
	size_t before = doctor->count;

	ask_command(words, doctor->shim, read_line, &listing);
	if (!listing.has_shim && doctor->count == before)
		doctor_add(doctor, DOCTOR_PROBLEM, program->path, "", "its loader %s does not load kmemshim", program->loader);
}

static bool
is_python_name(const char *path)
{
	const char *name = place_base(path);

	return strncmp(name, "python", 6) == 0 || strncmp(name, "pypy", 4) == 0 || strncmp(name, "graalpy", 7) == 0;
}

void
doctor_check_program(struct doctor *doctor, char *const *arguments)
{
	struct program *program = &doctor->program;
	size_t before = doctor->count;
	char path[PATH_MAX];
	struct stat status;

	if (!program_find(arguments[0], path)) {
		doctor_add(doctor, DOCTOR_PROBLEM, arguments[0], "give the path of a file, or a command in PATH",
		           "was not found");
		return;
	}
	if (access(path, X_OK) != 0) {
		doctor_add(doctor, DOCTOR_PROBLEM, path, "run chmod +x on it, or put its interpreter before it",
		           "is not executable");
		return;
	}
	if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
		doctor_add(doctor, DOCTOR_PROBLEM, path, "give a program", "is not a regular file: it cannot be run");
		return;
	}
	check_command(doctor, arguments[0]);
	check_script(doctor, arguments);
	program_examine(arguments, program);
	/* As it is named, so that its environment is in effect. */
	if (is_python_name(arguments[0]))
		doctor->python = arguments[0];
	else if (is_python_name(program->path))
		doctor->python = program->path;
	if (program->missing[0] != '\0') {
		doctor_add(doctor, DOCTOR_PROBLEM, arguments[0], "install it, or correct its name",
		           "needs %s, which was not found", program->missing);
		return;
	}
	if (program->path[0] == '\0') {
		doctor_add(doctor, DOCTOR_PROBLEM, path, "give a program, or a script whose first line names its interpreter",
		           "is not a program, and not a script with an existing interpreter");
		return;
	}
	if (program->obstacle != NULL)
		doctor_add(doctor, DOCTOR_PROBLEM, program->path, program->remedy, "%s", program->obstacle);
	else if (doctor->shim[0] != '\0')
		check_libraries(doctor, program);
	if (doctor->count == before)
		doctor_add(doctor, DOCTOR_OK, program->path, "", "loads the library%s",
		           program->is_python ? ", is a Python" : "");
	if (strstr(place_base(program->path), "sh") != NULL &&
	    strcmp(place_base(program->path), place_base(arguments[0])) != 0)
		doctor_add(doctor, DOCTOR_NOTE, path, "run doctor again with the program that it starts",
		           "is a %s script: the programs that it starts are recorded, but were not checked",
		           place_base(program->path));
}
