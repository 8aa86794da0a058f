/*
 * kill_counters.c - reads the kernel's counters of kills for memory.
 *
 * Version 2 counts the limit's hits and "oom" at the cgroup that owns the limit, and the kill ("oom_kill") at the
 * victim's own, summed upward; version 1 counts kills at the victim's own alone. /proc/vmstat counts the machine's.
 *
 * When failing  see kill_counters.h.
 */
#include "capture/kill_counters.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/*
 * Beside the limit itself, which oom_score_adj adds to what a look holds, the kernel counts pages of files for a program, also those that are charged
 * to nobody or to another cgroup.
 */
#define MANY_FILES_BYTES (UINT64_C(64) << 20)

/* The number after `name` at the start of a line; with name NULL the file is one number. */
static uint64_t
read_number(const char *folder, const char *file, const char *name)
{
	char path[KMEM_TEXT_BYTES + 64];
	char line[256];
	uint64_t value = UINT64_MAX;
	size_t name_length = name != NULL ? strlen(name) : 0;
	FILE *stream;

	if (folder[0] != '/')
		return UINT64_MAX;
	(void)snprintf(path, sizeof(path), "%s/%s", folder, file);
	stream = fopen(path, "re");
	if (stream == NULL)
		return UINT64_MAX;
	while (fgets(line, sizeof(line), stream) != NULL) {
		if (name != NULL && (strncmp(line, name, name_length) != 0 || line[name_length] != ' '))
			continue;
		if (sscanf(line + name_length, "%" SCNu64, &value) != 1)
			value = UINT64_MAX;
		break;
	}
	(void)fclose(stream);
	return value;
}

void
kill_counters_read(const struct kmem_identity *identity, struct kmem_kill_counters *counters)
{
	const char *own = identity->cgroup_path;
	const char *owner = identity->limit_path[0] != '\0' ? identity->limit_path : own;

	*counters = (struct kmem_kill_counters){ UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX };
	if (identity->cgroup_version == 2) {
		counters->cgroup_oom_kill = read_number(own, "memory.events", "oom_kill");
		counters->cgroup_oom = read_number(owner, "memory.events", "oom");
		counters->cgroup_max_hits = read_number(owner, "memory.events", "max");
	} else if (identity->cgroup_version == 1) {
		counters->cgroup_oom_kill = read_number(own, "memory.oom_control", "oom_kill");
		counters->cgroup_oom = 0;
		counters->cgroup_max_hits = read_number(owner, "memory.failcnt", NULL);
	}
	counters->machine_oom_kill = read_number("/proc", "vmstat", "oom_kill");
}

/* Is the group of its own, or one that it lies in up to the owner of the limit? */
static bool
are_killed_together(const struct kmem_identity *identity, const char *owner)
{
	char folder[KMEM_TEXT_BYTES];
	char *slash;

	(void)snprintf(folder, sizeof(folder), "%s", identity->cgroup_path);
	do {
		if (read_number(folder, "memory.oom.group", NULL) == 1)
			return true;
		slash = strcmp(folder, owner) != 0 ? strrchr(folder, '/') : NULL;
		if (slash != NULL)
			*slash = '\0';
	} while (slash != NULL);
	return false;
}

uint64_t
kill_counters_room_of_all(const struct kmem_identity *identity, uint64_t file_bytes)
{
	static const char *const names[][4] = {
		[1] = { "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", "total_active_file" },
		[2] = { "memory.max", "memory.current", "inactive_file", "active_file" },
	};
	const char *owner = identity->limit_path[0] != '\0' ? identity->limit_path : identity->cgroup_path;
	uint32_t version = identity->cgroup_version;
	uint64_t limit;
	uint64_t used;

	if (version != 1 && version != 2)
		return UINT64_MAX;
	limit = read_number(owner, names[version][0], NULL);
	used = read_number(owner, names[version][1], NULL);
	if (limit == UINT64_MAX || used == UINT64_MAX ||
	    (file_bytes < MANY_FILES_BYTES && (version != 2 || !are_killed_together(identity, owner))))
		return UINT64_MAX;
	for (size_t i = 2; i < 4; i++) {
		uint64_t bytes = read_number(owner, "memory.stat", names[version][i]);

		used -= bytes == UINT64_MAX ? 0 : bytes < used ? bytes : used;
	}
	return limit > used ? limit - used : 0;
}

static void
leave_out(uint64_t *after, uint64_t before, uint64_t kills)
{
	uint64_t counted = *after != UINT64_MAX && before != UINT64_MAX && *after > before ? *after - before : 0;

	*after -= kills < counted ? kills : counted;
}

void
kill_counters_leave_out(struct kmem_kill_counters *after, const struct kmem_kill_counters *before, uint64_t kills)
{
	leave_out(&after->cgroup_oom_kill, before->cgroup_oom_kill, kills);
	leave_out(&after->machine_oom_kill, before->machine_oom_kill, kills);
}
