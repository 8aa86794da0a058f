/*
 * causes.c - which evidence is which death, and how sure is that?
 *
 * A cause is one row: `judge` looks at the facts alone and gives its confidence, or VERDICT_NOT_SO when they do not support
 * it. Rows are tried in order, so a row may rely on those above it having declined. GONE takes everything.
 *
 * When failing  it cannot.
 */
#include "verdict/causes.h"

#include <signal.h>

#include "base/items.h"

#define RESTART_NS UINT64_C(600000000000) // a machine that starts again does so within ten minutes, as a rule

/* The cause is this, as far as the confidence goes, where the condition holds. */
#define JUDGE_IF(name, condition, confidence)                                      \
	static enum verdict_confidence judge_##name(const struct verdict_facts *facts) \
	{                                                                              \
		return (condition) ? (confidence) : VERDICT_NOT_SO;                        \
	}

/* It may have been SIGKILL: seen by the launcher, or nobody saw how it ended. On another boot only a log can tell. */
static bool
was_perhaps_killed(const struct verdict_facts *facts)
{
	return facts->end == VERDICT_END_GONE ||
	       (facts->end == VERDICT_END_ELSEWHERE && facts->log.kind != VERDICT_LOG_NONE) ||
	       (facts->end == VERDICT_END_SIGNAL && facts->signal == SIGKILL);
}

bool
verdict_has_guard_interrupted(const struct verdict_facts *facts)
{
	const struct kmem_guard_passing *guard = &facts->process->guard;

	return guard->number != 0 && guard->action == KMEM_GUARD_INTERRUPT && guard->outcome == KMEM_GUARD_DONE;
}

/* Nobody saw how it ended, and its guard had sent it SIGINT: that may have been it. */
static bool
is_perhaps_of_guard(const struct verdict_facts *facts)
{
	return facts->end == VERDICT_END_GONE && verdict_has_guard_interrupted(facts);
}

/*
 * A child that is gone while the session's launcher read the counters: nobody waited for the child itself, but the
 * counters are as good as for the first process.
 */
static enum verdict_confidence
counter_confidence(const struct verdict_facts *facts)
{
	return facts->end == VERDICT_END_SIGNAL ? VERDICT_CERTAIN : VERDICT_LIKELY;
}

/* Of a line in a log. Numbers of processes are used again: it is certain only when the end was seen at that time. */
static enum verdict_confidence
log_confidence(const struct verdict_facts *facts)
{
	return facts->end == VERDICT_END_SIGNAL && !facts->log.is_by_name ? VERDICT_CERTAIN : VERDICT_LIKELY;
}

static bool
is_elsewhere(const struct verdict_facts *facts)
{
	return facts->end == VERDICT_END_ELSEWHERE && facts->log.kind == VERDICT_LOG_NONE;
}

/* Another boot that began right after its last sign of life: a machine that is another one would do so by chance. */
JUDGE_IF(restarted, is_elsewhere(facts) && verdict_dark_ns(facts->process, facts->now) <= RESTART_NS, VERDICT_LIKELY)

JUDGE_IF(not_closed, is_elsewhere(facts), VERDICT_UNKNOWN)

JUDGE_IF(running, facts->end == VERDICT_END_RUNNING, VERDICT_CERTAIN)

JUDGE_IF(exec_replaced, facts->process->state == KMEM_STATE_EXEC_REPLACED && facts->end == VERDICT_END_OK,
         VERDICT_CERTAIN)

JUDGE_IF(exited, facts->end == VERDICT_END_OK, VERDICT_CERTAIN)

/*
 * Recent kernels leave version 1's failure counter at 0. Then a kill counted in the cgroup is the limit's when the machine had memory
 * left at the last look, and most of the limit was charged, or what was left of it was less than the machine had: what grows fast
 * fills a container between two looks.
 */
static bool
is_version_1_limit(const struct verdict_facts *facts)
{
	uint64_t left_bytes = facts->limit_bytes > facts->charged_bytes ? facts->limit_bytes - facts->charged_bytes : 0;

	return facts->process->identity->cgroup_version == 1 && facts->limit_bytes != UINT64_MAX &&
	       facts->charged_bytes != 0 &&
	       (facts->charged_bytes >= facts->limit_bytes / 4 * 3 || facts->available_bytes > left_bytes) &&
	       facts->available_bytes != UINT64_MAX && !verdict_is_machine_low(facts);
}

/* Somebody ended it from outside, or it let itself be interrupted. */
static bool
was_stopped(const struct verdict_facts *facts)
{
	return facts->end == VERDICT_END_SIGNAL &&
	       (facts->signal == SIGTERM || facts->signal == SIGINT || facts->signal == SIGHUP || facts->signal == SIGQUIT);
}

/*
 * It did well, or waited until it was stopped, but a child was killed for memory; pools end their workers by signals too, but the
 * kernel does not count those.
 */
static enum verdict_confidence
judge_child_killed(const struct verdict_facts *facts)
{
	bool is_about_child = facts->end == VERDICT_END_OK || (was_stopped(facts) && facts->refused == NULL);

	bool is_logged = facts->lost_log.kind == VERDICT_LOG_LIMIT || facts->lost_log.kind == VERDICT_LOG_MACHINE;

	if (!is_about_child || facts->lost_child == NULL)
		return VERDICT_NOT_SO;
	if (is_logged)
		return VERDICT_LIKELY;
	if (!facts->is_kill_counted || facts->cgroup_kills == 0)
		return VERDICT_NOT_SO;
	/* Counters that were read later may be of a later kill: then the child must have been about to fill the container. */
	if (facts->counters_are_late)
		return model_was_nearly_full(facts->lost_child) ? VERDICT_POSSIBLE : VERDICT_NOT_SO;
	return VERDICT_LIKELY;
}

static enum verdict_confidence
judge_container_limit(const struct verdict_facts *facts)
{
	if (!was_perhaps_killed(facts))
		return VERDICT_NOT_SO;
	/* The kill is counted in the victim's cgroup for a full machine as well; the limit's own counter tells. */
	if (facts->is_kill_counted && facts->cgroup_kills != 0 && (facts->limit_hits != 0 || is_version_1_limit(facts)))
		return facts->log.kind == VERDICT_LOG_MACHINE ? VERDICT_NOT_SO : counter_confidence(facts);
	if (facts->log.kind != VERDICT_LOG_NONE)
		return facts->log.kind == VERDICT_LOG_LIMIT ? log_confidence(facts) : VERDICT_NOT_SO;
	if (facts->is_kill_counted && !facts->counters_are_late)
		return VERDICT_NOT_SO; // it did not move: not the kernel's doing
	return verdict_is_near_limit(facts) ? VERDICT_LIKELY : VERDICT_NOT_SO;
}

static enum verdict_confidence
judge_machine_memory(const struct verdict_facts *facts)
{
	if (!was_perhaps_killed(facts))
		return VERDICT_NOT_SO;
	if (facts->log.kind != VERDICT_LOG_NONE)
		return facts->log.kind == VERDICT_LOG_MACHINE ? log_confidence(facts) : VERDICT_NOT_SO;
	if (facts->is_kill_counted && facts->cgroup_kills != 0)
		return counter_confidence(facts);
	/* Far from a limit of its own nothing tells it from the other containers, of which some were killed. */
	bool is_others = facts->is_kill_counted || (facts->limit_bytes != UINT64_MAX && verdict_is_far_from_limits(facts));

	if (facts->is_machine_counted && facts->machine_kills != 0 && !is_perhaps_of_guard(facts))
		return verdict_is_machine_low(facts) ? VERDICT_LIKELY : is_others ? VERDICT_NOT_SO : VERDICT_POSSIBLE;
	return !facts->is_machine_counted && verdict_is_machine_low(facts) ? VERDICT_LIKELY : VERDICT_NOT_SO;
}

bool
verdict_was_memory_short(enum verdict_cause cause)
{
	return cause == VERDICT_CONTAINER_LIMIT || cause == VERDICT_MACHINE_MEMORY || cause == VERDICT_LOW_MEMORY_DAEMON;
}

JUDGE_IF(hardware, facts->log.kind == VERDICT_LOG_HARDWARE, log_confidence(facts))

static enum verdict_confidence
judge_shm_full(const struct verdict_facts *facts)
{
	uint64_t shm = facts->process->identity->shm_bytes;

	if (shm == 0 || facts->end != VERDICT_END_SIGNAL || facts->signal != SIGBUS)
		return VERDICT_NOT_SO;
	return ANY(domain, facts->model->domains, facts->model->domain_count,
	           domain->id.kind == DOMAIN_SHARED && domain->live_bytes >= shm / 10 * 9)
	           ? VERDICT_LIKELY
	           : VERDICT_NOT_SO;
}

JUDGE_IF(device_memory, verdict_is_device_request(facts), VERDICT_LIKELY)

static enum verdict_confidence
judge_request_refused(const struct verdict_facts *facts)
{
	if (facts->refused == NULL)
		return VERDICT_NOT_SO;
	if (facts->end == VERDICT_END_SIGNAL && facts->signal != SIGABRT && facts->signal != SIGSEGV)
		return VERDICT_NOT_SO;
	return verdict_was_perhaps_caught(facts) || verdict_is_end_unseen(facts) ? VERDICT_POSSIBLE : VERDICT_LIKELY;
}

static enum verdict_confidence
judge_low_memory_daemon(const struct verdict_facts *facts)
{
	if (facts->log.kind == VERDICT_LOG_DAEMON && (was_perhaps_killed(facts) || facts->signal == SIGTERM))
		return log_confidence(facts);
	return facts->end == VERDICT_END_SIGNAL && (facts->signal == SIGKILL || facts->signal == SIGTERM) &&
	               verdict_is_machine_low(facts)
	           ? VERDICT_POSSIBLE
	           : VERDICT_NOT_SO;
}

static bool
is_ended_by(const struct verdict_facts *facts, int signal)
{
	return facts->end == VERDICT_END_SIGNAL && facts->signal == signal;
}

/* Of processor time, or of timeout(1), which ended what it ran. */
static enum verdict_confidence
judge_time_up(const struct verdict_facts *facts)
{
	if (is_ended_by(facts, SIGXCPU))
		return VERDICT_CERTAIN;
	return facts->end == VERDICT_END_GONE && !verdict_is_timeout(facts->process) &&
	               verdict_was_time_up(&facts->model->processes[0], facts->cgroup_kills)
	           ? VERDICT_LIKELY
	           : VERDICT_NOT_SO;
}

JUDGE_IF(file_limit, is_ended_by(facts, SIGXFSZ), VERDICT_CERTAIN)

JUDGE_IF(stack_overflow, facts->log.is_at_stack && (is_ended_by(facts, SIGSEGV) || facts->end == VERDICT_END_GONE),
         VERDICT_LIKELY)

JUDGE_IF(aborted, is_ended_by(facts, SIGABRT), VERDICT_CERTAIN)

static enum verdict_confidence
judge_crashed(const struct verdict_facts *facts)
{
	static const int crashes[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS };

	if (facts->end == VERDICT_END_SIGNAL && ANY(signal, crashes, COUNT_OF(crashes), facts->signal == *signal))
		return VERDICT_CERTAIN;
	return facts->log.kind == VERDICT_LOG_CRASH ? log_confidence(facts) : VERDICT_NOT_SO;
}

JUDGE_IF(signal, facts->end == VERDICT_END_SIGNAL, VERDICT_CERTAIN)

JUDGE_IF(failed, facts->end == VERDICT_END_FAILED, VERDICT_CERTAIN)

static enum verdict_confidence
judge_gone(const struct verdict_facts *facts)
{
	(void)facts;
	return VERDICT_LIKELY;
}

static const struct {
	const char *name;
	enum verdict_confidence (*judge)(const struct verdict_facts *facts); // NULL: never the facts'
} causes[] = {
#define CAUSE_ROW(cause, function, name) [VERDICT_##cause] = { name, judge_##function },
	VERDICT_CAUSE_ROWS(CAUSE_ROW)[VERDICT_NO_PROCESS] = { "unknown", NULL },
};

#define CONFIDENCE_ROW(confidence, name) [VERDICT_##confidence] = name,
NAMES_OF(verdict_confidence_name, VERDICT_CONFIDENCE_ROWS(CONFIDENCE_ROW))

const char *
verdict_cause_name(unsigned cause)
{
	return cause < VERDICT_CAUSES ? causes[cause].name : NULL;
}

bool
verdict_was_child_killed(const struct verdict_facts *facts)
{
	return judge_child_killed(facts) != VERDICT_NOT_SO;
}

enum verdict_cause
verdict_cause_of(const struct verdict_facts *facts, enum verdict_confidence *confidence)
{
	enum verdict_cause cause = 0;

	while ((*confidence = causes[cause].judge(facts)) == VERDICT_NOT_SO)
		cause++;
	return cause;
}
