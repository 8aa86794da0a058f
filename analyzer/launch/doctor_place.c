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
	{ TMPFS_MAGIC, DOCTOR_NOTE, "is in memory (tmpfs): captures count toward the memory limit",
	  "choose a folder on a disk with -o" },
	{ RAMFS_MAGIC, DOCTOR_NOTE, "is in memory (ramfs): captures count toward the memory limit",
	  "choose a folder on a disk with -o" },
	{ NFS_SUPER_MAGIC, DOCTOR_NOTE, "is on NFS: if the machine fails, the newest data is lost",
	  "choose a local folder with -o" },
	{ SMB2_SUPER_MAGIC, DOCTOR_NOTE, "is on a network share: mapped files may not work there",
	  "choose a local folder with -o" },
	{ CIFS_SUPER_MAGIC, DOCTOR_NOTE, "is on a network share: mapped files may not work there",
	  "choose a local folder with -o" },
	{ V9FS_MAGIC, DOCTOR_NOTE, "is on 9p: mapped files may not work there", "choose a local folder with -o" },
	{ FUSE_SUPER_MAGIC, DOCTOR_NOTE, "is on a FUSE file system: mapped files may be slow there",
	  "choose a local folder with -o" },
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
		doctor_add(doctor, DOCTOR_NOTE, doctor->folder, "choose a folder of your own with -o",
		           "belongs to %s, who can replace and delete your captures", owner_text(owner, owner_name));
	bool is_known = statfs(doctor->folder, &system) == 0;
	int error = errno;

	if (!is_known) {
		doctor_add(doctor, DOCTOR_NOTE, doctor->folder, "make sure that " ROOM_NEEDED_TEXT " are free",
		           "can hold captures, but its free space is unknown (%s)", strerror(error));
		return;
	}
	room = system.f_bavail * (uint64_t)system.f_bsize;
	for (size_t i = 0; i < sizeof(file_systems) / sizeof(file_systems[0]); i++) {
		if ((unsigned long)system.f_type == file_systems[i].type)
			doctor_add(doctor, file_systems[i].level, doctor->folder, file_systems[i].next, "%s", file_systems[i].what);
	}
	if (room < ROOM_NEEDED)
		doctor_add(doctor, DOCTOR_PROBLEM, doctor->folder, "free some space, or choose another folder with -o",
		           "has only %s free", units_bytes(room, text));
	else
		doctor_add(doctor, DOCTOR_OK, doctor->folder, "", "can hold captures, %s are free", units_bytes(room, text));
}

static void
check_limits(struct doctor *doctor)
{
	char text[UNITS_TEXT_BYTES];
	struct rlimit limit;

	if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		doctor_add(doctor, DOCTOR_NOTE, "ulimit -v",
		           "raise it while recording, or the program may reach it earlier than usual",
		           "the address space is limited to %s, and recording uses a part of it",
		           units_bytes(limit.rlim_cur, text));
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < ROOM_NEEDED)
		doctor_add(doctor, DOCTOR_PROBLEM, "ulimit -f", "ulimit -f unlimited",
		           "files are limited to %s: captures would be cut off there", units_bytes(limit.rlim_cur, text));
}

static void
check_preloaded(struct doctor *doctor, const char *entry)
{
	const char *slash = strrchr(entry, '/');
	const char *name = slash != NULL ? slash + 1 : entry;

	if (strcmp(name, "libkmemshim.so") == 0) {
		doctor_add(doctor, DOCTOR_NOTE, "LD_PRELOAD", "if you do not want that, unset LD_PRELOAD",
		           "%s is set in this shell: every program that you start here is recorded", entry);
		return;
	}
	if (slash != NULL && access(entry, R_OK) != 0)
		doctor_add(doctor, DOCTOR_NOTE, "LD_PRELOAD", "correct the path",
		           "%s cannot be read: the loader prints an error at every start", entry);
	for (size_t i = 0; i < sizeof(recorders) / sizeof(recorders[0]); i++) {
		if (strstr(name, recorders[i]) != NULL)
			doctor_add(doctor, DOCTOR_PROBLEM, "LD_PRELOAD", "use only one of the two",
			           "%s records allocations too, and would record those of kmemshim", entry);
	}
}

/* The library looks at names that begin as its own do, and says so of those: others nobody reads. */
static void
check_names(struct doctor *doctor)
{
	for (char **variable = environ; *variable != NULL; variable++) {
		if (strncasecmp(*variable, "kmem", 4) == 0 && strncmp(*variable, "KMEMSHIM_", 9) != 0)
			doctor_add(doctor, DOCTOR_NOTE, "environment", "if it is meant for kmemshim, correct its name",
			           "%.*s is not a setting of kmemshim: their names begin with KMEMSHIM_",
			           (int)strcspn(*variable, "="), *variable);
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
		doctor_add(doctor, DOCTOR_OK, doctor->shim, "", "found the recording library");
	} else {
		doctor->shim[0] = '\0';
		doctor_add(doctor, DOCTOR_PROBLEM, "library", "", "%s", fail.text);
	}
	check_folder(doctor, folder, is_named);
	check_limits(doctor);
	check_environment(doctor);
}
