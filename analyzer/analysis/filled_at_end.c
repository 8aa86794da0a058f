/*
 * filled_at_end.c - was a large block being filled when the kernel killed the process (see filled_at_end.h)?
 *
 * When failing  what cannot be known changes nothing.
 */
#include "analysis/filled_at_end.h"

#include <signal.h>
#include <sys/wait.h>

#define WORTH_PART 4 // of the limit: less may be anybody's

static uint64_t
lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t
less(uint64_t from, uint64_t bytes)
{
	return from > bytes ? from - bytes : 0;
}

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
			limit_bytes = lesser(limit_bytes, limit->bytes);
	}
	return limit_bytes == UINT64_MAX ? 0 : limit_bytes;
}

/* Memory that was taken after the last look, and what it is in is not known. */
static uint64_t
unexplained_bytes(const struct model_process *process, uint64_t limit_bytes)
{
	const struct kmem_heartbeat *last = &process->heartbeats[process->heartbeat_count - 1];
	uint64_t seen_bytes = process->resident->resident_bytes;
	uint64_t allocated_bytes = less(process->live_bytes, last->live_bytes + process->untouched_bytes);
	uint64_t grown_bytes;

	if (last->resident_bytes > seen_bytes)
		seen_bytes = last->resident_bytes;
	grown_bytes = less(limit_bytes, last->cgroup_bytes > seen_bytes ? last->cgroup_bytes : seen_bytes);
	if (process->launcher != NULL) // it saw the most that was in memory of this one
		grown_bytes = lesser(grown_bytes, less(process->launcher->max_resident_bytes, seen_bytes));
	/* Half as much again for malloc's own words, and what recording remembers of each block. */
	return less(grown_bytes, allocated_bytes + allocated_bytes / 2);
}

static void
touch(struct model *model, struct model_process *process, uint64_t bytes)
{
	double part = (double)bytes / (double)process->untouched_bytes;

	for (size_t i = 0; i < model->site_count; i++) {
		struct model_site *site = &model->sites[i];
		struct model_domain *domain = &model->domains[site->domain];
		uint64_t touched_bytes = lesser((uint64_t)((double)site->untouched_bytes * part), site->untouched_bytes);

		if (site->process_count != 1 || &model->processes[site->process] != process)
			continue;
		site->untouched_bytes -= touched_bytes;
		domain->untouched_bytes = less(domain->untouched_bytes, touched_bytes);
		process->untouched_bytes = less(process->untouched_bytes, touched_bytes);
	}
}

void
filled_at_end_settle(struct model *model, const struct verdict_now *now)
{
	for (size_t i = 0; i < model->process_count; i++) {
		struct model_process *process = &model->processes[i];
		uint64_t limit_bytes = limit_of(process);
		uint64_t bytes;

		if (limit_bytes == 0 || process->resident == NULL || process->heartbeat_count == 0 ||
		    process->untouched_bytes < limit_bytes / WORTH_PART || !was_killed_for_memory(model, now, process))
			continue;
		bytes = unexplained_bytes(process, limit_bytes);
		if (bytes >= limit_bytes / WORTH_PART)
			touch(model, process, lesser(bytes, process->untouched_bytes));
	}
}
