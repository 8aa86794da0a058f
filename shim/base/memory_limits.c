/*
 * memory_limits.c - which limits could end this process, and how close is it now (see memory_limits.h)?
 *
 * A cgroup may be limited by itself or by any ancestor: the smallest limit up to the mount's root is the one in force, and its
 * folder is remembered. Version 1 and 2 differ in names only.
 */
#include "base/memory_limits.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include "base/diag.h"
#include "base/raw_sys.h"
#include "base/wait_lock.h"
#include "kmem_words.h"

#define CGROUP_ROOT_V1 "/sys/fs/cgroup/memory"
#define CGROUP_ROOT_V2 "/sys/fs/cgroup"
#define NOW_TEXT_BYTES 640               // of /proc/meminfo to SwapFree; the stack may be small
#define UNLIMITED_V1 (UINT64_C(1) << 62) // version 1 says "none" with a number near 2^63

static size_t
read_all(int fd, char *buffer, size_t size)
{
	size_t length = 0;
	ssize_t got;

	while (fd >= 0 && length < size - 1 && (got = raw_read(fd, buffer + length, size - 1 - length)) > 0)
		length += (size_t)got;
	if (fd >= 0)
		raw_close(fd);
	buffer[length] = '\0';
	return length;
}

size_t
memory_limits_read_file(const char *path, char *buffer, size_t size)
{
	return read_all(raw_open(path, O_RDONLY | O_CLOEXEC, 0), buffer, size);
}

/* One descriptor at a time: the program may need every other. The names are put together where the text will be: the stack may be small. */
static size_t
read_in(const char *folder, const char *file, char *buffer, size_t size)
{
	if (strlen(folder) + 1 + strlen(file) < size) {
		diag_format(buffer, size, "%s/%s", folder, file);
		return read_all(raw_open(buffer, O_RDONLY | O_CLOEXEC, 0), buffer, size);
	}

	int folder_fd = raw_open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	size_t length = 0;

	buffer[0] = '\0';
	if (folder_fd < 0)
		return 0;
	length = read_all((int)raw_syscall(SYS_openat, folder_fd, file, O_RDONLY | O_CLOEXEC, 0), buffer, size);
	raw_close(folder_fd);
	return length;
}

static bool
parse_number(const char *text, uint64_t *number)
{
	*number = 0;
	while (*text == ' ' || *text == '\t')
		text++;
	if (*text < '0' || *text > '9')
		return false;
	for (; *text >= '0' && *text <= '9'; text++)
		*number = *number * 10 + (uint64_t)(*text - '0');
	return true;
}

/* The number behind a name at the start of a line; `none` when there is no such line. */
static uint64_t
named_number(const char *text, const char *name, uint64_t none)
{
	size_t length = strlen(name);
	uint64_t number;

	for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, length) == 0 && parse_number(line + length, &number))
			return number;
	}
	return none;
}

static uint64_t
file_number(const char *folder, const char *file, uint64_t none)
{
	char text[320]; // its name first
	uint64_t number;

	return read_in(folder, file, text, sizeof(text)) != 0 && parse_number(text, &number) ? number : none;
}

static uint64_t
file_named_number(const char *folder, const char *file, const char *name)
{
	static char text[2048]; // see memory_limits_read()

	if (read_in(folder, file, text, sizeof(text)) == 0)
		return UINT64_MAX;
	return named_number(text, name, UINT64_MAX);
}

/* "max" and version 1's huge number are no limit. */
static uint64_t
cgroup_limit(const char *folder, uint32_t version)
{
	uint64_t bytes = file_number(folder, version == 2 ? "memory.max" : "memory.limit_in_bytes", UINT64_MAX);

	return bytes < UNLIMITED_V1 ? bytes : UINT64_MAX;
}

static void
add_limit(struct kmem_identity *identity, uint32_t kind, uint64_t bytes)
{
	for (unsigned i = 0; i < KMEM_LIMITS_MAX; i++) {
		if (identity->limits[i].kind == KMEM_LIMIT_NONE) {
			identity->limits[i] = (struct kmem_limit){ .kind = kind, .bytes = bytes };
			return;
		}
	}
}

/* ---- a process that is moved ---- */

#define FOLLOW_NS UINT64_C(5000000000)
#define MOVES_MAX 3u

/*
 * Where the limit is after a move. Each move fills a place of its own: who reads one that is no longer the last reads a whole text.
 *
 * Invariants:
 *   M1  only who holds the lock fills a place, finds a cgroup, or changes `seen` and `moves`.
 *   M2  a place does not change once `moved_to` has led to it.
 */
static char moved_folders[MOVES_MAX][KMEM_TEXT_BYTES];
static const char *_Atomic moved_to; // NULL = it is where it began
static unsigned moves;
static uint32_t seen;                 // checksum of /proc/self/cgroup at the last look; 0 = there was none
static _Atomic uint64_t next_look_ns; // relaxed: who sees an old one looks once more
static struct wait_lock lock;

static const char *
limit_folder(const struct kmem_identity *identity)
{
	// acquire: the text. Pairs with find_move()
	const char *folder = atomic_load_explicit(&moved_to, memory_order_acquire);

	return folder != NULL ? folder : identity->limit_path;
}

/* This process's folder and its limit, from the line of /proc/self/cgroup with the memory controller (v1) or "0::" (v2). */
static bool
find_cgroup(struct kmem_identity *identity, const char *cgroups, const char *root, uint32_t version)
{
	const char *mark = version == 1 ? ":memory:" : "0::";
	const char *found = strstr(cgroups, mark);
	static char path[KMEM_TEXT_BYTES];

	if (found == NULL)
		return false;
	found += strlen(mark);

	size_t length = strcspn(found, "\n");

	if (length >= sizeof(path) - 64)
		return false;
	memcpy(path, found, length);
	path[length] = '\0';

	/* Inside a container the path may be the host's: then the mount's root is ours. */
	diag_format(identity->cgroup_path, sizeof(identity->cgroup_path), "%s%s", root, strcmp(path, "/") == 0 ? "" : path);
	const char *usage = version == 2 ? "memory.current" : "memory.usage_in_bytes";
	bool has_usage = file_number(identity->cgroup_path, usage, UINT64_MAX) != UINT64_MAX;
	if (!has_usage) {
		diag_format(identity->cgroup_path, sizeof(identity->cgroup_path), "%s", root);
		has_usage = file_number(root, usage, UINT64_MAX) != UINT64_MAX;
	}
	if (!has_usage && cgroup_limit(root, version) == UINT64_MAX) {
		identity->cgroup_path[0] = '\0';
		return false;
	}
	identity->cgroup_version = version;

	/* The owner of the limit: the nearest folder with the smallest one. */
	static char folder[KMEM_TEXT_BYTES];
	uint64_t smallest = UINT64_MAX;
	diag_format(folder, sizeof(folder), "%s", identity->cgroup_path);
	diag_format(identity->limit_path, sizeof(identity->limit_path), "%s", identity->cgroup_path);
	for (;;) {
		uint64_t bytes = cgroup_limit(folder, version);
		char *slash = strrchr(folder, '/');

		if (bytes < smallest) {
			smallest = bytes;
			diag_format(identity->limit_path, sizeof(identity->limit_path), "%s", folder);
		}
		if (strlen(folder) <= strlen(root) || slash == NULL)
			break;
		*slash = '\0';
	}
	add_limit(identity, KMEM_LIMIT_CGROUP, smallest);
	return true;
}

static void
read_kill_counters(const struct kmem_identity *identity, struct kmem_kill_counters *counters)
{
	bool is_v2 = identity->cgroup_version == 2;
	const char *folder = identity->cgroup_path;

	*counters = (struct kmem_kill_counters){ UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX };
	if (identity->cgroup_version != 0) {
		counters->cgroup_oom_kill = file_named_number(folder, is_v2 ? "memory.events" : "memory.oom_control",
		                                              "oom_kill ");
		counters->cgroup_oom = is_v2 ? file_named_number(identity->limit_path, "memory.events", "oom ") : 0;
		counters->cgroup_max_hits = is_v2 ? file_named_number(identity->limit_path, "memory.events", "max ")
		                                  : file_number(folder, "memory.failcnt", UINT64_MAX);
	}
	static char text[16384];
	if (memory_limits_read_file("/proc/vmstat", text, sizeof(text)) != 0)
		counters->machine_oom_kill = named_number(text, "oom_kill ", UINT64_MAX);
}

static void
read_rlimit(struct kmem_identity *identity, uint32_t kind, __rlimit_resource_t resource)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		add_limit(identity, kind, limit.rlim_cur);
}

/* Texts are static: read once, while nothing else runs here, perhaps on a small stack. */
void
memory_limits_read(struct kmem_identity *identity)
{
	static char text[4096];
	struct statvfs shm;

	if (memory_limits_read_file("/proc/meminfo", text, sizeof(text)) != 0) {
		identity->machine_bytes = named_number(text, "MemTotal:", 0) << 10;
		identity->swap_bytes = named_number(text, "SwapTotal:", 0) << 10;
	}
	if (memory_limits_read_file("/proc/self/cgroup", text, sizeof(text)) != 0 &&
	    !find_cgroup(identity, text, CGROUP_ROOT_V1, 1))
		find_cgroup(identity, text, CGROUP_ROOT_V2, 2);
	/* Of the parent, in a forked child. relaxed: nothing else runs here, see above. */
	seen = 0;
	moves = 0;
	atomic_store_explicit(&moved_to, NULL, memory_order_relaxed);
	atomic_store_explicit(&next_look_ns, 0, memory_order_relaxed);
	if (identity->machine_bytes != 0)
		add_limit(identity, KMEM_LIMIT_MACHINE, identity->machine_bytes);
	read_rlimit(identity, KMEM_LIMIT_ADDRESS_SPACE, RLIMIT_AS);
	read_rlimit(identity, KMEM_LIMIT_DATA, RLIMIT_DATA);
	if (statvfs("/dev/shm", &shm) == 0)
		identity->shm_bytes = (uint64_t)shm.f_blocks * shm.f_frsize;
	identity->overcommit_mode = (uint32_t)file_number("/proc/sys/vm", "overcommit_memory", 0);
	read_kill_counters(identity, &identity->before);
}

/* Fills the next place. False: it is where it began, or its limit cannot be found. Holds the lock. */
static bool
find_move(const struct kmem_identity *identity, const char *cgroups)
{
	static struct kmem_identity found; // but for two texts nothing of it is used
	char *place = moved_folders[moves];

	memset(found.limits, 0, sizeof(found.limits));
	if (!find_cgroup(&found, cgroups, identity->cgroup_version == 1 ? CGROUP_ROOT_V1 : CGROUP_ROOT_V2,
	                 identity->cgroup_version) ||
	    (moves == 0 && strcmp(found.cgroup_path, identity->cgroup_path) == 0))
		return false;
	diag_format(place, KMEM_TEXT_BYTES, "%s", found.limit_path);
	moves++;
	// release: the text before what leads to it. Pairs with limit_folder()
	atomic_store_explicit(&moved_to, place, memory_order_release);
	return true;
}

bool
memory_limits_follow(const struct kmem_identity *identity, uint64_t now_ns)
{
	uint64_t at_ns = atomic_load_explicit(&next_look_ns, memory_order_relaxed);
	char text[NOW_TEXT_BYTES];
	bool has_moved = false;

	if (identity->cgroup_version == 0 || now_ns < at_ns)
		return false;
	atomic_store_explicit(&next_look_ns, now_ns + FOLLOW_NS, memory_order_relaxed);
	if (at_ns == 0) // short programs do not pay for it
		return false;
	if (!wait_lock_take(&lock))
		return false;

	size_t length = memory_limits_read_file("/proc/self/cgroup", text, sizeof(text));
	uint32_t is = kmem_checksum(0, text, length);

	if (length != 0 && length < sizeof(text) - 1 && is != seen) {
		seen = is;
		has_moved = moves < MOVES_MAX && find_move(identity, text);
	}
	wait_lock_give(&lock);
	return has_moved;
}

/* UINT64_MAX stays what it is: unknown. */
static uint64_t
kib(uint64_t number)
{
	return number != UINT64_MAX ? number << 10 : UINT64_MAX;
}

static void
read_statm(const struct kmem_identity *identity, uint64_t *space_bytes, uint64_t *resident_bytes)
{
	char text[128];
	size_t length = memory_limits_read_file("/proc/self/statm", text, sizeof(text));
	const char *second = length != 0 ? strchr(text, ' ') : NULL;
	uint64_t pages;

	*space_bytes = second != NULL && parse_number(text, &pages) ? pages * identity->page_bytes : 0;
	*resident_bytes = second != NULL && parse_number(second, &pages) ? pages * identity->page_bytes : 0;
}

uint64_t
memory_limits_resident(const struct kmem_identity *identity)
{
	uint64_t space_bytes, resident_bytes;

	read_statm(identity, &space_bytes, &resident_bytes);
	return resident_bytes;
}

uint64_t
memory_limits_faulted(const struct kmem_identity *identity)
{
	struct rusage usage;

	if (raw_syscall(SYS_getrusage, RUSAGE_SELF, &usage) != 0)
		return 0;
	return (uint64_t)usage.ru_minflt * identity->page_bytes;
}

void
memory_limits_read_container(const struct kmem_identity *identity, char *text, size_t bytes, struct kmem_container *now)
{
	bool is_v2 = identity->cgroup_version == 2;

	*now = (struct kmem_container){ 0 };
	if (identity->cgroup_version == 0 || read_in(limit_folder(identity), "memory.stat", text, bytes) == 0)
		return;
	now->anonymous_bytes = named_number(text, is_v2 ? "anon " : "total_rss ", 0);
	now->memory_files_bytes = named_number(text, is_v2 ? "shmem " : "total_shmem ", 0);
	now->cached_bytes = named_number(text, is_v2 ? "inactive_file " : "total_inactive_file ", 0) +
	                    named_number(text, is_v2 ? "active_file " : "total_active_file ", 0);
}

uint64_t
memory_limits_space(void)
{
	struct rlimit limit;

	if (!raw_sys_may_call() || raw_syscall(SYS_prlimit64, 0, RLIMIT_AS, NULL, &limit) != 0 ||
	    limit.rlim_cur == RLIM_INFINITY)
		return 0;
	return limit.rlim_cur;
}

void
memory_limits_read_now(const struct kmem_identity *identity, struct memory_limits_now *now)
{
	bool is_v2 = identity->cgroup_version == 2;
	uint64_t own_bytes = raw_reserved_bytes();
	uint64_t space_limit = memory_limits_space();
	char text[NOW_TEXT_BYTES];

	*now = (struct memory_limits_now){ .limit_bytes = UINT64_MAX, .available_bytes = UINT64_MAX };
	read_statm(identity, &now->space_bytes, &now->resident_bytes);
	now->space_bytes -= own_bytes < now->space_bytes ? own_bytes : now->space_bytes;
	now->space_limit_bytes = space_limit > own_bytes ? space_limit - own_bytes : 0;
	if (identity->cgroup_version != 0) {
		const char *folder = limit_folder(identity);

		now->cgroup_bytes = file_number(folder, is_v2 ? "memory.current" : "memory.usage_in_bytes", 0);
		now->limit_bytes = cgroup_limit(folder, identity->cgroup_version);
	}
	if (memory_limits_read_file("/proc/meminfo", text, sizeof(text)) != 0) {
		now->available_bytes = kib(named_number(text, "MemAvailable:", UINT64_MAX));
		now->swap_free_bytes = named_number(text, "SwapFree:", 0) << 10;
	}
	if (identity->machine_bytes != 0 && identity->machine_bytes < now->limit_bytes)
		now->limit_bytes = identity->machine_bytes;
}
