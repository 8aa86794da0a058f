/*
 * made_look.h - a look at a program that is watched, made by hand: a model, its report, and rows as a test wants them.
 */
#ifndef MADE_LOOK_H
#define MADE_LOOK_H

#include "hand_model.h"

#include <stdlib.h>

#include "base/memory.h"
#include "report/report.h"
#include "top/top_look.h"

/* Of the model; both must outlive it. Without rows. */
static inline struct top_look *
made_look(struct hand_model *hand, double seconds)
{
	const struct report_options all = { .top = UINT64_MAX };
	struct top_look *look = memory_zeroed(1, sizeof(*look));
	struct fail fail = { .text = "" };

	look->model = &hand->model;
	look->report = report_build(&hand->model, &rank_sites, &all, &fail);
	if (look->report == NULL)
		fail_msg("no report: %s", fail.text);
	look->seconds = seconds;
	look->is_host = look->is_running = true;
	look->limit_bytes = UINT64_MAX;
	look->rows = memory_zeroed(TOP_ROWS_MAX, sizeof(*look->rows));
	return look;
}

/* The number in the report is that of the row. */
static inline struct top_row *
made_row(struct top_look *look, const char *place, uint64_t live_bytes, uint64_t allocated_bytes)
{
	struct top_row *row = &look->rows[look->row_count++];

	assert_true(look->row_count <= TOP_ROWS_MAX);
	*row = (struct top_row){ .place = memory_text(place),
		                     .domain = "heap",
		                     .leak = "",
		                     .live_bytes = live_bytes,
		                     .allocated_bytes = allocated_bytes,
		                     .line = look->row_count - 1 };
	for (const char *at = place; *at != '\0'; at++)
		row->key = row->key * 31 + (unsigned char)*at;
	look->live_bytes += live_bytes;
	look->allocated_bytes += allocated_bytes;
	return row;
}

static inline void
made_look_free(struct top_look *look)
{
	look->model = NULL; // the test's
	top_look_free(look);
}

#endif
