/*
 * facts.c - what do the captures, the launcher and this machine show about the end?
 *
 * When failing  what cannot be known is marked so; no conclusion is drawn here.
 */
#include "verdict/facts.h"

#include <sys/wait.h>

#include "analysis/refused_requests.h"
#include "base/amount.h"
#include "base/items.h"
#include "base/text_start.h"

#define CRASH_PLACES_MANY 3       // a bug crashes at one place, or at two
#define BEYOND_PART 8             // of what was ever in memory: lines that held so much more are told as that
#define NEAR_LIMIT_PERCENT 97     // charged of the limit at the last heartbeat; measured at kills: 98 and more
#define FAR_FROM_LIMIT_PERCENT 80 // below this, memory is not the suspect
#define LOW_AVAILABLE_PERCENT 5   // of the machine's memory
#define TIGHT_PERCENT 80          // of the limit; less is room enough
#define STARTER_PART 16           // of what the program held at its peak: who holds more does work of its own
#define MUCH_MORE 64              // times what was live
// an error that nothing caught, until Python is gone: 1 MiB, measured; from 1 MiB on it is known
#define ERROR_BYTES (UINT64_C(4) << 20)

static uint64_t
held_at_most(const struct model_process *process)
{
	return (process->live_bytes > process->peak_bytes ? process->live_bytes : process->peak_bytes) +
	       process->copied_bytes;
}

static bool
has_fatal_refusal(const struct model *model, const struct verdict_now *now, const struct model_process *process)
{
	return ANY(failed, model->failed, model->failed_count,
	           &model->processes[failed->process] == process && refusal_state(model, now, failed) == REFUSAL_FATAL);
}

/* A pool ends its workers by signals whenever it closes: only with a sign of it is one the story. */
static bool
explains(const struct model_process *lost, uint64_t lost_bytes, const struct model_process *first)
{
	const struct kmem_launcher *launcher = first->launcher;
	int status = launcher != NULL && WIFEXITED(launcher->wait_status) ? WEXITSTATUS(launcher->wait_status)
	                                                                  : first->exit_code;
	uint64_t before = first->identity->before.cgroup_oom_kill;
	bool is_known = launcher != NULL && before != UINT64_MAX && launcher->after.cgroup_oom_kill != UINT64_MAX;

	if ((is_known && launcher->after.cgroup_oom_kill > before) || status > 128)
		return true;
	/* Of several that the kernel did not kill most were ended as the pool closed: the largest of equals is not the story. */
	return held_at_most(lost) > held_at_most(first) && (!is_known || lost->live_bytes > lost_bytes / 2);
}

/*
 * A script, or timeout(1), that runs one program, and both ended well: the program is the story. NULL = it ran none, or several, or holds
 * memory of its own.
 */
static const struct model_process *
only_program(const struct model *model, const struct verdict_now *now, const struct model_process *starter)
{
	const struct model_process *child = NULL;

	EACH (process, model->processes, model->process_count) {
		/* Between them a small one may have left no capture. */
		if (process == starter ||
		    (process->parent < 0 ? starter != &model->processes[0] : starter != &model->processes[process->parent]))
			continue;
		if (child != NULL)
			return NULL;
		child = process;
	}
	return child != NULL && starter->peak_bytes < child->peak_bytes / STARTER_PART &&
	               verdict_end_of(starter, now) == VERDICT_END_OK && verdict_end_of(child, now) == VERDICT_END_OK
	           ? child
	           : NULL;
}

/*
 * The first process of the session, or what it became by exec. When that one failed by itself and one of its
 * descendants is gone without a trace, or failed for want of memory, the death to explain may be the descendant's.
 */
static void
find_subject(const struct verdict_now *now, struct verdict_facts *facts)
{
	const struct model *model = facts->model;
	const struct model_process *first = &model->processes[0];
	const struct model_process *lost = NULL;
	const struct model_process *refused = NULL;

	for (size_t i = 1; i < model->process_count; i++) {
		const struct model_process *process = &model->processes[i];

		if (process->identity->pid == first->identity->pid && first->state == KMEM_STATE_EXEC_REPLACED) {
			first = process;
		} else if (verdict_end_of(process, now) == VERDICT_END_GONE) {
			facts->lost_count++;
			facts->lost_bytes += process->live_bytes;
			if (lost == NULL || process->live_bytes + process->copied_bytes > lost->live_bytes + lost->copied_bytes)
				lost = process;
		} else if (verdict_end_of(process, now) == VERDICT_END_FAILED && has_fatal_refusal(model, now, process)) {
			refused = process; // the last one to start: closest to the end
		}
	}
	facts->process = first;
	facts->lost_child = lost;
	if (verdict_is_timeout(first) && lost != NULL &&
	    (verdict_end_of(first, now) == VERDICT_END_SIGNAL || verdict_end_of(first, now) == VERDICT_END_GONE))
		facts->process = lost;
	for (const struct model_process *next = first; (next = only_program(model, now, next)) != NULL;)
		facts->process = next;
	if (verdict_end_of(first, now) != VERDICT_END_FAILED || has_fatal_refusal(model, now, first))
		return;
	if (lost != NULL && explains(lost, facts->lost_bytes, first))
		facts->process = lost;
	else if (refused != NULL)
		facts->process = refused;
}

static uint64_t
moved(uint64_t before, uint64_t after, bool *is_known)
{
	*is_known = before != UINT64_MAX && after != UINT64_MAX && after >= before;
	return *is_known ? after - before : 0;
}

static void
gather_launched(const struct verdict_now *now, struct verdict_facts *facts)
{
	const struct model_process *process = facts->process;
	const struct kmem_kill_counters *before = &process->identity->before;
	const struct kmem_launcher *launcher = process->launcher;
	struct kmem_kill_counters after = { UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX };
	bool is_known;

	/* A descendant has no launcher of its own, but ended before the one that its session has. */
	if (launcher == NULL)
		launcher = facts->model->processes[0].launcher;
	facts->has_system_allocators = launcher != NULL && (launcher->flags & KMEM_LAUNCHER_SYSTEM_ALLOCATORS) != 0;
	facts->was_look_killed = launcher != NULL && (launcher->flags & KMEM_LAUNCHER_LOOK_KILLED) != 0;
	if (launcher != NULL) {
		after = launcher->after;
	} else if (facts->end == VERDICT_END_GONE || (facts->end == VERDICT_END_OK && facts->lost_child != NULL)) {
		now->read_counters(process->identity, &after);
		facts->counters_are_late = true;
	}
	facts->cgroup_kills_before = before->cgroup_oom_kill;
	facts->cgroup_kills = moved(before->cgroup_oom_kill, after.cgroup_oom_kill, &facts->is_kill_counted);
	/* These are of the cgroup in which it began: what happened in the next one is not in them. */
	if (verdict_note_of(process, KMEM_NOTE_MOVED) != NULL && facts->cgroup_kills == 0)
		facts->is_kill_counted = false;
	facts->machine_kills = moved(before->machine_oom_kill, after.machine_oom_kill, &facts->is_machine_counted);
	facts->limit_hits = moved(before->cgroup_oom, after.cgroup_oom, &is_known);
	if (process->identity->cgroup_version == 1)
		facts->limit_hits = moved(before->cgroup_max_hits, after.cgroup_max_hits, &is_known);
}

static void
gather_usage(struct verdict_facts *facts)
{
	const struct model_process *process = facts->process;
	const struct kmem_heartbeat *last = model_last_beat(process);

	facts->limit_bytes = UINT64_MAX;
	facts->available_bytes = UINT64_MAX;
	for (size_t i = 0; i < KMEM_LIMITS_MAX; i++) {
		if (process->identity->limits[i].kind == KMEM_LIMIT_CGROUP &&
		    process->identity->limits[i].bytes < facts->limit_bytes)
			facts->limit_bytes = process->identity->limits[i].bytes;
	}
	if (last != NULL) {
		facts->charged_bytes = last->cgroup_bytes;
		facts->resident_bytes = last->resident_bytes;
		facts->available_bytes = last->available_bytes;
		if (last->cgroup_bytes != 0)
			facts->limit_bytes = last->limit_bytes;
	}
	if (process->launcher != NULL && process->launcher->max_resident_bytes > facts->resident_bytes)
		facts->resident_bytes = process->launcher->max_resident_bytes;
	/* A limit that the machine cannot reach is none; without one a heartbeat holds the machine's memory. */
	if (process->identity->machine_bytes != 0 &&
	    (facts->limit_bytes == process->identity->machine_bytes ||
	     facts->limit_bytes > process->identity->machine_bytes + process->identity->swap_bytes))
		facts->limit_bytes = UINT64_MAX;
}

uint64_t
verdict_unlisted_refusals(const struct verdict_facts *facts)
{
	uint64_t unlisted = facts->process->failed_count;

	for (size_t i = 0; i < facts->model->failed_count; i++)
		unlisted -= &facts->model->processes[facts->model->failed[i].process] == facts->process && unlisted != 0;
	return unlisted;
}

void
verdict_facts_gather(struct finished_model finished, const struct verdict_now *now, struct verdict_facts *facts)
{
	const struct model *model = finished.model;

	*facts = (struct verdict_facts){ .finished = finished, .model = model, .now = now, .exit_code = -1 };
	find_subject(now, facts);
	verdict_children_gather(now, facts);
	facts->end = verdict_end_of(facts->process, now);
	facts->is_descendant = facts->process->identity->pid != model->processes[0].identity->pid ||
	                       facts->process->identity->is_first == 0;
	if (facts->process->launcher != NULL && WIFSIGNALED(facts->process->launcher->wait_status))
		facts->signal = WTERMSIG(facts->process->launcher->wait_status);
	else if (facts->process->launcher != NULL && WIFEXITED(facts->process->launcher->wait_status))
		facts->exit_code = WEXITSTATUS(facts->process->launcher->wait_status);
	else if (facts->process->state == KMEM_STATE_CLEAN_EXIT)
		facts->exit_code = facts->process->exit_code;
	gather_launched(now, facts);
	if (verdict_is_sudden(facts->end))
		facts->log = end_log_find(facts->process, now);
	if (facts->lost_child != NULL && facts->lost_child != facts->process)
		facts->lost_log = end_log_find(facts->lost_child, now);
	gather_usage(facts);
	facts->refused = refusal_of_end(model, now, (unsigned)(facts->process - model->processes));
	verdict_device_gather(now, facts);
	verdict_live_gather(facts);
	verdict_peak_gather(facts);
	verdict_copies_gather(model, &facts->copies);
	verdict_forecast_gather(facts);
}

bool
verdict_crashes_anywhere(const struct verdict_facts *facts)
{
	/* Of an interpreter the name says nothing of the program. */
	return facts->process->python_version == 0 && !facts->log.is_at_stack &&
	       facts->log.crash_places >= CRASH_PLACES_MANY;
}

bool
verdict_is_near_limit(const struct verdict_facts *facts)
{
	return facts->charged_bytes != 0 && facts->limit_bytes != UINT64_MAX &&
	       facts->charged_bytes >= facts->limit_bytes / 100 * NEAR_LIMIT_PERCENT;
}

bool
verdict_is_machine_low(const struct verdict_facts *facts)
{
	return facts->available_bytes != UINT64_MAX && facts->process->identity->machine_bytes != 0 &&
	       facts->available_bytes <= facts->process->identity->machine_bytes / 100 * LOW_AVAILABLE_PERCENT;
}

bool
verdict_is_far_from_limits(const struct verdict_facts *facts)
{
	bool is_limit_far = facts->limit_bytes == UINT64_MAX ||
	                    (facts->charged_bytes != 0 && amount_greater(facts->charged_bytes, facts->live_bytes) <
	                                                      facts->limit_bytes / 100 * FAR_FROM_LIMIT_PERCENT);

	return is_limit_far && !verdict_is_machine_low(facts) && facts->refused == NULL && facts->cgroup_kills == 0;
}

/* Pinned memory is the host's, whoever gives it out. */
bool
verdict_is_device_request(const struct verdict_facts *facts)
{
	enum domain_kind kind = facts->refused != NULL ? facts->model->domains[facts->refused->domain].id.kind
	                                               : DOMAIN_HEAP;

	return domain_is_driver(kind) && kind != DOMAIN_PINNED;
}

/* By all that lives under the limit, where that is known. */
uint64_t
verdict_used_bytes(const struct kmem_heartbeat *beat)
{
	return beat->cgroup_bytes != 0 ? beat->cgroup_bytes : beat->resident_bytes;
}

/* Of the process with the highest peak: what it held, and all that was in memory of it, filled the limit. NULL = never seen. */
const struct kmem_heartbeat *
verdict_fullest(const struct verdict_facts *facts)
{
	const struct model_process *process = facts->peak_process;
	const struct kmem_heartbeat *found = NULL;

	EACH (beat, process->heartbeats, process->heartbeat_count) {
		uint64_t tight_bytes = beat->limit_bytes / 100 * TIGHT_PERCENT;

		/* Memory that was not touched fills nothing, nor do pages of files, which the kernel takes back. */
		if (beat->limit_bytes != 0 && beat->live_bytes >= tight_bytes && beat->resident_bytes >= tight_bytes &&
		    (found == NULL || verdict_used_bytes(beat) > verdict_used_bytes(found)))
			found = beat;
	}
	return found;
}

uint64_t
verdict_most_resident_of(const struct model_process *process)
{
	uint64_t most_bytes = process->launcher != NULL ? process->launcher->max_resident_bytes : 0;
	uint64_t sampled_bytes = process->resident != NULL ? process->resident->resident_bytes : 0;

	return most_bytes != 0 && sampled_bytes > most_bytes ? sampled_bytes : most_bytes;
}

bool
verdict_is_beyond_memory(uint64_t bytes, uint64_t most_resident_bytes)
{
	return most_resident_bytes != 0 && bytes > most_resident_bytes + most_resident_bytes / BEYOND_PART;
}

uint64_t
verdict_peak_of(const struct model_process *process)
{
	uint64_t most = amount_greater(process->peak_bytes, process->live_bytes);

	most = amount_greater(most, MOST_OF(beat, process->heartbeats, process->heartbeat_count, beat->live_bytes));
	// these are closer together
	return amount_greater(most, MOST_OF(point, process->points, process->point_count, point->live_bytes));
}

bool
verdict_is_request_alone(const struct verdict_facts *facts)
{
	const struct model_failed *refused = facts->refused;

	return refused->bytes / MUCH_MORE > facts->live_bytes && refused->bytes / MUCH_MORE > facts->peak_bytes;
}

bool
verdict_is_beyond_machine(const struct verdict_facts *facts)
{
	const struct kmem_identity *identity = facts->process->identity;

	return identity->machine_bytes != 0 && facts->refused->bytes > identity->machine_bytes + identity->swap_bytes;
}

bool
verdict_is_other_status(const struct verdict_facts *facts)
{
	return facts->end == VERDICT_END_FAILED && facts->process->python_version != 0 && facts->exit_code != 1;
}

bool
verdict_is_end_unseen(const struct verdict_facts *facts)
{
	return facts->end == VERDICT_END_GONE && facts->refused->had_success_after && facts->refused->is_got_known;
}

bool
verdict_was_given_more(const struct verdict_facts *facts)
{
	return facts->refused->got_bytes >= ERROR_BYTES;
}

bool
verdict_was_perhaps_caught(const struct verdict_facts *facts)
{
	return verdict_was_given_more(facts) || verdict_is_other_status(facts);
}

bool
verdict_is_of_recording(const struct verdict_facts *facts)
{
	const struct model_failed *refused = facts->refused;

	return refused->space_limit_bytes != 0 && refused->own_space_bytes >= refused->space_limit_bytes;
}

const char *
verdict_note_of(const struct model_process *process, const char *begin)
{
	const char *const *found = FIRST(note, process->notes, process->note_count, text_starts(*note, begin));

	return found != NULL ? *found : NULL;
}

const char *
verdict_hidden_heap(const struct model *model)
{
	const char *note = NULL;

	for (size_t i = 0; i < model->process_count && note == NULL; i++)
		note = verdict_note_of(&model->processes[i], KMEM_NOTE_HIDDEN_HEAP);
	return note;
}

const struct kmem_limit *
verdict_address_limit(const struct verdict_facts *facts)
{
	uint64_t then_bytes = facts->refused->space_limit_bytes;

	EACH (limit, facts->process->identity->limits, KMEM_LIMITS_MAX) {
		bool is_space = limit->kind == KMEM_LIMIT_ADDRESS_SPACE;

		if ((is_space || limit->kind == KMEM_LIMIT_DATA) && limit->bytes != UINT64_MAX &&
		    !(is_space && then_bytes != 0 && then_bytes < limit->bytes / 100 * 99))
			return limit;
	}
	return NULL;
}

bool
verdict_has_address_limit(const struct verdict_facts *facts)
{
	return !facts->refused->is_by_guard &&
	       (verdict_address_limit(facts) != NULL || facts->refused->space_limit_bytes != 0 ||
	        facts->process->identity->overcommit_mode == 2 || verdict_is_beyond_machine(facts));
}
