/*
 * report_places.c - where is a line, and what does it say?
 *
 * When failing  a line whose file is gone, has changed or must not be read has no text.
 */
#include "base/place.h"
#include "report/report_build.h"

uint64_t
report_offset_of(const struct model_frame *frame)
{
	bool is_nameless = frame->kind == MODEL_FRAME_NATIVE && frame->function[0] == '\0' && frame->file[0] == '\0';

	return is_nameless && frame->module[0] != '\0' ? frame->module_offset : 0;
}

struct report_place
report_place_of_frame(const struct model_frame *frame)
{
	struct report_place place = { .file = "", .function = "", .module = "", .source = "" };

	if (frame == NULL)
		return place;
	place.is_known = true;
	place.file = frame->file;
	place.line = frame->line;
	place.function = frame->function;
	place.module = frame->module;
	place.offset = report_offset_of(frame);
	return place;
}

struct report_place
report_place_without_source(const struct model_site *site)
{
	struct report_place place = report_place_of_frame(site != NULL ? site->where : NULL);

	if (place.is_known)
		place.relation = site->where_relation;
	return place;
}

/* When the process that has the site read its files: a forked one is as old as its parent. 0 = several have it, or not known. */
static uint64_t
started_ns(const struct model *model, const struct model_site *site)
{
	const struct model_process *process = &model->processes[site->process];

	while (process->identity->is_forked != 0 && process->parent >= 0 &&
	       model->processes[process->parent].identity->pid == process->identity->forked_from)
		process = &model->processes[process->parent];
	return site->process_count == 1 && process->identity->is_forked == 0 ? process->identity->start_realtime_ns : 0;
}

/* False: its file must not be read. frame: of the site's. */
static bool
source_place_of(const struct report_rows *rows, const struct model_site *site, const struct model_frame *frame,
                struct source_place *source)
{
	if (frame == NULL || !(frame->kind == MODEL_FRAME_PYTHON || (frame->file[0] == '/' && frame->built_ns != 0)))
		return false;

	const struct model_process *process = &rows->model->processes[site->process];

	*source = (struct source_place){
		.directory = process->is_trusted ? process->identity->directory : "",
		.file = frame->file,
		.path = model_file_on_disk(rows->model, frame->file),
		.started_ns = started_ns(rows->model, site),
		.built_ns = frame->built_ns,
		.line = frame->line,
		.first_line = frame->first_line,
		.function = frame->function,
		.is_user = frame->is_user,
	};
	return frame->is_trusted || place_is_cell(frame->file); // a cell's text is in the capture
}

struct report_place
report_place_of(const struct report_rows *rows, const struct model_site *site)
{
	struct report_place place = report_place_without_source(site);
	struct source_place source;

	if (site != NULL && source_place_of(rows, site, site->where, &source))
		place.source = source_lines_find(rows->sources, &source, &place.is_source_changed);
	return place;
}

bool
report_line_source(const struct report *report, size_t number, struct report_source *source)
{
	const struct model_site *site = report->rows->ranked->lines[number].largest;
	struct source_place place;

	if (!source_place_of(report->rows, site, site->where, &place) || !site->where->is_user)
		return false;
	source->file = site->where->file;
	return source_lines_all(report->rows->sources, &place, &source->text) == SOURCE_KNOWN;
}

enum source_state
report_frame_source(const struct report *report, const struct report_site *site, uint32_t number,
                    struct source_text *text)
{
	struct source_place place;

	if (!source_place_of(report->rows, &site->of, site->of.frames[number], &place))
		return SOURCE_UNKNOWN;
	return source_lines_all(report->rows->sources, &place, text);
}
