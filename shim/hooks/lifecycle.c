/*
 * lifecycle.c - start, fork, exec and exit of recording (see lifecycle.h).
 *
 * Invariants, tested in tests/preload:
 *   L1  a forked child never writes its parent's capture: its state word is 0 (the kernel wipes the page), so its first event
 *       starts it anew; until then nothing is recorded.
 *   L2  a vfork child never ends, removes or marks the capture: its pid is not the one that started it.
 *   L3  after the end nothing is recorded, whatever threads still run.
 */
#include "hooks/lifecycle.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/capture_life.h"
#include "base/clock.h"
#include "base/checked_memory.h"
#include "base/diag.h"
#include "base/raw_sys.h"
#include "base/real_libc.h"
#include "base/reentry_guard.h"
#include "base/settings.h"
#include "base/turn.h"
#include "capture/capture_disk.h"
#include "capture/capture_file.h"
#include "gpu/real_cuda.h"
#include "gpu/tracker_devices.h"
#include "hooks/hooks_python.h"
#include "hooks/hooks_python_end.h"
#include "hooks/hooks_signal.h"
#include "hooks/abandoned_captures.h"
#include "kmem_words.h"
#include "moments/exit_figures.h"
#include "moments/history.h"
#include "moments/marks.h"
#include "moments/other_limits.h"
#include "moments/phases.h"
#include "periodic/cached_names.h"
#include "periodic/heartbeat.h"
#include "periodic/inherited.h"
#include "periodic/launcher_pipe.h"
#include "periodic/memory_guard.h"
#include "periodic/object_census.h"
#include "periodic/process_identity.h"
#include "periodic/resident.h"
#include "periodic/unhooked_allocator.h"
#include "python/python_frames.h"
#include "record/beat_due.h"
#include "record/heap_samples.h"
#include "record/teardown.h"
#include "record/tracker.h"
#include "record/tracker_library.h"
#include "sites/callbacks.h"
#include "sites/module_map.h"
#include "sites/site_table.h"
#include "sites/steps.h"
#include "sites/thread_slot.h"
#include "sites/thread_start.h"
#include "sites/work_items.h"
#include "tables/pointer_map.h"
#include "unwind/native_stack.h"

// a process that never held this much may leave no file; its file is made at half of it
#define SMALL_BYTES ((uint64_t)1 << 20)
#define DEFAULT_FOLDER "kmemshim.out"
#define BEGINNINGS_MAX 4096 // 128 KiB of libc's lists

extern char **environ;

__thread bool lifecycle_fork_ends_parent __attribute__((tls_model("initial-exec")));

static bool has_started;
static bool is_over;
static _Atomic bool has_main_begun;
// relaxed: a forked child that goes on with its parent's handlers has nothing to tell
static _Atomic bool has_exit_begun;
static uint32_t owner_pid;
static char folder[4096];
static struct kmem_identity identity; // assembled here, then copied into the capture

static bool is_session_untold; // to children that this process will start
static bool is_refused;        // there is no file for the capture, and that was said; children know
static bool is_quiet;          // the first process has said it
static bool is_removed;        // the capture of a small image, which is being replaced; a failed exec brings it back

/* True in a program that has confined itself, which may not ask: its children are not recorded, and vfork's keep L2 themselves. */
static bool
is_owner(void)
{
	return !raw_sys_may_call() || owner_pid == (uint32_t)raw_syscall(SYS_getpid);
}

/* How large a capture may become by default: most is a hundred times smaller, and it counts as the program's memory. */
static uint64_t
capture_share(void)
{
	const uint64_t least = UINT64_C(32) << 20;
	uint64_t limit = UINT64_MAX;

	for (unsigned i = 0; i < KMEM_LIMITS_MAX && identity.limits[i].kind != KMEM_LIMIT_NONE; i++) {
		if (identity.limits[i].bytes < limit)
			limit = identity.limits[i].bytes;
	}
	return limit / 16 > least ? limit / 16 : least;
}

/* The first process could write there and this one cannot: this one has given up rights, or has no room of its own. */
static void
say_refused(int error)
{
	diag_level = DIAG_WARN;
	diag_warn("%s: process %u cannot write a capture here (%s); it and its children are not recorded%s", folder,
	          identity.pid, strerrorname_np(error),
	          error == EACCES || error == EPERM ? "; set KMEMSHIM_OUT to a folder that its user can write to" : "");
	diag_level = DIAG_QUIET;
}

/* Makes the capture. Where that was put off, it gets what has been recorded so far. */
static void
make_capture(bool make(const char *folder, const char *name))
{
	char name[160];

	process_identity_read_more(&identity);
	if (settings.capture_max == 0)
		settings.capture_max = capture_share();
	process_identity_name(&identity, identity.pid, identity.start_ticks, name, sizeof(name));
	if (!make(folder, name)) {
		if (is_quiet && !is_refused)
			say_refused(errno);
		is_refused = true;
	}
}

static void
store_identity(void)
{
	memcpy(&capture_file_header()->identity, &identity, sizeof(identity));
	capture_file_identified();
}

/*
 * Most descendants are small, and leave nothing: their file is made when the first heartbeat is due, when a request is refused, a thread
 * begins, or rights are given up; what was recorded until then goes into it. It is not put off where the folder takes no file: that is
 * to be said.
 */
static bool
puts_off(void)
{
	return identity.is_first == 0 && !is_refused && process_identity_static_bytes() < SMALL_BYTES &&
	       raw_syscall(SYS_faccessat, AT_FDCWD, folder, W_OK | X_OK) == 0 && capture_file_put_off();
}

static void
open_capture(bool is_forked, uint32_t parent_pid)
{
	process_identity_read(&identity);
	identity.is_forked = is_forked;
	identity.forked_from = parent_pid;
	if (is_forked)
		identity.is_first = 0;
	owner_pid = identity.pid;
	is_refused = is_refused || (settings.session != NULL && strstr(settings.session, SETTINGS_SESSION_REFUSED) != NULL);
	is_quiet = is_quiet || ((identity.is_first == 0 || is_refused) && diag_level == DIAG_WARN);
	if (is_quiet)
		diag_level = DIAG_QUIET;
	bool is_put_off = puts_off();
	if (!is_put_off)
		make_capture(capture_file_open);

	struct kmem_header *header = capture_file_header();

	capture_file_name_domains();
	header->generation_clock = 1;
	header->exit_code = -1;
	if (is_forked)
		inherited_store();
	store_identity();
	atomic_store_explicit(&header->state, KMEM_STATE_RUNNING, memory_order_release); // all of the above first
	if (is_put_off)
		beat_due_wait_for(SMALL_BYTES / 2);
	else
		heartbeat_take(0);
}

/* It takes a descriptor for a moment, which no other thread can miss: there is none. */
void
lifecycle_needs_file(void)
{
	int host_errno = errno;

	if (!capture_file_is_put_off() || !is_owner() || !raw_sys_may_call())
		return;
	make_capture(capture_file_make);
	store_identity();
	errno = host_errno;
}

/* The folder of captures as an absolute path: children may change their directory. */
static void
choose_folder(void)
{
	static char here[sizeof(folder) / 2];
	const char *wanted = settings.out != NULL ? settings.out : DEFAULT_FOLDER;

	if (*wanted != '/' && raw_syscall(SYS_getcwd, here, sizeof(here)) <= 0)
		diag_format(here, sizeof(here), ".");
	if (diag_format(folder, sizeof(folder), "%s%s%s", here, *wanted == '/' ? "" : "/", wanted) == sizeof(folder) - 1)
		folder[0] = '\0'; // too long: better none than another one
}

/*
 * A folder of another user's that was not named may have been put there for us to write into. The owner of a folder that was named can
 * replace what is written there; for a running session somebody has accepted that.
 */
static void
mind_owner(void)
{
	uint32_t owner;

	if (!capture_disk_is_anothers(folder, &owner))
		return;
	if (settings.out == NULL) {
		if (settings.session == NULL)
			diag_warn("%s: belongs to user %u; nothing is recorded; set KMEMSHIM_OUT to this folder or to another one",
			          folder, owner);
		is_refused = true;
		folder[0] = '\0';
	} else if (settings.session == NULL) {
		diag_warn("%s: belongs to user %u: that user can replace and remove the captures", folder, owner);
	}
}

/* Kept for forked children, too: the environment may be overwritten (setproctitle). */
static void
keep_session(void)
{
	static char session[sizeof(identity.session) + sizeof(SETTINGS_SESSION_MARKS)];

	diag_format(session, sizeof(session), "%s%s%s", identity.session, is_refused ? SETTINGS_SESSION_REFUSED : "",
	            settings.is_private ? SETTINGS_SESSION_PRIVATE : "");
	is_session_untold = settings.session == NULL || is_refused || settings.is_private;
	settings.session = session;
}

static void
tell_children(void)
{
	if (folder[0] != '\0' && (settings.out == NULL || *settings.out != '/'))
		setenv("KMEMSHIM_OUT", folder, 1);
	if (is_session_untold)
		setenv("KMEMSHIM_SESSION", settings.session, 1);
}

static void
move_state_to_wiped_page(void)
{
	_Atomic uint32_t *page = raw_reserve(KMEM_OWN_OTHER, 4096, PROT_READ | PROT_WRITE);

	if (page == NULL)
		return;
	if (raw_madvise((void *)page, 4096, MADV_WIPEONFORK) != 0) { // then the fork handler alone has to do it
		raw_unreserve((void *)page, 4096);
		return;
	}
	atomic_store_explicit(page, TRACKER_BUSY, memory_order_relaxed);
	tracker_state = page;
}

static void
before_fork(void)
{
	range_map_lock();
	capture_file_growth_lock();
	inherited_gather();
	abandoned_captures_prepare();
}

static void
after_fork_in_parent(void)
{
	inherited_forked_parent();
	capture_file_growth_unlock();
	range_map_unlock();
	abandoned_captures_remove(folder, &identity);
	if (lifecycle_fork_ends_parent)
		lifecycle_end(0);
}

static void
after_fork_in_child(void)
{
	capture_file_growth_unlock();
	range_map_unlock();
	heap_samples_anew();
	turn_forked(); // of operator new, which may be asked for before anything is recorded
	if (!reentry_guard_is_outside())
		capture_file_privatize(); // forked by a signal handler that interrupted a hook, which will go on here
	if (!is_over && !is_owner())  // else another library's handler, before this one, has started it
		atomic_store_explicit(tracker_state, TRACKER_ASLEEP, memory_order_relaxed); // one thread; also without wiping
}

/* A forked child that was asleep all its life must not start recording when libc frees its lists of handlers. */
static void
end_of_handlers(int exit_code)
{
	lifecycle_end(exit_code);
	if (atomic_load_explicit(tracker_state, memory_order_relaxed) == TRACKER_ASLEEP)
		is_over = true; // L3
}

static void
at_exit(int status, void *unused)
{
	(void)unused;
	end_of_handlers(status & 0xff);
}

static void
at_quick_exit_end(void)
{
	end_of_handlers(-1); // the status is not told
}

/*
 * Is it a setuid program, or one with file capabilities? Its environment is another user's, who may not make it write folders and files.
 * LD_PRELOAD does not reach such a program; /etc/ld.so.preload does.
 */
static bool
is_privileged(void)
{
	return getauxval(AT_SECURE) != 0;
}

/* Kernels for aarch64 may have larger pages. Calls that work by the page would be refused there, or affect neighbours. */
static bool
has_known_pages(void)
{
	unsigned long page_bytes = getauxval(AT_PAGESZ);

	if (page_bytes == CHECKED_PAGE_BYTES)
		return true;
	diag_warn(
		"this kernel has pages of %lu bytes, and kmemshim knows those of %u: nothing is recorded; record on a kernel with 4 KiB pages",
		page_bytes, (unsigned)CHECKED_PAGE_BYTES);
	return false;
}

static bool
start(void)
{
	has_started = true;
	if (is_privileged() || process_identity_is_our_own_command()) {
		is_over = true;
		return false;
	}
	diag_start();
	settings_parse(environ);
	if (!has_known_pages()) {
		is_over = true;
		return false;
	}
	bool may_speak = diag_level != DIAG_QUIET;
	choose_folder();
	mind_owner();
	move_state_to_wiped_page();
	pointer_map_start(real_libc_heap_is_glibc());
	open_capture(false, 0);
	peak_is_exact = settings.exact;
	if (settings.is_private)
		capture_file_note(KMEM_NOTE_PRIVATE
		                  ": arguments, texts of cells, and folders that no symbols are in were left out");
	reentry_guard_start();
	reentry_guard_on_left = tracker_hook_left;
	thread_slot_start();
	native_stack_start();
	python_frames_start();
	teardown_start();
	hooks_python_start();
	hooks_python_end_start(lifecycle_exit_begins);
	hooks_signal_start();
	(void)dlerror(); // what our look-ups did not find is no message for the program
	(void)dlerror();
	keep_session();
	launcher_pipe_start(folder);
	memory_guard_start(may_speak, identity.is_first != 0);
	diag_debug("recording process %u to %s", owner_pid, folder);
	return true;
}

static void
start_in_child(void)
{
	uint32_t parent_pid = owner_pid;

	turn_forked();
	inherited_forked_child();
	capture_file_forked();
	tracker_library_clear();
	tracker_clear();
	thread_start_forked();
	other_limits_forked();
	work_items_forked();
	resident_forked();
	launcher_pipe_forked();
	memory_guard_forked();
	marks_forked();
	history_forked();
	steps_forked();
	open_capture(true, parent_pid);
	hooks_signal_start();
	module_map_forked(); // these tell the new capture what they know
	python_frames_forked();
	hooks_python_forked();
	object_census_forked();
	cached_names_forked();
}

void
lifecycle_loses_folder(void)
{
	folder[0] = '\0';
}

static void
sample_before_python_ends(void)
{
	other_limits_look(); // files are closed from here on
	object_census_take(true);
	resident_take(NULL, 0);
	hooks_python_ends();
}

static bool
lifecycle_wake(void)
{
	uint32_t asleep = TRACKER_ASLEEP;
	int host_errno = errno;

	/*
	 * Without environ libc is not initialised: ld.so's own first requests pass untracked. Where the real functions are not found, this
	 * is a mapping made by an allocator inside the program, which may hold its locks; a start would allocate.
	 */
	if (is_over || !reentry_guard_is_outside() || (!has_started && environ == NULL) || !real_libc_is_found())
		return false;
	/* acquire on failure: another thread may have completed the start just now. Pairs with the release below. */
	if (!atomic_compare_exchange_strong_explicit(tracker_state, &asleep, TRACKER_BUSY, memory_order_acquire,
	                                             memory_order_acquire))
		return asleep == TRACKER_ON;
	if (!reentry_guard_enter_as(REENTRY_GUARD_OWN_WORK))
		return false;
	bool is_on = true;
	if (!has_started)
		is_on = start();
	else if (raw_sys_may_call() && folder[0] != '\0')
		start_in_child();
	else
		is_on = false;
	reentry_guard_leave();
	errno = host_errno;
	if (is_on && settings.sample_bytes != 0) {
		pointer_map_expect_few_aside();
		if (!python_frames_available())
			heap_samples_start(settings.sample_bytes);
		atomic_store_explicit(&capture_file_header()->heap_sample_bytes, kmem_twice((uint32_t)settings.sample_bytes),
		                      memory_order_relaxed);
	}
	// a complete start first
	atomic_store_explicit(tracker_state, is_on ? TRACKER_ON : TRACKER_OFF, memory_order_release);
	return is_on;
}

const struct record_callbacks record_callbacks = {
	.wake = lifecycle_wake,
	.needs_file = lifecycle_needs_file,
	.python_arrived = hooks_python_arrived,
	.beat = heartbeat_take,
	.guard_allows = memory_guard_allows,
	.library_due = tracker_library_sample,
	.python_ends = sample_before_python_ends,
	.tensors_kept = tracker_tensors_kept,
};

/*
 * Not to be done where recording starts: that may be in a request of these very functions, under their lock. Libraries whose
 * constructors ran before have registered their handlers already; the loader runs these before ours all the same.
 */
static void
register_with_libc(void)
{
	if (is_over || !reentry_guard_enter_as(REENTRY_GUARD_OWN_WORK))
		return;
	on_exit(at_exit, NULL);
	at_quick_exit(at_quick_exit_end);
	pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
	if (tracker_is_awake())
		tell_children();
	reentry_guard_leave();
}

__attribute__((constructor)) static void
construct(void)
{
	int host_errno = errno;

	real_libc_find();
	if (tracker_is_on())
		unhooked_allocator_tell();
	register_with_libc();
	errno = host_errno;
}

static void
tell_of_cuda(void)
{
	if (resident_saw_cuda_driver() && !real_cuda_was_seen())
		capture_file_note(
			"the CUDA driver is loaded, but no call for device memory was seen. There was none, or it came from a library "
			"whose calls cannot be seen (opened with RTLD_DEEPBIND, or in a namespace of its own)");
}

/* Is the capture one that nobody would ask for: little memory, and no refused request? */
static bool
is_small(void)
{
	return inherited_own_peak_bytes() < SMALL_BYTES &&
	       atomic_load_explicit(&capture_file_header()->failed_count, memory_order_relaxed) == 0;
}

static void
sample_last(void)
{
	static struct site_totals totals[KMEM_DOMAINS_MAX];

	inherited_totals_now(totals);
	if (atomic_load_explicit(&capture_file_header()->is_finalizing, memory_order_relaxed) == 0) {
		if (!exit_figures_stand()) {
			object_census_take(true);
			resident_take(NULL, 0);
		}
		tell_of_cuda();
		other_limits_look();
	}
#define LIVE(domain) totals[domain].live_bytes
	heartbeat_take(KMEM_HOST_DOMAINS(LIVE));
}

void
lifecycle_exit_begins(void)
{
	int host_errno = errno;

	if (is_over || atomic_load_explicit(tracker_state, memory_order_relaxed) != TRACKER_ON || !is_owner() ||
	    !reentry_guard_enter_as(REENTRY_GUARD_OWN_WORK))
		return;
	if (!atomic_exchange_explicit(&has_exit_begun, true, memory_order_relaxed) &&
	    (identity.is_first != 0 || !is_small()) &&
	    atomic_load_explicit(&capture_file_header()->is_finalizing, memory_order_relaxed) == 0) {
		other_limits_look();
		cached_names_look(true);
		history_exit();
		exit_figures_take();
		if (exit_figures_stand()) { // not where nothing was taken
			object_census_take(true);
			resident_take(NULL, 0);
		}
	}
	reentry_guard_leave();
	errno = host_errno;
}

static void
at_exit_beginning(int status, void *unused)
{
	(void)status;
	(void)unused;
	lifecycle_exit_begins();
}

/*
 * Handlers that run last are registered first, so ours is added behind each of the program's: libc's own functions that end the program
 * (err, error, the end of the last thread) do not come through our exit(). Libraries that come and go take their handlers with them, and
 * ours stay: so there is a bound.
 */
static void
add_beginning(void)
{
	static _Atomic uint32_t count; // relaxed: a bound

	if (atomic_fetch_add_explicit(&count, 1, memory_order_relaxed) < BEGINNINGS_MAX)
		real_libc.on_exit(at_exit_beginning, NULL);
}

void
lifecycle_main_begins(void)
{
	int host_errno = errno;

	if (is_over || !reentry_guard_enter_as(REENTRY_GUARD_OWN_WORK))
		return;
	add_beginning();
	atomic_store_explicit(&has_main_begun, true, memory_order_relaxed); // of handlers that other threads add meanwhile
	reentry_guard_leave();
	errno = host_errno;
}

void
lifecycle_handler_was_added(void)
{
	int host_errno = errno;

	if (is_over || !atomic_load_explicit(&has_main_begun, memory_order_relaxed) ||
	    atomic_load_explicit(&has_exit_begun, memory_order_relaxed))
		return;
	add_beginning(); // outside the guard: the lists' blocks are the program's, which releases them
	errno = host_errno;
}

void
lifecycle_end(int exit_code)
{
	uint32_t on = TRACKER_ON;

	if (!is_owner() || is_over)
		return;
	/* A child that forked and never allocated has no file. */
	if (!atomic_compare_exchange_strong_explicit(tracker_state, &on, TRACKER_OFF, memory_order_relaxed,
	                                             memory_order_relaxed))
		return;
	is_over = true; // L3
	if (!reentry_guard_enter_as(REENTRY_GUARD_OWN_WORK)) {
		capture_file_mark(KMEM_STATE_CLEAN_EXIT, exit_code, clock_now_ns());
		return;
	}
	inherited_sample(true);
	bool is_unwanted = identity.is_first == 0 && is_small() && inherited_copied_bytes() < SMALL_BYTES;
	if (!is_unwanted)
		lifecycle_needs_file();

	if (!is_unwanted || !capture_file_remove()) {
		sample_last();
		/* Marked late, when all slow work is done: a pool ends its workers by signals, also workers that are ending. */
		capture_file_mark(KMEM_STATE_CLEAN_EXIT, exit_code, clock_now_ns());
		capture_file_close();
		if (is_unwanted)
			abandoned_captures_add(&identity);
	}
	abandoned_captures_remove(folder, &identity);
	reentry_guard_leave();
}

void
lifecycle_end_at_once(int exit_code)
{
	if (raw_sys_may_call()) {
		lifecycle_end(exit_code);
		return;
	}
	if (atomic_load_explicit(tracker_state, memory_order_relaxed) != TRACKER_ON ||
	    !reentry_guard_enter_as(REENTRY_GUARD_OWN_WORK))
		return;
	sample_last();
	capture_file_mark(KMEM_STATE_CLEAN_EXIT, exit_code, clock_now_ns());
	if (identity.is_first == 0 && is_small())
		abandoned_captures_add(&identity);
	reentry_guard_leave();
}

/* Another thread may be ending the process. A capture that it has sealed stays as it is. */
static void
change_state(uint32_t from, uint32_t to)
{
	atomic_compare_exchange_strong_explicit(&capture_file_header()->state, &from, to, memory_order_relaxed,
	                                        memory_order_relaxed);
}

bool
lifecycle_exec_begin(void)
{
	if (atomic_load_explicit(tracker_state, memory_order_relaxed) != TRACKER_ON || !is_owner())
		return false;
	bool is_of_no_interest = is_small();
	if (!is_of_no_interest && reentry_guard_enter_as(REENTRY_GUARD_OWN_WORK)) {
		lifecycle_needs_file();
		reentry_guard_leave();
	}
	change_state(KMEM_STATE_RUNNING, KMEM_STATE_EXEC_REPLACED);
	return is_of_no_interest && !capture_file_is_put_off();
}

void
lifecycle_exec_replaces_small(void)
{
	is_removed = capture_file_remove() || is_removed; // by another thread that is inside exec
}

void
lifecycle_exec_failed(void)
{
	if (atomic_load_explicit(tracker_state, memory_order_relaxed) != TRACKER_ON || !is_owner())
		return;
	if (is_removed)
		capture_file_restore();
	is_removed = false;
	change_state(KMEM_STATE_EXEC_REPLACED, KMEM_STATE_RUNNING);
}
