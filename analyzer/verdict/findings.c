/*
 * findings.c - what do the facts amount to, in the order in which a person should read it?
 *
 * A cause has a recipe: finders, each of which looks at the facts and adds what it found. No words here.
 *
 * When full  further findings are left out.
 */
#include "model/model_holders.h"
#include "verdict/findings.h"

#include <signal.h>
#include <string.h>

#include "base/amount.h"
#include "base/items.h"

#define WORTH_RELEASED_BYTES (UINT64_C(1) << 20)
#define SWAP_FREE_PART 10                          // of the swap: less is as good as none
#define BESIDE_PART 4                              // of what was in memory: libraries, or files, are worth a sentence
#define WORTH_LIBRARIES_BYTES (UINT64_C(64) << 20) // every program has some
#define RECORDER_PART 10                           // of what was in memory: the recorder's own is worth a sentence
#define WORTH_RECORDER_BYTES (UINT64_C(8) << 20)   // of a small program its fixed part is
#define END_PART 2                                 // of the most in memory: with less left, most of it was temporary
#define PARTS_TOLD 3                               // the largest; a further one is told alone
#define PINNED_PART 8                              // of the host's memory: less is not worth a sentence
// of the device: as much that pools keep is worth a sentence, even where it was not enough
#define POOLS_PART 8

uint32_t
verdict_share(uint64_t part, uint64_t whole)
{
	if (whole == 0)
		return 0;
	return part >= whole ? 1000000 : (uint32_t)((double)part / (double)whole * 1e6);
}

/* Returns it; where there is no more room, one that is not told. */
static struct finding *
add(struct verdict *verdict, enum finding_kind kind, uint64_t bytes, uint64_t whole_bytes, const struct rank_line *line)
{
	static struct finding spare;
	struct finding *finding = verdict->finding_count < VERDICT_FINDINGS_MAX
	                              ? &verdict->findings[verdict->finding_count++]
	                              : &spare;

	*finding = (struct finding){
		.kind = kind,
		.confidence = kind == FINDING_ENDING ? verdict->confidence : VERDICT_CERTAIN,
		.bytes = bytes,
		.whole_bytes = whole_bytes,
		.line = line != NULL ? *line : (struct rank_line){ .site_count = 0 },
	};
	return finding;
}

/* A finder of one finding, where the condition holds. */
#define FIND_IF(name, condition, kind, bytes, whole_bytes, line)                  \
	static void find_##name(struct verdict_facts *facts, struct verdict *verdict) \
	{                                                                             \
		if (condition)                                                            \
			add(verdict, FINDING_##kind, bytes, whole_bytes, line);               \
	}

/* Of a request; of none where its place is not known. */
static struct rank_line
line_of(const struct model_site *site)
{
	bool is_known = site != NULL && site->where != NULL;

	return is_known ? (struct rank_line){ .where = site->where, .largest = site, .site_count = 1 }
	                : (struct rank_line){ 0 };
}

/* ---- how it ended ---- */

static void
find_ending(struct verdict_facts *facts, struct verdict *verdict)
{
	const struct model_failed *refused = facts->refused;
	bool is_of_refusal = verdict->cause == VERDICT_REQUEST_REFUSED || verdict->cause == VERDICT_DEVICE_MEMORY;
	struct rank_line line = is_of_refusal ? line_of(refused->site) : (struct rank_line){ .site_count = 0 };

	add(verdict, FINDING_ENDING, is_of_refusal ? refused->bytes : 0, 0, &line);
}

/* The process that this is about before others; of these the one that passed it last. NULL: none did. */
const struct model_process *
verdict_guard_passer(const struct model *model, const struct model_process *first)
{
	const struct model_process *last = first != NULL && first->guard.number != 0 ? first : NULL;

	for (size_t i = 0; i < model->process_count && (last == NULL || last != first); i++) {
		const struct model_process *process = &model->processes[i];

		if (process->guard.number != 0 && (last == NULL || process->guard.monotonic_ns > last->guard.monotonic_ns))
			last = process;
	}
	return last;
}

static void
find_guard(struct verdict_facts *facts, struct verdict *verdict)
{
	const struct model_process *process = verdict_guard_passer(facts->model, facts->process);

	if (process == NULL)
		return;
	add(verdict, FINDING_GUARD, process->guard.used_bytes, process->guard.limit_bytes, NULL)->process = process;
}

/* How close to which limit, as far as the last heartbeat knows. */
static void
find_usage(struct verdict_facts *facts, struct verdict *verdict)
{
	uint64_t machine_bytes = facts->process->identity->machine_bytes;

	if (facts->charged_bytes != 0 && facts->limit_bytes != UINT64_MAX)
		add(verdict, FINDING_USAGE, facts->charged_bytes, facts->limit_bytes, NULL);
	else if (facts->available_bytes != UINT64_MAX && machine_bytes != 0)
		add(verdict, FINDING_USAGE, machine_bytes > facts->available_bytes ? machine_bytes - facts->available_bytes : 0,
		    machine_bytes, NULL);
	else if (facts->resident_bytes != 0)
		add(verdict, FINDING_USAGE, facts->resident_bytes, 0, NULL);
}

/* Before memory runs out, swap does: by then the machine is slow. */
static void
find_swap(struct verdict_facts *facts, struct verdict *verdict)
{
	const struct model_process *process = facts->process;
	uint64_t swap_bytes = process->identity->swap_bytes;
	const struct kmem_heartbeat *last = model_last_beat(process);
	uint64_t free_bytes = last != NULL ? last->swap_free_bytes : UINT64_MAX;

	if (free_bytes <= swap_bytes / SWAP_FREE_PART && swap_bytes != 0)
		add(verdict, FINDING_SWAP, swap_bytes - free_bytes, swap_bytes, NULL);
}

/* Where the kernel's counter shows the kill, it needs no other evidence. */
static void
find_usage_as_evidence(struct verdict_facts *facts, struct verdict *verdict)
{
	if (facts->cgroup_kills == 0)
		find_usage(facts, verdict);
}

FIND_IF(log, (verdict->cause == VERDICT_CHILD_KILLED ? facts->lost_log.kind : facts->log.kind) != VERDICT_LOG_NONE, LOG,
        0, 0, NULL)

/* Others were killed, when this one ended in another way. */
FIND_IF(kills, (facts->is_kill_counted ? facts->cgroup_kills : facts->machine_kills) != 0, KERNEL_KILLS, 0, 0, NULL)

FIND_IF(far_from_limits, verdict_is_far_from_limits(facts), FAR_FROM_LIMITS, 0, 0, NULL)

FIND_IF(shell_status, facts->exit_code > 128 && facts->exit_code < 128 + NSIG, SHELL_STATUS, 0, 0, NULL)

/* What else than memory was refused, of an end that is not told to be of memory. */
static void
find_other_limits(struct verdict_facts *facts, struct verdict *verdict)
{
	for (enum finding_kind kind = FINDING_THREAD_REFUSED; kind <= FINDING_CUDA_NOT_STARTED; kind++) {
		if (verdict_limit_note(facts, kind) != NULL)
			add(verdict, kind, 0, 0, NULL);
	}
}

const char *
verdict_limit_note(const struct verdict_facts *facts, enum finding_kind kind)
{
	static const char *const notes[] = { KMEM_NOTE_THREAD, KMEM_NOTE_PROCESS, KMEM_NOTE_FILES, KMEM_NOTE_CUDA };

	return verdict_note_of(facts->process, notes[kind - FINDING_THREAD_REFUSED]);
}

static void
find_what_gone_shows(struct verdict_facts *facts, struct verdict *verdict)
{
	if (facts->process->is_hidden)
		add(verdict, FINDING_OTHER_CONTAINER, 0, 0, NULL);
	if (facts->is_kill_counted && facts->cgroup_kills == 0)
		add(verdict, FINDING_NO_KILL, 0, 0, NULL);
}

FIND_IF(lost, facts->lost_child != NULL && facts->lost_child != facts->process, LOST_CHILDREN, facts->lost_bytes, 0,
        NULL)

/* ---- what was in memory ---- */

FIND_IF(parts, !verdict_is_explained(facts), PARTS, facts->memory.part_count != 0 ? facts->memory.parts[0].bytes : 0,
        facts->memory.bytes, NULL)

static void
find_freed(struct verdict_facts *facts, struct verdict *verdict)
{
	const struct verdict_freed *freed = &facts->memory.freed;

	if (freed->freed_bytes == 0)
		return;
	add(verdict, FINDING_FREED, freed->freed_bytes, freed->heap_bytes,
	    verdict_sparse_of(freed) != 0 ? &freed->pinning[0] : NULL)
		->confidence = VERDICT_LIKELY;
}

/* A part of all that is live, as lines are in these facts. */
static uint64_t
line_bytes(const struct verdict_facts *facts, const struct rank_line *line)
{
	return line->live_bytes + (verdict_is_in_memory_told(facts) || facts->refused != NULL ? 0 : line->untouched_bytes);
}

/* Who took much last has an own sentence: a line that was done by then does not go on as a cache that fills. */
static bool
is_last_told(const struct verdict_facts *facts, const struct verdict *verdict)
{
	return verdict_was_memory_short(verdict->cause) && facts->last_taker.site_count != 0;
}

static void
find_growth(struct verdict_facts *facts, struct verdict *verdict)
{
	const struct rank_line *top = &facts->top_live;
	bool is_likely = top->leak == MODEL_LEAK_LEAK && !rank_may_be_built_once(top->telling);
	struct finding *growth = NULL;

	if (top->leak == MODEL_LEAK_LEAK)
		growth = add(verdict, FINDING_ACCUMULATES, top->leaking_bytes, top->live_bytes, top);
	else if (rank_may_accumulate(top->telling))
		growth = add(verdict, FINDING_MAY_ACCUMULATE, top->live_bytes, 0, top);
	else if (rank_filled_bytes(top) != 0 && !is_last_told(facts, verdict))
		growth = add(verdict, FINDING_FILLING, top->live_bytes, rank_filled_bytes(top), top);
	else if (verdict_is_backlog(facts))
		growth = add(verdict, FINDING_BACKLOG, top->live_bytes, 0, top);
	if (growth != NULL)
		growth->confidence = is_likely ? VERDICT_LIKELY : VERDICT_POSSIBLE;
}

/* What a look found that was taken when the guard was passed, or a line was a leak. */
static void
find_holder(struct verdict_facts *facts, struct verdict *verdict)
{
	const struct holders_line *held = verdict_holders_of(facts, &facts->top_live);

	if (held != NULL && held->way_count != 0)
		add(verdict, FINDING_HOLDER, held->ways[0].samples, held->samples, &facts->top_live);
}

static void
find_line(struct verdict_facts *facts, struct verdict *verdict)
{
	const struct rank_line *top = &facts->top_live;
	const struct rank_line *next = &facts->next_live;
	uint64_t live_bytes = verdict_told_live_bytes(facts);
	/* Nobody's doing; of a small program they are most of it. Where the line accumulates, it comes first. */
	bool are_imports_more = facts->import_bytes > top->live_bytes;
	bool are_imports_first = are_imports_more && top->leak != MODEL_LEAK_LEAK;

	if (facts->top_live_processes != 0) {
		add(verdict, FINDING_LINE_OF_ALL, top->score_bytes, facts->model->domains[top->domain].live_bytes, top);
		find_growth(facts, verdict);
		find_holder(facts, verdict);
		return;
	}
	if (are_imports_first)
		add(verdict, FINDING_IMPORTS, facts->import_bytes, live_bytes, NULL);
	add(verdict, FINDING_LINE, line_bytes(facts, top), live_bytes, top);
	find_growth(facts, verdict);
	find_holder(facts, verdict);
	if (next->site_count != 0)
		add(verdict, FINDING_NEXT_LINE, line_bytes(facts, next), live_bytes, next);
	else if (are_imports_more && !are_imports_first) {
		add(verdict, FINDING_IMPORTS, facts->import_bytes, live_bytes, NULL)->is_after_line = true;
	}
	if (is_last_told(facts, verdict))
		add(verdict, FINDING_LAST_TAKER, line_bytes(facts, &facts->last_taker), live_bytes, &facts->last_taker);
}

FIND_IF(untouched, facts->untouched.site_count != 0, UNTOUCHED, facts->untouched.untouched_bytes,
        facts->untouched.live_bytes + facts->untouched.untouched_bytes, &facts->untouched)

/* The launcher was there, and looked at none of it. */
FIND_IF(not_looked,
        facts->model->processes[0].launcher != NULL && verdict_was_memory_short(verdict->cause) &&
            facts->top_live.leak == MODEL_LEAK_LEAK && !verdict_is_mapped(facts, &facts->top_live) &&
            verdict_is_explained(facts) && verdict_holders_of(facts, &facts->top_live) == NULL,
        NOT_LOOKED, 0, 0, &facts->top_live)

/*
 * The line that holds most is told first, with two exceptions: where it does not explain what was in memory, the text first says where
 * the rest is; and where more than it holds was freed and not given back, that comes first.
 */
static void
find_holders(struct verdict_facts *facts, struct verdict *verdict)
{
	bool is_line_first = verdict_is_explained(facts) && !verdict_is_freed_first(facts);

	if (!is_line_first)
		find_freed(facts, verdict);
	find_parts(facts, verdict);
	add(verdict, FINDING_LIVE, facts->live_bytes + facts->untouched_bytes, 0, NULL);
	if (facts->top_live.site_count != 0 && facts->live_bytes != 0 && !facts->memory.is_written_first) {
		find_line(facts, verdict);
		find_untouched(facts, verdict);
		if (facts->beside_arenas.site_count != 0)
			add(verdict, FINDING_BESIDE_ARENAS, facts->beside_arenas.leaking_bytes, 0, &facts->beside_arenas);
		if (facts->beside.site_count != 0) {
			add(verdict, FINDING_BESIDE, facts->beside.leaking_bytes, 0, &facts->beside)
				->process = facts->beside_process;
		}
		find_not_looked(facts, verdict);
	}
	if (is_line_first)
		find_freed(facts, verdict);
}

static void
find_holders_if_accumulating(struct verdict_facts *facts, struct verdict *verdict)
{
	if (verdict_is_accumulating(facts))
		find_holders(facts, verdict);
}

/* ---- the peak ---- */

/* is_line_next: the line that held most at the end is told right after */
static void
find_peak_lines(struct verdict_facts *facts, bool is_line_next, struct verdict *verdict)
{
	const struct rank_line *top = &facts->top_peak;
	uint64_t whole_bytes = verdict_peak_told_bytes(facts, facts->peak_bytes, facts->peak_untouched_bytes);
	uint64_t top_bytes = verdict_peak_told_bytes(facts, top->peak_bytes, top->peak_untouched_bytes);
	uint64_t imports_bytes = 0;

	/* Of one process its largest domain's, with what was asked for and not touched; of several all of the one that had the highest. */
	add(verdict, FINDING_PEAK,
	    facts->peak_process == facts->process && facts->peak_domain != NULL
	        ? facts->peak_bytes + facts->peak_untouched_bytes
	        : facts->peak_whole_bytes,
	    0, NULL);
	if (is_line_next && top->site_count != 0 && top->peak_bytes / 2 <= facts->top_live.live_bytes &&
	    rank_compare_places(top->largest, facts->top_live.largest) == 0)
		return;
	bool is_of_domain = &facts->model->domains[top->domain] == facts->peak_domain;

	if (top->site_count != 0 &&
	    (facts->top_peak_processes != 0 || (!is_of_domain && facts->model->process_count != 1))) {
		add(verdict, FINDING_PEAK_LINE_OF_ALL, top->score_bytes, facts->model->domains[top->domain].peak_bytes, top);
		return;
	}
	if (top->site_count != 0 && is_of_domain &&
	    top->peak_bytes <= top->score_bytes + top->score_bytes / 100) // in one kind of memory
		// parts are exact, the total of several threads may be a little behind
		add(verdict, FINDING_PEAK_LINE, amount_lesser(top_bytes, whole_bytes), whole_bytes, top);
	else if (top->site_count != 0)
		add(verdict, FINDING_PEAK_LINE, top_bytes, 0, top);
	if (facts->model->process_count == 1 && facts->peak_domain != NULL)
		imports_bytes = verdict_left_by_imports(facts, facts->peak_domain, true);
	if (imports_bytes > top_bytes)
		add(verdict, FINDING_PEAK_IMPORTS, imports_bytes, whole_bytes, NULL);
}

static void
find_peak_before(struct verdict_facts *facts, bool is_line_next, struct verdict *verdict)
{
	if (facts->peak_bytes == 0)
		return;
	uint64_t end_bytes = verdict_end_resident_bytes(facts);

	find_peak_lines(facts, is_line_next, verdict);
	if (facts->peak_process != facts->process)
		return;
	if (facts->peak_import[0] != '\0')
		add(verdict, FINDING_PEAK_IN_IMPORT, end_bytes, 0, NULL);
	else if (facts->model->process_count == 1 && end_bytes != 0 &&
	         end_bytes < verdict_most_resident_of(facts->process) / END_PART)
		add(verdict, FINDING_LITTLE_AT_END, end_bytes, 0, NULL);
}

static void
find_peak(struct verdict_facts *facts, struct verdict *verdict)
{
	find_peak_before(facts, false, verdict);
}

/* Of a program that failed: the line only where it accumulates, for it died of something else. */
static void
find_failed(struct verdict_facts *facts, struct verdict *verdict)
{
	bool is_accumulating = verdict_is_accumulating(facts);

	find_peak_before(facts, is_accumulating, verdict);
	if (is_accumulating)
		find_holders(facts, verdict);
	else
		find_freed(facts, verdict);
}

/* It ended well, though it did not get all the memory that it asked for. PyTorch is refused by devices as a matter of course. */
static void
find_recovered(struct verdict_facts *facts, struct verdict *verdict)
{
	const struct model *model = facts->model;
	const struct model_failed *largest = NULL;
	uint64_t unlisted = verdict_unlisted_refusals(facts);
	uint64_t count = verdict_has_device(facts) ? 0 : unlisted; // which may be the device's

	EACH (failed, model->failed, model->failed_count) {
		if (&model->processes[failed->process] != facts->process ||
		    domain_is_driver(model->domains[failed->domain].id.kind))
			continue;
		count++;
		if (largest == NULL || failed->bytes > largest->bytes)
			largest = failed;
	}
	if (largest == NULL)
		return;
	struct rank_line line = line_of(largest->site);
	struct finding *recovered = add(verdict, FINDING_RECOVERED, largest->bytes, 0, &line);

	recovered->count = count;
	recovered->domain = &model->domains[largest->domain];
}

static void
find_exited(struct verdict_facts *facts, struct verdict *verdict)
{
	const struct rank_line *top = &facts->top_live;
	const struct kmem_heartbeat *fullest = verdict_fullest(facts);
	bool has_holder = top->leak == MODEL_LEAK_LEAK;

	if (facts->model->domain_count == 0 && model_unrecorded_bytes(facts->model) == 0)
		add(verdict, FINDING_NO_ALLOCATION, 0, 0, NULL);
	find_peak_before(facts, has_holder, verdict);
	if (fullest != NULL)
		add(verdict, FINDING_LITTLE_ROOM, verdict_used_bytes(fullest), fullest->limit_bytes, NULL);
	if (has_holder)
		find_holders(facts, verdict);
	else
		find_freed(facts, verdict);
	find_recovered(facts, verdict);
	/* Held all along, and released by a destructor or a handler: nobody else would tell of it. */
	if (top->site_count != 0 && top->released_bytes >= WORTH_RELEASED_BYTES)
		add(verdict, FINDING_RELEASED_AT_EXIT, top->released_bytes, 0, top);
}

FIND_IF(over_limit, facts->limit_bytes != UINT64_MAX && facts->live_bytes > facts->limit_bytes, OVER_LIMIT,
        facts->live_bytes, facts->limit_bytes, NULL)

/* ---- a request of the host's memory that was refused ---- */

static void
find_refused(struct verdict_facts *facts, struct verdict *verdict)
{
	if (verdict_has_address_limit(facts))
		add(verdict, FINDING_ADDRESS_LIMIT, 0, 0, NULL);
	/* An exception that unwinds releases what was held when the request was refused. */
	if (verdict_was_perhaps_caught(facts) ||
	    (!verdict_is_request_alone(facts) && facts->peak_bytes / 2 > facts->live_bytes))
		find_peak(facts, verdict);
	else if (verdict_is_request_alone(facts))
		add(verdict, FINDING_LITTLE_HELD, facts->live_bytes, 0, NULL);
	else
		find_holders(facts, verdict);
}

/* ---- devices ---- */

static void
find_pinned(struct verdict_facts *facts, struct verdict *verdict)
{
	if (facts->pinned_bytes <= (facts->live_bytes + facts->pinned_bytes) / PINNED_PART)
		return;
	add(verdict, FINDING_PINNED, facts->top_pinned.live_bytes, facts->pinned_bytes, &facts->top_pinned);
	if (facts->rounded_bytes != 0)
		add(verdict, FINDING_PINNED_ROUNDED, facts->rounded_bytes, facts->pinned_bytes, NULL);
}

static void
find_kept(struct verdict_facts *facts, struct verdict *verdict)
{
	if (facts->kept_bytes == 0)
		return;
	add(verdict, FINDING_DEVICE_KEPT, facts->kept_bytes, 0, NULL)->confidence = VERDICT_LIKELY;
}

static void
find_device(struct verdict_facts *facts, struct verdict *verdict)
{
	const struct device_parts *parts = &facts->device;
	const struct model_failed *refused = facts->refused;
	uint64_t whole_bytes = parts->tensors != NULL ? parts->tensor_bytes : parts->live_bytes;

	if (refused->total_bytes != 0)
		add(verdict, FINDING_DEVICE_FULL, refused->free_bytes, refused->total_bytes, NULL);
	add(verdict, FINDING_DEVICE_HELD, parts->device != NULL ? parts->live_bytes : 0, 0, NULL);
	if (parts->device != NULL && facts->top_device.site_count != 0) {
		add(verdict, FINDING_DEVICE_LINE, facts->top_device.live_bytes, whole_bytes, &facts->top_device);
		if (verdict_does_device_grow(facts)) {
			add(verdict, FINDING_DEVICE_ACCUMULATES, facts->growing_bytes, whole_bytes, &facts->top_device)
				->confidence = VERDICT_LIKELY;
		}
	}
	if (parts->device != NULL && parts->tensors == NULL && !verdict_is_preallocated(facts) &&
	    facts->process->python_version != 0)
		add(verdict, FINDING_DEVICE_CACHE, 0, 0, NULL);
	find_kept(facts, verdict);
	if (verdict_is_kept_by_pools(facts) || refused->pool_kept_bytes > refused->total_bytes / POOLS_PART)
		add(verdict, FINDING_DEVICE_POOLS, refused->pool_kept_bytes, refused->total_bytes, NULL);
	if (verdict_is_held_by_others(facts))
		add(verdict, FINDING_DEVICE_OTHERS, verdict_untracked_bytes(facts), refused->total_bytes, NULL);
	else if (parts->device != NULL && verdict_is_preallocated(facts))
		add(verdict, FINDING_DEVICE_PREALLOCATED, facts->top_device.live_bytes, refused->total_bytes,
		    &facts->top_device);
	else if (parts->device != NULL && verdict_is_device_fragmented(facts) && !verdict_is_device_growth_the_story(facts))
		add(verdict, FINDING_DEVICE_FRAGMENTED, parts->cache_bytes, parts->live_bytes,
		    facts->lasting_count != 0 ? &facts->lasting[0] : NULL);
	if (facts->retried_count != 0)
		add(verdict, FINDING_DEVICE_RETRIED, 0, 0, NULL);
}

/* ---- what the figures leave out ---- */

/* Where the parts of what was in memory are told, the largest are. */
static bool
is_part_told(const struct verdict_facts *facts, uint64_t bytes, const struct verdict *verdict)
{
	const struct verdict_memory *memory = &facts->memory;
	uint64_t larger = SUM_OF(part, memory->parts, memory->part_count, part->bytes > bytes);

	return ANY(finding, verdict->findings, verdict->finding_count,
	           finding->kind == FINDING_PARTS && larger < PARTS_TOLD);
}

/* Lines do not have all that was in memory. */
static void
find_beside_lines(struct verdict_facts *facts, struct verdict *verdict)
{
	const struct verdict_memory *memory = &facts->memory;

	if (memory->program_bytes > memory->sample_bytes / BESIDE_PART && memory->program_bytes >= WORTH_LIBRARIES_BYTES &&
	    !is_part_told(facts, memory->program_bytes, verdict))
		add(verdict, FINDING_LIBRARIES, memory->program_bytes, memory->sample_bytes, NULL);
	if (memory->files.site_count != 0 && memory->files_bytes > memory->sample_bytes / BESIDE_PART &&
	    !is_part_told(facts, memory->files_bytes, verdict))
		add(verdict, FINDING_MAPPED_FILES, memory->files_bytes, memory->sample_bytes, &memory->files);
	if (memory->own_bytes > memory->sample_bytes / RECORDER_PART && memory->own_bytes >= WORTH_RECORDER_BYTES &&
	    !is_part_told(facts, memory->own_bytes, verdict))
		add(verdict, FINDING_RECORDER, memory->own_bytes, memory->sample_bytes, NULL);
}

static void
find_gaps(struct verdict_facts *facts, struct verdict *verdict)
{
	uint64_t unrecorded_bytes = model_unrecorded_bytes(facts->model);
	uint64_t elsewhere_bytes = rank_elsewhere_worth_bytes(facts->model);

	if (facts->model->capture_damage_count > facts->model->under_way_count)
		add(verdict, FINDING_DAMAGE, 0, 0, NULL);
	if (facts->model->unlisted_bytes != 0)
		add(verdict, FINDING_UNLISTED, facts->model->unlisted_bytes, 0, NULL);
	if (unrecorded_bytes != 0)
		add(verdict, FINDING_UNRECORDED, unrecorded_bytes, 0, NULL);
	else if (elsewhere_bytes != 0)
		add(verdict, FINDING_ELSEWHERE, elsewhere_bytes, 0, NULL);
}

/* ---- one domain ---- */

#define DOMAINS_SHOWN 4u                       // "cuda" may be 32 devices
#define DEVICE_WORTH_BYTES (UINT64_C(1) << 20) // less is not worth a sentence about another end

static struct finding *
add_of_domain(struct verdict *verdict, enum finding_kind kind, uint64_t bytes, uint64_t whole_bytes,
              const struct rank_line *line, const struct model_domain *domain, bool is_peak)
{
	struct finding *finding = add(verdict, kind, bytes, whole_bytes, line);

	finding->domain = domain;
	finding->is_peak = is_peak;
	return finding;
}

/* Is the domain a part of another one that is told as well? Tensors lie in their device. */
static bool
is_part(const struct model *model, unsigned domain, const char *wanted)
{
	unsigned device = device_parts_device(model, domain);

	return device != domain && rank_domain_matches(model->domains[device].name, wanted);
}

static bool
is_wanted(const struct model *model, unsigned domain, const char *wanted)
{
	if (wanted == NULL) // devices, of another end
		return model->domains[domain].id.kind == DOMAIN_DEVICE &&
		       model->domains[domain].peak_bytes >= DEVICE_WORTH_BYTES;
	return rank_domain_matches(model->domains[domain].name, wanted) && !is_part(model, domain, wanted);
}

/* The wanted domains, the largest peak first, `most` at most. Training on several devices holds the same on each. */
static unsigned
choose(const struct model *model, const char *wanted, unsigned most, unsigned chosen[DOMAINS_SHOWN],
       struct finding *left_out)
{
	unsigned count = 0;

	for (unsigned i = 0; i < model->domain_count; i++) {
		unsigned place = count;

		if (!is_wanted(model, i, wanted))
			continue;
		while (place > 0 && model->domains[chosen[place - 1]].peak_bytes < model->domains[i].peak_bytes)
			place--;
		left_out->count += count == most;
		if (place == most)
			continue;
		count += count < most;
		memmove(&chosen[place + 1], &chosen[place], (count - 1 - place) * sizeof(chosen[0]));
		chosen[place] = i;
	}
	return count;
}

/* The first line of the program's own that holds any; NULL: there is none. */
static const struct rank_line *
first_line(const struct ranked *ranked, bool is_peak)
{
	return FIRST(line, ranked->lines, ranked->line_count,
	             !line->is_import && (is_peak ? line->peak_bytes : line->live_bytes) != 0);
}

/* Before it may stand a line that cannot be judged. */
static const struct rank_line *
first_to_grow(const struct ranked *ranked)
{
	return FIRST(line, ranked->lines, ranked->line_count, line->leak == MODEL_LEAK_LEAK) ?: first_line(ranked, false);
}

/*
 * The line that holds most at the end or, when little of the domain is left, that held most at the peak. Returns one of its sites; NULL =
 * there is none. Lines are in the order of what is in memory. If much of the domain is not, the figures are those of memory, too.
 */
static const struct model_site *
find_domain_line(const struct verdict_facts *facts, const struct model_domain *lines, struct verdict *verdict)
{
	bool is_peak = lines->live_bytes < lines->peak_bytes / 2;
	const struct ranking *ranking = is_peak ? (facts->refused != NULL ? &rank_peak_asked : &rank_peak)
	                                        : (facts->refused != NULL ? &rank_sites_asked : &rank_sites);
	struct ranked *ranked = rank_run(facts->finished, ranking, lines->name);
	const struct rank_line *top = first_line(ranked, is_peak);
	const struct model_site *site = top != NULL ? top->largest : NULL;
	uint64_t whole_bytes = is_peak ? lines->peak_bytes : lines->live_bytes;
	uint64_t part_bytes = top == NULL ? 0 : is_peak ? top->peak_bytes : top->live_bytes;
	uint64_t imports_bytes = verdict_left_by_imports(facts, lines, is_peak);
	uint64_t in_memory_bytes = verdict_less_untouched(facts, whole_bytes,
	                                                  is_peak ? lines->peak_untouched_bytes : lines->untouched_bytes);

	if (verdict_tells_in_memory(in_memory_bytes, whole_bytes - in_memory_bytes)) {
		add_of_domain(verdict, FINDING_DOMAIN_IN_MEMORY, in_memory_bytes, whole_bytes, NULL, lines, is_peak);
		part_bytes = top != NULL ? verdict_less_untouched(facts, part_bytes,
		                                                  is_peak ? top->peak_untouched_bytes : top->untouched_bytes)
		                         : 0;
		whole_bytes = in_memory_bytes;
	}
	if (imports_bytes > part_bytes)
		add_of_domain(verdict, FINDING_DOMAIN_IMPORTS, imports_bytes, whole_bytes, NULL, lines, is_peak);
	if (top != NULL) {
		add_of_domain(verdict, FINDING_DOMAIN_LINE, part_bytes, whole_bytes, top, lines, is_peak)
			->is_told = imports_bytes > part_bytes;
	}
	rank_free(ranked);
	return site;
}

/* told: a site of the line that was told of right before. A line that accumulates is put in *growing. False: nothing grows. */
static bool
find_domain_growth(const struct verdict_facts *facts, const struct model_domain *lines, const struct model_site *told,
                   struct rank_line *growing, struct verdict *verdict)
{
	struct ranked *ranked = rank_run(facts->finished, &rank_leaks, lines->name);
	const struct rank_line *top = first_to_grow(ranked);
	bool is_growing = top != NULL && top->leak == MODEL_LEAK_LEAK;
	bool may_grow = top != NULL && !is_growing && rank_may_accumulate(top->telling);

	if (is_growing || may_grow) {
		struct finding *added = add_of_domain(
			verdict, is_growing ? FINDING_DOMAIN_ACCUMULATES : FINDING_DOMAIN_MAY_ACCUMULATE,
			is_growing ? top->leaking_bytes : top->live_bytes, lines->live_bytes, top, lines, false);

		added->confidence = is_growing && !rank_may_be_built_once(top->telling) ? VERDICT_LIKELY : VERDICT_POSSIBLE;
		added->is_told = told != NULL && rank_compare_places(top->largest, told) == 0;
		for (size_t i = 0; i < ranked->line_count; i++)
			added->count += ranked->lines[i].leak == MODEL_LEAK_LEAK && &ranked->lines[i] != top;
	}
	if (is_growing)
		*growing = *top;
	rank_free(ranked);
	return is_growing || may_grow;
}

/* What filled /dev/shm is not what the heap holds, however much that is. */
static void
find_shared(struct verdict_facts *facts, struct verdict *verdict)
{
	const struct model_domain *shared = NULL;

	for (unsigned i = 0; i < facts->model->domain_count; i++) {
		if (facts->model->domains[i].id.kind == DOMAIN_SHARED)
			shared = &facts->model->domains[i];
	}
	if (shared == NULL) {
		find_holders(facts, verdict);
		return;
	}

	struct ranked *ranked = rank_run(facts->finished, &rank_sites_asked, shared->name);
	const struct rank_line *top = first_line(ranked, false);

	if (top != NULL) {
		add(verdict, FINDING_SHARED_LINE, top->live_bytes, shared->live_bytes, top);
		add(verdict, FINDING_LIVE, facts->live_bytes + facts->untouched_bytes, 0, NULL);
	} else {
		find_holders(facts, verdict);
	}
	rank_free(ranked);
}

/* Lines are the tensors', where they are known. Returns the domain that has them. */
static const struct model_domain *
find_one_domain(const struct verdict_facts *facts, unsigned domain, struct rank_line *growing, bool *is_growing,
                struct verdict *verdict)
{
	const struct model *model = facts->model;
	const struct model_domain *tensors = device_parts_tensors(model, domain);
	const struct model_domain *lines = tensors != NULL ? tensors : &model->domains[domain];
	struct device_parts parts;

	add_of_domain(verdict, FINDING_DOMAIN, model->domains[domain].live_bytes, 0, NULL, &model->domains[domain], false);
	if (device_parts_of(model, domain, NULL, &parts) && parts.part_count >= 2)
		add_of_domain(verdict, FINDING_DOMAIN_PARTS, parts.parts[0].live_bytes, parts.live_bytes, NULL,
		              &model->domains[domain], false);
	*is_growing = find_domain_growth(facts, lines, find_domain_line(facts, lines, verdict), growing, verdict);
	return lines;
}

static void
add_left_out(const struct finding *left_out, struct verdict *verdict)
{
	if (left_out->count != 0)
		add(verdict, FINDING_MORE_DOMAINS, 0, 0, NULL)->count = left_out->count;
}

/* The largest device, where it held enough to be worth it. */
static void
find_devices(struct verdict_facts *facts, struct verdict *verdict)
{
	unsigned chosen[DOMAINS_SHOWN] = { 0 };
	struct finding left_out = { .count = 0 };
	bool is_growing;

	for (size_t i = 0; i < verdict->finding_count; i++) {
		if (verdict->findings[i].kind == FINDING_DOMAIN) // by find_refusing_device()
			return;
	}
	if (verdict->cause == VERDICT_DEVICE_MEMORY || choose(facts->model, NULL, 1, chosen, &left_out) == 0)
		return;
	(void)find_one_domain(facts, chosen[0], &facts->growing_device, &is_growing, verdict);
	add_left_out(&left_out, verdict);
}

/* Of a program that goes on: as in a notebook, it is what a person looks for, before what the host has. */
static void
find_refusing_device(struct verdict_facts *facts, struct verdict *verdict)
{
	bool is_refusing = facts->refused != NULL && verdict_is_device_request(facts);

	if (is_refusing)
		add(verdict, FINDING_DEVICE_REFUSED, facts->refused->bytes, 0, NULL);
	find_kept(facts, verdict);
	if (is_refusing)
		find_devices(facts, verdict);
}

void
verdict_find_domain(struct verdict_facts *facts, const char *wanted, struct verdict *verdict)
{
	const struct model *model = facts->model;
	unsigned chosen[DOMAINS_SHOWN] = { 0 };
	struct finding left_out = { .count = 0 };
	unsigned count = choose(model, wanted, DOMAINS_SHOWN, chosen, &left_out);

	facts->asked = (struct verdict_asked){ .name = wanted, .largest = &model->domains[chosen[0]] };
	add(verdict, FINDING_ENDING, 0, 0, NULL);
	for (unsigned i = 0; i < count; i++) {
		struct rank_line growing = { .site_count = 0 };
		bool is_growing;
		const struct model_domain *lines = find_one_domain(facts, chosen[i], &growing, &is_growing, verdict);

		if (!is_growing && lines->live_bytes != 0 && lines->id.kind != DOMAIN_PYTHON_ARENA)
			add_of_domain(verdict, FINDING_DOMAIN_STEADY, 0, 0, NULL, lines, false);
		if (&model->domains[facts->untouched.domain] == lines)
			find_untouched(facts, verdict);
		if (growing.leaking_bytes > facts->asked.growing.leaking_bytes)
			facts->asked.growing = growing;
	}
	add_left_out(&left_out, verdict);
	add(verdict, FINDING_REFUSED_REQUESTS, 0, 0, NULL);
	find_gaps(facts, verdict);
}

/* ---- all of it ---- */

typedef void finder(struct verdict_facts *facts, struct verdict *verdict);

static finder *const recipe_not_closed[] = { find_holders, find_usage, NULL };
#define recipe_restarted recipe_not_closed
static finder *const recipe_running[] = { find_refusing_device, find_holders, find_usage, NULL };
static finder *const recipe_exec_replaced[] = { find_peak, NULL };
static finder *const recipe_child_killed[] = { find_log, find_peak, NULL };
static finder *const recipe_exited[] = { find_exited, find_lost, NULL };
static finder *const recipe_container_limit[] = { find_log,     find_usage_as_evidence,
	                                              find_holders, find_over_limit,
	                                              find_pinned,  NULL };
static finder *const recipe_machine_memory[] = { find_log, find_usage, find_swap, find_holders, find_pinned, NULL };
static finder *const recipe_shm_full[] = { find_shared, NULL };
static finder *const recipe_device_memory[] = { find_device, NULL };
static finder *const recipe_request_refused[] = { find_refused, find_pinned, find_lost, NULL };
static finder *const recipe_low_memory_daemon[] = { find_log, find_kills, find_usage, find_swap, find_holders, NULL };
static finder *const recipe_crashed[] = {
	find_log, find_other_limits, find_kills, find_far_from_limits, find_holders_if_accumulating, find_usage, NULL
};
#define recipe_stack_overflow recipe_crashed
#define recipe_hardware recipe_crashed
#define recipe_aborted recipe_crashed
static finder *const recipe_signal[] = { find_kills, find_far_from_limits, find_holders, find_usage, NULL };
static finder *const recipe_failed[] = { find_shell_status, find_other_limits, find_kills, find_failed,
	                                     find_usage,        find_lost,         NULL };
#define recipe_file_limit recipe_signal
static finder *const recipe_time_up[] = { find_what_gone_shows, find_holders, find_usage, NULL };
static finder *const recipe_gone[] = { find_what_gone_shows, find_other_limits, find_holders, find_usage, NULL };

static finder *const *const recipes[] = {
#define RECIPE_ROW(cause, function, name) [VERDICT_##cause] = recipe_##function,
	VERDICT_CAUSE_ROWS(RECIPE_ROW)
};

void
verdict_find(struct verdict_facts *facts, struct verdict *verdict)
{
	find_ending(facts, verdict);
	find_guard(facts, verdict);
	for (finder *const *find = recipes[verdict->cause]; *find != NULL; find++)
		(*find)(facts, verdict);
	if (facts->forecast.bytes_per_minute != 0)
		add(verdict, FINDING_FORECAST, facts->forecast.bytes_per_minute, 0, NULL);
	find_devices(facts, verdict);
	if (facts->copies.child_count != 0)
		add(verdict, FINDING_COPIES, facts->copies.bytes, 0, NULL);
	find_beside_lines(facts, verdict);
	find_gaps(facts, verdict);
	if (verdict_hidden_heap(facts->model) != NULL)
		add(verdict, FINDING_HIDDEN_HEAP, 0, 0, NULL);
}
