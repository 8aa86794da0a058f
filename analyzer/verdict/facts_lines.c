/*
 * facts_lines.c - who held the memory, at the end and at the peak: which processes, which lines?
 *
 * When failing  what cannot be known is marked so.
 */
#include <stdlib.h>
#include <string.h>

#include "analysis/grows_with.h"
#include "analysis/kept_way.h"
#include "analysis/line_growth.h"
#include "base/items.h"
#include "base/memory.h"
#include "model/model_holders.h"
#include "verdict/facts.h"

#define BEAT_RECENT_NS UINT64_C(2000000000) // a process at work writes one every second
#define ACCUMULATING_BYTES (UINT64_C(16) << 20)
#define BACKLOG_BLOCKS_MIN 64  // of a queue that is alive
#define NEXT_PART 2            // of the first line: as much as this makes the next one worth telling
#define NEXT_LIVE_PART 8       // and of all that was live
#define LAST_PART 8            // the same of a line that came last
#define GROWING_PART 8         // of a line: if less of it accumulates, that is not what it holds memory for
#define BESIDE_ARENAS_PART 100 // of Python's arenas: less says nothing of who fills them
#define SWEPT_PART 20          // of the most in memory: less is not worth a word
#define KIND_PART 4  // of what it holds most of: another kind of as much tells of a line that cannot be judged else
#define ARENA_PART 4 // of Python's arenas: as much as this makes a line tell more than they do

/* Did it run when the one that this is about ended? False when nothing shows it. */
static bool
ran_at_end(const struct verdict_facts *facts, const struct model_process *process, uint64_t end_ns)
{
	if (process == facts->process)
		return true;
	if (process->state == KMEM_STATE_EXEC_REPLACED ||
	    strcmp(process->identity->boot_id, facts->process->identity->boot_id) != 0)
		return false;
	// later: a parent that outlived its worker, with what it held at its own end
	if (process->state == KMEM_STATE_CLEAN_EXIT)
		return facts->end != VERDICT_END_RUNNING && process->identity->start_monotonic_ns <= end_ns &&
		       process->ended_monotonic_ns > end_ns;
	if (facts->end == VERDICT_END_RUNNING)
		return process->is_alive;
	return process->identity->start_monotonic_ns <= end_ns &&
	       (process->is_alive || model_last_seen_ns(process) + BEAT_RECENT_NS >= end_ns);
}

/* When it ended or, where that is not known, when it or another that did not end well was last seen at work. */
static uint64_t
end_or_last_seen_ns(const struct verdict_facts *facts)
{
	uint64_t last = model_ended_ns(facts->process);

	for (size_t i = 0; i < facts->model->process_count && model_ended_ns(facts->process) == 0; i++) {
		const struct model_process *process = &facts->model->processes[i];
		bool is_over = process->state == KMEM_STATE_CLEAN_EXIT || process->state == KMEM_STATE_EXEC_REPLACED;

		if (!is_over && model_last_seen_ns(process) > last)
			last = model_last_seen_ns(process);
	}
	return last;
}

/*
 * What it held at that time. One that went on, and released some of it since, was seen at work before. Never less than at its end, from
 * which its lines are told.
 */
static uint64_t
live_then(const struct verdict_facts *facts, const struct model_process *process, uint64_t end_ns)
{
	uint64_t seen_bytes = 0;

	for (size_t i = 0;
	     i < process->heartbeat_count && process != facts->process && process->state == KMEM_STATE_CLEAN_EXIT; i++) {
		if (process->heartbeats[i].monotonic_ns <= end_ns)
			seen_bytes = process->heartbeats[i].live_bytes;
	}
	return seen_bytes > process->live_bytes ? seen_bytes : process->live_bytes;
}

/*
 * Is the line part of what the processes marked in `is_meant` held? False: no. Sites of several processes are merged:
 * then *sum_of is how many processes its figures are a sum of, else 0.
 */
static bool
is_line_of(const struct ranked *ranked, const struct rank_line *line, const bool *is_meant,
           uint64_t (*bytes)(const struct model_site *), uint32_t *sum_of)
{
	bool is_part = false;
	bool is_whole = true;
	uint32_t processes = 1;

	for (size_t i = 0; i < line->site_count; i++) {
		const struct model_site *site = ranked->sites[line->first_site + i];

		if (bytes(site) == 0)
			continue;
		is_part = is_part || site->process_count > 1 || is_meant[site->process];
		is_whole = is_whole && site->process_count == 1 && is_meant[site->process];
		if (site->process_count > processes)
			processes = site->process_count;
	}
	*sum_of = is_whole ? 0 : processes;
	return is_part;
}

bool
verdict_is_arena(const struct verdict_facts *facts, const struct rank_line *line)
{
	return line->site_count != 0 && facts->model->domains[line->domain].id.kind == DOMAIN_PYTHON_ARENA;
}

const struct holders_line *
verdict_holders_of(const struct verdict_facts *facts, const struct rank_line *line)
{
	return model_holders_of(facts->model, line->where, facts->model->domains[line->domain].id.kind);
}

bool
verdict_is_rest_of_arenas(const struct rank_line *line)
{
	return line->largest != NULL && line->largest->is_rest_of_arenas;
}

static uint64_t
host_live_bytes(const struct verdict_facts *facts)
{
	return SUM_OF(domain, facts->model->domains, facts->model->domain_count,
	              domain_is_host(domain->id.kind) ? domain->live_bytes : 0);
}

/*
 * Arenas hold what imports left as well, and nobody knows how much of them: unless they hold most of the memory, a line
 * that is not much smaller is the better clue. So it is where they are left free: by those lines, perhaps.
 */
static bool
tells_more(const struct verdict_facts *facts, const struct rank_line *line)
{
	return verdict_is_arena(facts, &facts->top_live) && facts->top_live.live_bytes < host_live_bytes(facts) / 2 &&
	       line->live_bytes >= facts->top_live.live_bytes / ARENA_PART;
}

static void
forget_trifling_growth(struct rank_line *line)
{
	if (line->leak == MODEL_LEAK_LEAK && line->leaking_bytes < line->live_bytes / GROWING_PART)
		line->leak = MODEL_LEAK_STEADY;
}

/* A person who is told of one line alone would miss the other half. */
static void
find_next(struct verdict_facts *facts, const struct ranked *live)
{
	EACH (line, live->lines, live->line_count) {
		if (line->tier != 0 || line->first_site == facts->top_live.first_site ||
		    (line->where != NULL && line->where == facts->top_live.where) || verdict_is_arena(facts, line) ||
		    !domain_is_host(facts->model->domains[line->domain].id.kind))
			continue;
		if (line->live_bytes >= facts->top_live.live_bytes / NEXT_PART &&
		    line->live_bytes >= facts->live_bytes / NEXT_LIVE_PART)
			facts->next_live = *line;
		forget_trifling_growth(&facts->next_live);
		return;
	}
}

/* The largest that has allocated in the last stretch of the run alone, where another one had done so before. */
static void
find_last_taker(struct verdict_facts *facts, const struct ranked *live)
{
	uint64_t most_bytes = (facts->live_bytes + facts->untouched_bytes) / LAST_PART;

	if (facts->top_live.telling->generations_total <= 1)
		return;
	EACH (line, live->lines, live->line_count) {
		uint64_t bytes = line->largest->live_bytes; // smaller blocks of the line may be older

		if (line->tier == 0 && line->where != NULL && !line->is_import && line->largest->generations_total == 1 &&
		    bytes >= most_bytes && domain_is_host(facts->model->domains[line->domain].id.kind) &&
		    !verdict_is_arena(facts, line)) {
			facts->last_taker = *line;
			most_bytes = bytes + 1;
		}
	}
}

/* Who makes small objects makes larger blocks, too, as a rule: lists and dictionaries of them. */
static void
find_beside_arenas(struct verdict_facts *facts, const struct ranked *live)
{
	if (!verdict_is_arena(facts, &facts->top_live) || facts->top_live.leak != MODEL_LEAK_LEAK ||
	    facts->next_live.site_count != 0)
		return;
	EACH (line, live->lines, live->line_count) {
		if (line->leak == MODEL_LEAK_LEAK && !verdict_is_arena(facts, line) && line->where != NULL &&
		    line->where->is_user && domain_is_host(facts->model->domains[line->domain].id.kind) &&
		    line->leaking_bytes >= facts->top_live.live_bytes / BESIDE_ARENAS_PART &&
		    line->leaking_bytes > facts->beside_arenas.leaking_bytes)
			facts->beside_arenas = *line;
	}
}

#define ONE_PROCESS_PERCENT 90 // of what a line holds

/* The process that has nearly all that is live at a line, or leaks there; NULL = it is shared among several. */
static const struct model_process *
process_of(const struct verdict_facts *facts, const struct ranked *live, const struct rank_line *line, bool is_of_leak)
{
	unsigned process = (is_of_leak ? line->telling : line->largest)->process;
	uint64_t all_bytes = 0;
	uint64_t its_bytes = 0;

	for (size_t i = 0; i < line->site_count; i++) {
		const struct model_site *site = live->sites[line->first_site + i];

		if (is_of_leak && site->leak != MODEL_LEAK_LEAK)
			continue;
		all_bytes += site->live_bytes;
		its_bytes += site->process == process ? site->most_live_bytes : 0;
	}
	return its_bytes >= all_bytes / 100 * ONE_PROCESS_PERCENT ? &facts->model->processes[process] : NULL;
}

#define ALIKE_PART 4 // of a sum: with less more, each of its processes would hold what the first one does

/* Does each process that has the line hold about as much of it: one thing, made as often? 0 = no. Else how many do. What they share is one. */
static uint32_t
copies_of(const struct verdict_facts *facts, const struct ranked *live, const struct rank_line *line)
{
	const struct model_site **sites = &live->sites[line->first_site];
	uint64_t all_bytes = SUM_OF(site, sites, line->site_count, (*site)->live_bytes);
	uint64_t most_bytes = SUM_OF(site, sites, line->site_count, (*site)->most_live_bytes);
	uint64_t count = line->largest->process_count;

	return count > 1 && most_bytes != 0 && facts->model->domains[line->domain].id.kind != DOMAIN_SHARED &&
	               most_bytes <= (all_bytes + all_bytes / ALIKE_PART) / count
	           ? (uint32_t)count
	           : 0;
}

#define BESIDE_PART 20                         // of all that is live: less is not worth a sentence,
#define WORTH_BESIDE_BYTES (UINT64_C(1) << 20) // and less than this never; ACCUMULATING_BYTES always are

/* A worker that grows, beside a table that holds more: who is told of the table alone looks at the wrong line. */
static void
find_beside(struct verdict_facts *facts, const struct ranked *live)
{
	uint64_t part_bytes = host_live_bytes(facts) / BESIDE_PART;
	uint64_t worth_bytes = part_bytes < WORTH_BESIDE_BYTES ? WORTH_BESIDE_BYTES : part_bytes;

	EACH (line, live->lines, live->line_count) {
		bool is_told = line->where == NULL || line->where == facts->top_live.where ||
		               line->where == facts->next_live.where || line->where == facts->beside_arenas.where ||
		               lines_grow_together(&facts->top_live, line);

		if (line->leak == MODEL_LEAK_LEAK && !is_told && !verdict_is_arena(facts, line) &&
		    domain_is_host(facts->model->domains[line->domain].id.kind) &&
		    (line->leaking_bytes >= worth_bytes || line->leaking_bytes >= ACCUMULATING_BYTES) &&
		    line->leaking_bytes > facts->beside.leaking_bytes)
			facts->beside = *line;
	}
	if (facts->beside.site_count != 0)
		facts->beside_process = process_of(facts, live, &facts->beside, true);
}

/*
 * What does not grow was there all along. A leak beside it that holds half as much, or that has most of what the process gained since it began
 * and did not end well, comes first.
 */
static void
prefer_leak(struct verdict_facts *facts)
{
	const struct rank_line top = facts->top_live;
	bool has_next = facts->next_live.site_count != 0 && facts->next_live.leak == MODEL_LEAK_LEAK;
	struct rank_line *leak = has_next ? &facts->next_live : &facts->beside;

	if (facts->model->process_count != 1 || facts->refused != NULL || top.leak == MODEL_LEAK_LEAK ||
	    leak->site_count == 0 || ((facts->end == VERDICT_END_OK || !has_next) && rank_may_be_built_once(leak->telling)))
		return;
	struct line_growth growth = line_growth_of(facts->model, leak);

	if (!has_next && (facts->end == VERDICT_END_OK || !growth.is_known || leak->leaking_bytes < growth.whole_bytes / 2))
		return;
	facts->top_live = *leak;
	leak->site_count = 0;
	facts->next_live = top;
}

/* In the processes marked in `is_meant`; 0 when some of it may be others'. */
static uint64_t
left_by_imports(const struct verdict_facts *facts, const bool *is_meant)
{
	const struct model *model = facts->model;
	uint64_t bytes = 0;

	EACH (site, model->sites, model->site_count) {
		if (site->leak != MODEL_LEAK_IMPORT || site->live_bytes == 0 || rank_is_start_up(site) ||
		    !domain_is_host(model->domains[site->domain].id.kind))
			continue;
		if (site->process_count > 1)
			return 0;
		bytes += is_meant[site->process] ? verdict_less_untouched(facts, site->live_bytes, site->untouched_bytes) : 0;
	}
	return bytes;
}

/* Of its kind of memory some was not touched, and nobody knows at which line. */
static bool
is_unclear(const struct verdict_facts *facts, const struct rank_line *line)
{
	const struct model_domain *domain = &facts->model->domains[line->domain];

	return facts->model->process_count == 1 &&
	       verdict_untouched_bytes(facts->process, domain) > domain->untouched_bytes;
}

/*
 * One line of code has objects, the list of them, and what malloc made of it: a person who is told of one kind alone misses the rest. Of
 * what is mostly untouched only the rest counts. What a library's allocator has is told by itself.
 */
static struct rank_line
sum_kinds(const struct verdict_facts *facts, const struct ranked *ranked, const struct rank_line *top, bool is_peak)
{
	struct rank_line sum = *top;

	if (top->where == NULL || top->largest->library != NULL || verdict_is_arena(facts, top))
		return sum;
	sum.exact_bytes = top->sample_bytes != 0 ? 0 : is_peak ? top->peak_bytes : top->live_bytes;
	EACH (line, ranked->lines, ranked->line_count) {
		uint64_t bytes = is_peak ? line->peak_bytes : line->live_bytes;

		if (line->where != top->where || line->first_site == top->first_site || line->is_import || bytes == 0 ||
		    line->largest->library != NULL || (is_peak && is_unclear(facts, line)) ||
		    line->largest->where_relation != top->largest->where_relation ||
		    !domain_is_host(facts->model->domains[line->domain].id.kind))
			continue;
		sum.live_bytes += line->live_bytes;
		sum.peak_bytes += line->peak_bytes;
		sum.leaking_bytes += line->leaking_bytes;
		sum.released_bytes += line->released_bytes;
		if (!verdict_tells_in_memory(bytes, is_peak ? line->peak_untouched_bytes : line->untouched_bytes)) {
			sum.untouched_bytes += line->untouched_bytes;
			sum.peak_untouched_bytes += line->peak_untouched_bytes;
		}
		sum.exact_bytes += line->sample_bytes == 0 ? bytes : 0;
		sum.sample_bytes = amount_greater(line->sample_bytes, sum.sample_bytes);
	}
	return sum;
}

#define SUMMED_MAX 16 // of the lines that hold most of one kind

static bool
may_be_top(const struct verdict_facts *facts, const struct rank_line *line, uint64_t bytes)
{
	return line->tier == 0 && bytes != 0 && line->where != NULL && !verdict_is_arena(facts, line) &&
	       domain_is_host(facts->model->domains[line->domain].id.kind);
}

/* Of one line that cannot be judged by what it holds most of, another kind of memory may tell. */
static void
prefer_growing(struct verdict_facts *facts, const struct ranked *live)
{
	const struct rank_line *top = &facts->top_live;
	const struct rank_line *found = FIRST(
		line, live->lines, live->line_count < SUMMED_MAX ? live->line_count : SUMMED_MAX,
		may_be_top(facts, line, line->live_bytes) && line->leak == MODEL_LEAK_LEAK && line->where == top->where &&
			top->leak == MODEL_LEAK_TOO_SHORT && line->leaking_bytes >= line->live_bytes / GROWING_PART &&
			line->leaking_bytes >= top->live_bytes / KIND_PART);

	if (found != NULL && !verdict_is_arena(facts, top))
		facts->top_live = *found;
}

/* Another line may hold more, in several kinds of memory. */
static void
prefer_larger_sum(struct verdict_facts *facts, const struct ranked *live, const bool *is_meant)
{
	if (facts->top_live.where == NULL || facts->model->process_count != 1)
		return;
	prefer_growing(facts, live);

	uint64_t most_bytes = sum_kinds(facts, live, &facts->top_live, false).live_bytes;

	for (size_t i = 0; i < live->line_count && i < SUMMED_MAX; i++) {
		const struct rank_line *line = &live->lines[i];
		uint32_t processes;
		uint64_t bytes;

		if (!may_be_top(facts, line, line->live_bytes) || line->leak != facts->top_live.leak ||
		    !is_line_of(live, line, is_meant, model_site_live, &processes))
			continue;
		bytes = sum_kinds(facts, live, line, false).live_bytes;
		if (bytes > most_bytes) {
			most_bytes = bytes;
			facts->top_live = *line;
			facts->top_live_processes = processes;
		}
	}
}

/* The first line that is not what imports left behind; of Python's arenas and a line that tells more, that one. */
static void
find_top(struct verdict_facts *facts, const struct ranked *live, const bool *is_meant)
{
	const struct model *model = facts->model;

	EACH (line, live->lines, live->line_count) {
		bool is_first = facts->top_live.site_count == 0;
		uint32_t processes;

		if (line->tier != 0 || line->live_bytes == 0 || !domain_is_host(model->domains[line->domain].id.kind) ||
		    !is_line_of(live, line, is_meant, model_site_live, &processes))
			continue;
		if (is_first || tells_more(facts, line)) {
			facts->top_live = *line;
			facts->top_live_processes = processes;
		}
		if (!is_first || !verdict_is_arena(facts, line))
			break;
	}
	prefer_larger_sum(facts, live, is_meant);
}

static void
sum_leaking(struct verdict_facts *facts, const struct ranked *live)
{
	const struct model *model = facts->model;

	EACH (line, live->lines, live->line_count) {
		if (line->swept_bytes > facts->swept.swept_bytes && (line->tier & RANK_TIER_FEW) == 0 &&
		    line->swept_bytes >= verdict_most_resident_of(facts->process) / SWEPT_PART)
			facts->swept = *line;
		if (line->leak != MODEL_LEAK_LEAK || !domain_is_host(model->domains[line->domain].id.kind) ||
		    rank_may_be_built_once(line->telling))
			continue;
		facts->leaking_bytes += line->leaking_bytes;
		if (line->leaking_bytes > facts->most_leaking.leaking_bytes)
			facts->most_leaking = *line;
	}
}

static void
sum_processes(struct verdict_facts *facts, const bool *is_meant, bool is_over, uint64_t end_ns)
{
	const struct model *model = facts->model;

	for (size_t i = 0; i < model->process_count; i++) {
		if (!is_meant[i])
			continue;
		uint64_t asked_bytes = is_over ? model->processes[i].live_bytes
		                               : live_then(facts, &model->processes[i], end_ns);
		uint64_t live_bytes = verdict_less_untouched(facts, asked_bytes, model->processes[i].untouched_bytes);

		facts->untouched_bytes += asked_bytes - live_bytes;
		facts->live_count++;
		facts->live_bytes += live_bytes;
		if (facts->live_process == NULL || live_bytes > facts->live_process_bytes) {
			facts->live_process = &model->processes[i];
			facts->live_process_bytes = live_bytes;
			facts->live_process_untouched_bytes = asked_bytes - live_bytes;
		}
	}
}

/* Of one process, exactly. */
static void
sum_domains(struct verdict_facts *facts)
{
	const struct model *model = facts->model;

	facts->live_bytes = facts->untouched_bytes = 0;
	EACH (domain, model->domains, model->domain_count) {
		uint64_t live_bytes = verdict_less_untouched(facts, domain->live_bytes, domain->untouched_bytes);

		if (!domain_is_host(domain->id.kind))
			continue;
		facts->live_bytes += live_bytes;
		facts->untouched_bytes += domain->live_bytes - live_bytes;
	}
}

#define RELEASES_MIN 8 // watched; fewer say nothing of all

/* Of a line that accumulates: the caller that forgets what others release, and where these do. */
static void
find_kept_way(struct verdict_facts *facts, const struct ranked *live)
{
	const struct rank_line *line = &facts->top_live;
	struct model_tally releases[MODEL_RELEASES_MAX];
	uint64_t watched = 0;
	unsigned count = 0;
	struct kept_way way;

	if (line->site_count == 0 || line->leak != MODEL_LEAK_LEAK || !kept_way_find(live, line, &way))
		return;
	for (size_t i = 0; i < line->site_count; i++) {
		const struct model_site *site = live->sites[line->first_site + i];

		watched += site->watched_releases;
		for (unsigned j = 0; j < site->release_count; j++)
			model_tally_add(releases, &count, MODEL_RELEASES_MAX, site->releases[j].where, site->releases[j].count);
	}
	facts->top_kept = (struct verdict_kept){
		.count = way.live_count,
		.allocated_count = way.allocated_count,
		.through = way.through,
		.released_at = watched >= RELEASES_MIN && count != 0 && releases[0].count >= watched / 2 ? releases[0].where
		                                                                                         : NULL,
	};
}

/* Who held memory at the end, and its first line that is not what imports left behind. */
void
verdict_live_gather(struct verdict_facts *facts)
{
	const struct model *model = facts->model;
	struct ranked *live = verdict_rank(facts, &rank_sites, &rank_sites_asked);
	OWNED bool *is_meant = memory_zeroed(model->process_count, sizeof(*is_meant));
	bool is_over = facts->end == VERDICT_END_OK || facts->end == VERDICT_END_FAILED;
	uint64_t end_ns = end_or_last_seen_ns(facts);

	verdict_find_untouched(facts, live);
	/* An end by itself tells nothing about the others: then it is about the one that holds the first line. */
	for (size_t i = 0; i < model->process_count; i++)
		is_meant[i] = model->process_count == 1 || is_over || ran_at_end(facts, &model->processes[i], end_ns);
	find_top(facts, live, is_meant);
	forget_trifling_growth(&facts->top_live);
	sum_leaking(facts, live);
	if (is_over && model->process_count > 1) {
		memset(is_meant, 0, model->process_count * sizeof(*is_meant));
		is_meant[facts->top_live.site_count != 0 ? facts->top_live.largest->process
		                                         : (size_t)(facts->process - model->processes)] = true;
	}
	sum_processes(facts, is_meant, is_over, end_ns);
	facts->import_bytes = left_by_imports(facts, is_meant);
	if (model->process_count == 1) {
		sum_domains(facts);
		if (facts->top_live.site_count != 0) {
			find_next(facts, live);
			find_last_taker(facts, live);
		}
		find_beside_arenas(facts, live);
	}
	if (facts->top_live.site_count != 0)
		find_beside(facts, live);
	prefer_leak(facts);
	if (facts->live_count == model->process_count)
		facts->top_live_processes = 0;
	else if (facts->top_live.site_count != 0)
		(void)is_line_of(live, &facts->top_live, is_meant, model_site_live, &facts->top_live_processes);
	if (facts->top_live_processes > 1)
		facts->top_live_process = process_of(facts, live, &facts->top_live, false);
	if (facts->top_live.site_count != 0)
		facts->top_live_copies = copies_of(facts, live, &facts->top_live);
	find_kept_way(facts, live);
	struct rank_line *told[] = { &facts->top_live, &facts->next_live, &facts->beside };
	EACH (line, told, COUNT_OF(told)) {
		if ((*line)->site_count != 0)
			**line = sum_kinds(facts, live, *line, false);
	}
	verdict_memory_gather(facts, is_meant, end_ns);
	rank_free(live);
}

/* The domain of the highest peak of one among several processes, by exclusion; NULL = not known. */
static const struct model_domain *
domain_of_peak(const struct model *model, uint64_t peak_bytes)
{
	const struct model_domain *found = NULL;

	EACH (domain, model->domains, model->domain_count) {
		if (!domain_is_host(domain->id.kind) || domain->peak_bytes < peak_bytes)
			continue;
		if (found != NULL)
			return NULL;
		found = domain;
	}
	return found;
}

/* Were all kinds of memory at their peaks at one moment, about? */
static bool
peaks_are_one(const struct verdict_facts *facts)
{
	uint64_t sum = SUM_OF(domain, facts->model->domains, facts->model->domain_count,
	                      domain_is_host(domain->id.kind) ? domain->peak_bytes : 0);

	return sum / 16 * 15 <= facts->peak_whole_bytes;
}

/* Of one process, the line that held most in all kinds of memory. */
static void
sum_top_peak(struct verdict_facts *facts, const struct ranked *peak)
{
	struct rank_line *top = &facts->top_peak;

	if (!peaks_are_one(facts))
		return;
	if (top->site_count != 0)
		*top = sum_kinds(facts, peak, top, true);
	for (size_t i = 0; i < peak->line_count && i < SUMMED_MAX && facts->model->process_count == 1; i++) {
		struct rank_line sum = sum_kinds(facts, peak, &peak->lines[i], true);

		if (may_be_top(facts, &sum, sum.peak_bytes) && !is_unclear(facts, &sum) && sum.peak_bytes > top->peak_bytes &&
		    top->where != NULL)
			*top = sum;
	}
}

void
verdict_peak_gather(struct verdict_facts *facts)
{
	const struct model *model = facts->model;
	struct ranked *peak = verdict_rank(facts, &rank_peak, &rank_peak_asked);
	uint64_t most_bytes = 0;
	OWNED bool *is_meant = memory_zeroed(model->process_count, sizeof(*is_meant));

	facts->peak_process = facts->process;
	for (size_t i = 0; i < model->process_count && facts->refused == NULL; i++) {
		if (verdict_peak_of(&model->processes[i]) > verdict_peak_of(facts->peak_process))
			facts->peak_process = &model->processes[i];
	}
	facts->peak_whole_bytes = verdict_peak_of(facts->peak_process);
	is_meant[facts->peak_process - model->processes] = true;
	for (size_t i = 0; i < model->domain_count && model->process_count == 1; i++) {
		const struct model_domain *domain = &model->domains[i];
		uint64_t untouched = domain->untouched_bytes != 0 ? domain->peak_untouched_bytes
		                                                  : verdict_untouched_bytes(facts->process, domain);
		uint64_t used_bytes = domain->peak_bytes > untouched ? domain->peak_bytes - untouched : 0;

		if (domain_is_host(domain->id.kind) && used_bytes > most_bytes) {
			most_bytes = used_bytes;
			facts->peak_bytes = verdict_less_untouched(facts, domain->peak_bytes, domain->peak_untouched_bytes);
			facts->peak_untouched_bytes = domain->peak_bytes - facts->peak_bytes;
			facts->peak_domain = domain;
		}
	}
	if (model->process_count > 1) {
		facts->peak_bytes = facts->peak_process->peak_bytes;
		facts->peak_domain = domain_of_peak(model, facts->peak_bytes);
	}
	for (size_t i = 0; i < peak->line_count && facts->top_peak.site_count == 0; i++) {
		const struct rank_line *line = &peak->lines[i];
		const struct model_domain *domain = &model->domains[line->domain];

		if (line->tier == 0 && line->peak_bytes != 0 &&
		    (model->process_count == 1 ? domain == facts->peak_domain : domain_is_host(domain->id.kind)) &&
		    is_line_of(peak, line, is_meant, model_site_peak, &facts->top_peak_processes))
			facts->top_peak = *line;
	}
	if (model->process_count == 1)
		facts->top_peak_processes = 0;
	sum_top_peak(facts, peak);
	if (model->process_count == 1)
		(void)peak_import_of(model, facts->process, facts->peak_import);
	rank_free(peak);
}

bool
verdict_is_most_of_live(const struct verdict_facts *facts, uint64_t bytes)
{
	uint64_t import_bytes = facts->import_bytes < facts->live_bytes ? facts->import_bytes : 0; // of PyTorch 300 MiB

	return bytes >= ACCUMULATING_BYTES && bytes >= (facts->live_bytes - import_bytes) / 2;
}

bool
verdict_is_accumulating(const struct verdict_facts *facts)
{
	return facts->top_live.leak == MODEL_LEAK_LEAK && verdict_is_most_of_live(facts, facts->top_live.leaking_bytes);
}

bool
verdict_is_backlog(const struct verdict_facts *facts)
{
	return facts->top_live.leak == MODEL_LEAK_BACKLOG &&
	       (facts->top_live.live_count >= BACKLOG_BLOCKS_MIN ||
	        rank_is_unsent(facts->model, facts->top_live.largest)) &&
	       verdict_is_most_of_live(facts, facts->top_live.live_bytes);
}

uint64_t
verdict_left_by_imports(const struct verdict_facts *facts, const struct model_domain *domain, bool is_peak)
{
	const struct model *model = facts->model;
	uint64_t whole_bytes = is_peak ? domain->peak_bytes : domain->live_bytes;
	uint64_t in_memory_bytes = verdict_less_untouched(facts, whole_bytes,
	                                                  is_peak ? domain->peak_untouched_bytes : domain->untouched_bytes);
	bool is_told_apart = verdict_tells_in_memory(in_memory_bytes, whole_bytes - in_memory_bytes);
	uint64_t bytes = 0;

	EACH (site, model->sites, model->site_count) {
		if (&model->domains[site->domain] == domain && site->leak == MODEL_LEAK_IMPORT && !rank_is_start_up(site))
			bytes += verdict_less_untouched(facts, is_peak ? site->peak_bytes : site->live_bytes,
			                                is_told_apart ? site->untouched_bytes : 0);
	}
	return bytes;
}
