/*
 * kill_counters.c - reads the kernel's counters of kills for memory.
 *
 * Version 2 counts the limit's hits and "oom" at the cgroup that owns the limit, and the kill ("oom_kill") at the
 * victim's own, summed upward; version 1 counts kills at the victim's own alone. /proc/vmstat counts the machine's.
 *
 * When failing  see kill_counters.h.
 */
#include "capture/kill_counters.h"

#include <stdbool.h>
#include <string.h>

#include "base/memory.h"
#include "base/read_each.h"

/*
 * Beside the limit itself, which oom_score_adj adds to what a look holds, the kernel counts pages of files for a program, also those that are charged
 * to nobody or to another cgroup.
 */
#define MANY_FILES_BYTES (UINT64_C(64) << 20)

static uint64_t
number_in(const char *folder, const char *file, const char *name)
{
	return folder[0] == '/' ? read_number(TEXT(KMEM_TEXT_BYTES + 64, "%s/%s", folder, file), name) : UINT64_MAX;
}

void
kill_counters_read(const struct kmem_identity *identity, struct kmem_kill_counters *counters)
{
	const char *own = identity->cgroup_path;
	const char *owner = identity->limit_path[0] != '\0' ? identity->limit_path : own;

	*counters = (struct kmem_kill_counters){ UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX };
	if (identity->cgroup_version == 2) {
		counters->cgroup_oom_kill = number_in(own, "memory.events", "oom_kill");
		counters->cgroup_oom = number_in(owner, "memory.events", "oom");
		counters->cgroup_max_hits = number_in(owner, "memory.events", "max");
	} else if (identity->cgroup_version == 1) {
		counters->cgroup_oom_kill = number_in(own, "memory.oom_control", "oom_kill");
		counters->cgroup_oom = 0;
		counters->cgroup_max_hits = number_in(owner, "memory.failcnt", NULL);
	}
	counters->machine_oom_kill = number_in("/proc", "vmstat", "oom_kill");
}

/* Is the group of its own, or one that it lies in up to the owner of the limit? */
static bool
are_killed_together(const struct kmem_identity *identity, const char *owner)
{
	char *slash;

	char *folder = TEXT(KMEM_TEXT_BYTES, "%s", identity->cgroup_path);
	do {
		if (number_in(folder, "memory.oom.group", NULL) == 1)
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

	if (version != 1 && version != 2)
		return UINT64_MAX;

	uint64_t limit = number_in(owner, names[version][0], NULL);
	uint64_t used = number_in(owner, names[version][1], NULL);

	if (limit == UINT64_MAX || used == UINT64_MAX ||
	    (file_bytes < MANY_FILES_BYTES && (version != 2 || !are_killed_together(identity, owner))))
		return UINT64_MAX;
	for (size_t i = 2; i < 4; i++) {
		uint64_t bytes = number_in(owner, "memory.stat", names[version][i]);

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
