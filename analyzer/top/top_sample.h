/*
 * top_sample.h - one sample at the captures: how much is in use, and which lines hold it.
 *
 * When failing  NULL, and one line in `fail`. A capture that is being written is read as it is at the moment.
 */
#ifndef TOP_SAMPLE_H
#define TOP_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"
#include "model/model_load.h"
#include "report/report.h"

enum top_kind { TOP_ALL, TOP_PYTHON, TOP_NATIVE, TOP_KINDS };
enum top_order { TOP_BY_LIVE, TOP_BY_GROWTH, TOP_BY_RATE, TOP_ORDERS };

/* What is to be seen. */
struct top_wish {
	const char *capture; // one process's file; NULL = all that were given
	const char *domain;  // NULL = all memory of the host
	enum top_kind kind;
	enum top_order order;
};

#define TOP_ROWS_MAX 500
struct top_row {
	uint64_t key; // equal for equal lines, in every sample
	char *place;
	const char *domain;
	const char *leak;
	uint64_t live_bytes;
	uint64_t held_bytes; // of it, in memory: what rows are ordered and shared by
	uint64_t allocated_bytes;
	int64_t growth_bytes; // with has_growth
	uint64_t rate_bytes;  // a second, with has_rate
	bool has_growth;
	bool has_rate;
	bool is_estimated;
	size_t line; // number in the report; SIZE_MAX = what imports left
};

struct top_sample {
	struct model *model;
	struct report *report;
	double seconds;      // when it was taken
	bool is_running;     // any of its processes
	bool is_host;        // all memory of the host is shown
	uint64_t live_bytes; // of what is shown
	uint64_t held_bytes; // of it, in memory
	uint64_t allocated_bytes;
	uint64_t peak_bytes;
	uint64_t resident_bytes; // of all that run, or of all
	double resident_age;     // seconds since the oldest of these figures of a process that runs
	uint64_t used_bytes;     // of the limit, by all that it counts; 0 = not known
	uint64_t limit_bytes;    // UINT64_MAX = none
	int64_t growth_bytes;
	uint64_t rate_bytes;
	bool has_growth;
	bool has_rate;
	double growth_seconds; // since then
	size_t row_count;
	struct top_row *rows;
};

struct top_sample *top_sample_take(const struct model_options *captures, const struct top_wish *wish,
                                   struct fail *fail);
void top_sample_free(struct top_sample *sample);

double top_seconds_now(void); // CLOCK_MONOTONIC

#endif
