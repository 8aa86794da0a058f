/*
 * launcher_pipe.c - a line of text to the launcher (see launcher_pipe.h).
 *
 * Invariant, tested by number in tests/unit/shim/periodic/test_launcher_pipe.c:
 *   L1  below an eighth of the limit, or with less than 32 MiB left, nobody is asked; above it once for each eighth that is added.
 */
#include "periodic/launcher_pipe.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/diag.h"
#include "base/raw_sys.h"
#include "base/settings.h"
#include "base/wait_lock.h"
#include "capture/capture_file.h"
#include "kmem_words.h"
#include "record/tracker.h"

#define PART 8                            // of the limit
#define NEEDED_BYTES (UINT64_C(32) << 20) // that a look takes

static char path[4096 + 64];        // "" = there is none
static _Atomic uint64_t next_bytes; // live, at which a look may be due; relaxed: it guards nothing
static _Atomic bool has_tracer;     // that the program named; relaxed: it guards nothing
static struct wait_lock room_lock;

/* The name of the pipe has the time at which the launcher was started. */
void
launcher_pipe_start(const char *folder)
{
	char session[sizeof(capture_file_header()->identity.session)];

	if (folder[0] == '\0')
		return;
	memcpy(session, capture_file_header()->identity.session, sizeof(session));
	session[sizeof(session) - 1] = '\0';
	session[strcspn(session, ".")] = '\0';
	diag_format(path, sizeof(path), KMEM_GUARD_PIPE, folder, session);
}

void
launcher_pipe_forked(void)
{
	atomic_store_explicit(&next_bytes, 0, memory_order_relaxed);
	atomic_store_explicit(&has_tracer, false, memory_order_relaxed); // the kernel's word is of the parent
}

void
launcher_pipe_names_tracer(bool is_any)
{
	atomic_store_explicit(&has_tracer, is_any, memory_order_relaxed);
}

/* -1 = there is none, or what lies there is no pipe of ours: others may write in the folder. */
static int
open_pipe(int flags)
{
	int fd = path[0] != '\0' ? raw_open(path, flags | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC, 0) : -1;
	struct stat status;

	if (fd < 0 ||
	    (raw_fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode) && status.st_uid == (uid_t)raw_syscall(SYS_geteuid)))
		return fd;
	raw_close(fd);
	return -1;
}

/* Opened for both ends: writing to a pipe that nobody reads would send a signal. */
bool
launcher_pipe_tell(bool is_trial, uint64_t limit_bytes)
{
	char text[40];
	unsigned pid = capture_file_header()->identity.pid;
	size_t length = limit_bytes != 0 ? diag_format(text, sizeof(text), "%u %lu\n", pid, (unsigned long)limit_bytes)
	                                 : diag_format(text, sizeof(text), "%u\n", pid);
	int probe = open_pipe(O_WRONLY);
	int both = probe >= 0 ? open_pipe(O_RDWR) : -1;
	bool is_told = both >= 0 && (is_trial || raw_syscall(SYS_write, both, text, length) == (long)length);

	if (both >= 0)
		raw_close(both);
	if (probe >= 0)
		raw_close(probe);
	return is_told;
}

/* One at a time: the section has room for one, and a second thread would find that the capture cannot grow. */
static bool
make_room(void)
{
	uint32_t index;

	if (!wait_lock_take(&room_lock))
		return false;

	bool has_room = capture_file_count(KMEM_SECTION_HOLDERS) != 0 ||
	                (!capture_file_is_large(0) &&
	                 capture_file_append_sparing(KMEM_SECTION_HOLDERS, 2 * KMEM_HOLDERS_BYTES, 0, &index) != NULL);
	wait_lock_give(&room_lock);
	return has_room;
}

/* Without Yama the call fails, and nobody needs it. */
void
launcher_pipe_let_look(uint64_t pid)
{
	if (!atomic_load_explicit(&has_tracer, memory_order_relaxed) && raw_sys_may_call())
		(void)raw_syscall(SYS_prctl, PR_SET_PTRACER, pid != 0 ? pid : settings.looker_pid, 0, 0, 0);
}

/* The launcher writes what it finds into our capture: there must be room. */
void
launcher_pipe_ask_for_look(uint64_t limit_bytes)
{
	if (settings.looker_pid == 0 || !launcher_pipe_tell(true, 0) || !make_room())
		return;
	launcher_pipe_let_look(0);
	(void)launcher_pipe_tell(false, limit_bytes);
}

static bool
has_memory(const struct memory_limits_now *now)
{
	char text[1024]; // of cgroups of version 1 that is too short: there nobody looks where files fill the memory
	uint64_t left_bytes = now->limit_bytes > now->cgroup_bytes ? now->limit_bytes - now->cgroup_bytes : 0;
	struct kmem_container charged = { 0 };

	if (now->cgroup_bytes != 0 && left_bytes < NEEDED_BYTES)
		memory_limits_read_container(&capture_file_header()->identity, text, sizeof(text), &charged);
	left_bytes += charged.cached_bytes;
	return left_bytes >= NEEDED_BYTES && now->available_bytes >= NEEDED_BYTES;
}

static bool
may_ask(void)
{
	return settings.looker_pid != 0 && atomic_load_explicit(tracker_state, memory_order_relaxed) == TRACKER_ON &&
	       raw_sys_may_call() && atomic_load_explicit(&capture_file_header()->is_finalizing, memory_order_relaxed) == 0;
}

void
launcher_pipe_beat(const struct memory_limits_now *now, uint64_t live_bytes)
{
	uint64_t machine_bytes = capture_file_header()->identity.machine_bytes;
	uint64_t limit_bytes = now->limit_bytes < machine_bytes ? now->limit_bytes : machine_bytes;
	uint64_t space_bytes = now->space_limit_bytes;
	uint64_t next = atomic_load_explicit(&next_bytes, memory_order_relaxed);

	if (space_bytes != 0 && (space_bytes < limit_bytes || limit_bytes == 0))
		limit_bytes = space_bytes;
	else if (now->resident_bytes != 0 && now->resident_bytes < live_bytes)
		live_bytes = now->resident_bytes; // what was never touched fills no memory: with it the first look would be the last one
	if (limit_bytes != 0 && live_bytes >= limit_bytes / PART && live_bytes >= next && may_ask() && has_memory(now) &&
	    atomic_compare_exchange_strong_explicit(&next_bytes, &next, live_bytes + live_bytes / PART,
	                                            memory_order_relaxed, memory_order_relaxed))
		launcher_pipe_ask_for_look(limit_bytes);
}
