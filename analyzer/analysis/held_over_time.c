/*
 * held_over_time.c - is a line a leak, by what it held over time (see held_over_time.h)?
 *
 * The measure of time is what the process allocated, as for generations. A program that collects its results in each round and writes
 * them at the end looks the same: nothing that looks from outside tells it from a leak.
 *
 * Not chosen  snapshots at the high-water mark with their survivors: beats are as far apart as a 256th of the limit, and on a large
 *             machine a program may end before the first of them. And one block that grows by realloc has one generation.
 */
#include "analysis/held_over_time.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/rank.h"
#include "base/items.h"
#include "base/memory.h"
#include "base/order.h"
#include "kmem_format.h"

#define PARTS (2 * SURVIVAL_QUARTERS) // what was allocated from its begin to its peak is divided into so many parts
#define RISING_PARTS_MIN 6            // in so many of them it rises, the last RECENT_PARTS among them
#define RECENT_PARTS 2                //
#define RISING_PART 4                 // it rises in a part in which it grows by a quarter of the mean
#define POINTS_MIN 8                  // with so many points a single odd one does not decide
#define FLOOR_BYTES 65536             // the same as for leaks
#define FALL_PART 8                   // this part of the peak may be released before it: more is a queue, or a sawtooth
#define LEFT_PART 4                   // this part of the peak may be left at the end
#define AFTER_PART 8                  // this part of what was allocated until the peak may be allocated after it
#define RELEASED_BLOCKS_MIN 64        // that are alive: fewer are a buffer that grew
#define RELEASED_PART 4               // for so many that are alive one was released
#define LITTLE_PART 16                // of a queue
#define STORAGE_RISE_PART 16          // storage rises where it grows by this part
#define STORAGE_RISES_MIN 4           // so often, while as many blocks were released, and
#define STORAGE_RISES_FOR_EACH \
	2 // so often for each of its blocks: else they were added, and not replaced by larger ones
#define STORAGE_OVERDUE_TIMES \
	4 // it has stopped where so many times as much was allocated as between its last two steps
#define STORAGE_STEP_PERCENT_MAX \
	450 // of what it held (a set takes 4 times as much): a larger step is another block of the line
#define STORAGE_LEFT_PERCENT 44 // of what it held, at any time: old and new storage are both live until it is copied
#define FULL_BLOCKS_MIN 16      // that came in the last quarter and stayed
#define FULL_LATEST_PART 16     // so many of all
#define FULL_GROWTH_PART 4      // it may have grown by this part of what stayed of the quarter before
#define FLAT_PART 16            // by so much it may grow in the second half

/* What a site held at a point. */
struct entry {
	const struct model_site *site;
	size_t point;
	uint64_t bytes;
};

/*
 * What a thread that runs no line of the user's allocates is shown at the line where another thread was seen: it hands its queue from line to
 * line. So of such sites the thread's own frames are compared.
 */
static int
compare_growers(const struct model_site *left, const struct model_site *right)
{
	bool is_left_own = left->where_relation == MODEL_RELATION_OWN;
	bool is_right_own = right->where_relation == MODEL_RELATION_OWN;
	int order = order_numbers(left->domain, right->domain) ?: order_numbers(is_left_own, is_right_own);

	if (order != 0 || is_left_own)
		return order ?: rank_compare_places(left, right);
	for (uint32_t i = 0; order == 0; i++) {
		bool is_left_over = i == left->frame_count || model_relation_of(left, i) != MODEL_RELATION_OWN;
		bool is_right_over = i == right->frame_count || model_relation_of(right, i) != MODEL_RELATION_OWN;

		if (is_left_over || is_right_over)
			return order_numbers(is_right_over, is_left_over);
		order = order_numbers((uintptr_t)left->frames[i], (uintptr_t)right->frames[i]);
	}
	return order;
}

ORDER_OF(compare_entries, struct entry,
	compare_growers(a->site, b->site) ?: order_numbers((uintptr_t)a->site, (uintptr_t)b->site)
	?: order_numbers(a->point, b->point))

static bool
may_be_judged(const struct model *model, const struct model_site *site)
{
	switch (site->leak) {
	case MODEL_LEAK_NONE:
	case MODEL_LEAK_STEADY:
	case MODEL_LEAK_TOO_SHORT:
	case MODEL_LEAK_BACKLOG:
	case MODEL_LEAK_SWEPT: // of another process
		break;
	case MODEL_LEAK_FILLING:
	case MODEL_LEAK_LEAK:
	case MODEL_LEAK_IMPORT:
	case MODEL_LEAK_CLASSES:
		return false;
	}
	/* Of an arena, of what is only reserved and of a cache rank_leaks.c says nothing either. */
	return !site->is_rest_of_arenas && (site->stack_flags & KMEM_STACK_ARENA) == 0 &&
	       !domain_is_address_space(model->domains[site->domain].id.kind) &&
	       domain_is_host(model->domains[site->domain].id.kind) && !rank_is_import(site) && !rank_is_below_import(site);
}

/* Generations, or its growth, called it one that takes in more than it gives back. */
static bool
may_be_full(const struct model *model, const struct model_site *site)
{
	(void)model;
	// released as the program ended: its last points are not of the moment that it is judged by. Storage has a rule of its own
	if (site->released_bytes != 0 || site->is_growing_storage)
		return false;
	return (site->leak == MODEL_LEAK_LEAK || site->leak == MODEL_LEAK_BACKLOG) && site->process_count == 1 &&
	       site->samples == 0;
}

/* Of sites that were among the largest at some point; of the end, which has all sites, only these. For free(). */
static struct entry *
collect(const struct model *model, const struct model_process *process,
        bool is_wanted(const struct model *, const struct model_site *), size_t *count)
{
	OWNED bool *is_seen = memory_zeroed(model->site_count + 1, sizeof(*is_seen));
	struct entry *entries = NULL;

	*count = 0;
	for (size_t i = 0; i < process->point_count; i++) {
		const struct model_point *point = &process->points[i];

		for (size_t k = 0; k < point->site_count; k++) {
			uint32_t site = point->sites[k].site;

			if (!is_wanted(model, &model->sites[site]) || (point->is_end && !is_seen[site]))
				continue;
			is_seen[site] = true;
			*MEMORY_NEXT(entries, *count) = (struct entry){ &model->sites[site], i, point->sites[k].bytes };
		}
	}
	return entries;
}

/* Who is not among the largest of a full point holds less than these; it is taken to hold what it did, as far as that fits. */
static uint64_t
unseen_bytes(const struct model_point *point, uint64_t before_bytes)
{
	if (point->is_end || point->site_count < KMEM_HISTORY_SITES)
		return 0;

	uint64_t least_bytes = point->sites[point->site_count - 1].bytes;

	return before_bytes < least_bytes ? before_bytes : least_bytes;
}

/* Adds the entries of one site; returns how many they are. */
static size_t
add_site(const struct model_process *process, const struct entry *entries, size_t count, uint64_t *held)
{
	size_t next = 0;
	uint64_t bytes = 0;

	for (size_t i = 0; i < process->point_count; i++) {
		bool is_seen = next < count && entries[next].site == entries[0].site && entries[next].point == i;

		bytes = is_seen ? entries[next++].bytes : unseen_bytes(&process->points[i], bytes);
		held[i] += bytes;
	}
	return next;
}

/* What was held when so much had been allocated, on the straight line between two points. */
static double
held_at(const struct model_process *process, const uint64_t *held, size_t last, double volume)
{
	size_t i = 0;

	while (i < last && (double)process->points[i].volume_bytes < volume)
		i++;
	double to = (double)process->points[i].volume_bytes;
	double from = i > 0 ? (double)process->points[i - 1].volume_bytes : 0;
	double before = i > 0 ? (double)held[i - 1] : 0;

	return to > from && volume < to ? before + ((double)held[i] - before) * (volume - from) / (to - from)
	                                : (double)held[i];
}

/* Fewer and fewer is added: a cache that fills. */
static bool
is_filling(const double rises[PARTS])
{
	double quarters[4];

	for (unsigned i = 0; i < 4; i++)
		quarters[i] = rises[2 * i] + rises[2 * i + 1];
	return rank_slows_down(quarters);
}

/* In nearly each part of what was allocated from `begin` to the peak, and in the latest ones. */
static bool
rises_evenly(const struct model_process *process, const uint64_t *held, double begin, size_t peak)
{
	double width = ((double)process->points[peak].volume_bytes - begin) / PARTS;
	double least = (double)held[peak] / PARTS / RISING_PART;
	double before = 0;
	double rises[PARTS];
	unsigned rising = 0;
	unsigned recent = 0;

	for (unsigned i = 0; i < PARTS; i++) {
		double now = held_at(process, held, peak, begin + width * (i + 1));

		rises[i] = now - before;
		rising += rises[i] >= least;
		recent += rises[i] >= least && i >= PARTS - RECENT_PARTS;
		before = now;
	}
	return rising >= RISING_PARTS_MIN && recent == RECENT_PARTS && !is_filling(rises);
}

static uint64_t
largest_fall(const uint64_t *held, size_t peak)
{
	uint64_t highest = 0;
	uint64_t fall = 0;

	for (size_t i = 0; i <= peak; i++) {
		highest = held[i] > highest ? held[i] : highest;
		fall = highest - held[i] > fall ? highest - held[i] : fall;
	}
	return fall;
}

enum growth {
	GROWTH_NONE,   // or not known
	GROWTH_SWEPT,  // until the peak, then it was released as the program ended
	GROWTH_TO_END, // it has its peak at the end
};

/*
 * Where the line began: at the point before the first that has it. A process that allocates much in little time has few points, though: of a
 * wide gap nobody knows where in it the line began, and it begins where it was seen.
 */
static uint64_t
begin_of(const struct model_process *process, size_t first, uint64_t until)
{
	uint64_t seen = process->points[first].volume_bytes;
	uint64_t before = first > 0 ? process->points[first - 1].volume_bytes : 0;

	return first > 0 && seen - before > (until - seen) / PARTS ? seen : before;
}

/* What is live, and what was allocated, at the sites of a line. */
static void
count_line(const struct entry *entries, size_t count, struct model_site *sum)
{
	*sum = (struct model_site){ .live_count = 0 };
	for (size_t i = 0; i < count; i++) {
		if (i > 0 && entries[i].site == entries[i - 1].site)
			continue;
		sum->live_count += entries[i].site->live_count;
		sum->allocated_count += entries[i].site->allocated_count;
	}
}

/*
 * Half of all that was allocated since the line began may be a data set that is loaded. What is loaded stays: a line that has released many
 * of its blocks takes in more than it gives back.
 */
static bool
is_released(const struct entry *entries, size_t count)
{
	struct model_site line;

	count_line(entries, count, &line);
	return line.live_count >= RELEASED_BLOCKS_MIN &&
	       line.allocated_count - line.live_count >= line.live_count / RELEASED_PART;
}

/* A line of a process. */
struct held_line {
	const struct entry *entries;
	size_t count;
	enum growth growth;
	uint64_t peak_bytes;
	uint64_t span_bytes; // allocated by the process from its begin to its peak
	bool is_storage;     // that grows
};

static struct held_line
held_line_of(const struct model_process *process, const struct entry *entries, size_t count, const uint64_t *held)
{
	struct held_line line = { .entries = entries, .count = count };
	size_t last = process->point_count - 1;
	size_t first = 0;
	size_t peak = 0;

	for (size_t i = 0; i <= last; i++)
		peak = held[i] > held[peak] ? i : peak;
	while (first < peak && held[first] == 0)
		first++;
	uint64_t until = process->points[peak].volume_bytes;
	uint64_t begin = begin_of(process, first, until);
	uint64_t since = process->points[last].volume_bytes - until;

	line.peak_bytes = held[peak];
	line.span_bytes = until > begin ? until - begin : 0;
	if (peak - first + 1 < POINTS_MIN || held[peak] < FLOOR_BYTES || since > line.span_bytes / AFTER_PART ||
	    largest_fall(held, peak) > held[peak] / FALL_PART || !rises_evenly(process, held, (double)begin, peak))
		return line;
	if (held[last] <= held[peak] / LEFT_PART)
		line.growth = process->state == KMEM_STATE_CLEAN_EXIT ? GROWTH_SWEPT : GROWTH_NONE;
	else
		line.growth = held[last] >= held[peak] - held[peak] / FALL_PART ? GROWTH_TO_END : GROWTH_NONE;
	return line;
}

/* What grows in one function is loaded by one loop: it is one data set. So is the list, if its rows may be one. */
static bool
may_be_data_set(const struct model *model, const struct held_line *line, const struct held_line *lines, size_t count)
{
	const struct model_site *site = line->entries[0].site;
	uint64_t bytes = line->peak_bytes;

	if (site->where != NULL && ANY(other, model->sites, model->site_count,
	                               rank_may_be_built_once(other) && other->process == site->process &&
	                                   other->where != NULL && rank_compare_functions(site, other) == 0))
		return true;
	for (size_t i = 0; i < count && site->where != NULL; i++) {
		const struct model_site *other = lines[i].entries[0].site;

		if (&lines[i] != line && lines[i].growth == line->growth && other->where != NULL &&
		    rank_compare_functions(site, other) == 0)
			bytes += lines[i].peak_bytes;
	}
	return bytes >= line->span_bytes / 2 && !is_released(line->entries, line->count);
}

/*
 * Storage of containers: a full block is replaced by a larger one. So few blocks hold more and more, and have few generations. What is held
 * from a point on for good rises more often than there are blocks, and little is given up in between.
 */
static bool
is_growing_storage(const struct model_process *process, const struct entry *entries, size_t count, const uint64_t *held)
{
	size_t last = process->point_count - 1;
	OWNED uint64_t *lowest = memory_zeroed(process->point_count, sizeof(*lowest)); // from this point on
	uint64_t settled_bytes = 0;                                                    // from then on it never held less
	uint64_t settled_volume = 0;
	uint64_t step_volume = 0; // between the last two
	struct model_site line;
	uint64_t most = 0;
	uint64_t rises = 0;
	bool has_fallen = false;

	for (size_t i = last + 1; i-- > 0;)
		lowest[i] = i < last && lowest[i + 1] < held[i] ? lowest[i + 1] : held[i];
	for (size_t i = 0; i <= last; i++) {
		most = held[i] > most ? held[i] : most;
		has_fallen = has_fallen || (most >= FLOOR_BYTES && held[i] < most / 100 * STORAGE_LEFT_PERCENT);
		if (lowest[i] < FLOOR_BYTES || lowest[i] - settled_bytes < settled_bytes / STORAGE_RISE_PART)
			continue;
		rises = lowest[i] / STORAGE_STEP_PERCENT_MAX > settled_bytes / 100 ? 0 : rises + 1;
		settled_bytes = lowest[i];
		step_volume = process->points[i].volume_bytes - settled_volume;
		settled_volume = process->points[i].volume_bytes;
	}
	count_line(entries, count, &line);
	return rises >= STORAGE_RISES_MIN && rises >= STORAGE_RISES_FOR_EACH * line.live_count &&
	       line.allocated_count - line.live_count >= STORAGE_RISES_MIN && line.live_count != 0 && !has_fallen &&
	       process->points[last].volume_bytes - settled_volume <= step_volume * STORAGE_OVERDUE_TIMES;
}

static void
take_as_perhaps_leak(const struct model *model, struct model_site *site)
{
	site->leak = MODEL_LEAK_LEAK;
	site->may_be_built_once = true;
	site->is_of_call = rank_is_of_call(model, site);
}

/* For certain only a look at what holds it tells a container from inputs that become larger and larger. */
static void
take_storage(struct model *model, const struct entry *entries, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct model_site *site = &model->sites[entries[i].site - model->sites];

		if (site->process_count != 1 || site->live_bytes == 0)
			continue;
		site->is_growing_storage = true; // which rank_is_of_call() asks
		take_as_perhaps_leak(model, site);
	}
}

/* The line that held most of it. A data set that was loaded, perhaps, keeps its class. */
static void
sweep(struct model *model, const struct entry *entries, size_t count, uint64_t bytes, bool may_be_data_set)
{
	const struct entry *most = &entries[0];

	for (size_t i = 1; i < count; i++)
		most = entries[i].bytes > most->bytes ? &entries[i] : most;
	model->sites[most->site - model->sites].swept_bytes += bytes;
	for (size_t i = 0; i < count && !may_be_data_set; i++) {
		if (rank_compare_places(entries[i].site, most->site) == 0)
			model->sites[entries[i].site - model->sites].leak = MODEL_LEAK_SWEPT;
	}
}

/* A line that grows to the end. Of several processes generations judge the one that holds most. A queue has lost the blocks of the oldest. */
static void
grow_to_end(struct model *model, const struct entry *entries, size_t count)
{
	bool has_released = is_released(entries, count);

	for (size_t i = 0; i < count; i++) {
		struct model_site *site = &model->sites[entries[i].site - model->sites];

		if (site->process_count != 1 || site->live_bytes == 0)
			continue;
		if (site->leak == MODEL_LEAK_STEADY || (site->leak == MODEL_LEAK_TOO_SHORT && has_released &&
		                                        site->generations_alive + 1 < site->generations_total))
			site->leak = MODEL_LEAK_BACKLOG;
		else if (site->leak == MODEL_LEAK_TOO_SHORT)
			take_as_perhaps_leak(model, site); // one call may have made all of it: so few generations do not tell
	}
}

/* What little of a queue's line is called a leak, or is too new, is a part of the queue: blocks that one of its other stacks asked for. */
static void
join_queue(struct model *model, const struct model_site *queue)
{
	uint64_t queue_bytes = 0;
	uint64_t other_bytes = 0;

	EACH (site, model->sites, model->site_count) {
		if (rank_compare_places(site, queue) == 0)
			*(site->leak == MODEL_LEAK_BACKLOG ? &queue_bytes : &other_bytes) += site->live_bytes;
	}
	for (size_t i = 0; i < model->site_count && other_bytes < queue_bytes / LITTLE_PART; i++) {
		struct model_site *site = &model->sites[i];

		if ((site->leak == MODEL_LEAK_LEAK || site->leak == MODEL_LEAK_TOO_SHORT) &&
		    rank_compare_places(site, queue) == 0)
			site->leak = MODEL_LEAK_BACKLOG;
	}
}

static void
judge_process(struct model *model, const struct model_process *process)
{
	OWNED uint64_t *held = memory_zeroed(process->point_count, sizeof(*held));
	size_t count;
	OWNED struct entry *entries = collect(model, process, may_be_judged, &count);
	OWNED struct held_line *lines = NULL;
	size_t line_count = 0;

	SORT(entries, count, compare_entries);
	for (size_t first = 0, end; first < count; first = end) {
		memset(held, 0, process->point_count * sizeof(*held));
		for (end = first; end < count && compare_growers(entries[first].site, entries[end].site) == 0;)
			end += add_site(process, &entries[end], count - end, held);
		struct held_line line = held_line_of(process, &entries[first], end - first, held);

		line.is_storage = is_growing_storage(process, &entries[first], end - first, held);
		if (line.is_storage)
			line.growth = GROWTH_TO_END;
		if (line.growth != GROWTH_NONE)
			*MEMORY_NEXT(lines, line_count) = line;
	}
	EACH (line, lines, line_count) {
		bool may_be_loaded = may_be_data_set(model, line, lines, line_count);

		if (line->growth == GROWTH_SWEPT)
			sweep(model, line->entries, line->count, line->peak_bytes, may_be_loaded);
		if (line->is_storage || may_be_loaded || line->growth == GROWTH_SWEPT)
			continue;
		grow_to_end(model, line->entries, line->count);
		for (size_t i = 0; i < line->count; i++) {
			if (line->entries[i].site->leak == MODEL_LEAK_BACKLOG &&
			    (i == 0 || line->entries[i].site != line->entries[i - 1].site))
				join_queue(model, line->entries[i].site);
		}
	}
	EACH (line, lines, line_count) { // last: what is judged above asks who may be a data set
		if (line->is_storage)
			take_storage(model, line->entries, line->count);
	}
}

/*
 * What it held when this part of all that was allocated since it began had been. Below 0: there are too few points, or too few in the rest,
 * which one large block makes in a moment.
 */
static double
held_after(const struct model_process *process, const uint64_t *held, double part)
{
	size_t last = process->point_count - 1;
	size_t first = 0;

	while (first < last && held[first] == 0)
		first++;
	double until = (double)process->points[last].volume_bytes;
	double begin = (double)begin_of(process, first, process->points[last].volume_bytes);
	double volume = begin + (until - begin) * part;
	uint64_t later = SUM_OF(point, &process->points[first + 1], last - first,
	                        (double)point->volume_bytes > volume && point->volume_bytes > point[-1].volume_bytes);

	return last - first >= POINTS_MIN && (double)later >= POINTS_MIN * (1 - part) ? held_at(process, held, last, volume)
	                                                                              : -1;
}

/*
 * A cache that is full releases a block for each that it takes in, and not always the oldest: blocks of all generations may be alive. In the
 * last quarter it took in blocks that stayed, and holds hardly more. A leak beside a set that comes and goes grows by as much as stayed of
 * the quarter before.
 */
static bool
is_full_cache(const struct model_process *process, const struct model_site *site, const uint64_t *held)
{
	uint64_t counted = SUM_OF(quarter, site->quarters, SURVIVAL_QUARTERS, *quarter);
	uint64_t latest = site->quarters[SURVIVAL_QUARTERS - 1];
	double usual = (double)site->quarters[SURVIVAL_QUARTERS - 2] / (double)(counted ?: 1) / FULL_GROWTH_PART;
	double before = held_after(process, held, 0.75);
	double now = (double)held[process->point_count - 1];

	return before >= 0 && latest >= FULL_BLOCKS_MIN && latest >= counted / FULL_LATEST_PART &&
	       now - before <= now * usual;
}

static void
find_full_caches(struct model *model, const struct model_process *process)
{
	OWNED uint64_t *held = memory_zeroed(process->point_count, sizeof(*held));
	size_t count;
	OWNED struct entry *entries = collect(model, process, may_be_full, &count);

	SORT(entries, count, compare_entries);
	for (size_t first = 0, end; first < count; first = end) {
		memset(held, 0, process->point_count * sizeof(*held));
		end = first + add_site(process, &entries[first], count - first, held);
		if (is_full_cache(process, entries[first].site, held))
			model->sites[entries[first].site - model->sites].leak = MODEL_LEAK_STEADY;
	}
	/* A stack may go on as another one: what is flat is asked of the line. */
	for (size_t first = 0, end; first < count; first = end) {
		bool is_at_work = false; // what leaks may wait

		memset(held, 0, process->point_count * sizeof(*held));
		for (end = first; end < count && compare_growers(entries[first].site, entries[end].site) == 0;) {
			is_at_work = is_at_work || entries[end].site->quarters[SURVIVAL_QUARTERS - 1] != 0;
			end += add_site(process, &entries[end], count - end, held);
		}
		/* A window, a pool, an index that was full by the middle and has hardly grown since. */
		double now = (double)held[process->point_count - 1];

		for (size_t i = first; i < end && is_at_work && now - held_after(process, held, 0.5) <= now / FLAT_PART; i++)
			model->sites[entries[i].site - model->sites].leak = MODEL_LEAK_STEADY;
	}
}

void
held_over_time_classify(struct model *model)
{
	for (size_t i = 0; i < model->site_count; i++) {
		model->sites[i].swept_bytes = 0;
		model->sites[i].is_growing_storage = false;
	}
	EACH (process, model->processes, model->process_count) {
		if (process->point_count >= POINTS_MIN) {
			judge_process(model, process);
			find_full_caches(model, process);
		}
	}
	for (size_t i = 0; i < model->site_count; i++) {
		if (model->sites[i].leak == MODEL_LEAK_LEAK && rank_is_unsent(model, &model->sites[i]))
			model->sites[i].leak = MODEL_LEAK_BACKLOG;
	}
}
