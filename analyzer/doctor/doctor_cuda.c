/*
 * doctor_cuda.c - which CUDA would the program use, and is there a driver? See doctor.h.
 *
 * A program calls CUDA's runtime, as a library or linked into it, and the runtime calls the driver, libcuda.so.1; or it opens the driver
 * itself. All of that is recorded. Nothing of it is loaded here: who needs it is read from files, where it lies is asked of the loader.
 *
 * When failing  nothing is said: a program that does not use CUDA needs none.
 */
#include "base/memory.h"
#include "base/place.h"
#include "doctor/doctor.h"

#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/ask_command.h"
#include "doctor/doctor_elf.h"

#define DRIVER "libcuda.so.1"
#define DEEP_MAX 4 // folders below a package in which its libraries lie
#define ANSWER "kmemshim-package"

/* Finds packages, and imports none. The first entry of the path may be the current folder: what lies there is no framework. */
static const char find_packages
	[] = "import sys\n"
		 "sys.path = [folder for folder in sys.path if folder]\n"
		 "from importlib.util import find_spec\n"
		 "for name in 'torch jaxlib jax_plugins jax_cuda12_plugin jax_cuda13_plugin tensorflow cupy cupy_backends'.split():\n"
		 "    try:\n"
		 "        for folder in find_spec(name).submodule_search_locations:\n"
		 "            print('" ANSWER "', name, folder)\n"
		 "    except Exception:\n"
		 "        pass\n";

/* Who uses CUDA: the program, or a framework of its Python. */
struct user {
	struct doctor *doctor;
	char name[64];
	char path[PATH_MAX];             // the largest file that needs it; "" = none
	uint64_t size_bytes;             // of that
	char runtime[DOCTOR_NAME_BYTES]; // which that needs; "" = it has its own, or opens the driver
	bool has_static_runtime;
	size_t count; // of such files
	char runtime_path[PATH_MAX];
};

static void
consider(struct user *user, const char *path, bool is_own)
{
	bool has_static_runtime = false;
	struct doctor_elf elf;

	if (!doctor_elf_read(path, &elf))
		return;

	bool is_user = elf.cuda_runtime[0] != '\0' || elf.needs_cuda_driver;

	/* The others look the driver up by its name. To read a whole file takes time: only where one may expect it. */
	if (!is_user && (is_own || strstr(place_base(path), "cuda") != NULL || strstr(place_base(path), "xla") != NULL)) {
		is_user = doctor_elf_has_text(path, DRIVER, NULL);
		has_static_runtime = is_user && doctor_elf_has_text(path, "cudaMalloc", NULL);
	}
	if (!is_user)
		return;
	user->count++;
	/* Who needs the runtime tells more than who looks the driver up beside it. */
	if (user->path[0] != '\0' && (user->runtime[0] != '\0') >= (elf.cuda_runtime[0] != '\0') &&
	    ((user->runtime[0] != '\0') > (elf.cuda_runtime[0] != '\0') || user->size_bytes >= elf.size_bytes))
		return;
	(void)snprintf(user->path, sizeof(user->path), "%s", path);
	(void)snprintf(user->runtime, sizeof(user->runtime), "%s", elf.cuda_runtime);
	user->size_bytes = elf.size_bytes;
	user->has_static_runtime = has_static_runtime;
}

/* "\tlibcudart.so.13 => /venv/lib/libcudart.so.13 (0x...)"; "not found" has no slash. */
static void
take_runtime(void *context, char *line)
{
	struct user *user = context;
	const char *arrow = strstr(line, " => /");

	if (arrow == NULL || strstr(line, user->runtime) == NULL || strstr(line, user->runtime) > arrow)
		return;
	if (realpath(TEXT(PATH_MAX, "%.*s", (int)strcspn(arrow + 4, " "), arrow + 4), user->runtime_path) == NULL)
		user->runtime_path[0] = '\0';
}

static void
tell_user(struct user *user, bool is_own)
{
	/* Unlike --list this goes on where another library is missing, as one that the framework brings. */
	const char *const words[] = { "env", "LD_TRACE_LOADED_OBJECTS=1", user->doctor->program.loader, user->path, NULL };
	char what[PATH_MAX + 64];

	if (is_own)
		(void)snprintf(what, sizeof(what), "it");
	else if (user->count > 1)
		(void)snprintf(what, sizeof(what), "%s, with %zu more,", place_base(user->path), user->count - 1);
	else
		(void)snprintf(what, sizeof(what), "%s", place_base(user->path));
	if (user->runtime[0] != '\0') {
		ask_command(words, NULL, take_runtime, user);
		if (user->runtime_path[0] != '\0')
			doctor_add(user->doctor, DOCTOR_OK, user->name, "", "%s uses CUDA's runtime as a library, %s: recorded",
			           what, user->runtime_path);
		else
			doctor_add(user->doctor, DOCTOR_NOTE, user->name,
			           "install it (pip install nvidia-cuda-runtime), or set LD_LIBRARY_PATH",
			           "%s needs %s, which the loader does not find", what, user->runtime);
	} else if (user->has_static_runtime) {
		doctor_add(user->doctor, DOCTOR_OK, user->name, "",
		           "%s has CUDA's runtime linked into it: recorded where that calls the driver", what);
	} else {
		doctor_add(user->doctor, DOCTOR_OK, user->name, "", "%s calls CUDA's driver itself: recorded", what);
	}
}

static void
scan(struct user *user, const char *folder)
{
	char *const roots[] = { (char *)folder, NULL };
	FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	FTSENT *entry;

	while (tree != NULL && (entry = fts_read(tree)) != NULL) {
		if (entry->fts_info == FTS_D && entry->fts_level >= DEEP_MAX)
			(void)fts_set(tree, entry, FTS_SKIP);
		else if (entry->fts_info == FTS_F && strstr(entry->fts_name, ".so") != NULL &&
		         strncmp(entry->fts_name, "libcudart", 9) != 0)
			consider(user, entry->fts_path, false);
	}
	if (tree != NULL)
		(void)fts_close(tree);
}

struct frameworks {
	struct doctor *doctor;
	bool has_user;
};

/* "kmemshim-package torch /venv/lib/python3.11/site-packages/torch" */
static void
take_package(void *context, char *line)
{
	struct frameworks *frameworks = context;
	struct user user = { .doctor = frameworks->doctor };
	char folder[PATH_MAX];

	if (sscanf(line, ANSWER " %60s %4000[^\n]", user.name, folder) != 2)
		return;
	scan(&user, folder);
	if (user.path[0] == '\0')
		return;
	tell_user(&user, false);
	frameworks->has_user = true;
}

static void
take_driver(void *context, char *line)
{
	char *path = context;
	const char *arrow = strstr(line, DRIVER " => /");

	if (arrow != NULL)
		(void)snprintf(path, PATH_MAX, "%.*s", (int)strcspn(arrow + sizeof(DRIVER) + 3, " "),
		               arrow + sizeof(DRIVER) + 3);
}

static void
tell_driver(struct doctor *doctor)
{
	const char *const words[] = { doctor->program.loader, "--list", doctor->program.path, NULL };
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	char path[PATH_MAX] = "";

	ask_command(words, DRIVER, take_driver, path);
	if (path[0] == '\0')
		doctor_add(doctor, DOCTOR_NOTE, "CUDA driver",
		           "on a machine with a GPU install NVIDIA's driver; start its containers with --gpus all",
		           "the loader does not find " DRIVER ": programs run without a GPU");
	else if (strstr(path, "/stubs/") != NULL)
		doctor_add(doctor, DOCTOR_NOTE, "CUDA driver", "take the folder stubs out of LD_LIBRARY_PATH",
		           "%s is only for linking: every call to it fails", path);
	else if (access("/dev/nvidiactl", F_OK) != 0 && access("/dev/dxg", F_OK) != 0)
		doctor_add(doctor, DOCTOR_NOTE, "CUDA driver", "start the container with --gpus all, or load the module nvidia",
		           "%s is there, but no device (/dev/nvidiactl)", path);
	else
		doctor_add(doctor, DOCTOR_OK, "CUDA driver", "", "%s", path);
	if (visible != NULL && (visible[0] == '\0' || strcmp(visible, "-1") == 0))
		doctor_add(doctor, DOCTOR_NOTE, "CUDA_VISIBLE_DEVICES", "unset it, if the program is to use a GPU",
		           "is \"%s\": the program sees no device", visible);
}

void
doctor_check_cuda(struct doctor *doctor)
{
	const char *const words[] = { doctor->python, "-c", find_packages, NULL };
	struct frameworks frameworks = { .doctor = doctor };
	struct user user = { .doctor = doctor };

	if (doctor->program.loader[0] == '\0')
		return;
	(void)snprintf(user.name, sizeof(user.name), "%.60s", place_base(doctor->program.path));
	if (doctor->python == NULL) {
		consider(&user, doctor->program.path, true);
		for (size_t i = 0; user.runtime[0] == '\0' && i < doctor->library_count; i++) {
			if (strncmp(place_base(doctor->libraries[i]), "libcudart", 9) != 0)
				consider(&user, doctor->libraries[i], false);
		}
		if (user.path[0] != '\0')
			tell_user(&user, strcmp(user.path, doctor->program.path) == 0);
	} else {
		ask_command(words, NULL, take_package, &frameworks);
	}
	if (user.path[0] != '\0' || frameworks.has_user)
		tell_driver(doctor);
}
