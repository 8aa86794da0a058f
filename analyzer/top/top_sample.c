/*
 * top_sample.c - one sample at the captures (see top_sample.h).
 */
#include "top/top_sample.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/amount.h"
#include "base/memory.h"
#include "base/place.h"
#include "base/text_clean.h"
#include "capture/process_alive.h"

#define LOOK_NS UINT64_C(10000000) // a sample at mappings and the heartbeat beside it

double
top_seconds_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static uint64_t
hash_text(uint64_t sum, const char *text) // FNV-1a; its end, too
{
	do
		sum = (sum ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	while (*text++ != '\0');
	return sum;
}

/* Of what rank_compare_places() compares: the texts that are shown are cut. */
static uint64_t
key_of(const char *domain, const struct report_place *where)
{
	bool has_name = where->file[0] != '\0' || where->function[0] != '\0';
	uint64_t sum = hash_text(UINT64_C(0xcbf29ce484222325), domain);

	sum = hash_text(hash_text(sum, model_relation_name(where->relation)),
	                TEXT(48, "%" PRIu32 " %" PRIx64, where->line, has_name ? 0 : where->offset));
	sum = hash_text(hash_text(sum, where->file), where->function);
	return where->file[0] != '\0' ? sum : hash_text(sum, where->module);
}

static bool
is_of_kind(const struct report_line *line, enum top_kind kind)
{
	const struct model_frame *where = line->of.where;

	if (kind == TOP_ALL || where == NULL)
		return kind == TOP_ALL;
	return (where->kind == MODEL_FRAME_PYTHON) == (kind == TOP_PYTHON);
}

static bool
is_shown(const struct report *report, const struct report_line *line, const char *domain)
{
	if (domain == NULL)
		return !line->is_device && !line->is_address_space &&
		       report->domains[line->of.domain].of.id.kind != DOMAIN_TENSORS;
	return strcmp(line->domain, domain) == 0;
}

static void
add_figures(struct top_row *row, const struct report_line *line)
{
	row->live_bytes += line->of.live_bytes;
	row->held_bytes += amount_less(line->of.live_bytes, line->of.untouched_bytes);
	row->allocated_bytes += line->of.allocated_bytes;
}

static void
add_row(struct top_sample *sample, const struct report_line *line, size_t number)
{
	struct top_row *row = &sample->rows[sample->row_count++];
	const struct report_place *where = &line->where;

	row->place = text_cleaned(memory_text(report_place_text(where, PLACE_ROOM)));
	row->domain = line->domain;
	row->leak = line->of.leak != MODEL_LEAK_LEAK ? "" : line->may_be_built_once ? "leak?" : "leak";
	add_figures(row, line);
	row->is_estimated = line->estimate.is_estimated;
	row->line = number;
	row->key = key_of(line->domain, where);
}

static void
gather_rows(struct top_sample *sample, const struct top_wish *wish)
{
	struct top_row imports = { .domain = "", .leak = "", .line = SIZE_MAX }; // what they left is one row
	struct top_row sum = { .live_bytes = 0 };

	sample->rows = memory_zeroed(TOP_ROWS_MAX + 1, sizeof(*sample->rows));
	for (size_t i = 0; i < sample->report->line_count; i++) {
		struct report_line line = report_line_figures(sample->report, i);

		if (!is_shown(sample->report, &line, wish->domain))
			continue;
		add_figures(&sum, &line);
		if (!is_of_kind(&line, wish->kind))
			continue;
		if (line.of.is_import) {
			add_figures(&imports, &line);
		} else if (sample->row_count < TOP_ROWS_MAX && line.of.allocated_bytes != 0) {
			add_row(sample, &line, i);
		}
	}
	if (imports.live_bytes != 0) {
		imports.place = memory_text("left by imports and the interpreter");
		imports.key = hash_text(0, imports.place);
		sample->rows[sample->row_count++] = imports;
	}
	sample->live_bytes = sum.live_bytes;
	sample->held_bytes = sum.held_bytes;
	sample->allocated_bytes = sum.allocated_bytes;
}

/* Are the live bytes of a program that has ended those of the moment when it began to, at which its mappings were looked at too? */
static bool
is_of_its_end(const struct model_process *process)
{
	return !process->is_alive && (process->is_finalizing || process->is_at_exit) && process->resident != NULL;
}

/*
 * The heartbeat that tells what the process had with what is live: the last one; of a program that began to end, one from before.
 * NULL = there is none.
 */
static const struct kmem_heartbeat *
last_beat(const struct model_process *process)
{
	size_t count = process->heartbeat_count;

	if (is_of_its_end(process)) {
		while (count > 1 && process->heartbeats[count - 1].monotonic_ns > process->resident->monotonic_ns + LOOK_NS)
			count--;
	}
	return count != 0 ? &process->heartbeats[count - 1] : NULL;
}

/* What a process had in memory, and how many seconds ago. One that runs is asked itself: at its own last look it may have had less. */
static uint64_t
resident_of(const struct model_process *process, const struct kmem_heartbeat *last, double seconds, double *age)
{
	uint64_t now_bytes = process->is_alive ? process_resident_bytes(process->identity) : 0;

	*age = now_bytes == 0 && process->is_alive && last != NULL ? seconds - (double)last->monotonic_ns / 1e9 : 0;
	if (now_bytes != 0)
		return now_bytes;
	return is_of_its_end(process) ? process->resident->resident_bytes : last != NULL ? last->resident_bytes : 0;
}

/* Of the process nearest to its limit. A cgroup counts its processes together. */
static void
gather_use(struct top_sample *sample)
{
	double nearest = -1;

	sample->limit_bytes = UINT64_MAX;
	for (size_t i = 0; i < sample->model->process_count; i++) {
		const struct model_process *process = &sample->model->processes[i];
		const struct kmem_heartbeat *last = last_beat(process);
		double age;
		uint64_t resident_bytes = resident_of(process, last, sample->seconds, &age);
		uint64_t grown_bytes = last != NULL && resident_bytes > last->resident_bytes
		                           ? resident_bytes - last->resident_bytes
		                           : 0;
		uint64_t used_bytes = last != NULL && last->cgroup_bytes != 0 ? last->cgroup_bytes + grown_bytes
		                                                              : resident_bytes;

		sample->is_running = sample->is_running || process->is_alive;
		sample->resident_bytes += resident_bytes;
		sample->peak_bytes += sample->report->processes[i].peak_bytes;
		if (age > sample->resident_age)
			sample->resident_age = age;
		if (last == NULL || (double)used_bytes / (double)last->limit_bytes <= nearest)
			continue;
		nearest = (double)used_bytes / (double)last->limit_bytes;
		sample->used_bytes = used_bytes;
		sample->limit_bytes = last->limit_bytes;
	}
}

struct top_sample *
top_sample_take(const struct model_options *captures, const struct top_wish *wish, struct fail *fail)
{
	const struct report_options all = { .top = UINT64_MAX };
	struct model_options wanted = *captures;
	struct top_sample *sample;

	if (wish->capture != NULL) {
		wanted.capture = wish->capture;
		wanted.session = NULL;
	}
	wanted.is_salvage = true; // what is being written may not fit together for a moment
	sample = memory_zeroed(1, sizeof(*sample));
	sample->model = model_load(&wanted, fail);
	sample->report = sample->model != NULL ? report_build(sample->model, &rank_sites, &all, fail) : NULL;
	if (sample->report == NULL) {
		top_sample_free(sample);
		return NULL;
	}
	sample->seconds = top_seconds_now();
	sample->is_host = wish->domain == NULL;
	gather_rows(sample, wish);
	gather_use(sample);
	return sample;
}

void
top_sample_free(struct top_sample *sample)
{
	if (sample == NULL)
		return;
	for (size_t i = 0; i < sample->row_count; i++)
		free(sample->rows[i].place);
	free(sample->rows);
	report_free(sample->report);
	model_free(sample->model);
	free(sample);
}
