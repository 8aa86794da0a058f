/*
 * filled_at_end.c - was a large block being filled when the process ended (see filled_at_end.h)?
 *
 * When failing  what cannot be known changes nothing.
 */
#include "analysis/filled_at_end.h"

#include <signal.h>
#include <sys/wait.h>

#include "analysis/end_log.h"
#include "base/items.h"
#include "base/amount.h"

#define WORTH_ASKING_BYTES (UINT64_C(16) << 20)
#define WORTH_PART 4                    // of the limit
#define WHOLE_PART 8                    // of the peak: what is missing at the end to as much was freed
#define BLOCK_OWN_BYTES 64              // around a block and for it, and no more than half of it
#define MOST (UINT64_C(1) << 40)        // of a site: a capture may say anything
#define LARGE_BYTES (UINT64_C(1) << 20) // looks list blocks of so many

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

	EACH (limit, process->identity->limits, KMEM_LIMITS_MAX) {
		if (limit->kind == KMEM_LIMIT_CGROUP || limit->kind == KMEM_LIMIT_MACHINE)
			limit_bytes = amount_lesser(limit_bytes, limit->bytes);
	}
	return limit_bytes == UINT64_MAX ? 0 : limit_bytes;
}

/* By how much what it had in memory grew after the last look. What was allocated since explains a part of that. */
struct growth {
	uint64_t least_bytes; // surely
	uint64_t most_bytes;  // perhaps
};

static uint64_t
seen_bytes_of(const struct model_process *process)
{
	uint64_t look_bytes = process->resident->resident_bytes;
	uint64_t beat_bytes = model_last_beat(process)->resident_bytes;

	return look_bytes > beat_bytes ? look_bytes : beat_bytes;
}

/* No more than fits below the limit, and than the launcher saw of this one. */
static uint64_t
room_bytes(const struct model_process *process, uint64_t limit_bytes)
{
	uint64_t seen_bytes = seen_bytes_of(process);
	uint64_t charged_bytes = model_last_beat(process)->cgroup_bytes;
	uint64_t room = amount_less(limit_bytes, charged_bytes > seen_bytes ? charged_bytes : seen_bytes);

	return process->launcher != NULL
	           ? amount_lesser(room, amount_less(process->launcher->max_resident_bytes, seen_bytes))
	           : room;
}

static uint64_t
most_seen_bytes(const struct model_process *process)
{
	return amount_greater(process->resident->resident_bytes,
	                      MOST_OF(beat, process->heartbeats, process->heartbeat_count, beat->resident_bytes));
}

/*
 * However it ended: the launcher saw more in memory than any look. What held that may have been freed since, unless no more was ever
 * live than at the end; and of several processes it may be another one.
 */
static uint64_t
seen_by_launcher(const struct model *model, const struct model_process *process)
{
	if (process->launcher == NULL || model->process_count != 1 || process->state == KMEM_STATE_CLEAN_EXIT ||
	    process->live_bytes < process->peak_bytes / WHOLE_PART * (WHOLE_PART - 1))
		return 0;
	return amount_less(process->launcher->max_resident_bytes, most_seen_bytes(process));
}

/* logged_bytes: what the kernel said was in memory when it killed it; 0 = nothing. */
static struct growth
growth_of(const struct model *model, const struct verdict_now *now, const struct model_process *process, bool is_sudden,
          uint64_t logged_bytes)
{
	uint64_t limit_bytes = limit_of(process);
	uint64_t room = room_bytes(process, limit_bytes != 0 ? limit_bytes : UINT64_MAX);
	uint64_t bytes;

	if (logged_bytes != 0) {
		bytes = amount_less(logged_bytes, seen_bytes_of(process));
		return (struct growth){ bytes, bytes };
	}
	if (limit_bytes != 0 && process->untouched_bytes >= limit_bytes / WORTH_PART &&
	    was_killed_for_memory(model, now, process)) {
		bytes = room >= limit_bytes / WORTH_PART ? room : 0; // less may be anybody's
		return (struct growth){ bytes, bytes };
	}
	bytes = seen_by_launcher(model, process);
	return (struct growth){ bytes, is_sudden && room > bytes ? room : bytes };
}

/* Beside the lines, at the last look. */
static uint64_t
beside_bytes(const struct model_process *process)
{
	const uint64_t *parts = process->resident->part_bytes;

	return parts[KMEM_RESIDENT_OWN] + parts[KMEM_RESIDENT_PROGRAM] + parts[KMEM_RESIDENT_STACKS];
}

/* Of what is allocated: malloc's own words, and what recording remembers of each block. */
static double
beside_blocks_part(const struct model *model)
{
	double bytes = (double)SUM_OF(site, model->sites, model->site_count, amount_lesser(site->live_bytes, MOST));
	double count = (double)SUM_OF(site, model->sites, model->site_count, amount_lesser(site->live_count, MOST));

	return BLOCK_OWN_BYTES / (bytes / (1 + count) + 2 * BLOCK_OWN_BYTES);
}

/* What no look knew explains growth before what a look saw untouched does. */
static uint64_t
without_what_was_allocated(const struct model_process *process, double beside_part, uint64_t bytes)
{
	uint64_t known_bytes = amount_lesser(model_last_beat(process)->live_bytes,
	                                     amount_less(process->resident->resident_bytes, beside_bytes(process)));
	uint64_t allocated_bytes = amount_less(amount_less(process->live_bytes, process->untouched_bytes), known_bytes);

	return amount_less(bytes, allocated_bytes + (uint64_t)((double)allocated_bytes * beside_part));
}

/* Each site gets its share. is_new: only what the look before did not have. */
static uint64_t
touch(struct model *model, struct model_process *process, uint64_t bytes, bool is_new)
{
	uint64_t whole_bytes = is_new ? process->new_untouched_bytes : process->untouched_bytes;
	uint64_t sum_bytes = 0;
	double part = whole_bytes != 0 ? (double)amount_lesser(bytes, whole_bytes) / (double)whole_bytes : 0;

	EACH (site, model->sites, model->site_count) {
		struct model_domain *domain = &model->domains[site->domain];
		uint64_t of_bytes = is_new ? site->new_untouched_bytes : site->untouched_bytes;
		uint64_t touched_bytes = amount_lesser((uint64_t)((double)of_bytes * part), site->untouched_bytes);

		if (site->process_count != 1 || &model->processes[site->process] != process)
			continue;
		site->untouched_bytes -= touched_bytes;
		domain->untouched_bytes = amount_less(domain->untouched_bytes, touched_bytes);
		process->untouched_bytes = amount_less(process->untouched_bytes, touched_bytes);
		sum_bytes += touched_bytes;
	}
	return sum_bytes;
}

/*
 * Lines never had more in memory. The limit does not count pages of libraries that another container read first; the others do. UINT64_MAX:
 * not known.
 */
static uint64_t
most_at_lines(const struct model_process *process, uint64_t logged_bytes)
{
	uint64_t limit_bytes = limit_of(process);
	uint64_t most = limit_bytes != 0 ? amount_less(limit_bytes, process->resident->part_bytes[KMEM_RESIDENT_OWN])
	                                 : UINT64_MAX;

	if (process->launcher != NULL && process->launcher->max_resident_bytes != 0)
		most = amount_lesser(most, amount_less(process->launcher->max_resident_bytes, beside_bytes(process)));
	return logged_bytes != 0 ? amount_lesser(most, amount_less(logged_bytes, beside_bytes(process))) : most;
}

/* Of what a line took after the last look, the part that is untouched if it went on as before; what that look did not know may be. */
static uint64_t
likely_untouched(const struct model *model, const struct model_process *process, const struct model_site *site)
{
	uint64_t later_bytes = amount_less(site->live_bytes, site->large_bytes);

	// what is shared another process may have written: this one does not see it
	if (site->process_count != 1 || &model->processes[site->process] != process ||
	    (model->domains[site->domain].id.kind == DOMAIN_SHARED && model->process_count > 1))
		return 0;
	if (site->large_bytes == 0)
		return site->live_count != 0 && site->live_bytes / site->live_count >= LARGE_BYTES &&
		               domain_is_host(model->domains[site->domain].id.kind)
		           ? later_bytes
		           : 0;
	return (uint64_t)((double)later_bytes * (1 - (double)site->large_resident_bytes / (double)site->large_bytes));
}

/* More would be in memory than there ever was: lines that the last look found untouched went on so, and what it did not know had no room. */
static void
leave_untouched(struct model *model, struct model_process *process, uint64_t most_bytes)
{
	uint64_t beyond_bytes = amount_less(amount_less(process->live_bytes, process->untouched_bytes), most_bytes);
	uint64_t likely_bytes = 0;

	for (size_t i = 0; beyond_bytes != 0 && i < model->site_count; i++)
		likely_bytes += likely_untouched(model, process, &model->sites[i]);
	for (size_t i = 0; likely_bytes != 0 && i < model->site_count; i++) {
		struct model_site *site = &model->sites[i];
		uint64_t later_bytes = likely_untouched(model, process, site);
		uint64_t bytes = (uint64_t)((double)later_bytes / (double)likely_bytes *
		                            (double)amount_lesser(beyond_bytes, likely_bytes));

		bytes = amount_lesser(bytes, amount_less(site->live_bytes, site->untouched_bytes));
		site->untouched_bytes += bytes;
		model->domains[site->domain].untouched_bytes += bytes;
		process->untouched_bytes += bytes;
		process->filled_bytes += amount_less(later_bytes, bytes);
	}
}

void
filled_at_end_settle(struct model *model, const struct verdict_now *now)
{
	double beside_part = beside_blocks_part(model);

	EACH (process, model->processes, model->process_count) {
		bool is_sudden = verdict_is_sudden(verdict_end_of(process, now));
		uint64_t told_bytes = amount_less(process->live_bytes, process->untouched_bytes); // in memory, without more
		uint64_t logged_bytes = 0;

		if (process->resident == NULL || process->heartbeat_count == 0)
			continue;
		// to ask the logs takes a tenth of a second, and there may be hundreds of workers
		if (is_sudden && (process->untouched_bytes >= WORTH_ASKING_BYTES ||
		                  amount_less(told_bytes, most_at_lines(process, 0)) >= WORTH_ASKING_BYTES))
			logged_bytes = end_log_find(process, now).resident_bytes;
		struct growth growth = growth_of(model, now, process, is_sudden, logged_bytes);

		growth.least_bytes = without_what_was_allocated(process, beside_part, growth.least_bytes);
		growth.most_bytes = without_what_was_allocated(process, beside_part, growth.most_bytes);

		uint64_t new_bytes = touch(model, process, growth.most_bytes, true);

		process->is_filling_known = new_bytes <= growth.least_bytes;
		process->filled_bytes = new_bytes + touch(model, process, amount_less(growth.least_bytes, new_bytes), false);
		if (is_sudden)
			leave_untouched(model, process, most_at_lines(process, logged_bytes));
	}
}
