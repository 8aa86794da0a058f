/*
 * line_growth.c - since when does a line grow, how, and what part of its process's growth is that (see line_growth.h)?
 */
#include "analysis/line_growth.h"

#define EVEN_PART 2 // a quarter may have so many times as many as another
#define FASTER_PART 2
#define POINTS_MIN 16 // of what it held over time: of fewer a quarter has too few

static enum line_pace
pace_of(const uint64_t quarters[SURVIVAL_QUARTERS])
{
	uint64_t least = quarters[0];
	uint64_t most = quarters[0];
	bool is_rising = true;

	for (unsigned i = 1; i < SURVIVAL_QUARTERS; i++) {
		least = quarters[i] < least ? quarters[i] : least;
		most = quarters[i] > most ? quarters[i] : most;
		is_rising = is_rising && quarters[i] >= quarters[i - 1];
	}
	if (most <= least * EVEN_PART)
		return LINE_PACE_EVEN;
	return is_rising && quarters[SURVIVAL_QUARTERS - 1] >= quarters[0] * FASTER_PART ? LINE_PACE_FASTER
	                                                                                 : LINE_PACE_BURSTS;
}

static uint64_t
held_at(const struct model *model, const struct model_point *point, const struct rank_line *line)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < point->site_count; i++) {
		if (rank_compare_places(&model->sites[point->sites[i].site], line->largest) == 0)
			bytes += point->sites[i].bytes;
	}
	return bytes;
}

/*
 * Blocks that become larger are as many in each quarter, and the line grows faster and faster all the same. Of what it held over time that
 * shows, where it was among the largest lines from the first point that has it to the last one.
 */
static bool
grows_faster_in_bytes(const struct model *model, const struct model_process *process, const struct rank_line *line)
{
	const struct model_point *points = process->points;
	size_t last = process->point_count - 1;
	uint64_t quarters[SURVIVAL_QUARTERS] = { 0 };
	uint64_t before;
	uint64_t begin;
	uint64_t span;
	size_t first = 0;

	while (first < last && held_at(model, &points[first], line) == 0)
		first++;
	before = held_at(model, &points[first], line);
	begin = points[first].volume_bytes;
	span = points[last].volume_bytes - begin;
	if (last - first < POINTS_MIN || points[last].volume_bytes <= begin)
		return false;
	for (size_t i = first + 1; i <= last; i++) {
		uint64_t held = held_at(model, &points[i], line);
		/* A stretch that lies in two quarters is of the one in which its middle lies. */
		uint64_t middle = (points[i - 1].volume_bytes + points[i].volume_bytes) / 2 - begin;
		size_t quarter = (size_t)((double)middle / (double)span * SURVIVAL_QUARTERS);

		if (held == 0 || points[i].volume_bytes < points[i - 1].volume_bytes)
			return false;
		if (held > before && quarter < SURVIVAL_QUARTERS)
			quarters[quarter] += held - before;
		before = held;
	}
	return pace_of(quarters) == LINE_PACE_FASTER;
}

struct line_growth
line_growth_of(const struct model *model, const struct rank_line *line)
{
	const struct model_site *site = line->telling;
	const struct model_process *process = &model->processes[site->process];
	struct line_growth growth = { .since_ms = site->first_ms, .bytes = line->live_bytes };
	uint64_t before_bytes = 0;
	uint64_t now_bytes;

	if ((line->leak != MODEL_LEAK_LEAK && line->leak != MODEL_LEAK_BACKLOG) || site->process_count != 1 ||
	    process->point_count == 0)
		return growth;
	for (size_t i = 0; i < process->point_count; i++) {
		const struct model_point *point = &process->points[i];

		if (!point->is_end && point->monotonic_ns <= process->identity->start_monotonic_ns + site->first_ms * 1000000)
			before_bytes = point->live_bytes;
	}
	now_bytes = process->points[process->point_count - 1].live_bytes;
	if (now_bytes <= before_bytes)
		return growth;
	growth.is_known = true;
	growth.whole_bytes = now_bytes - before_bytes > growth.bytes ? now_bytes - before_bytes : growth.bytes;
	growth.pace = pace_of(site->quarters);
	if (growth.pace == LINE_PACE_EVEN && grows_faster_in_bytes(model, process, line))
		growth.pace = LINE_PACE_FASTER;
	return growth;
}
