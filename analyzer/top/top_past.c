/*
 * top_past.c - what did lines hold at the samples before (see top_past.h)?
 *
 * When full     the oldest sample is forgotten.
 */
#include "top/top_past.h"

#include <stdlib.h>
#include <string.h>

#include "base/items.h"
#include "base/memory.h"
#include "base/order.h"

#define LOOKS 90
#define MINUTE 60.0
#define RATE_SECONDS 5.0
#define LITTLE_PART 16 // of a line: what it held at most, where that is not known, is nothing

struct entry {
	uint64_t key;
	uint64_t live_bytes;
	uint64_t allocated_bytes;
};

struct sample {
	double seconds;
	bool is_of_timeline; // of the capture: lines that held little are missing, and what was allocated
	uint64_t live_bytes;
	uint64_t allocated_bytes;
	size_t count;
	struct entry *entries; // by key
};

struct top_past {
	size_t count;
	struct sample samples[LOOKS]; // oldest first
};

struct top_past *
top_past_new(void)
{
	return memory_zeroed(1, sizeof(struct top_past));
}

void
top_past_forget(struct top_past *past)
{
	for (size_t i = 0; i < past->count; i++)
		free(past->samples[i].entries);
	past->count = 0;
}

void
top_past_free(struct top_past *past)
{
	if (past != NULL)
		top_past_forget(past);
	free(past);
}

ORDER_OF(compare_keys, struct entry, order_numbers(a->key, b->key))

static const struct entry *
find(const struct sample *sample, uint64_t key)
{
	const struct entry wanted = { .key = key };

	return sample->count != 0 ? bsearch(&wanted, sample->entries, sample->count, sizeof(wanted), compare_keys) : NULL;
}

static void
remember(struct top_past *past, const struct sample *sample)
{
	if (past->count == LOOKS) {
		free(past->samples[0].entries);
		memmove(&past->samples[0], &past->samples[1], (LOOKS - 1) * sizeof(past->samples[0]));
		past->count--;
	}
	past->samples[past->count++] = *sample;
}

static struct sample
sample_of(const struct top_sample *sample)
{
	struct sample made = { .seconds = sample->seconds,
		                   .live_bytes = sample->live_bytes,
		                   .allocated_bytes = sample->allocated_bytes,
		                   .count = sample->row_count,
		                   .entries = memory_zeroed(sample->row_count + 1, sizeof(struct entry)) };

	for (size_t i = 0; i < sample->row_count; i++)
		made.entries[i] = (struct entry){ sample->rows[i].key, sample->rows[i].live_bytes,
			                              sample->rows[i].allocated_bytes };
	SORT(made.entries, made.count, compare_keys);
	return made;
}

/* ---- the timeline of the capture ---- */

static const struct model_point *
point_before(const struct model_process *process, uint64_t age_ns, uint64_t now_ns)
{
	const struct model_point *found = NULL;

	EACH (point, process->points, process->point_count) {
		if (!point->is_end && point->monotonic_ns + age_ns >= now_ns && found == NULL)
			found = point;
	}
	return found;
}

/* least_bytes: what a site that is not in a full list held at most. False: that may be much of the line. */
static bool
held_at(const struct top_sample *sample, const struct model_point *point, const struct top_row *row,
        uint64_t least_bytes, uint64_t *bytes)
{
	struct report_line line = report_line_figures(sample->report, row->line);
	uint64_t sum = 0;

	for (size_t k = 0; k < point->site_count; k++) {
		const struct model_site *site = &sample->model->sites[point->sites[k].site];

		if (rank_compare_places(site, line.of.largest) == 0 && rank_is_import(site) == line.of.is_import)
			sum += point->sites[k].bytes;
	}
	*bytes = sum;
	return sum != 0 || least_bytes * line.of.site_count <= row->live_bytes / LITTLE_PART;
}

/* Of one process: of several the moments differ. */
static void
begin_with_timeline(struct top_past *past, const struct top_sample *sample)
{
	const struct model_process *process = &sample->model->processes[0];
	const struct model_point *last = process->point_count != 0 ? &process->points[process->point_count - 1] : NULL;
	struct sample made = { .is_of_timeline = true };
	uint64_t least_bytes; // 0 = no site is missing

	if (sample->model->process_count != 1 || last == NULL || !sample->is_host)
		return;

	const struct model_point *point = point_before(process, (uint64_t)(MINUTE * 1e9), last->monotonic_ns);

	if (point == NULL || point->monotonic_ns >= last->monotonic_ns)
		return;
	made.seconds = sample->seconds - (double)(last->monotonic_ns - point->monotonic_ns) / 1e9;
	made.live_bytes = point->live_bytes;
	made.allocated_bytes = point->volume_bytes;
	least_bytes = point->site_count == KMEM_HISTORY_SITES ? point->sites[point->site_count - 1].bytes : 0;
	made.entries = memory_zeroed(sample->row_count + 1, sizeof(struct entry));
	EACH (row, sample->rows, sample->row_count) {
		uint64_t bytes;

		if (row->line != SIZE_MAX && held_at(sample, point, row, least_bytes, &bytes))
			made.entries[made.count++] = (struct entry){ row->key, bytes, 0 };
	}
	SORT(made.entries, made.count, compare_keys);
	remember(past, &made);
}

/* ---- growth and rates ---- */

/* The oldest sample that is not older than so much; else the one before it. */
static const struct sample *
sample_before(const struct top_past *past, double seconds, double now, bool wants_allocated)
{
	const struct sample *found = NULL;

	EACH (sample, past->samples, past->count) {
		if (wants_allocated && sample->is_of_timeline)
			continue;
		if (found == NULL || now - sample->seconds >= seconds)
			found = sample;
	}
	return found;
}

static uint64_t
per_second(uint64_t now, uint64_t then, double seconds)
{
	return now > then ? (uint64_t)((double)(now - then) / seconds) : 0;
}

static void
compare_rows(struct top_sample *sample, const struct sample *growth, const struct sample *rate)
{
	EACH (row, sample->rows, sample->row_count) {
		const struct entry *then = growth != NULL ? find(growth, row->key) : NULL;
		const struct entry *before = rate != NULL ? find(rate, row->key) : NULL;

		/* What an own sample did not have was not there. */
		row->has_growth = growth != NULL && (then != NULL || !growth->is_of_timeline);
		row->growth_bytes = (int64_t)row->live_bytes - (int64_t)(then != NULL ? then->live_bytes : 0);
		row->has_rate = rate != NULL;
		if (row->has_rate)
			row->rate_bytes = per_second(row->allocated_bytes, before != NULL ? before->allocated_bytes : 0,
			                             sample->seconds - rate->seconds);
	}
}

/* What holds nothing, and did nothing meanwhile, says nothing. */
static void
leave_out_idle(struct top_sample *sample)
{
	size_t kept = 0;

	for (size_t i = 0; i < sample->row_count; i++) {
		struct top_row row = sample->rows[i];
		bool is_idle = row.live_bytes == 0 && row.rate_bytes == 0 && (!row.has_growth || row.growth_bytes == 0);

		if (is_idle)
			free(row.place);
		else
			sample->rows[kept++] = row;
	}
	sample->row_count = kept;
}

ORDER_OF(by_live, struct top_row, order_numbers(b->held_bytes, a->held_bytes) ?: order_numbers(b->live_bytes, a->live_bytes) ?: order_numbers(a->key, b->key))

static int64_t
growth_of(const struct top_row *row)
{
	return row->has_growth ? row->growth_bytes : 0;
}

ORDER_OF(by_growth, struct top_row, (growth_of(b) > growth_of(a)) - (growth_of(b) < growth_of(a)) ?: by_live(a, b))
ORDER_OF(by_rate, struct top_row, order_numbers(b->rate_bytes, a->rate_bytes) ?: by_live(a, b))

void
top_past_compare(struct top_past *past, struct top_sample *sample, enum top_order order)
{
	static int (*const orders[TOP_ORDERS])(const void *, const void *) = { by_live, by_growth, by_rate };
	struct sample now = sample_of(sample);

	if (past->count == 0)
		begin_with_timeline(past, sample);

	const struct sample *growth = sample_before(past, MINUTE, sample->seconds, false);
	const struct sample *rate = sample_before(past, RATE_SECONDS, sample->seconds, true);

	compare_rows(sample, growth, rate);
	leave_out_idle(sample);
	sample->has_growth = growth != NULL;
	if (growth != NULL) {
		sample->growth_seconds = sample->seconds - growth->seconds;
		sample->growth_bytes = (int64_t)sample->live_bytes - (int64_t)growth->live_bytes;
	}
	sample->has_rate = rate != NULL;
	if (rate != NULL)
		sample->rate_bytes = per_second(sample->allocated_bytes, rate->allocated_bytes,
		                                sample->seconds - rate->seconds);
	SORT(sample->rows, sample->row_count, orders[order]);
	remember(past, &now);
}
