/*
 * made_sample.h - a sample at a program that is watched, made by hand: a model, its report, and rows as a test wants them.
 */
#ifndef MADE_SAMPLE_H
#define MADE_SAMPLE_H

#include "hand_model.h"

#include "base/memory.h"
#include "report/report.h"
#include "top/top_sample.h"

/* Of the model; both must outlive it. Without rows. */
static inline struct top_sample *
made_sample(struct hand_model *hand, double seconds)
{
	const struct report_options all = { .top = UINT64_MAX };
	struct top_sample *sample = memory_zeroed(1, sizeof(*sample));
	struct fail fail = { .text = "" };

	hand->identity.boot_id[0] = '\0'; // else the machine's journal is asked, each time, what it has of such a process
	sample->model = &hand->model;
	sample->report = report_build(&hand->model, &rank_sites, &all, &fail);
	if (sample->report == NULL)
		fail_msg("no report: %s", fail.text);
	sample->seconds = seconds;
	sample->is_host = sample->is_running = true;
	sample->limit_bytes = UINT64_MAX;
	sample->rows = memory_zeroed(TOP_ROWS_MAX, sizeof(*sample->rows));
	return sample;
}

/* The number in the report is that of the row. */
static inline struct top_row *
made_row(struct top_sample *sample, const char *place, uint64_t live_bytes, uint64_t allocated_bytes)
{
	struct top_row *row = &sample->rows[sample->row_count++];

	assert_true(sample->row_count <= TOP_ROWS_MAX);
	*row = (struct top_row){ .place = memory_text(place),
		                     .domain = "heap",
		                     .leak = "",
		                     .live_bytes = live_bytes,
		                     .held_bytes = live_bytes,
		                     .allocated_bytes = allocated_bytes,
		                     .line = sample->row_count - 1 };
	for (const char *at = place; *at != '\0'; at++)
		row->key = row->key * 31 + (unsigned char)*at;
	sample->live_bytes += live_bytes;
	sample->held_bytes += live_bytes;
	sample->allocated_bytes += allocated_bytes;
	return row;
}

static inline void
made_sample_free(struct top_sample *sample)
{
	sample->model = NULL; // the test's
	top_sample_free(sample);
}

#endif
