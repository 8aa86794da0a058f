/*
 * memory_guard.c - is so much in use that the limit is near, and what is done then (see memory_guard.h)?
 *
 * Invariants, tested by number in tests/unit/shim/periodic/test_memory_guard.c:
 *   G1  the guard is passed once, until less than 3/4 of it is in use; a process that begins above it waits until it is below.
 *   G2  the record is complete before the header leads to it (F1). If the process is killed before that, the record before it counts.
 *   G3  a request is refused only if it is one of malloc's and would pass the guard.
 *   G4  a guard that acts asks malloc for what it keeps (malloc_trim) before it counts as passed, and when so much was freed since then
 *       that it would be armed again. In vain it asks once for each eighth of the guard at most.
 *
 * Not chosen  a thread or a timer that looks: they would be the program's, too. A program that neither allocates nor releases passes
 *             its guard unseen.
 *             Figures in each site's record, as those of the peak: all of them would grow by 16 bytes for something that happens once.
 */
#include "periodic/memory_guard.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/diag.h"
#include "base/raw_sys.h"
#include "base/real_libc.h"
#include "base/reentry_guard.h"
#include "base/settings.h"
#include "base/thread_stack.h"
#include "base/turn.h"
#include "capture/capture_file.h"
#include "kmem_words.h"
#include "moments/failed_requests.h"
#include "moments/held_sites.h"
#include "moments/marks.h"
#include "periodic/launcher_pipe.h"
#include "record/guard_due.h"
#include "record/tracker.h"
#include "sites/callbacks.h"
#include "tables/generations.h"

#define OWN_SHARE 64                   // of the limit: a process that has less in memory stands by while others fill it
#define PERIOD_NS UINT64_C(1000000000) // refused requests, one after the other, are one passing
#define PERCENT_INSTEAD 90             // of a guard that is above the limit
#define MIB(bytes) ((unsigned long)((bytes) >> 20))

enum { WAITING, ARMED, PASSED };

/* relaxed, all of them: they are changed by the thread that judges, and decide nothing else. */
static _Atomic uint32_t state;
static _Atomic uint64_t room = UINT64_MAX;
static _Atomic bool has_judged; // the first beat comes before recording: then the next one is to come soon
static struct turn judging;
static uint64_t passed_ns; // of who judges
static uint32_t passed_count;
static uint64_t last_beside_bytes; // in memory and not live, at the last beat
static uint64_t beside_bytes;      // the same, at the last beat before the passing: programs, libraries
static uint64_t ask_bytes;         // when so much is beside, malloc is asked for what it keeps (G4)
static bool has_voice;

_Atomic uint64_t guard_due_bytes = UINT64_MAX;

struct measure {
	uint32_t kind; // enum kmem_limit_kind
	uint64_t used_bytes;
	uint64_t limit_bytes;
	uint64_t guard_bytes;
};

static bool
is_set(void)
{
	return settings.guard.percent != 0 || settings.guard.bytes != 0;
}

static struct measure
measure(uint32_t kind, uint64_t used_bytes, uint64_t limit_bytes)
{
	uint64_t bytes = settings.guard.bytes;
	unsigned percent = settings.guard.percent != 0 ? settings.guard.percent : PERCENT_INSTEAD;

	if (bytes == 0 || bytes >= limit_bytes)
		bytes = limit_bytes / 100 * percent;
	return (struct measure){ kind, used_bytes, limit_bytes, bytes };
}

static uint64_t
room_of(const struct measure *one)
{
	return one->guard_bytes > one->used_bytes ? one->guard_bytes - one->used_bytes : 0;
}

/* More than the limit may be charged for a moment. */
static uint64_t
left_of(const struct measure *one)
{
	return one->limit_bytes > one->used_bytes ? one->limit_bytes - one->used_bytes : 0;
}

static struct measure
measure_machine(const struct kmem_identity *identity, const struct memory_limits_now *now)
{
	bool is_of_all = settings.guard.percent != 0 && now->available_bytes < identity->machine_bytes;

	return measure(KMEM_LIMIT_MACHINE, is_of_all ? identity->machine_bytes - now->available_bytes : now->resident_bytes,
	               identity->machine_bytes);
}

/* With less in use the guard is armed again (G1). */
static uint64_t
below_again(const struct measure *at)
{
	return at->guard_bytes / 4 * 3;
}

static struct measure
measure_cgroup(const struct kmem_identity *identity, const struct memory_limits_now *now)
{
	static char text[4096]; // one judges at a time
	struct measure cgroup = measure(KMEM_LIMIT_CGROUP, now->cgroup_bytes, now->limit_bytes);
	struct kmem_container charged = { 0 };

	if (cgroup.used_bytes >= below_again(&cgroup)) // else it does not matter
		memory_limits_read_container(identity, text, sizeof(text), &charged);
	cgroup.used_bytes -= charged.cached_bytes < cgroup.used_bytes ? charged.cached_bytes : cgroup.used_bytes;
	return cgroup;
}

/*
 * A guard that is a share is measured at the limit whose guard is nearest; one in bytes at the smallest limit. False: nothing is known.
 */
static bool
measure_limits(const struct kmem_identity *identity, const struct memory_limits_now *now, struct measure *found)
{
	bool has_cgroup = identity->cgroup_version != 0 && now->cgroup_bytes != 0 && now->limit_bytes != UINT64_MAX &&
	                  now->limit_bytes != identity->machine_bytes;

	if (has_cgroup)
		*found = measure_cgroup(identity, now);
	if (now->space_limit_bytes != 0 && now->space_bytes != 0) {
		struct measure space = measure(KMEM_LIMIT_ADDRESS_SPACE, now->space_bytes, now->space_limit_bytes);
		bool is_nearer = !has_cgroup || (settings.guard.percent != 0 ? room_of(&space) < room_of(found)
		                                                             : space.limit_bytes < found->limit_bytes);

		if (is_nearer)
			*found = space;
		return true;
	}
	if (!has_cgroup && identity->machine_bytes != 0)
		*found = measure_machine(identity, now);
	return (has_cgroup || identity->machine_bytes != 0) && now->resident_bytes != 0;
}

static const char *
limit_text(uint32_t kind)
{
	return kind == KMEM_LIMIT_CGROUP          ? "the limit of the memory cgroup"
	       : kind == KMEM_LIMIT_ADDRESS_SPACE ? "the limit on addresses (ulimit -v), without what recording takes"
	                                          : "the machine's memory";
}

/* ---- what is kept ---- */

/* Blocks of sites that held nothing when sites were counted are left out. Returns index + 1 of the record; 0 = there is no room. */
static uint32_t
keep(const struct kmem_guard_passing *passing)
{
	_Atomic uint64_t *newest = &capture_file_header()->guard;
	struct held_sites found;
	struct kmem_guard *to = NULL;
	uint32_t index;

	held_sites_measure(false, &found);

	uint64_t bytes = sizeof(*to) + held_sites_bytes(&found);

	if (bytes < UINT32_MAX && !capture_file_is_large(0))
		to = capture_file_append(KMEM_SECTION_RECORDS, bytes, &index);
	if (to == NULL)
		return 0;
	to->passing = *passing;
	to->passing.site_count = held_sites_write(&found, to->sites, bytes - sizeof(*to)).sites;
	to->record.type = KMEM_RECORD_GUARD;
	to->record.bytes = (uint32_t)bytes;
	to->record.previous = (uint32_t)atomic_load_explicit(newest, memory_order_relaxed); // once of twice
	capture_file_seal_record(&to->record);
	/* release: the record before what leads to it (G2). */
	atomic_store_explicit(newest, kmem_twice(index + 1), memory_order_release);
	return index + 1;
}

/*
 * The bytes that were compared with the guard. A request that passes the guard is not in use yet, and what is in use may be far below.
 */
static uint64_t
judged_bytes(const struct kmem_guard_passing *passing)
{
	uint64_t bytes = passing->used_bytes + passing->request_bytes;

	return bytes >= passing->used_bytes ? bytes : UINT64_MAX; // some programs ask for all addresses
}

/* For questions of the program. relaxed: figures of two passings may be mixed for a moment. */
static struct {
	_Atomic uint64_t bytes[3];
	_Atomic uint32_t number;
} latest;

static void
publish(const struct kmem_guard_passing *passing)
{
	atomic_store_explicit(&latest.bytes[0], judged_bytes(passing), memory_order_relaxed);
	atomic_store_explicit(&latest.bytes[1], passing->guard_bytes, memory_order_relaxed);
	atomic_store_explicit(&latest.bytes[2], passing->limit_bytes, memory_order_relaxed);
	atomic_store_explicit(&latest.number, passing->number, memory_order_relaxed);
}

uint32_t
memory_guard_passings(uint64_t bytes[3])
{
	for (unsigned i = 0; i < 3; i++)
		bytes[i] = atomic_load_explicit(&latest.bytes[i], memory_order_relaxed);
	return atomic_load_explicit(&latest.number, memory_order_relaxed);
}

/* ---- what is done ---- */

static bool
ignores_interrupts(void)
{
	struct sigaction now;

	return real_libc.sigaction(SIGINT, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

static const char *
name_of(const struct kmem_identity *identity)
{
	const char *slash = strrchr(identity->executable, '/');

	return slash != NULL ? slash + 1 : identity->executable;
}

static const char *
action_text(const struct kmem_guard_passing *passing)
{
	if (passing->action == KMEM_GUARD_INTERRUPT)
		return passing->outcome == KMEM_GUARD_DONE ? "it gets SIGINT, as from Ctrl-C"
		                                           : "it ignores SIGINT, so nothing stops it";
	if (passing->action == KMEM_GUARD_RAISE)
		return passing->request_bytes != 0 ? "this request fails" : "requests of 1 MiB and more fail from now on";
	if (passing->action == KMEM_GUARD_EXEC)
		return passing->outcome == KMEM_GUARD_DONE
		           ? "the command is run"
		           : "nobody can run the command: the program was not started by kmemshim run";
	return "kmemshim report shows what it held";
}

/* Descendants write this line, too: it is about themselves. */
static void
say(const struct kmem_guard_passing *passing)
{
	const struct kmem_identity *identity = &capture_file_header()->identity;
	enum diag_level before = diag_level;
	char more[64] = "";

	if (!has_voice)
		return;
	if (passing->request_bytes != 0)
		diag_format(more, sizeof(more), ", with the %lu MiB that it asks for", MIB(passing->request_bytes));
	if (diag_level < DIAG_WARN)
		diag_level = DIAG_WARN;
	diag_warn("%s (process %u) passed its guard: %lu of %lu MiB %s in use (%s; the guard is %lu MiB)%s: %s",
	          name_of(identity), identity->pid, MIB(judged_bytes(passing)), MIB(passing->limit_bytes),
	          passing->request_bytes != 0 ? "would be" : "are", limit_text(passing->limit_kind),
	          MIB(passing->guard_bytes), more, action_text(passing));
	diag_level = before;
}

static void
pass(const struct measure *at, const struct memory_limits_now *now, uint64_t request_bytes, uint64_t now_ns)
{
	struct kmem_header *header = capture_file_header();
	struct kmem_guard_passing passing = {
		.monotonic_ns = now_ns,
		.used_bytes = at->used_bytes,
		.guard_bytes = at->guard_bytes,
		.limit_bytes = at->limit_bytes,
		.request_bytes = request_bytes,
		.resident_bytes = now->resident_bytes,
		.volume_bytes = atomic_load_explicit(&header->volume_bytes, memory_order_relaxed),
		.clock = generations_clock(),
		.limit_kind = at->kind,
		.action = settings.guard_action,
		.number = ++passed_count,
	};

	if (passing.action == KMEM_GUARD_INTERRUPT && ignores_interrupts())
		passing.outcome = KMEM_GUARD_IGNORED;
	if (passing.action == KMEM_GUARD_EXEC && !launcher_pipe_tell(true, 0))
		passing.outcome = KMEM_GUARD_NOBODY;
	marks_guard(keep(&passing));
	publish(&passing);
	if (passing.action == KMEM_GUARD_EXEC)
		(void)launcher_pipe_tell(false, 0);
	/* What an interrupted call held goes with it, but not what a notebook keeps. With the others it is about to change. */
	if (passing.action == KMEM_GUARD_NOTE || passing.action == KMEM_GUARD_INTERRUPT)
		launcher_pipe_ask_for_look(0);
	say(&passing);
}

/* ---- when ---- */

/* From now on the guard is asked before requests that may take half of the room that was left at this look. */
static void
note_room(const struct measure *at, uint32_t state_now)
{
	uint64_t half = room_of(at) / 2;

	if (settings.guard_action != KMEM_GUARD_RAISE)
		half = state_now == ARMED && at->kind == KMEM_LIMIT_CGROUP ? left_of(at) / 2 : UINT64_MAX;
	if (half < FAILED_REQUESTS_LARGE_BYTES)
		half = FAILED_REQUESTS_LARGE_BYTES;
	atomic_store_explicit(&guard_due_bytes, half, memory_order_relaxed);
	atomic_store_explicit(&room, state_now == ARMED ? room_of(at) : UINT64_MAX, memory_order_relaxed);
}

static uint32_t
state_after(uint32_t before, const struct measure *at)
{
	uint64_t below = before == PASSED ? below_again(at) : at->guard_bytes;

	return at->used_bytes < below ? ARMED : before;
}

static uint64_t
beside_live(const struct memory_limits_now *now, uint64_t live_bytes)
{
	return now->resident_bytes > live_bytes ? now->resident_bytes - live_bytes : 0;
}

/*
 * Is malloc to give back what it keeps? Before the guard is passed, and afterwards when that would arm it again (G4). In vain it is asked
 * once for each eighth of the guard that is in memory and not live.
 */
static bool
is_kept(const struct measure *at, const struct memory_limits_now *now, uint64_t live_bytes, bool is_passed)
{
	uint64_t beside = live_bytes != UINT64_MAX ? beside_live(now, live_bytes) : last_beside_bytes;
	uint64_t eighth = at->guard_bytes / 8;
	uint64_t freed = beside > beside_bytes ? beside - beside_bytes : 0;
	bool may_ask = settings.guard_action == KMEM_GUARD_INTERRUPT || settings.guard_action == KMEM_GUARD_RAISE;

	if (!may_ask || at->kind == KMEM_LIMIT_ADDRESS_SPACE || beside < eighth || beside < ask_bytes ||
	    (is_passed && at->used_bytes >= below_again(at) + freed))
		return false;
	ask_bytes = beside + eighth;
	return true;
}

/* A request that is judged before it is made; at a beat all members are 0. */
struct request {
	uint64_t bytes; // more than now
	bool is_growth;
	bool may_be_refused;
	bool was_given_back; // what malloc keeps, for this request
};

static bool
is_too_large(const struct measure *at, const struct request *request)
{
	return at->kind == KMEM_LIMIT_CGROUP && request->bytes > (request->is_growth ? room_of(at) : left_of(at));
}

/* live_bytes: at a beat; else UINT64_MAX. */
static enum memory_guard_due
judge(const struct memory_limits_now *now, uint64_t live_bytes, const struct request *request, bool *is_refused)
{
	const struct kmem_identity *identity = &capture_file_header()->identity;
	uint64_t now_ns = clock_now_ns();
	struct measure at;

	atomic_store_explicit(&has_judged, true, memory_order_relaxed);
	if (!measure_limits(identity, now, &at))
		return MEMORY_GUARD_NOTHING;

	uint32_t state_now = state_after(atomic_load_explicit(&state, memory_order_relaxed), &at);
	uint64_t room_bytes = room_of(&at);
	uint64_t own_bytes = at.kind == KMEM_LIMIT_ADDRESS_SPACE ? now->space_bytes : now->resident_bytes;
	bool is_own = at.used_bytes <= own_bytes || own_bytes + request->bytes / 2 >= at.limit_bytes / OWN_SHARE;

	*is_refused = request->may_be_refused && state_now != WAITING && is_own && request->bytes > room_bytes;
	bool is_over = request->bytes != 0 ? *is_refused || is_too_large(&at, request) : room_bytes == 0;
	bool passes = state_now == ARMED && is_own && is_over;

	if (at.used_bytes < below_again(&at))
		ask_bytes = 0;
	if (live_bytes != UINT64_MAX)
		last_beside_bytes = beside_live(now, live_bytes);
	if (state_now != PASSED)
		beside_bytes = last_beside_bytes;
	if ((passes || state_now == PASSED) && !request->was_given_back && is_kept(&at, now, live_bytes, !passes))
		return MEMORY_GUARD_GIVE_BACK;
	if (passes)
		state_now = PASSED;
	atomic_store_explicit(&state, state_now, memory_order_relaxed);
	note_room(&at, state_now);
	if (!passes || (*is_refused && passed_count != 0 && now_ns - passed_ns < PERIOD_NS))
		return MEMORY_GUARD_NOTHING;
	passed_ns = now_ns;
	pass(&at, now, request->bytes, now_ns);
	return settings.guard_action == KMEM_GUARD_INTERRUPT ? MEMORY_GUARD_INTERRUPT : MEMORY_GUARD_NOTHING;
}

static bool
may_judge(void)
{
	return is_set() && atomic_load_explicit(tracker_state, memory_order_relaxed) == TRACKER_ON && raw_sys_may_call() &&
	       atomic_load_explicit(&capture_file_header()->is_finalizing, memory_order_relaxed) == 0;
}

static enum memory_guard_due
judge_alone(const struct memory_limits_now *now, uint64_t live_bytes, const struct request *request, bool *is_refused)
{
	if (!turn_take(&judging))
		return MEMORY_GUARD_NOTHING;

	enum memory_guard_due due = judge(now, live_bytes, request, is_refused);

	turn_give(&judging);
	return due;
}

enum memory_guard_due
memory_guard_judge(const struct memory_limits_now *now, uint64_t live_bytes)
{
	const struct request none = { 0 };
	bool is_refused;

	return may_judge() ? judge_alone(now, live_bytes, &none, &is_refused) : MEMORY_GUARD_NOTHING;
}

uint64_t
memory_guard_room(void)
{
	return is_set() && !atomic_load_explicit(&has_judged, memory_order_relaxed)
	           ? 0
	           : atomic_load_explicit(&room, memory_order_relaxed);
}

bool
memory_guard_allows(unsigned domain, uint64_t bytes, bool is_growth)
{
	struct request request = { .bytes = bytes,
		                       .is_growth = is_growth,
		                       .may_be_refused = domain == KMEM_DOMAIN_HEAP &&
		                                         settings.guard_action == KMEM_GUARD_RAISE };
	int host_errno = errno;
	bool is_refused = false;
	struct memory_limits_now now;

	if ((domain != KMEM_DOMAIN_HEAP && domain != KMEM_DOMAIN_MMAP) || !may_judge() || !thread_stack_has_room())
		return true;
	record_callbacks.needs_file();
	memory_limits_read_now(&capture_file_header()->identity, &now);
	enum memory_guard_due due = judge_alone(&now, UINT64_MAX, &request, &is_refused);
	if (due == MEMORY_GUARD_GIVE_BACK) {
		memory_guard_do(due);
		memory_limits_read_now(&capture_file_header()->identity, &now);
		request.was_given_back = true;
		due = judge_alone(&now, UINT64_MAX, &request, &is_refused);
	}
	errno = host_errno;
	memory_guard_do(due);
	return !is_refused;
}

void
memory_guard_do(enum memory_guard_due due)
{
	uint64_t mark = reentry_guard_word;
	int host_errno = errno;

	if (due == MEMORY_GUARD_INTERRUPT) {
		reentry_guard_leave();
		(void)raw_syscall(SYS_kill, raw_syscall(SYS_getpid), SIGINT);
		reentry_guard_word = mark;
	} else if (due == MEMORY_GUARD_GIVE_BACK && real_libc.malloc_trim != NULL) {
		(void)real_libc.malloc_trim(0);
	}
	errno = host_errno;
}

/* ---- start ---- */

/* Bytes as a person would write them: in the largest unit that they are a whole number of. */
static void
format_guard(char *text, size_t bytes)
{
	static const char *const units[] = { "K", "M", "G", "T" };
	uint64_t number = settings.guard.bytes >> 10;
	size_t unit = 0;

	if (settings.guard.percent != 0) {
		diag_format(text, bytes, "%lu%%", (unsigned long)settings.guard.percent);
		return;
	}
	for (; unit + 1 < sizeof(units) / sizeof(units[0]) && number != 0 && number % 1024 == 0; unit++)
		number /= 1024;
	diag_format(text, bytes, "%lu%s", (unsigned long)number, units[unit]);
}

/* At most one line, from the first process: which of the settings does not work as it seems. */
static void
tell_of_settings(void)
{
	const struct kmem_identity *identity = &capture_file_header()->identity;
	struct memory_limits_now now;
	struct measure at;
	char given[32];

	format_guard(given, sizeof(given));
	memory_limits_read_now(identity, &now);
	if (!measure_limits(identity, &now, &at))
		diag_warn("KMEMSHIM_GUARD=%s: no limit can be read here, so there is no guard", given);
	else if (settings.guard.bytes >= at.limit_bytes)
		diag_warn("KMEMSHIM_GUARD=%s: this is not below the %lu MiB of %s: the guard is %u%% of that", given,
		          MIB(at.limit_bytes), limit_text(at.kind), (unsigned)PERCENT_INSTEAD);
	else if (at.kind == KMEM_LIMIT_MACHINE)
		diag_warn("KMEMSHIM_GUARD=%s: no limit is in force here: the guard is %lu MiB of the machine's %lu MiB%s",
		          given, MIB(at.guard_bytes), MIB(at.limit_bytes),
		          settings.guard.bytes != 0 ? ", for each process alone" : "");
	if (settings.guard_action == KMEM_GUARD_EXEC && !launcher_pipe_tell(true, 0))
		diag_warn(
			"KMEMSHIM_GUARD_ACTION=exec: only kmemshim run can run a command, and it did not start this program: the guard is noted");
}

void
memory_guard_start(bool may_speak, bool is_first)
{
	has_voice = may_speak;
	if (!is_set())
		return;
	if (is_first)
		tell_of_settings();
	atomic_store_explicit(&guard_due_bytes, FAILED_REQUESTS_LARGE_BYTES, memory_order_relaxed);
}

void
memory_guard_forked(void)
{
	passed_count = 0;
	publish(&(struct kmem_guard_passing){ .number = 0 });
}
