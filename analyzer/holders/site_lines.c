/*
 * site_lines.c - from a record of the capture to a line of code (see site_lines.h).
 */
#include "holders/site_lines.h"

#include <stdlib.h>

#include "analysis/rank.h"
#include "base/memory.h"
#include "base/order.h"

/* Sites of one line stand together: equal frames are one object. Small Python objects stand apart: only a sample of them is known. */
struct by_place {
	const struct model_site *site;
	bool is_sampled;
	uint32_t index;
};

static uint64_t
place_key(const struct model_site *site)
{
	return site->where != NULL ? (uint64_t)(uintptr_t)site->where : site->key;
}

ORDER_OF(compare, struct by_place,
	order_numbers(place_key(a->site), place_key(b->site)) ?: order_numbers(a->is_sampled, b->is_sampled)
	?: order_numbers(a->index, b->index))

static bool
is_sampled(const struct model *model, const struct model_site *site)
{
	return model->domains[site->domain].id.kind == DOMAIN_PYTHON_OBJECT;
}

static bool
is_counted(const struct model *model, const struct model_site *site, bool has_objects)
{
	return domain_is_heap(model->domains[site->domain].id.kind) || (has_objects && is_sampled(model, site));
}

static bool
is_of_line(const struct by_place *entry, const struct site_line *line)
{
	return line->site != NULL && place_key(line->site) == place_key(entry->site) &&
	       line->is_estimated == entry->is_sampled;
}

void
site_lines_make(const struct model *model, bool has_objects, struct site_lines *lines)
{
	const struct model_process *process = &model->processes[0];
	OWNED struct by_place *sorted = memory_zeroed(model->site_count, sizeof(*sorted));
	OWNED uint32_t *of_site = memory_zeroed(model->site_count, sizeof(*of_site));

	*lines = (struct site_lines){ .count = 1 };
	lines->lines = memory_zeroed(model->site_count + 1, sizeof(*lines->lines));
	for (uint32_t i = 0; i < model->site_count; i++)
		sorted[i] = (struct by_place){ &model->sites[i], is_sampled(model, &model->sites[i]), i };
	SORT(sorted, model->site_count, compare);
	for (size_t i = 0; i < model->site_count; i++) {
		const struct model_site *site = sorted[i].site;

		if (!is_counted(model, site, has_objects))
			continue;
		if (!is_of_line(&sorted[i], &lines->lines[lines->count - 1]))
			lines->lines[lines->count++] = (struct site_line){ .site = site, .is_estimated = sorted[i].is_sampled };

		struct site_line *line = &lines->lines[lines->count - 1];

		line->live_bytes += site->live_bytes;
		line->memory_bytes += rank_live_in_memory(site);
		line->live_count += site->live_count;
		if ((site->import != NULL && site->import[0] != '\0') ||
		    rank_is_start_up(site)) // "" is no import that is known
			line->imported_bytes += site->live_bytes;
		of_site[sorted[i].index] = (uint32_t)lines->count - 1;
	}
	lines->record_count = process->record_count;
	lines->of_record = memory_zeroed(process->record_count, sizeof(*lines->of_record));
	lines->sample_bytes = model->sample_bytes;
	for (size_t i = 0; i < process->record_count; i++) {
		if (process->record_sites[i] != 0)
			lines->of_record[i] = of_site[process->record_sites[i] - 1];
	}
}

void
site_lines_free(struct site_lines *lines)
{
	free(lines->lines);
	free(lines->of_record);
	*lines = (struct site_lines){ 0 };
}

uint32_t
site_lines_of(const struct site_lines *lines, uint32_t record)
{
	return record != 0 && record <= lines->record_count ? lines->of_record[record - 1] : 0;
}

bool
site_lines_is_of_import(const struct site_lines *lines, uint32_t number)
{
	return lines->lines[number].imported_bytes > lines->lines[number].live_bytes / 2;
}

uint64_t
site_lines_bytes_for(const struct site_lines *lines, uint32_t record, uint64_t block_bytes)
{
	bool is_sample = lines->lines[site_lines_of(lines, record)].is_estimated;

	return is_sample && block_bytes < lines->sample_bytes ? lines->sample_bytes : block_bytes != 0 ? block_bytes : 1;
}

const char *
site_lines_text(const struct site_line *line, char text[PLACE_TEXT_BYTES])
{
	const struct model_frame *frame = line->site != NULL ? line->site->where : NULL;

	if (frame == NULL)
		return place_text("", 0, "", "", 0, text);
	(void)place_text(frame->file, frame->line, frame->function, frame->module,
	                 frame->kind == MODEL_FRAME_NATIVE && frame->function[0] == '\0' ? frame->module_offset : 0, text);
	return place_related(model_relation_name(line->site->where_relation), text);
}
