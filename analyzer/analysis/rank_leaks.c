/*
 * rank_leaks.c - what grows and never shrinks?
 *
 * The test is surviving generations, not slopes: a stable number of generations with live blocks is a cache or a
 * pool however large it is, a site with blocks from nearly every generation since it began accumulates however
 * small each step. The thresholds are tried on the programs of tests/leaks:
 * RESULTS.md there says which leaks are found; none of the other programs is called one.
 */
#include <math.h>
#include <string.h>

#include "analysis/device_parts.h"
#include "analysis/rank.h"
#include "base/amount.h"
#include "base/items.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/text_start.h"

#define LEAK_ALIVE_PERCENT 75     // of all generations since the site appeared
#define LEAK_RECENT_PERCENT 70    // of the latest quarter: it has not stopped
#define LEAK_GENERATIONS_MIN 6    // fewer say nothing
#define SUSPECT_GENERATIONS_MIN 3 // for the order of what is too short to judge
// a site that cannot be judged, and that released nothing, is ranked as a leak of this part of its bytes
#define UNJUDGED_PART 16
#define UNJUDGED_BLOCKS_MIN 8      // fewer were perhaps taken once
#define LEAK_FLOOR_BYTES 65536     // grown by the line; less is not worth a person's time,
#define LEAK_FLOOR_PART 256        // nor is less than this part of the peak,
#define LEAK_FLOOR_MOST (1u << 20) // unless it is as much as this
#define BLOCKS_IN_USE 8            // a line that releases its blocks may hold so many at any moment: its temporaries
// of Python's arenas: start-up and the user's modules may leave up to this
#define ARENA_FLOOR_BYTES (16u << 20)
// a line that releases most of its blocks: so many stay, about as many in each quarter
#define EVEN_BLOCKS_MIN 16
#define EVEN_PART 2   // no quarter has less than this part of the mean: a half
#define EVEN_CHANCE 4 // times what chance makes of a count, the first may have fewer: a queue has released its oldest
#define EVEN_KEPT_PART 2 // of more blocks that stay, the oldest are gone not by chance, but as a queue's
// of the latest quarter of generations: a queue has blocks of the last one alone, which may be long
#define EVEN_RECENT_PERCENT 50
// A cache that fills: its first half has at least FILLING_HALVES / 2 times the blocks of its second half, and the second quarter
// FILLING_SLOWER times those of the last. Blocks that grow by realloc become fewer, too, but not faster than a logarithm.
#define FILLING_HALVES 3
#define FILLING_SLOWER 2
#define FILLING_BLOCKS_MIN 24
#define KEPT_PART 8 // a cache that fills has released this part of its blocks at most
// a queue that drains late, garbage cycles; measured 33 % and 39 %, controls under 15 %
#define BACKLOG_ALIVE_PERCENT 25
#define BACKLOG_PART 4 // of what its line holds, at least

/* The frame that is named and not what every program starts with; NULL when there is none. */
static const struct model_frame *
outermost(const struct model_site *site)
{
	for (uint32_t i = site->frame_count; i > 0; i--) {
		const struct model_frame *frame = site->frames[i - 1];

		if (frame->function[0] != '\0' && strcmp(frame->function, "_start") != 0 &&
		    strcmp(frame->function, "main") != 0 && !text_starts(frame->function, "__libc_start_"))
			return frame;
	}
	return NULL;
}

bool
rank_is_start_up(const struct model_site *site)
{
	static const char *const entries[] = { "Py_BytesMain", "Py_Main", "Py_Initialize", "pymain", NULL };
	static const char *const initializers[] = { "Py_Initialize", "pymain_init", NULL };
	static const char *const evaluators[] = { "_PyEval_", "PyEval_", NULL };
	const struct model_frame *entry = outermost(site);
	bool is_initializing = false;

	/* Small objects that were made while no code of Python ran; where they go on, a program embeds it. */
	if (site->frame_count == 0 && site->omitted == 0 && site->samples != 0)
		return site->has_paused;
	if (entry == NULL || site->omitted != 0 || !text_starts_with_any(entry->function, entries))
		return false;
	/* Below an evaluator it was Python code, even where its frames could not be read: the interpreter's until it is up. */
	for (uint32_t i = site->frame_count; i > 0; i--) {
		const struct model_frame *frame = site->frames[i - 1];

		is_initializing = is_initializing || text_starts_with_any(frame->function, initializers);
		if (frame->is_user || frame->kind == MODEL_FRAME_PYTHON ||
		    (!is_initializing && text_starts_with_any(frame->function, evaluators)))
			return false;
	}
	return true;
}

bool
rank_is_import(const struct model_site *site)
{
	if ((site->stack_flags & KMEM_STACK_IMPORT_CUT) != 0 || rank_is_start_up(site))
		return true;
	for (uint32_t i = 0; i < site->frame_count; i++) {
		const struct model_frame *frame = site->frames[i];

		if (frame->is_importlib)
			return true;
		if (frame == site->where && frame->is_user)
			return false;
	}
	return false;
}

bool
rank_is_below_import(const struct model_site *site)
{
	for (uint32_t i = 0; i < site->frame_count; i++) {
		if (site->frames[i]->is_importlib)
			return !rank_is_import(site);
	}
	return false;
}

static bool
is_at_least(uint64_t part, uint64_t percent, uint64_t whole)
{
	return part * 100 >= percent * whole;
}

static uint64_t
surviving(const struct model_site *site, unsigned from, unsigned to)
{
	uint64_t sum = 0;

	for (unsigned i = from; i < to; i++)
		sum += site->quarters[i];
	return sum;
}

/*
 * If few of many blocks stay, a generation may have none by chance, for ticks are short at first. A line of which about as many stay in each
 * quarter of what was allocated is neither a cache nor a queue: these have few of the oldest blocks.
 */
static bool
stays_evenly(const struct model_site *site)
{
	uint64_t all = surviving(site, 0, SURVIVAL_QUARTERS);
	double usual = (double)surviving(site, 1, 3) / 2;

	return all >= EVEN_BLOCKS_MIN && usual - (double)site->quarters[0] <= EVEN_CHANCE * sqrt(usual) &&
	       site->live_count <= site->allocated_count / EVEN_KEPT_PART &&
	       !ANY(quarter, site->quarters, SURVIVAL_QUARTERS, *quarter * EVEN_PART * SURVIVAL_QUARTERS < all);
}

bool
rank_slows_down(const double quarters[SURVIVAL_QUARTERS])
{
	double first = quarters[0] + quarters[1];
	double second = quarters[2] + quarters[3];

	return first * 2 >= second * FILLING_HALVES && quarters[0] > quarters[1] && quarters[1] > quarters[2] &&
	       quarters[2] >= quarters[3] && quarters[3] * FILLING_SLOWER <= quarters[1];
}

static bool
slows_down(const struct model_site *site)
{
	const uint64_t *counts = site->quarters;

	return rank_slows_down((double[]){ (double)counts[0], (double)counts[1], (double)counts[2], (double)counts[3] });
}

/* Keeps all and adds less and less, as a cache does that has nearly all it will ever hold. */
static bool
is_filling(const struct model_site *site)
{
	return site->samples == 0 && site->live_count >= site->allocated_count - site->allocated_count / KEPT_PART &&
	       surviving(site, 0, SURVIVAL_QUARTERS) >= FILLING_BLOCKS_MIN && slows_down(site);
}

uint64_t
rank_filled_bytes(const struct rank_line *line)
{
	const struct model_site *site = line->telling;
	uint64_t first = surviving(site, 0, 2);
	uint64_t second = surviving(site, 2, 4);

	if (site->leak != MODEL_LEAK_FILLING || first <= second || site->live_count == 0)
		return 0;
	/* Each half adds the same part of the one before. Its other sites stay as they are. */
	return (line->live_bytes > site->live_bytes ? line->live_bytes - site->live_bytes : 0) +
	       (uint64_t)((double)first * (double)first / (double)(first - second) / (double)(first + second) *
	                  (double)site->live_bytes);
}

/* Accumulates as far as the generations tell; whether it is worth the name is up to its line's bytes. */
static bool
is_accumulating(const struct model_site *site)
{
	if (site->generations_total < LEAK_GENERATIONS_MIN)
		return false;
	return (is_at_least(site->generations_alive, LEAK_ALIVE_PERCENT, site->generations_total) &&
	        is_at_least(site->recent_alive, LEAK_RECENT_PERCENT, site->recent_total)) ||
	       (stays_evenly(site) && is_at_least(site->recent_alive, EVEN_RECENT_PERCENT, site->recent_total));
}

static enum model_leak_class
class_of(const struct model_site *site)
{
	if (site->live_bytes == 0 && site->live_count == 0)
		return MODEL_LEAK_NONE;
	if (site->is_rest_of_arenas) // its generations are those of the objects beside it
		return MODEL_LEAK_STEADY;
	if (rank_is_import(site))
		return MODEL_LEAK_IMPORT;
	if (rank_is_too_new(site))
		return MODEL_LEAK_TOO_SHORT;
	if (is_accumulating(site))
		return is_filling(site) ? MODEL_LEAK_FILLING : MODEL_LEAK_LEAK;
	return is_at_least(site->generations_alive, BACKLOG_ALIVE_PERCENT, site->generations_total) &&
	               site->recent_alive != 0
	           ? MODEL_LEAK_BACKLOG
	           : MODEL_LEAK_STEADY;
}

ORDER_OF_POINTERS(compare_places, struct model_site, rank_compare_places(a, b))

/*
 * By how much has the line grown? Generations count blocks, not bytes. A line may work with large blocks while some small ones stay (NumPy
 * takes the shapes of arrays from a free list, and they outlive the arrays): like a leak it has blocks of all generations. So as many bytes
 * as a few blocks of the size that it releases do not count as growth. A line that releases nothing has grown by all that it holds. Of
 * several processes the growth of one counts: what is steady in each does not grow in their sum.
 */
static uint64_t
grown_bytes(const struct model_site *site)
{
	uint64_t live_bytes = site->process_count > 1 && site->most_live_bytes != 0 ? site->most_live_bytes
	                                                                            : site->live_bytes;

	if (site->allocated_count <= site->live_count || site->allocated_bytes <= site->live_bytes)
		return live_bytes;

	uint64_t in_use_bytes = (site->allocated_bytes - site->live_bytes) / (site->allocated_count - site->live_count) *
	                        BLOCKS_IN_USE;
	return live_bytes > in_use_bytes ? live_bytes - in_use_bytes : 0;
}

/* Of a run that ended by itself: beside a large peak the caches of libraries, which fill over a whole run and have a bound, are no finding. */
static uint64_t
floor_bytes(const struct model *model, const struct model_site *site)
{
	const struct model_process *process = &model->processes[site->process];
	uint64_t part_bytes = process->state == KMEM_STATE_CLEAN_EXIT ? process->peak_bytes / LEAK_FLOOR_PART : 0;

	if (model->domains[site->domain].id.kind == DOMAIN_PYTHON_ARENA)
		return ARENA_FLOOR_BYTES;
	return amount_greater(LEAK_FLOOR_BYTES, amount_lesser(part_bytes, LEAK_FLOOR_MOST));
}

/* Many sites below one line are one leak: what holds for a leak is asked of their sum. */
static void
judge_growth(const struct model *model, struct model_site **line, size_t count)
{
	bool is_arena = model->domains[line[0]->domain].id.kind == DOMAIN_PYTHON_ARENA;
	uint64_t bytes = SUM_OF(site, line, count, grown_bytes(*site));

	for (size_t i = 0; i < count && bytes < floor_bytes(model, line[0]); i++)
		line[i]->leak = is_arena ? MODEL_LEAK_TOO_SHORT : MODEL_LEAK_STEADY;
}

ORDER_OF_POINTERS(compare_lines_of_processes, struct model_site,
                  rank_compare_places(a, b) ?: order_numbers(a->process, b->process))

/* Adds the blocks of a site, by quarters of a volume of which it saw the last `part`, 0 to 1. */
static void
add_quarters(const struct model_site *site, double part, double sums[SURVIVAL_QUARTERS])
{
	uint64_t counted = surviving(site, 0, SURVIVAL_QUARTERS);
	double begin = SURVIVAL_QUARTERS * (1 - part);

	if (counted == 0 || part == 0) { // all of them came in one tick
		sums[begin < SURVIVAL_QUARTERS ? (unsigned)begin : SURVIVAL_QUARTERS - 1] += (double)site->live_count;
		return;
	}
	for (unsigned i = 0; i < SURVIVAL_QUARTERS; i++) {
		double from = begin + i * part;

		for (unsigned k = 0; k < SURVIVAL_QUARTERS; k++) {
			double low = from > k ? from : k;
			double high = from + part < k + 1 ? from + part : k + 1;

			sums[k] += high > low ? (double)site->quarters[i] * (high - low) / part : 0;
		}
	}
}

/* The sites of a line of one process, as one. Counts by quarter are of the volume that the first of them saw. */
static struct model_site
sum_of(struct model_site *const *sites, size_t count)
{
	double quarters[SURVIVAL_QUARTERS] = { 0 };
	struct model_site sum = { .first_ms = UINT64_MAX };

	sum.volume_bytes = MOST_OF(site, sites, count, (*site)->volume_bytes);
	EACH (site, sites, count) {
		sum.live_bytes += (*site)->live_bytes;
		sum.live_count += (*site)->live_count;
		sum.allocated_count += (*site)->allocated_count;
		sum.samples += (*site)->samples;
		sum.steps = amount_greater(sum.steps, (*site)->steps);
		sum.first_ms = (*site)->first_ms < sum.first_ms ? (*site)->first_ms : sum.first_ms;
		add_quarters(*site, (double)(*site)->volume_bytes / (double)(sum.volume_bytes ?: 1), quarters);
	}
	for (unsigned i = 0; i < SURVIVAL_QUARTERS; i++)
		sum.quarters[i] = (uint64_t)(quarters[i] + 0.5);
	return sum;
}

static bool
may_be_one(const struct model_site *site)
{
	return (site->live_count == 0 || site->leak != MODEL_LEAK_NONE) && site->where != NULL && site->ticks.now != 0 &&
	       !rank_is_import(site) && !site->is_rest_of_arenas && (site->stack_flags & KMEM_STACK_ARENA) == 0;
}

/* Do as many lines call it as a leak has generations? One call may allocate through many stacks: that is a load, perhaps. */
static bool
has_many_callers(struct model_site *const *sites, size_t count)
{
	const struct model_frame *callers[LEAK_GENERATIONS_MIN];
	size_t found = 0;

	for (size_t i = 0; i < count && found < LEAK_GENERATIONS_MIN; i++) {
		const struct model_frame *caller = model_caller_of(sites[i]);

		if (caller != NULL && !ANY(other, callers, found, *other == caller))
			callers[found++] = caller;
	}
	return found == LEAK_GENERATIONS_MIN;
}

/*
 * A line that many callers run, each once or now and then, as cells of a notebook do a helper, has stacks of few generations: none of them
 * accumulates, all together do. Then the generations of each are those of the line.
 */
static void
judge_as_one(struct model_site **sites, size_t count)
{
	if (!has_many_callers(sites, count) || ANY(site, sites, count, is_accumulating(*site)))
		return;

	struct model_site line = sum_of(sites, count);

	model_generations_join((const struct model_site *const *)sites, count, &line);
	for (size_t i = 0; i < count && is_accumulating(&line); i++) {
		struct model_site *site = sites[i];

		if (site->live_count == 0)
			continue;
		site->leak = is_filling(&line) ? MODEL_LEAK_FILLING : MODEL_LEAK_LEAK;
		site->generations_alive = line.generations_alive;
		site->generations_total = line.generations_total;
		site->recent_alive = line.recent_alive;
		site->recent_total = line.recent_total;
		site->survivors = line.survivors;
		site->has_paused = line.has_paused;
		site->volume_bytes = line.volume_bytes;
		site->span_bytes = 0; // not known
		site->first_ms = line.first_ms;
		site->steps = line.steps;
		memcpy(site->quarters, line.quarters, sizeof(site->quarters));
	}
}

static bool
may_fill(const struct model_site *site)
{
	return site->live_count != 0 && site->leak != MODEL_LEAK_NONE && site->leak != MODEL_LEAK_STEADY &&
	       site->leak != MODEL_LEAK_IMPORT;
}

/*
 * A loop's stack may change while it runs (CPython specialises it, a callee is replaced): then the line goes on at another site, and the
 * one before has fewer and fewer. So what fills is asked of the line; not of its sites that are steady, which may be other users of a helper.
 */
static void
judge_filling(struct model_site **sites, size_t count)
{
	if (count == 1 || !ANY(site, sites, count, (*site)->leak == MODEL_LEAK_FILLING))
		return;

	struct model_site line = sum_of(sites, count);

	for (size_t i = 0; i < count && !slows_down(&line); i++) {
		if (sites[i]->leak == MODEL_LEAK_FILLING)
			sites[i]->leak = MODEL_LEAK_LEAK;
	}
}

static bool
may_be_backlog(const struct model_site *site)
{
	return site->leak == MODEL_LEAK_BACKLOG || site->leak == MODEL_LEAK_STEADY;
}

/* Small blocks that stay for a while, such as the shapes that NumPy takes from a free list, make no queue of a line that holds far more. */
static void
judge_backlog(struct model_site **sites, size_t count)
{
	uint64_t bytes = SUM_OF(site, sites, count, (*site)->live_bytes);
	uint64_t backlog_bytes = SUM_OF(site, sites, count, (*site)->leak == MODEL_LEAK_BACKLOG ? (*site)->live_bytes : 0);

	for (size_t i = 0; i < count && backlog_bytes < bytes / BACKLOG_PART; i++)
		sites[i]->leak = MODEL_LEAK_STEADY;
}

static bool
is_leaking_or_new(const struct model_site *site)
{
	return site->leak == MODEL_LEAK_LEAK || rank_may_accumulate(site);
}

/* Beside one that leaks, a site that is too new to judge, and has blocks of all its generations, grows as well: it has fewer samples, perhaps. */
static void
judge_beside_leak(struct model_site **sites, size_t count)
{
	const struct model_site *leaking = NULL;

	for (size_t i = 0; i < count && leaking == NULL; i++)
		leaking = sites[i]->leak == MODEL_LEAK_LEAK ? sites[i] : NULL;
	for (size_t i = 0; i < count && leaking != NULL; i++) {
		sites[i]->leak = leaking->leak;
		sites[i]->may_be_built_once = leaking->may_be_built_once;
		sites[i]->is_of_call = leaking->is_of_call;
	}
}

/* Hands over the sites of each line of each process. */
static void
judge_each_line(struct model *model, bool is_wanted(const struct model_site *),
                void judge(struct model_site **sites, size_t count))
{
	OWNED struct model_site **sites = memory_zeroed(model->site_count, sizeof(*sites));
	size_t count = 0;

	for (size_t i = 0; i < model->site_count; i++) {
		if (is_wanted(&model->sites[i]))
			sites[count++] = &model->sites[i];
	}
	SORT(sites, count, compare_lines_of_processes);
	for (size_t first = 0, end; first < count; first = end) {
		for (end = first + 1; end < count && compare_lines_of_processes(&sites[first], &sites[end]) == 0;)
			end++;
		judge(&sites[first], end - first);
	}
}

void
rank_leaks_classify(struct model *model)
{
	OWNED struct model_site **leaking = memory_zeroed(model->site_count, sizeof(struct model_site *));
	size_t count = 0;

	for (size_t i = 0; i < model->site_count; i++) {
		model->sites[i].leak = class_of(&model->sites[i]);
		model->sites[i].may_be_built_once = false;
		/* What lies in these arenas is recorded by itself. */
		if ((model->sites[i].stack_flags & KMEM_STACK_ARENA) != 0 &&
		    domain_is_address_space(model->domains[model->sites[i].domain].id.kind))
			model->sites[i].leak = MODEL_LEAK_NONE;
		/* A cache gives nothing back; what leaks in it are tensors. */
		if (device_parts_is_cache(model, &model->sites[i]))
			model->sites[i].leak = MODEL_LEAK_NONE;
	}
	judge_each_line(model, may_be_one, judge_as_one);
	judge_each_line(model, may_fill, judge_filling);
	for (size_t i = 0; i < model->site_count; i++) {
		if (model->sites[i].leak == MODEL_LEAK_LEAK)
			leaking[count++] = &model->sites[i];
	}
	SORT(leaking, count, compare_places);
	rank_loads_judge(model, leaking, count, judge_growth);
	judge_each_line(model, may_be_backlog, judge_backlog);
	judge_each_line(model, is_leaking_or_new, judge_beside_leak);
}

/* More telling than any steady amount. */
bool
rank_may_accumulate(const struct model_site *site)
{
	return site->leak == MODEL_LEAK_TOO_SHORT && site->generations_total >= SUSPECT_GENERATIONS_MIN &&
	       site->generations_total < LEAK_GENERATIONS_MIN && site->generations_alive == site->generations_total &&
	       site->live_bytes >= LEAK_FLOOR_BYTES;
}

bool
rank_has_accumulated(const struct model_site *site)
{
	return (site->leak == MODEL_LEAK_STEADY || site->leak == MODEL_LEAK_BACKLOG) &&
	       site->born_generations >= LEAK_GENERATIONS_MIN &&
	       is_at_least(site->generations_alive, LEAK_ALIVE_PERCENT, site->born_generations) &&
	       site->live_bytes < site->span_bytes / 2 && grown_bytes(site) >= LEAK_FLOOR_BYTES;
}

bool
rank_may_be_built_once(const struct model_site *site)
{
	return site->leak == MODEL_LEAK_LEAK && site->may_be_built_once;
}

bool
rank_is_too_new(const struct model_site *site)
{
	return site->generations_total < LEAK_GENERATIONS_MIN;
}

bool
rank_keeps_all(const struct model_site *site)
{
	return site->leak == MODEL_LEAK_TOO_SHORT && site->generations_total < LEAK_GENERATIONS_MIN &&
	       (site->stack_flags & KMEM_STACK_ARENA) == 0 && site->live_bytes >= LEAK_FLOOR_BYTES &&
	       (site->samples != 0 ? site->samples : site->live_count) >= UNJUDGED_BLOCKS_MIN &&
	       site->live_count >= site->allocated_count - site->allocated_count / 8;
}

static unsigned
tier_of_class(enum model_leak_class leak)
{
	switch (leak) {
	case MODEL_LEAK_LEAK:
	case MODEL_LEAK_SWEPT:
		return 0;
	case MODEL_LEAK_TOO_SHORT:
	case MODEL_LEAK_BACKLOG:
	case MODEL_LEAK_FILLING:
	case MODEL_LEAK_STEADY:
		return 2;
	case MODEL_LEAK_IMPORT:
		return 3;
	case MODEL_LEAK_NONE:
	case MODEL_LEAK_CLASSES:
		break;
	}
	return 4;
}

static unsigned
leaks_tier(const struct model *model, const struct model_site *site)
{
	unsigned tier = rank_keeps_all(site) ? 0 : rank_may_accumulate(site) ? 1 : tier_of_class(site->leak);

	/* Address space that is not given back comes after memory of the same tier. */
	return tier * 2 + (domain_is_address_space(model->domains[site->domain].id.kind) ? 1 : 0);
}

static uint64_t
leaks_bytes(const struct model_site *site)
{
	if (site->leak == MODEL_LEAK_SWEPT)
		return site->swept_bytes;
	return rank_live_in_memory(site) / (rank_keeps_all(site) ? UNJUDGED_PART : 1);
}

const struct ranking rank_leaks = {
	.of = RANK_LEAKS,
	.heading = "Still held, leaks first",
	.tier = leaks_tier,
	.bytes = leaks_bytes,
};
