/*
 * doctor_place.c - the library, the folder of captures, limits and the environment: see doctor.h.
 */
#include "launch/doctor.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/owner.h"
#include "base/units.h"
#include "launch/launcher.h"

#define ROOM_NEEDED (UINT64_C(64) << 20) // what captures of large programs take
#define ROOM_NEEDED_TEXT "64 MiB"

static const struct {
	unsigned long type;
	enum doctor_level level;
	const char *what;
	const char *next;
} file_systems[] = {
	{ TMPFS_MAGIC, DOCTOR_NOTE, "is in memory (tmpfs): captures count against the memory limit",
	  "name a folder on a disk with -o" },
	{ RAMFS_MAGIC, DOCTOR_NOTE, "is in memory (ramfs): captures count against the memory limit",
	  "name a folder on a disk with -o" },
	{ NFS_SUPER_MAGIC, DOCTOR_NOTE, "is on NFS: a dying machine loses what was not sent yet",
	  "name a local folder with -o" },
	{ SMB2_SUPER_MAGIC, DOCTOR_NOTE, "is on a network share: mapped files may not work there",
	  "name a local folder with -o" },
	{ CIFS_SUPER_MAGIC, DOCTOR_NOTE, "is on a network share: mapped files may not work there",
	  "name a local folder with -o" },
	{ V9FS_MAGIC, DOCTOR_NOTE, "is on 9p: mapped files may not work there", "name a local folder with -o" },
	{ FUSE_SUPER_MAGIC, DOCTOR_NOTE, "is on a FUSE file system: mapped files may be slow there",
	  "name a local folder with -o" },
};

/* Recorders that replace the same functions. Allocators do not: ours goes first and calls them. */
static const char *const recorders[] = { "heaptrack",    "bytehound", "libmemray",  "libmtrace",
	                                     "libtotalview", "vgpreload", "libmemleak", "libscalene" };

void
doctor_add(struct doctor *doctor, enum doctor_level level, const char *where, const char *next, const char *what, ...)
{
	char text[1200];
	va_list values;

	va_start(values, what);
	(void)vsnprintf(text, sizeof(text), what, values);
	va_end(values);
	doctor->findings = memory_grown(doctor->findings, &doctor->room, doctor->count + 1, sizeof(*doctor->findings));
	doctor->findings[doctor->count++] = (struct doctor_finding){
		.level = level,
		.where = memory_text(where),
		.what = memory_text(text),
		.next = memory_text(next),
	};
}

void
doctor_free(struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->count; i++) {
		free(doctor->findings[i].where);
		free(doctor->findings[i].what);
		free(doctor->findings[i].next);
	}
	free(doctor->findings);
}

static void
find_present(const char *folder, char present[PATH_MAX])
{
	char *path = memory_text(folder);

	while (realpath(path, present) == NULL) {
		char *slash = strrchr(path, '/');

		if (slash == NULL || slash == path) {
			(void)realpath(slash == NULL ? "." : "/", present);
			break;
		}
		*slash = '\0';
	}
	free(path);
}

void
doctor_leave_place(const struct doctor *doctor)
{
	size_t length = strcmp(doctor->present, "/") == 0 ? 0 : strlen(doctor->present);
	char *path = memory_text(doctor->folder);

	/* With ".." in its name it may lie elsewhere. */
	while (strncmp(path, doctor->present, length) == 0 && path[length] == '/' && rmdir(path) == 0)
		*strrchr(path, '/') = '\0';
	free(path);
}

static void
check_folder(struct doctor *doctor, const char *folder, bool is_named)
{
	char owner_name[OWNER_TEXT_BYTES];
	char text[UNITS_TEXT_BYTES];
	struct statfs system;
	uint64_t room;
	struct fail fail;
	uid_t owner;

	find_present(folder, doctor->present);
	if (!launcher_make_folder(folder, is_named, doctor->folder, &fail)) {
		doctor->folder[0] = '\0';
		doctor_add(doctor, DOCTOR_PROBLEM, "captures", "", "%s", fail.text);
		return;
	}
	if (owner_is_anothers(folder, &owner))
		doctor_add(doctor, DOCTOR_NOTE, doctor->folder, "name a folder of your own with -o",
		           "belongs to %s, who can replace and remove "
		           "the captures",
		           owner_text(owner, owner_name));
	bool is_known = statfs(doctor->folder, &system) == 0;
	int error = errno;

	if (!is_known) {
		doctor_add(doctor, DOCTOR_NOTE, doctor->folder, "see that it has room for " ROOM_NEEDED_TEXT,
		           "takes captures; how much is free there is not known (%s)", strerror(error));
		return;
	}
	room = system.f_bavail * (uint64_t)system.f_bsize;
	for (size_t i = 0; i < sizeof(file_systems) / sizeof(file_systems[0]); i++) {
		if ((unsigned long)system.f_type == file_systems[i].type)
			doctor_add(doctor, file_systems[i].level, doctor->folder, file_systems[i].next, "%s", file_systems[i].what);
	}
	if (room < ROOM_NEEDED)
		doctor_add(doctor, DOCTOR_PROBLEM, doctor->folder, "make room, or name another folder with -o",
		           "has room for %s only", units_bytes(room, text));
	else
		doctor_add(doctor, DOCTOR_OK, doctor->folder, "", "takes captures, %s are free", units_bytes(room, text));
}

static void
check_limits(struct doctor *doctor)
{
	char text[UNITS_TEXT_BYTES];
	struct rlimit limit;

	if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		doctor_add(doctor, DOCTOR_NOTE, "ulimit -v",
		           "lift it while recording, or expect the program to meet it earlier",
		           "addresses are limited to %s, and the library's tables take some of them",
		           units_bytes(limit.rlim_cur, text));
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < ROOM_NEEDED)
		doctor_add(doctor, DOCTOR_PROBLEM, "ulimit -f", "ulimit -f unlimited",
		           "no file may be larger than %s: captures would "
		           "end there",
		           units_bytes(limit.rlim_cur, text));
}

static void
check_preloaded(struct doctor *doctor, const char *entry)
{
	const char *slash = strrchr(entry, '/');
	const char *name = slash != NULL ? slash + 1 : entry;

	if (strcmp(name, "libkmemshim.so") == 0) {
		doctor_add(doctor, DOCTOR_NOTE, "LD_PRELOAD", "unset LD_PRELOAD, where that is not wanted",
		           "%s is in this shell's environment: all that is started here is recorded", entry);
		return;
	}
	if (slash != NULL && access(entry, R_OK) != 0)
		doctor_add(doctor, DOCTOR_NOTE, "LD_PRELOAD", "correct it",
		           "%s cannot be read: the loader says so at every start", entry);
	for (size_t i = 0; i < sizeof(recorders) / sizeof(recorders[0]); i++) {
		if (strstr(name, recorders[i]) != NULL)
			doctor_add(doctor, DOCTOR_PROBLEM, "LD_PRELOAD", "record with one of the two",
			           "%s records allocations too, and would see ours", entry);
	}
}

/* The library looks at names that begin as its own do, and says so of those: others nobody reads. */
static void
check_names(struct doctor *doctor)
{
	for (char **variable = environ; *variable != NULL; variable++) {
		if (strncasecmp(*variable, "kmem", 4) == 0 && strncmp(*variable, "KMEMSHIM_", 9) != 0)
			doctor_add(doctor, DOCTOR_NOTE, "environment", "correct it, where it was meant for kmemshim",
			           "%.*s is no setting: theirs begin with KMEMSHIM_", (int)strcspn(*variable, "="), *variable);
	}
}

static void
check_environment(struct doctor *doctor)
{
	const char *preload = getenv("LD_PRELOAD");
	char *list = memory_text(preload != NULL ? preload : "");
	char *save;

	for (char *entry = strtok_r(list, " :", &save); entry != NULL; entry = strtok_r(NULL, " :", &save))
		check_preloaded(doctor, entry);
	free(list);
	check_names(doctor);
}

void
doctor_check_place(struct doctor *doctor, const char *folder, bool is_named)
{
	struct fail fail;

	if (launcher_find_shim(doctor->shim, &fail)) {
		doctor_add(doctor, DOCTOR_OK, doctor->shim, "", "is the library");
	} else {
		doctor->shim[0] = '\0';
		doctor_add(doctor, DOCTOR_PROBLEM, "library", "", "%s", fail.text);
	}
	check_folder(doctor, folder, is_named);
	check_limits(doctor);
	check_environment(doctor);
}
