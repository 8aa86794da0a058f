/*
 * line_growth.c - since when does a line grow, how, and what part of its process's growth is that (see line_growth.h)?
 */
#include "analysis/line_growth.h"

#define EVEN_PART 2 // a quarter may have so many times as many as another
#define FASTER_PART 2

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
	return growth;
}
