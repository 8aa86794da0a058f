/*
 * verdict_facts.c - what do the captures, the launcher and this machine show about the end?
 *
 * Called by   verdict.c.
 * When failing  what cannot be known is marked so; no conclusion is drawn here.
 */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "kill_counters.h"
#include "verdict.h"

#define NEAR_LIMIT_PERCENT 97      // charged of the limit at the last heartbeat; measured at kills: 98 and more
#define FAR_FROM_LIMIT_PERCENT 80  // below this, memory is not the suspect
#define LOW_AVAILABLE_PERCENT 5    // of the machine's memory
#define END_AFTER_REFUSAL_NS UINT64_C(5000000000) // a program that handles the error lives longer than this

const struct verdict_now *
verdict_now(void)
{
	static char boot_id[40];
	static const struct verdict_now now = { .boot_id = boot_id, .read_counters = kill_counters_read };
	FILE *stream = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (stream != NULL) {
		if (fgets(boot_id, sizeof(boot_id), stream) != NULL)
			boot_id[strcspn(boot_id, "\n")] = '\0';
		(void)fclose(stream);
	}
	return &now;
}

static enum verdict_end
end_of(const struct model_process *process, const struct verdict_now *now)
{
	const struct kmem_launcher *launcher = process->launcher;

	if (process->is_alive && launcher == NULL)
		return VERDICT_END_RUNNING;
	if (process->state == KMEM_STATE_EXEC_REPLACED)
		return VERDICT_END_OK;
	if (launcher != NULL && WIFSIGNALED(launcher->wait_status))
		return VERDICT_END_SIGNAL;
	if (launcher != NULL && WIFEXITED(launcher->wait_status))
		return WEXITSTATUS(launcher->wait_status) == 0 ? VERDICT_END_OK : VERDICT_END_FAILED;
	if (process->state == KMEM_STATE_CLEAN_EXIT)
		return process->exit_code > 0 ? VERDICT_END_FAILED : VERDICT_END_OK;
	if (process->identity->boot_id[0] == '\0' || strcmp(process->identity->boot_id, now->boot_id) != 0)
		return VERDICT_END_ELSEWHERE;
	return VERDICT_END_GONE;
}

/*
 * The first process of the session, or what it became by exec. When that one failed by itself and one of its
 * descendants is gone without a trace, the death to explain is the descendant's, the largest one's.
 */
static const struct model_process *
subject_of(const struct model *model, const struct verdict_now *now, const struct model_process **lost_child)
{
	const struct model_process *first = &model->processes[0];
	const struct model_process *lost = NULL;
	enum verdict_end end;

	for (size_t i = 1; i < model->process_count; i++) {
		const struct model_process *process = &model->processes[i];

		if (process->identity->pid == first->identity->pid && first->state == KMEM_STATE_EXEC_REPLACED)
			first = process;
		else if (end_of(process, now) == VERDICT_END_GONE &&
		         (lost == NULL || process->live_bytes > lost->live_bytes))
			lost = process;
	}
	end = end_of(first, now);
	*lost_child = end == VERDICT_END_OK ? lost : NULL;
	return lost != NULL && end == VERDICT_END_FAILED ? lost : first;
}

static uint64_t
moved(uint64_t before, uint64_t after, bool *is_known)
{
	*is_known = before != UINT64_MAX && after != UINT64_MAX && after >= before;
	return *is_known ? after - before : 0;
}

static void
gather_counters(const struct verdict_now *now, struct verdict_facts *facts)
{
	const struct model_process *process = facts->process;
	const struct kmem_kill_counters *before = &process->identity->before;
	const struct kmem_launcher *launcher = process->launcher;
	struct kmem_kill_counters after = { UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX };
	bool is_known;

	/* A descendant has no launcher of its own, but ended before the one that its session has. */
	if (launcher == NULL)
		launcher = facts->model->processes[0].launcher;
	if (launcher != NULL) {
		after = launcher->after;
	} else if (facts->end == VERDICT_END_GONE) {
		now->read_counters(process->identity, &after);
		facts->counters_are_late = true;
	}
	facts->cgroup_kills_before = before->cgroup_oom_kill;
	facts->cgroup_kills = moved(before->cgroup_oom_kill, after.cgroup_oom_kill, &facts->is_kill_counted);
	facts->machine_kills = moved(before->machine_oom_kill, after.machine_oom_kill, &facts->is_machine_counted);
	facts->limit_hits = moved(before->cgroup_oom, after.cgroup_oom, &is_known);
	if (process->identity->cgroup_version == 1)
		facts->limit_hits = moved(before->cgroup_max_hits, after.cgroup_max_hits, &is_known);
}

static void
gather_usage(struct verdict_facts *facts)
{
	const struct model_process *process = facts->process;

	facts->limit_bytes = UINT64_MAX;
	facts->available_bytes = UINT64_MAX;
	for (size_t i = 0; i < KMEM_LIMITS_MAX; i++) {
		if (process->identity->limits[i].kind == KMEM_LIMIT_CGROUP &&
		    process->identity->limits[i].bytes < facts->limit_bytes)
			facts->limit_bytes = process->identity->limits[i].bytes;
	}
	if (process->heartbeat_count != 0) {
		const struct kmem_heartbeat *last = &process->heartbeats[process->heartbeat_count - 1];

		facts->charged_bytes = last->cgroup_bytes;
		facts->resident_bytes = last->resident_bytes;
		facts->available_bytes = last->available_bytes;
		if (last->cgroup_bytes != 0)
			facts->limit_bytes = last->limit_bytes;
	}
	if (process->launcher != NULL && process->launcher->max_resident_bytes > facts->resident_bytes)
		facts->resident_bytes = process->launcher->max_resident_bytes;
	/* A limit that the machine cannot reach is none. */
	if (process->identity->machine_bytes != 0 && facts->limit_bytes != UINT64_MAX &&
	    facts->limit_bytes > process->identity->machine_bytes + process->identity->swap_bytes)
		facts->limit_bytes = UINT64_MAX;
}

static void
gather_holders(struct verdict_facts *facts)
{
	const struct model *model = facts->model;
	struct ranked *live = rank_run(model, &rank_sites, NULL);
	struct ranked *peak = rank_run(model, &rank_peak, NULL);

	for (size_t i = 0; i < model->domain_count; i++) {
		const struct model_domain *domain = &model->domains[i];

		if (rank_is_address_space(domain->name) || rank_domain_matches(domain->name, "cuda"))
			continue;
		facts->live_bytes += domain->live_bytes;
		if (domain->peak_bytes > facts->peak_bytes) {
			facts->peak_bytes = domain->peak_bytes;
			facts->peak_domain = domain->name;
		}
	}
	/* The first line of host memory that is not what imports left behind. */
	for (size_t i = 0; i < live->line_count && facts->top_live.site_count == 0; i++) {
		const char *domain = model->domains[live->lines[i].domain].name;

		if (live->lines[i].tier == 0 && live->lines[i].live_bytes != 0 && !rank_domain_matches(domain, "cuda")) {
			facts->top_live = live->lines[i];
			facts->top_live_domain = domain;
		}
	}
	for (size_t i = 0; i < peak->line_count && facts->top_peak.site_count == 0; i++) {
		if (peak->lines[i].tier == 0 && peak->lines[i].peak_bytes != 0 && facts->peak_domain != NULL &&
		    strcmp(model->domains[peak->lines[i].domain].name, facts->peak_domain) == 0)
			facts->top_peak = peak->lines[i];
	}
	rank_free(live);
	rank_free(peak);
}

/* CLOCK_MONOTONIC at the end; 0 = unknown. */
static uint64_t
ended_ns(const struct model_process *process)
{
	const struct kmem_launcher *launcher = process->launcher;
	const struct kmem_identity *identity = process->identity;

	if (process->ended_monotonic_ns != 0)
		return process->ended_monotonic_ns;
	if (launcher == NULL || launcher->ended_realtime_ns <= identity->start_realtime_ns)
		return 0;
	return identity->start_monotonic_ns + (launcher->ended_realtime_ns - identity->start_realtime_ns);
}

static bool
is_last_of_process(const struct model *model, const struct model_failed *failed)
{
	for (size_t i = 0; i < model->failed_count; i++) {
		if (model->failed[i].process == failed->process && model->failed[i].monotonic_ns > failed->monotonic_ns)
			return false;
	}
	return true;
}

const char *
verdict_request_state(const struct model *model, const struct verdict_now *now, const struct model_failed *failed)
{
	const struct model_process *process = &model->processes[failed->process];
	enum verdict_end end = end_of(process, now);
	uint64_t ended = ended_ns(process);

	if (end == VERDICT_END_RUNNING)
		return failed->had_success_after ? "recovered" : "pending";
	if (end == VERDICT_END_OK)
		return "recovered";
	if (!failed->had_success_after)
		return "fatal";
	/* Writing the error's message allocates too: ending right after it is no recovery. */
	if (end != VERDICT_END_ELSEWHERE && is_last_of_process(model, failed) && ended >= failed->monotonic_ns &&
	    ended - failed->monotonic_ns < END_AFTER_REFUSAL_NS)
		return "fatal";
	return "recovered";
}

void
verdict_facts_gather(const struct model *model, const struct verdict_now *now, struct verdict_facts *facts)
{
	*facts = (struct verdict_facts){ .model = model, .exit_code = -1 };
	facts->process = subject_of(model, now, &facts->lost_child);
	facts->end = end_of(facts->process, now);
	facts->is_descendant = facts->process->identity->pid != model->processes[0].identity->pid;
	if (facts->process->launcher != NULL && WIFSIGNALED(facts->process->launcher->wait_status))
		facts->signal = WTERMSIG(facts->process->launcher->wait_status);
	else if (facts->process->launcher != NULL && WIFEXITED(facts->process->launcher->wait_status))
		facts->exit_code = WEXITSTATUS(facts->process->launcher->wait_status);
	else if (facts->process->state == KMEM_STATE_CLEAN_EXIT)
		facts->exit_code = facts->process->exit_code;
	gather_counters(now, facts);
	gather_usage(facts);
	gather_holders(facts);
	for (size_t i = 0; i < model->failed_count; i++) {
		const struct model_failed *failed = &model->failed[i];

		if (&model->processes[failed->process] == facts->process &&
		    strcmp(verdict_request_state(model, now, failed), "fatal") == 0)
			facts->refused = failed;
	}
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
	                    (facts->charged_bytes != 0 &&
	                     facts->charged_bytes < facts->limit_bytes / 100 * FAR_FROM_LIMIT_PERCENT);

	return is_limit_far && !verdict_is_machine_low(facts) && facts->refused == NULL;
}
