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

/* What a site held at a point. */
struct entry {
	const struct model_site *site;
	size_t point;
	uint64_t bytes;
};

ORDER_OF(compare_entries, struct entry,
	rank_compare_places(a->site, b->site) ?: order_numbers((uintptr_t)a->site, (uintptr_t)b->site)
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

/* Of sites that were among the largest at some point; of the end, which has all sites, only these. For free(). */
static struct entry *
collect(const struct model *model, const struct model_process *process, size_t *count)
{
	bool *is_seen = memory_zeroed(model->site_count + 1, sizeof(*is_seen));
	struct entry *entries = NULL;
	size_t room = 0;

	*count = 0;
	for (size_t i = 0; i < process->point_count; i++) {
		const struct model_point *point = &process->points[i];

		for (size_t k = 0; k < point->site_count; k++) {
			uint32_t site = point->sites[k].site;

			if (!may_be_judged(model, &model->sites[site]) || (point->is_end && !is_seen[site]))
				continue;
			is_seen[site] = true;
			*MEMORY_NEXT(entries, *count, room) = (struct entry){ &model->sites[site], i, point->sites[k].bytes };
		}
	}
	free(is_seen);
	return entries;
}

/* Who is not among the largest of a full point holds less than these; it is taken to hold what it did, as far as that fits. */
static uint64_t
unseen_bytes(const struct model_point *point, uint64_t before_bytes)
{
	uint64_t least_bytes;

	if (point->is_end || point->site_count < KMEM_HISTORY_SITES)
		return 0;
	least_bytes = point->sites[point->site_count - 1].bytes;
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

/*
 * Half of all that was allocated since the line began may be a data set that is loaded. What is loaded stays: a line that has released many
 * of its blocks takes in more than it gives back.
 */
static bool
is_released(const struct entry *entries, size_t count)
{
	const struct model_site *last = NULL;
	uint64_t live_count = 0;
	uint64_t allocated_count = 0;

	for (size_t i = 0; i < count; i++) {
		if (entries[i].site != last) {
			live_count += entries[i].site->live_count;
			allocated_count += entries[i].site->allocated_count;
		}
		last = entries[i].site;
	}
	return live_count >= RELEASED_BLOCKS_MIN && allocated_count - live_count >= live_count / RELEASED_PART;
}

/* *peak: the point at which it held most. */
static enum growth
growth_of(const struct model_process *process, const struct entry *entries, size_t count, const uint64_t *held,
          size_t *peak)
{
	size_t last = process->point_count - 1;
	size_t first = 0;

	*peak = 0;
	for (size_t i = 0; i <= last; i++)
		*peak = held[i] > held[*peak] ? i : *peak;
	while (first < *peak && held[first] == 0)
		first++;
	uint64_t until = process->points[*peak].volume_bytes;
	uint64_t begin = begin_of(process, first, until);
	uint64_t span = until > begin ? until - begin : 0;
	uint64_t since = process->points[last].volume_bytes - until;

	if (*peak - first + 1 < POINTS_MIN || held[*peak] < FLOOR_BYTES ||
	    (held[*peak] >= span / 2 && !is_released(entries, count)) || since > span / AFTER_PART ||
	    largest_fall(held, *peak) > held[*peak] / FALL_PART || !rises_evenly(process, held, (double)begin, *peak))
		return GROWTH_NONE;
	if (held[last] <= held[*peak] / LEFT_PART)
		return process->state == KMEM_STATE_CLEAN_EXIT ? GROWTH_SWEPT : GROWTH_NONE;
	return held[last] >= held[*peak] - held[*peak] / FALL_PART ? GROWTH_TO_END : GROWTH_NONE;
}

static void
sweep(struct model *model, const struct entry *entries, size_t count, uint64_t bytes)
{
	for (size_t i = 0; i < count; i++) {
		struct model_site *site = &model->sites[entries[i].site - model->sites];

		site->leak = MODEL_LEAK_SWEPT;
		site->swept_bytes = i == 0 ? site->swept_bytes + bytes : site->swept_bytes; // of the line, at its first site
	}
}

/* A line that grows to the end. Of several processes generations judge the one that holds most. */
static void
grow_to_end(struct model *model, const struct entry *entries, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct model_site *site = &model->sites[entries[i].site - model->sites];

		if (site->process_count != 1 || site->live_bytes == 0)
			continue;
		if (site->leak == MODEL_LEAK_STEADY)
			site->leak = MODEL_LEAK_BACKLOG;
		else if (site->leak == MODEL_LEAK_TOO_SHORT)
			site->leak = MODEL_LEAK_LEAK;
	}
}

/* What little of a queue's line is called a leak is a part of the queue: blocks that one of its other stacks asked for. */
static void
join_queue(struct model *model, const struct model_site *queue)
{
	uint64_t queue_bytes = 0;
	uint64_t leaking_bytes = 0;

	EACH (site, model->sites, model->site_count) {
		if (rank_compare_places(site, queue) == 0)
			*(site->leak == MODEL_LEAK_LEAK ? &leaking_bytes : &queue_bytes) += site->live_bytes;
	}
	for (size_t i = 0; i < model->site_count && leaking_bytes < queue_bytes / LITTLE_PART; i++) {
		struct model_site *site = &model->sites[i];

		if (site->leak == MODEL_LEAK_LEAK && rank_compare_places(site, queue) == 0)
			site->leak = MODEL_LEAK_BACKLOG;
	}
}

static void
judge_process(struct model *model, const struct model_process *process)
{
	uint64_t *held = memory_zeroed(process->point_count, sizeof(*held));
	size_t count;
	struct entry *entries = collect(model, process, &count);

	SORT(entries, count, compare_entries);
	for (size_t first = 0, end; first < count; first = end) {
		size_t peak;

		memset(held, 0, process->point_count * sizeof(*held));
		for (end = first; end < count && rank_compare_places(entries[first].site, entries[end].site) == 0;)
			end += add_site(process, &entries[end], count - end, held);
		switch (growth_of(process, &entries[first], end - first, held, &peak)) {
		case GROWTH_SWEPT:
			sweep(model, &entries[first], end - first, held[peak]);
			break;
		case GROWTH_TO_END:
			grow_to_end(model, &entries[first], end - first);
			if (entries[first].site->leak == MODEL_LEAK_BACKLOG)
				join_queue(model, entries[first].site);
			break;
		case GROWTH_NONE:
			break;
		}
	}
	free(entries);
	free(held);
}

void
held_over_time_classify(struct model *model)
{
	for (size_t i = 0; i < model->site_count; i++)
		model->sites[i].swept_bytes = 0;
	EACH (process, model->processes, model->process_count) {
		if (process->point_count >= POINTS_MIN)
			judge_process(model, process);
	}
}
