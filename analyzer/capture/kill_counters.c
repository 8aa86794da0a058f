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
#include <stdio.h>
#include <string.h>

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
