/*
 * line_growth.c - since when does a line grow, how, and what part of its process's growth is that (see line_growth.h)?
 */
#include "analysis/line_growth.h"

#define EVEN_PART 2   // a quarter may have so many times as many as another
#define POINTS_MIN 16 // of what it held over time: of fewer a quarter has too few
#define BURST_TIMES 3 // as fast as on average; half of the growth came so

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
	return is_rising ? LINE_PACE_FASTER : LINE_PACE_BURSTS;
}

/* The last point that is no later than the moment which figures are of. */
static size_t
last_point(const struct model_process *process)
{
	size_t last = process->point_count - 1;

	while (last > 0 && process->moment_ns != 0 && process->points[last].monotonic_ns > process->moment_ns)
		last--;
	return last;
}

/*
 * By what it held over time. Blocks that become larger are as many in each quarter, and the line grows faster and faster all the same. False:
 * there are too few points, or the line was not among the largest in each of them.
 */
static bool
pace_over_time(const struct model *model, const struct model_process *process, const struct rank_line *line,
               enum line_pace *pace)
{
	const struct model_point *points = process->points;
	size_t last = last_point(process);
	uint64_t quarters[SURVIVAL_QUARTERS] = { 0 };
	uint64_t in_bursts = 0;
	size_t first = 0;

	while (first < last && rank_held_at(model, &points[first], line->largest) == 0)
		first++;
	uint64_t begin_bytes = rank_held_at(model, &points[first], line->largest);
	uint64_t grown_bytes = rank_held_at(model, &points[last], line->largest);
	uint64_t begin = points[first].volume_bytes;
	uint64_t span = points[last].volume_bytes - begin;
	uint64_t before = begin_bytes;

	if (last - first < POINTS_MIN || points[last].volume_bytes <= begin || grown_bytes <= begin_bytes)
		return false;
	grown_bytes -= begin_bytes;
	for (size_t i = first + 1; i <= last; i++) {
		uint64_t held = rank_held_at(model, &points[i], line->largest);
		uint64_t from = points[i - 1].volume_bytes;
		uint64_t to = points[i].volume_bytes;

		if (held == 0 || to < from || to - begin > span)
			return false;
		/* A stretch that lies in two quarters is of the one in which its middle lies. */
		size_t quarter = (size_t)((double)((from + to) / 2 - begin) / (double)span * SURVIVAL_QUARTERS);
		uint64_t rise = held > before ? held - before : 0;

		quarters[quarter < SURVIVAL_QUARTERS ? quarter : SURVIVAL_QUARTERS - 1] += rise;
		if ((double)rise * (double)span > (double)(to - from) * (double)grown_bytes * BURST_TIMES)
			in_bursts += rise;
		before = held;
	}
	*pace = pace_of(quarters);
	/* Points may be nearer to each other than rounds of a loop: what comes in each looks like a burst, and has as many blocks in each quarter. */
	if (*pace == LINE_PACE_EVEN && in_bursts >= grown_bytes / 2)
		*pace = pace_of(line->telling->quarters);
	return true;
}

struct line_growth
line_growth_of(const struct model *model, const struct rank_line *line)
{
	const struct model_site *site = line->telling;
	const struct model_process *process = &model->processes[site->process];
	struct line_growth growth = { .since_ms = site->first_ms, .bytes = line->live_bytes };
	uint64_t before_bytes = 0;

	if ((line->leak != MODEL_LEAK_LEAK && line->leak != MODEL_LEAK_BACKLOG) || site->process_count != 1 ||
	    process->point_count == 0 || domain_is_address_space(model->domains[site->domain].id.kind))
		return growth;
	for (size_t i = 0; i < process->point_count; i++) {
		const struct model_point *point = &process->points[i];

		if (!point->is_end && point->monotonic_ns <= process->identity->start_monotonic_ns + site->first_ms * 1000000)
			before_bytes = point->live_bytes;
	}

	/* Of the moment that the line's figures are of: the last point may be behind what an end released. */
	uint64_t now_bytes = process->live_bytes;

	if (now_bytes <= before_bytes)
		return growth;
	growth.is_known = true;
	growth.whole_bytes = now_bytes - before_bytes > growth.bytes ? now_bytes - before_bytes : growth.bytes;
	if (!pace_over_time(model, process, line, &growth.pace))
		growth.pace = pace_of(site->quarters);
	return growth;
}
