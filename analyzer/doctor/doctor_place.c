/*
 * doctor_place.c - the library, and the folder of captures: see doctor.h.
 */
#include "doctor/doctor.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/owner.h"
#include "base/regular_file.h"
#include "base/units.h"
#include "launch/launcher.h"
#include "launch/launcher_memory.h"
#include "launch/program.h"

#define ROOM_NEEDED_TEXT "64 MiB"

static const struct {
	unsigned long type;
	const char *what;
	const char *next;
	bool is_mapped; // said where captures are mapped there: not where they lie in memory
} file_systems[] = {
	{ TMPFS_MAGIC, "is in memory (tmpfs): captures count toward the memory limit", "choose a folder on a disk with -o",
	  false },
	{ RAMFS_MAGIC, "is in memory (ramfs): captures count toward the memory limit", "choose a folder on a disk with -o",
	  false },
	{ NFS_SUPER_MAGIC, "is on NFS: if the machine fails, the newest data is lost", "choose a local folder with -o",
	  true },
	{ SMB2_SUPER_MAGIC, "is on a network share: mapped files may not work there", "choose a local folder with -o",
	  true },
	{ CIFS_SUPER_MAGIC, "is on a network share: mapped files may not work there", "choose a local folder with -o",
	  true },
	{ V9FS_MAGIC, "is on 9p: mapped files may not work there", "choose a local folder with -o", true },
	{ OVERLAYFS_SUPER_MAGIC, "is in the container's own layer (overlay): captures go when the container is removed",
	  "choose a folder on a volume with -o", false },
	{ FUSE_SUPER_MAGIC, "is on a FUSE file system: mapped files may be slow there", "choose a local folder with -o",
	  true },
};

static void
find_present(const char *folder, char present[PATH_MAX])
{
	OWNED char *path = memory_text(folder);

	while (realpath(path, present) == NULL) {
		char *slash = strrchr(path, '/');

		if (slash == NULL || slash == path) {
			(void)realpath(slash == NULL ? "." : "/", present);
			break;
		}
		*slash = '\0';
	}
}

void
doctor_leave_place(const struct doctor *doctor)
{
	size_t length = strcmp(doctor->present, "/") == 0 ? 0 : strlen(doctor->present);
	OWNED char *path = memory_text(doctor->folder);

	/* With ".." in its name it may lie elsewhere. */
	while (strncmp(path, doctor->present, length) == 0 && path[length] == '/' && rmdir(path) == 0)
		*strrchr(path, '/') = '\0';
}

/* Why a file cannot get the room that is needed; NULL = it can, or nobody knows before. A quota shows in no other way. */
static const char *
try_room(int file)
{
	void (*before)(int) = signal(SIGXFSZ, SIG_IGN); // of ulimit -f, which is a finding of its own
	int error = fallocate(file, 0, 0, (off_t)DOCTOR_ROOM_NEEDED) != 0 ? errno : 0;

	(void)signal(SIGXFSZ, before);
	if (error == EDQUOT)
		return "has no room for " ROOM_NEEDED_TEXT ": your quota there is used up";
	return error == ENOSPC ? "has no room for " ROOM_NEEDED_TEXT " that you may use" : NULL;
}

/* As the library does it: a file that is mapped, and written through the mapping. */
static bool
try_mapping(int file)
{
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);

	if (ftruncate(file, (off_t)bytes) != 0)
		return false;

	void *mapping = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	if (mapping == MAP_FAILED)
		return false;
	(void)munmap(mapping, bytes);
	return true;
}

/* False and a finding: captures cannot be written there as they must be. */
static bool
try_file(struct doctor *doctor, bool is_in_memory)
{
	const char *trouble;
	bool is_well = false;

	const char *path = TEXT(PATH_MAX + 40, "%s/.doctor.%ld", doctor->folder, (long)getpid());
	OWNED_FILE int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (file < 0)
		return true; // the trial run will say why
	(void)unlink(path);
	if (!try_mapping(file))
		doctor_add(doctor, DOCTOR_PROBLEM, doctor->folder, "choose a folder on a local disk with -o",
		           "files cannot be mapped for writing there (%s): nothing would be recorded", strerror(errno));
	else if (!is_in_memory && (trouble = try_room(file)) != NULL)
		doctor_add(doctor, DOCTOR_PROBLEM, doctor->folder, "free some space, or choose another folder with -o", "%s",
		           trouble);
	else
		is_well = true;
	return is_well;
}

static void
check_folder(struct doctor *doctor, const char *named)
{
	bool is_named;
	const char *folder = launcher_folder(named, &is_named);
	struct statfs system;
	struct fail fail;
	uid_t owner;

	find_present(folder, doctor->present);
	if (!launcher_make_folder(named, doctor->folder, &fail)) {
		doctor->folder[0] = '\0';
		doctor_add(doctor, DOCTOR_PROBLEM, "captures", "", "%s", fail.text);
		return;
	}
	if (owner_is_anothers(folder, &owner))
		doctor_add(doctor, DOCTOR_NOTE, doctor->folder, "choose a folder of your own with -o",
		           "belongs to %s: that user can replace and delete your captures", owner_text(owner, OWNER_ROOM));
	bool is_known = statfs(doctor->folder, &system) == 0;
	int error = errno;

	if (!is_known) {
		doctor_add(doctor, DOCTOR_NOTE, doctor->folder, "make sure that " ROOM_NEEDED_TEXT " are free",
		           "can hold captures, but its free space is unknown (%s)", strerror(error));
		return;
	}
	const char *why_mapped = launcher_memory_why_not(doctor->folder);

	uint64_t room = system.f_bavail * (uint64_t)system.f_bsize;

	for (size_t i = 0; i < sizeof(file_systems) / sizeof(file_systems[0]); i++) {
		if ((unsigned long)system.f_type == file_systems[i].type && !(file_systems[i].is_mapped && why_mapped == NULL))
			doctor_add(doctor, DOCTOR_NOTE, doctor->folder, file_systems[i].next, "%s", file_systems[i].what);
	}
	if (why_mapped != NULL)
		doctor_add(doctor, DOCTOR_NOTE, doctor->folder,
		           "nothing where malloc may wait for a slow disk; else choose a local disk, or a tmpfs, with -o",
		           "captures lie on this disk while their programs run, and now and then a malloc waits for it: %s",
		           why_mapped);
	if (room < DOCTOR_ROOM_NEEDED)
		doctor_add(doctor, DOCTOR_PROBLEM, doctor->folder, "free some space, or choose another folder with -o",
		           "has only %s free", UNITS_BYTES(room));
	else if (try_file(doctor, system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC))
		doctor_add(doctor, DOCTOR_OK, doctor->folder, "", "can hold captures, %s are free", UNITS_BYTES(room));
}

static bool
is_elf(const char *path)
{
	char head[SELFMAG] = "";
	OWNED_FILE int file = regular_file_open(path, O_RDONLY, NULL);
	bool is_read = file >= 0 && read(file, head, sizeof(head)) == (ssize_t)sizeof(head);

	return is_read && memcmp(head, ELFMAG, sizeof(head)) == 0;
}

/* A wheel's command is started by a script, in a folder of pip's that need not be in PATH. */
static void
check_command(struct doctor *doctor)
{
	static const char inside_wheel[] = "/kmemshim/native/bin/kmemshim";
	char self[PATH_MAX];
	char found[PATH_MAX];
	char path[PATH_MAX];
	size_t tail = sizeof(inside_wheel) - 1;
	char next[PATH_MAX + 120];

	program_own(self);

	size_t length = strlen(self);

	if (!program_find("kmemshim", found)) {
		if (length <= tail || strcmp(self + length - tail, inside_wheel) != 0)
			return;
		*strrchr(self, '/') = '\0';
		(void)snprintf(next, sizeof(next), "write `python3 -m kmemshim`, or `export PATH=\"$PATH:%s\"`", self);
		doctor_add(doctor, DOCTOR_NOTE, "PATH", next, "has no command kmemshim: pip's folder of scripts is not in it");
	} else if (realpath(found, path) != NULL && strcmp(path, self) != 0 && is_elf(path)) {
		doctor_add(doctor, DOCTOR_NOTE, "PATH", "remove one of the two, or name the other by its path",
		           "its kmemshim is that of another installation, %s; this one is %s", found, self);
	}
}

void
doctor_check_place(struct doctor *doctor, const char *named)
{
	struct fail fail;

	if (launcher_find_shim(NULL, doctor->shim, &fail)) {
		doctor_add(doctor, DOCTOR_OK, doctor->shim, "", "found the recording library");
	} else {
		doctor->shim[0] = '\0';
		doctor_add(doctor, DOCTOR_PROBLEM, "library", "", "%s", fail.text);
	}
	check_command(doctor);
	check_folder(doctor, named);
}
