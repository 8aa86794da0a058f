/*
 * doctor_container.c - how much of the machine does the container, or the service, leave to a program? See doctor.h.
 *
 * A limit of a cgroup holds for all below it: the smallest up to the root is in force. Version 1 and 2 differ in names.
 */
#include "base/memory.h"
#include "base/read_each.h"
#include "doctor/doctor.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/units.h"

#define CGROUP_ROOT "/sys/fs/cgroup"
#define PIDS_FEW 512 // thread pools of numeric libraries make one for each processor, each process anew
#define SHM_SHARE 8  // of the memory that there is; the kernel's own default is a half
#define UNLIMITED (UINT64_C(1) << 62) // version 1 says "none" with a number near 2^63

/* The number in a file; UINT64_MAX = "max", or it cannot be read. */
static uint64_t
number_in(const char *folder, const char *name)
{
	uint64_t number = read_number(TEXT(PATH_MAX + 64, "%s/%s", folder, name), NULL);

	return number < UNLIMITED ? number : UINT64_MAX;
}

/* The smallest of this folder and those above it, and which that is. */
static uint64_t
find_smallest(const char *folder, const char *name, char owner[PATH_MAX])
{
	uint64_t smallest = UINT64_MAX;

	char *path = TEXT(PATH_MAX, "%s", folder);
	for (char *slash; (slash = strrchr(path, '/')) != NULL; *slash = '\0') {
		uint64_t number = number_in(path, name);

		if (number < smallest) {
			smallest = number;
			(void)snprintf(owner, PATH_MAX, "%s", path);
		}
	}
	return smallest;
}

static void
check_memory(struct doctor *doctor, const struct kmem_identity *identity, uint64_t limit, uint64_t space_limit)
{
	bool is_parents = strcmp(identity->limit_path, identity->cgroup_path) != 0;

	if (limit < identity->machine_bytes)
		doctor_add(
			doctor, DOCTOR_NOTE, "memory limit",
			"raise it (docker run --memory, resources.limits.memory, MemoryMax=), or the program must do with it",
			"%s of the machine's %s, set by the cgroup %s%s", UNITS_BYTES(limit), UNITS_BYTES(identity->machine_bytes),
			identity->limit_path, is_parents ? ", above this process's own: all below it share that" : "");
	else if (space_limit != UINT64_MAX)
		doctor_add(doctor, DOCTOR_OK, "memory limit", "", "none but %s of addresses (ulimit -v) and the machine's %s",
		           UNITS_BYTES(space_limit), UNITS_BYTES(identity->machine_bytes));
	else
		doctor_add(doctor, DOCTOR_OK, "memory limit", "", "none but the machine's %s",
		           UNITS_BYTES(identity->machine_bytes));
}

static void
check_swap(struct doctor *doctor, const struct kmem_identity *identity, uint64_t memory_limit)
{
	char owner[PATH_MAX];
	uint64_t limit;

	if (identity->swap_bytes == 0)
		return; // there is nothing to be limited
	if (identity->cgroup_version == 2) {
		limit = find_smallest(identity->cgroup_path, "memory.swap.max", owner);
	} else {
		limit = find_smallest(identity->cgroup_path, "memory.memsw.limit_in_bytes", owner); // memory and swap together
		if (limit != UINT64_MAX)
			limit = limit > memory_limit ? limit - memory_limit : 0;
	}
	if (limit < identity->swap_bytes)
		doctor_add(
			doctor, DOCTOR_NOTE, "swap limit",
			"raise it (docker run --memory-swap), or leave it: a program that swaps becomes slow before it is killed",
			"%s of the machine's %s, set by the cgroup %s", UNITS_BYTES(limit), UNITS_BYTES(identity->swap_bytes),
			owner);
}

/* Its size counts toward the memory limit as it fills, so it may be smaller, but not by so much that batches do not fit. */
static void
check_shared_memory(struct doctor *doctor, const struct kmem_identity *identity, uint64_t memory_limit)
{
	struct statvfs shm;

	if (identity->shm_bytes == 0 || statvfs("/dev/shm", &shm) != 0)
		doctor_add(doctor, DOCTOR_NOTE, "/dev/shm", "mount a tmpfs there (docker run --shm-size)",
		           "is not there: DataLoader's workers and other processes cannot share memory");
	else if (identity->shm_bytes < memory_limit / SHM_SHARE)
		doctor_add(doctor, DOCTOR_NOTE, "/dev/shm",
		           "enlarge it (docker run --shm-size 1g; in Kubernetes an emptyDir with medium: Memory)",
		           "has room for %s, %s of it free: DataLoader's workers pass their batches through it",
		           UNITS_BYTES(identity->shm_bytes), UNITS_BYTES(shm.f_bavail * (uint64_t)shm.f_frsize));
}

/* "/sys/fs/cgroup/pids/docker/X" from the line "8:pids:/docker/X"; with version 2 it is the folder of the memory. */
static void
find_pids_folder(const struct kmem_identity *identity, char folder[PATH_MAX])
{
	static const char mark[] = ":pids:";

	(void)snprintf(folder, PATH_MAX, "%s", identity->cgroup_version == 1 ? CGROUP_ROOT "/pids" : identity->cgroup_path);
	EACH_LINE (line, "/proc/self/cgroup") {
		const char *found = strstr(line, mark);

		if (found != NULL && identity->cgroup_version == 1)
			(void)snprintf(folder, PATH_MAX, CGROUP_ROOT "/pids%s", found + sizeof(mark) - 1);
	}
	/* Inside a container the path may be the host's. */
	if (identity->cgroup_version == 1 && access(folder, F_OK) != 0)
		(void)snprintf(folder, PATH_MAX, "%s", CGROUP_ROOT "/pids");
}

static void
check_pids(struct doctor *doctor, const struct kmem_identity *identity)
{
	char folder[PATH_MAX];
	char owner[PATH_MAX];

	find_pids_folder(identity, folder);

	uint64_t limit = find_smallest(folder, "pids.max", owner);
	uint64_t used = limit != UINT64_MAX ? number_in(owner, "pids.current") : UINT64_MAX;

	if (limit != UINT64_MAX && used != UINT64_MAX && (used >= limit || limit - used < PIDS_FEW))
		doctor_add(
			doctor, DOCTOR_NOTE, "process limit",
			"raise it (docker run --pids-limit, TasksMax=), or start fewer workers and threads (OMP_NUM_THREADS)",
			"%" PRIu64 " processes and threads, %" PRIu64 " of them in use, set by the cgroup %s", limit, used, owner);
}

void
doctor_check_container(struct doctor *doctor, const struct kmem_identity *identity)
{
	uint64_t limit = UINT64_MAX;
	uint64_t space_limit = UINT64_MAX;

	for (unsigned i = 0; i < KMEM_LIMITS_MAX; i++) {
		if (identity->limits[i].kind == KMEM_LIMIT_CGROUP)
			limit = identity->limits[i].bytes;
		if (identity->limits[i].kind == KMEM_LIMIT_ADDRESS_SPACE)
			space_limit = identity->limits[i].bytes;
	}
	check_memory(doctor, identity, limit, space_limit);
	if (identity->cgroup_version != 0) {
		check_swap(doctor, identity, limit);
		check_pids(doctor, identity);
	}
	check_shared_memory(doctor, identity, limit < identity->machine_bytes ? limit : identity->machine_bytes);
}
