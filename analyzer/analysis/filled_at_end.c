/*
 * filled_at_end.c - was a large block being filled when the process ended (see filled_at_end.h)?
 *
 * When failing  what cannot be known changes nothing.
 */
#include "analysis/filled_at_end.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/amount.h"

#define WORTH_PART 4 // of the limit: less may be anybody's
#define WHOLE_PART 8 // of the peak: what is missing at the end to as much was freed

/* The kernel counted a kill for memory in its cgroup, and it may be the one. */
static bool
was_killed_for_memory(const struct model *model, const struct verdict_now *now, const struct model_process *process)
{
	const struct kmem_launcher *launcher = process->launcher != NULL ? process->launcher : model->processes[0].launcher;
	uint64_t before = process->identity->before.cgroup_oom_kill;
	enum verdict_end end = verdict_end_of(process, now);
	struct kmem_kill_counters after;

	if (end != VERDICT_END_GONE && (end != VERDICT_END_SIGNAL || WTERMSIG(process->launcher->wait_status) != SIGKILL))
		return false;
	if (launcher != NULL)
		after = launcher->after;
	else
		now->read_counters(process->identity, &after);
	return before != UINT64_MAX && after.cgroup_oom_kill != UINT64_MAX && after.cgroup_oom_kill > before;
}

/* 0 = none, or not known. */
static uint64_t
limit_of(const struct model_process *process)
{
	uint64_t limit_bytes = UINT64_MAX;

	for (size_t i = 0; i < KMEM_LIMITS_MAX; i++) {
		const struct kmem_limit *limit = &process->identity->limits[i];

		if (limit->kind == KMEM_LIMIT_CGROUP || limit->kind == KMEM_LIMIT_MACHINE)
			limit_bytes = amount_lesser(limit_bytes, limit->bytes);
	}
	return limit_bytes == UINT64_MAX ? 0 : limit_bytes;
}

/* Memory that was taken after the last look, and what it is in is not known. */
static uint64_t
unexplained_bytes(const struct model_process *process, uint64_t limit_bytes)
{
	const struct kmem_heartbeat *last = model_last_beat(process);
	uint64_t seen_bytes = process->resident->resident_bytes;
	uint64_t allocated_bytes = amount_less(process->live_bytes, last->live_bytes + process->untouched_bytes);
	uint64_t grown_bytes;

	if (last->resident_bytes > seen_bytes)
		seen_bytes = last->resident_bytes;
	grown_bytes = amount_less(limit_bytes, last->cgroup_bytes > seen_bytes ? last->cgroup_bytes : seen_bytes);
	if (process->launcher != NULL) // it saw the most that was in memory of this one
		grown_bytes = amount_lesser(grown_bytes, amount_less(process->launcher->max_resident_bytes, seen_bytes));
	/* Half as much again for malloc's own words, and what recording remembers of each block. */
	return amount_less(grown_bytes, allocated_bytes + allocated_bytes / 2);
}

static void
touch(struct model *model, struct model_process *process, uint64_t bytes)
{
	double part = (double)bytes / (double)process->untouched_bytes;

	for (size_t i = 0; i < model->site_count; i++) {
		struct model_site *site = &model->sites[i];
		struct model_domain *domain = &model->domains[site->domain];
		uint64_t touched_bytes = amount_lesser((uint64_t)((double)site->untouched_bytes * part), site->untouched_bytes);

		if (site->process_count != 1 || &model->processes[site->process] != process)
			continue;
		site->untouched_bytes -= touched_bytes;
		domain->untouched_bytes = amount_less(domain->untouched_bytes, touched_bytes);
		process->untouched_bytes = amount_less(process->untouched_bytes, touched_bytes);
	}
}

static uint64_t
most_seen_bytes(const struct model_process *process)
{
	uint64_t most = process->resident->resident_bytes;

	for (size_t i = 0; i < process->heartbeat_count; i++) {
		if (process->heartbeats[i].resident_bytes > most)
			most = process->heartbeats[i].resident_bytes;
	}
	return most;
}

/*
 * However it ended: the launcher saw more in memory than any look. What held that may have been freed since, unless no more was ever
 * live than at the end; and of several processes it may be another one.
 */
static uint64_t
seen_by_launcher(const struct model *model, const struct model_process *process)
{
	if (process->launcher == NULL || model->process_count != 1 || process->state == KMEM_STATE_CLEAN_EXIT ||
	    process->heartbeat_count == 0 || process->live_bytes < process->peak_bytes / WHOLE_PART * (WHOLE_PART - 1))
		return 0;
	uint64_t allocated_bytes = amount_less(process->live_bytes,
	                                       model_last_beat(process)->live_bytes + process->untouched_bytes);

	return amount_less(amount_less(process->launcher->max_resident_bytes, most_seen_bytes(process)),
	                   allocated_bytes + allocated_bytes / 2);
}

void
filled_at_end_settle(struct model *model, const struct verdict_now *now)
{
	for (size_t i = 0; i < model->process_count; i++) {
		struct model_process *process = &model->processes[i];
		uint64_t worth_bytes = limit_of(process) / WORTH_PART;
		uint64_t bytes;

		if (process->resident == NULL || process->heartbeat_count == 0 || process->untouched_bytes == 0)
			continue;
		if (worth_bytes != 0 && process->untouched_bytes >= worth_bytes && was_killed_for_memory(model, now, process)) {
			bytes = unexplained_bytes(process, limit_of(process));
			bytes = bytes >= worth_bytes ? bytes : 0;
		} else {
			bytes = seen_by_launcher(model, process);
		}
		if (bytes != 0)
			touch(model, process, amount_lesser(bytes, process->untouched_bytes));
	}
}
