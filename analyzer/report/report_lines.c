/*
 * report_lines.c - what is told of one line of code, one site, one frame? Made when asked for (report.h).
 */
#include <string.h>

#include "analysis/grows_with.h"
#include "analysis/kept_way.h"
#include "report/report_build.h"

static enum report_lost
lost_of(const struct model_site *site)
{
	if (site->frame_count != 0 || (site->stack_flags & KMEM_STACK_IMPORT_CUT) != 0) // nothing but the import system
		return REPORT_LOST_NOTHING;
	if ((site->stack_flags & KMEM_STACK_MERGED) != 0)
		return REPORT_LOST_NO_ROOM;
	return (site->stack_flags & KMEM_STACK_NO_STACK) != 0 ? REPORT_LOST_NO_STACK : REPORT_LOST_UNFINISHED;
}

static struct report_site
make_site(const struct report_rows *rows, const struct model_site *site)
{
	return (struct report_site){
		.of = *site,
		.domain = rows->model->domains[site->domain].name,
		.estimate = report_estimate_of(rows->model, site->domain, site->live_bytes, site->peak_bytes, site,
		                               site->samples),
		.where = report_place_of(rows, site),
		.import = rank_is_import(site) ? site->import : "",
		.lost = lost_of(site),
		.is_python_only = (site->stack_flags & KMEM_STACK_PYTHON_ONLY) != 0,
	};
}

struct report_site
report_site(const struct report *report, size_t number)
{
	return make_site(report->rows, report->rows->ranked->sites[number]);
}

/* At the end of the interpreter, or of a process that ends by itself, objects are counted once more. */
static bool
has_last_sample(const struct model_process *process)
{
	return process->is_finalizing || process->state == KMEM_STATE_CLEAN_EXIT;
}

struct report_line
report_line_figures(const struct report *report, size_t number)
{
	const struct report_rows *rows = report->rows;
	const struct rank_line *line = &rows->ranked->lines[number];
	const struct model_domain *domain = &rows->model->domains[line->domain];

	return (struct report_line){
		.of = *line,
		.domain = domain->name,
		.where = report_place_without_source(line->largest),
		.estimate = report_estimate_of(rows->model, line->domain, line->live_bytes, line->peak_bytes, line->largest,
		                               line->samples),
		.domain_bytes = report->ranking == RANK_PEAK ? domain->peak_bytes : domain->live_bytes,
		.domain_untouched_bytes = report->ranking == RANK_PEAK ? domain->peak_untouched_bytes : domain->untouched_bytes,
		.may_be_built_once = rank_may_be_built_once(line->telling),
		.is_device = domain_is_driver(domain->id.kind),
		.is_address_space = domain_is_address_space(domain->id.kind),
		.is_in_each = domain->id.kind == DOMAIN_SHARED && rows->model->process_count > 1 &&
		              (line->site_count > 1 || line->largest->process_count > 1),
		.is_start_up = line->is_import && rank_is_start_up(line->largest),
		.import = line->is_import ? line->largest->import : "",
	};
}

static void
add_types(const struct report_rows *rows, const struct rank_line *line, struct report_line *made)
{
	uint64_t counted = 0;

	for (size_t i = 0; i < line->site_count; i++) {
		const struct model_site *site = rows->ranked->sites[line->first_site + i];

		for (unsigned j = 0; j < site->type_count; j++)
			model_tally_add(made->types, &made->type_count, MODEL_TYPES_MAX, site->types[j].name, site->types[j].count);
		made->are_types_older = made->are_types_older ||
		                        (site->type_count != 0 && !has_last_sample(&rows->model->processes[site->process]));
	}
	for (unsigned i = 0; i < made->type_count; i++)
		counted += made->types[i].count;
	/* Blocks without a kind are expected: what lists and dictionaries keep their items in. */
	made->are_types_older = made->are_types_older && (counted < line->live_count / 2 || counted / 2 > line->live_count);
}

static void
add_releases(const struct report_rows *rows, const struct rank_line *line, struct report_line *made)
{
	struct model_tally releases[MODEL_RELEASES_MAX];

	for (size_t i = 0; i < line->site_count; i++) {
		const struct model_site *site = rows->ranked->sites[line->first_site + i];

		made->watched_releases += site->watched_releases;
		made->temporary_of += site->temporary_of;
		made->temporary_releases += site->temporary_releases;
		for (unsigned j = 0; j < site->release_count; j++)
			model_tally_add(releases, &made->release_count, MODEL_RELEASES_MAX, site->releases[j].where,
			                site->releases[j].count);
	}
	for (unsigned i = 0; i < made->release_count; i++)
		made->releases[i] = (struct report_release){ report_place_of_frame(releases[i].where), releases[i].count };
}

static bool
accumulates(enum model_leak_class leak)
{
	return leak == MODEL_LEAK_LEAK || leak == MODEL_LEAK_BACKLOG || leak == MODEL_LEAK_FILLING ||
	       leak == MODEL_LEAK_TOO_SHORT;
}

static void
add_kept(const struct report_rows *rows, const struct rank_line *line, struct report_line *made)
{
	struct kept_way way;

	if (accumulates(line->leak) && kept_way_find(rows->ranked, line, &way))
		made->kept = (struct report_kept){ report_place_of_frame(way.through), way.live_count, way.allocated_count,
			                               way.other_live_count, way.other_allocated_count };
}

static void
add_grows_with(const struct report_rows *rows, const struct rank_line *line, struct report_line *made)
{
	struct grows_with found = grows_with_of(rows->ranked, line);

	made->others_that_grow = found.others;
	made->other_growing_bytes = found.other_bytes;
	if (found.first != NULL)
		made->grows_with = report_place_of(rows, found.first->largest);
}

struct report_line
report_line(const struct report *report, size_t number)
{
	const struct rank_line *line = &report->rows->ranked->lines[number];
	struct report_line made = report_line_figures(report, number);

	made.where = report_place_of(report->rows, line->largest);
	made.largest = make_site(report->rows, line->largest);
	add_types(report->rows, line, &made);
	const struct holders_line *held = model_holders_of(report->rows->model, line->where,
	                                                   report->rows->model->domains[line->domain].id.kind);

	if (held != NULL) {
		made.held_samples = held->samples;
		made.way_count = held->way_count;
		made.ways = held->ways;
	}
	add_releases(report->rows, line, &made);
	add_kept(report->rows, line, &made);
	made.growth = line_growth_of(report->rows->model, line);
	made.filled_bytes = rank_filled_bytes(line);
	made.kept_in_steps = line_steps_of(report->rows->model, line);
	add_grows_with(report->rows, line, &made);
	return made;
}

struct report_frame
report_frame(const struct report_site *site, uint32_t number)
{
	const struct model_frame *frame = site->of.frames[number];

	return (struct report_frame){
		.of = *frame,
		.offset = report_offset_of(frame),
		.relation = model_relation_of(&site->of, number),
		.identity = frame,
	};
}
