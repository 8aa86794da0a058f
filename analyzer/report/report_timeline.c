/*
 * report_timeline.c - what did a process hold over time, by domain and by line (see report.h)?
 *
 * A capture has up to 512 points of each process; each names the sites that held most then. The report tells the lines that held most at
 * any point. Of many processes it tells fewer points each: the highest, the last, and others at even distances.
 *
 * When failing  it cannot.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "base/order.h"
#include "report/report_build.h"

#define POINTS_BUDGET 2048u // of all processes
#define POINTS_LEAST 16u

/* ---- which points ---- */

static size_t
highest_of(const struct model_process *process)
{
	size_t highest = 0;

	for (size_t i = 1; i < process->point_count; i++) {
		if (process->points[i].live_bytes > process->points[highest].live_bytes)
			highest = i;
	}
	return highest;
}

/* Returns how many; numbers into `chosen`, which has room for all. */
static size_t
choose_points(const struct model_process *process, size_t process_count, size_t *chosen)
{
	size_t most = POINTS_BUDGET / process_count > POINTS_LEAST ? POINTS_BUDGET / process_count : POINTS_LEAST;
	size_t highest = highest_of(process);
	size_t step = (process->point_count + most - 1) / most;
	size_t count = 0;

	for (size_t i = 0; i < process->point_count; i++) {
		if (i % step == 0 || i == highest || i + 1 == process->point_count)
			chosen[count++] = i;
	}
	return count;
}

/* ---- which lines ---- */

struct group {
	const struct model_site *site;
	uint64_t now; // at one point
	uint64_t most;
	bool is_device;
	uint32_t shown; // its number among the lines that are told; NONE = it is not
};
#define NONE UINT32_MAX

struct groups {
	uint32_t *of_site; // number of its group + 1; 0 = not met
	struct group *groups;
	size_t count;
};

/* A site that is in a point. Whether an import left it is asked once: the whole stack says it. */
struct met {
	const struct model_site *site;
	bool is_import;
};

ORDER_OF(compare_places, struct met, rank_compare_lines(a->site, a->is_import, b->site, b->is_import))

static struct groups
group_sites(const struct model *model, const struct model_process *process)
{
	struct groups made = { .of_site = memory_zeroed(model->site_count + 1, sizeof(uint32_t)) };
	OWNED struct met *met = memory_zeroed(model->site_count + 1, sizeof(*met));
	size_t count = 0;

	for (size_t i = 0; i < process->point_count; i++) {
		const struct model_point *point = &process->points[i];

		for (size_t k = 0; k < point->site_count; k++) {
			if (made.of_site[point->sites[k].site] != 0)
				continue;
			made.of_site[point->sites[k].site] = 1;
			met[count].site = &model->sites[point->sites[k].site];
			met[count].is_import = rank_is_import(met[count].site);
			count++;
		}
	}
	made.groups = memory_zeroed(count + 1, sizeof(*made.groups));
	SORT(met, count, compare_places);
	for (size_t i = 0; i < count; i++) {
		enum domain_kind kind = model->domains[met[i].site->domain].id.kind;

		if (i == 0 || compare_places(&met[i - 1], &met[i]) != 0)
			made.groups[made.count++] = (struct group){ .site = met[i].site,
				                                        .is_device = domain_is_driver(kind) || kind == DOMAIN_TENSORS,
				                                        .shown = NONE };
		made.of_site[met[i].site - model->sites] = (uint32_t)made.count;
	}
	return made;
}

static void
sum_point(struct groups *groups, const struct model_point *point)
{
	for (size_t i = 0; i < groups->count; i++)
		groups->groups[i].now = 0;
	for (size_t k = 0; k < point->site_count; k++)
		groups->groups[groups->of_site[point->sites[k].site] - 1].now += point->sites[k].bytes;
}

/* The group without a number that held most at any point. NULL: none is left. */
static struct group *
largest_left(struct groups *groups, bool is_device)
{
	struct group *found = NULL;

	for (size_t i = 0; i < groups->count; i++) {
		struct group *group = &groups->groups[i];

		if (group->shown == NONE && group->is_device == is_device && (found == NULL || group->most > found->most))
			found = group;
	}
	return found;
}

static size_t
choose_lines(struct groups *groups, const struct model_process *process,
             const struct model_site *shown[2 * REPORT_TIMELINE_LINES])
{
	struct group *next;
	size_t count = 0;

	for (size_t i = 0; i < process->point_count; i++) {
		sum_point(groups, &process->points[i]);
		for (size_t k = 0; k < groups->count; k++)
			groups->groups[k].most = groups->groups[k].now > groups->groups[k].most ? groups->groups[k].now
			                                                                        : groups->groups[k].most;
	}
	for (unsigned is_device = 0; is_device < 2; is_device++) {
		for (unsigned i = 0; i < REPORT_TIMELINE_LINES && (next = largest_left(groups, is_device != 0)) != NULL; i++) {
			shown[count] = next->site;
			next->shown = (uint32_t)count++;
		}
	}
	return count;
}

/* ---- the timeline ---- */

static void
take_domains(const struct model *model, const struct model_process *process, struct report_timeline *made)
{
	made->domains = memory_zeroed(model->domain_count + 1, sizeof(unsigned));
	made->domain_names = memory_zeroed(model->domain_count + 1, sizeof(const char *));
	for (unsigned domain = 0; domain < model->domain_count; domain++) {
		bool is_used = false;

		for (size_t i = 0; i < process->point_count && !is_used; i++)
			is_used = domain < process->points[i].domain_count && process->points[i].domain_bytes[domain] != 0;
		if (!is_used)
			continue;
		made->domain_names[made->domain_count] = model->domains[domain].name;
		made->domains[made->domain_count++] = domain;
	}
}

static struct report_point
point_of(const struct report_timeline *made, struct groups *groups, const struct model_point *from, uint64_t start_ns)
{
	struct report_point point = {
		.of = *from,
		.age_ns = from->monotonic_ns > start_ns ? from->monotonic_ns - start_ns : 0,
		.domain_count = made->domain_count,
		.domain_bytes = memory_zeroed(made->domain_count + 1, sizeof(uint64_t)),
		.line_count = made->line_count,
		.line_bytes = memory_zeroed(made->line_count + 1, sizeof(uint64_t)),
	};

	for (size_t i = 0; i < made->domain_count; i++) {
		if (made->domains[i] < from->domain_count)
			point.domain_bytes[i] = from->domain_bytes[made->domains[i]];
	}
	sum_point(groups, from);
	for (size_t i = 0; i < groups->count; i++) {
		if (groups->groups[i].shown != NONE)
			point.line_bytes[groups->groups[i].shown] = groups->groups[i].now;
	}
	return point;
}

void
report_timeline_build(const struct report_rows *rows, const struct model_process *process, struct report_timeline *made)
{
	const struct model *model = rows->model;
	const struct model_site *shown[2 * REPORT_TIMELINE_LINES];
	OWNED size_t *chosen = memory_zeroed(process->point_count + 1, sizeof(*chosen));
	struct groups groups;

	*made = (struct report_timeline){ 0 };
	if (process->point_count != 0) {
		groups = group_sites(model, process);
		made->line_count = choose_lines(&groups, process, shown);
		made->lines = memory_zeroed(made->line_count + 1, sizeof(*made->lines));
		for (size_t i = 0; i < made->line_count; i++)
			made->lines[i] = (struct report_timeline_line){
				.domain_index = shown[i]->domain,
				.domain = model->domains[shown[i]->domain].name,
				.where = report_place_of(rows, shown[i]),
				.import = rank_is_import(shown[i]) ? shown[i]->import : NULL,
				.is_import = rank_is_import(shown[i]),
			};
		take_domains(model, process, made);
		made->point_count = choose_points(process, model->process_count, chosen);
		made->points = memory_zeroed(made->point_count, sizeof(*made->points));
		for (size_t i = 0; i < made->point_count; i++)
			made->points[i] = point_of(made, &groups, &process->points[chosen[i]],
			                           process->identity->start_monotonic_ns);
		free(groups.of_site);
		free(groups.groups);
	}
}

void
report_timeline_free(struct report_timeline *timeline)
{
	for (size_t i = 0; i < timeline->point_count; i++) {
		free(timeline->points[i].domain_bytes);
		free(timeline->points[i].line_bytes);
	}
	free(timeline->points);
	free(timeline->lines);
	free(timeline->domains);
	free((void *)timeline->domain_names);
}
