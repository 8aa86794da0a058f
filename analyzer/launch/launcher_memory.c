/* launcher_memory.c - see launcher_memory.h. */
#include "launch/launcher_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/read_each.h"
#include "base/regular_file.h"
#include "base/text_start.h"
#include "capture/capture_memory.h"
#include "capture/process_alive.h"

#define SHARED_MEMORY "/dev/shm"
#define ROOM_BYTES ((uint64_t)256 << 20)
#define ROOM_SHARE 4               // of it, that must be free
#define HELD_MAX 256               // open files
#define FOLDER_MODE 0711           // a program that becomes another user finds its file there
#define OUTERMOST_PIDS 0xeffffffcu // the machine's own namespace: PROC_PID_INIT_INO of linux/proc_ns.h
#define CGROUP_ROOT "/sys/fs/cgroup"

struct held {
	char *name;
	int file;
	bool is_gone; // copied, or removed by its process
};

enum moment { BETWEEN, ENDING, OVER };

static const char *captures;
static char memory[PATH_MAX]; // "": nothing lies in memory
static struct held *held;
static size_t held_count;

/* ---- is it a place that outlives a death? ---- */

/* Does pid 1 see the same tmpfs there? It does not where a job of a cluster has one of its own. */
static bool
is_machines(dev_t device)
{
	const char *wanted = TEXT(32, " %u:%u ", major(device), minor(device));
	struct stat pids;

	if (stat("/proc/self/ns/pid", &pids) != 0 || pids.st_ino != OUTERMOST_PIDS)
		return false;
	EACH_LINE (line, "/proc/1/mountinfo") {
		if (strstr(line, wanted) != NULL && strstr(line, " " SHARED_MEMORY " ") != NULL)
			return true;
	}
	return false;
}

/* Are we killed with the program when memory is full? */
static bool
is_killed_together(void)
{
	EACH_LINE (line, "/proc/self/cgroup") {
		char *folder = TEXT(PATH_MAX + 32, CGROUP_ROOT "%s", line + strlen("0::"));

		for (; text_starts(line, "0::/") && strlen(folder) >= strlen(CGROUP_ROOT); *strrchr(folder, '/') = '\0') {
			if (read_number(TEXT(PATH_MAX + 64, "%s/memory.oom.group", folder), NULL) == 1)
				return true;
		}
	}
	return false;
}

static bool
is_in_memory(const char *folder)
{
	struct statfs system;

	return statfs(folder, &system) == 0 && (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC);
}

const char *
launcher_memory_why_not(const char *folder)
{
	struct statfs room;
	struct stat place;

	if (is_in_memory(folder))
		return NULL;
	if (!is_in_memory(SHARED_MEMORY) || statfs(SHARED_MEMORY, &room) != 0 || stat(SHARED_MEMORY, &place) != 0)
		return "there is no " SHARED_MEMORY;
	if (access(SHARED_MEMORY, W_OK | X_OK) != 0)
		return SHARED_MEMORY " cannot be written";
	uint64_t free_bytes = (uint64_t)room.f_bavail * (uint64_t)room.f_bsize;

	if (free_bytes < ROOM_BYTES || room.f_bavail < room.f_blocks / ROOM_SHARE)
		return SHARED_MEMORY " has little room";
	if (!is_machines(place.st_dev) && is_killed_together())
		return "this container is killed as a whole (memory.oom.group)";
	return NULL;
}

/* ---- the captures ---- */

int
launcher_memory_open(const char *name)
{
	int file = -1;

	for (size_t i = 0; i < held_count && file < 0; i++) { // somebody may have removed its name
		if (strcmp(held[i].name, name) == 0)
			file = fcntl(held[i].file, F_DUPFD_CLOEXEC, 0);
	}
	if (file < 0 && memory[0] != '\0')
		file = regular_file_open(TEXT(PATH_MAX + 256, "%s/%s", memory, name), O_RDWR | O_NOFOLLOW, NULL);
	return file;
}

static void
hold(const char *name)
{
	for (size_t i = 0; i < held_count; i++) {
		if (strcmp(held[i].name, name) == 0)
			return;
	}
	if (held_count == HELD_MAX)
		return;

	int file = launcher_memory_open(name);

	if (file < 0)
		return;
	*MEMORY_NEXT(held, held_count) = (struct held){ .name = memory_text(name), .file = file };
}

static void
hold_all(void)
{
	EACH_NAME (name, memory) {
		if (name[0] != '.')
			hold(name);
	}
}

/* What has no identity yet has just begun, or ended as it began: its name has its pid. */
static bool
is_running(const struct held *capture, bool is_over)
{
	struct kmem_identity identity;
	const char *dot = strrchr(capture->name, '.');
	char pid[24] = "";

	if (capture_memory_identity(capture->file, &identity))
		return process_is_hidden(&identity) || process_is_alive(&identity);
	for (unsigned fields = 0; dot != NULL && fields < 2; fields++) { // of NAME.PID.START.kmem
		do
			dot = dot > capture->name ? dot - 1 : NULL;
		while (dot != NULL && *dot != '.');
	}
	(void)snprintf(pid, sizeof(pid), "%.*s", dot != NULL ? (int)strspn(dot + 1, "0123456789") : 0,
	               dot != NULL ? dot + 1 : "");
	return !is_over || !process_is_dead(pid);
}

static void
look_at(struct held *capture, enum moment moment)
{
	const char *path = TEXT(PATH_MAX + 256, "%s/%s", captures, capture->name);
	struct stat status;

	/* A process removes a small one of its own; somebody may not want it. */
	bool is_wanted = lstat(path, &status) == 0;

	if (is_running(capture, moment == OVER)) {
		if (is_wanted && moment == ENDING)
			(void)capture_memory_copy(path, capture->file);
		capture->is_gone = !is_wanted && fstat(capture->file, &status) == 0 && status.st_nlink == 0;
	} else if (!is_wanted || capture_memory_copy(path, capture->file)) { // else the link stays
		(void)unlink(TEXT(PATH_MAX + 256, "%s/%s", memory, capture->name));
		capture->is_gone = true;
	}
}

/* Those of which nothing is left to do make room for others. */
static void
let_go(void)
{
	size_t left = 0;

	for (size_t i = 0; i < held_count; i++) {
		if (!held[i].is_gone) {
			held[left++] = held[i];
			continue;
		}
		(void)close(held[i].file);
		free(held[i].name);
	}
	held_count = left;
}

static void
look(enum moment moment)
{
	size_t before;

	if (memory[0] == '\0')
		return;
	do { // until there are no more than can be held
		hold_all();
		before = held_count;
		for (size_t i = 0; i < held_count; i++)
			look_at(&held[i], moment);
		let_go();
	} while (before == HELD_MAX && held_count < HELD_MAX);
}

void
launcher_memory_look(bool is_ending)
{
	look(is_ending ? ENDING : BETWEEN);
}

const char *
launcher_memory_begin(const char *folder)
{
	captures = folder;
	memory[0] = '\0';
	if (folder == NULL || is_in_memory(folder) || launcher_memory_why_not(folder) != NULL)
		return NULL;
	capture_memory_sweep();
	(void)snprintf(memory, sizeof(memory), CAPTURE_MEMORY_FOLDERS "%llx.%ld", (unsigned long long)clock_monotonic_ns(),
	               (long)getpid());
	if (mkdir(memory, FOLDER_MODE) != 0)
		memory[0] = '\0';
	else
		(void)chmod(memory, FOLDER_MODE); // whatever the umask is
	if (memory[0] != '\0')
		(void)!symlink(captures,
		               TEXT(PATH_MAX + 16, "%s/" CAPTURE_MEMORY_OWNER, memory)); // without it nobody sweeps here
	return memory[0] != '\0' ? memory : NULL;
}

void
launcher_memory_end(void)
{
	look(OVER);
	for (size_t i = 0; i < held_count; i++)
		held[i].is_gone = true;
	let_go();
	if (memory[0] != '\0')
		capture_memory_leave(memory);
	memory[0] = '\0';
}
