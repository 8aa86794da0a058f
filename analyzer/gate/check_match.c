/* check_match.c - see check_match.h. */
#include "gate/check_match.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/order.h"

#define TRIED_MAX 256 // lines of the baseline that are alike; hostile files have more

/* One way in which a line that is gone may be found. */
struct trace {
	uint64_t likeness;
	size_t site; // of the baseline
};

uint64_t
check_limit(uint64_t before_bytes, struct check_tolerance tolerance)
{
	uint64_t relative = (uint64_t)((double)before_bytes * tolerance.relative_ppm / 1e6);
	uint64_t allowed = relative > tolerance.absolute_bytes ? relative : tolerance.absolute_bytes;

	return before_bytes > UINT64_MAX - allowed ? UINT64_MAX : before_bytes + allowed;
}

static int
compare_traces(const void *a, const void *b)
{
	const struct trace *left = a;
	const struct trace *right = b;

	return order_numbers(left->likeness, right->likeness) ?: order_numbers(left->site, right->site);
}

/* Of all lines of the baseline that the runs have not. */
static struct trace *
traces_of_gone(const struct baseline *before, const struct baseline *after, size_t *count)
{
	struct trace *traces = memory_zeroed(before->site_count * SITE_KEY_LIKENESSES + 1, sizeof(*traces));

	*count = 0;
	for (size_t i = 0; i < before->site_count; i++) {
		if (baseline_find_site(after, before->sites[i].family) != NULL)
			continue;
		for (size_t k = 0; k < SITE_KEY_LIKENESSES; k++) {
			if (before->sites[i].likeness[k] != 0)
				traces[(*count)++] = (struct trace){ before->sites[i].likeness[k], i };
		}
	}
	qsort(traces, *count, sizeof(*traces), compare_traces);
	return traces;
}

static bool
holds_the_same(const struct baseline_site *then, const struct baseline_site *now, struct check_tolerance tolerance)
{
	return strcmp(then->domain, now->domain) == 0 && (now->leak != MODEL_LEAK_LEAK || then->leak == MODEL_LEAK_LEAK) &&
	       now->live_bytes.min <= check_limit(then->live_bytes.max, tolerance) &&
	       now->live_bytes.min >= then->live_bytes.max / 2;
}

static uint64_t
difference(uint64_t left, uint64_t right)
{
	return left > right ? left - right : right - left;
}

/* Where those of this likeness begin. */
static size_t
first_trace(const struct trace *traces, size_t count, uint64_t likeness)
{
	size_t low = 0;
	size_t high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (traces[middle].likeness < likeness)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The one whose bytes are nearest, and that is not taken yet. */
static const struct baseline_site *
find_renamed(const struct baseline *before, const struct baseline_site *now, const struct trace *traces, size_t count,
             bool *is_taken, struct check_tolerance tolerance)
{
	const struct baseline_site *best = NULL;

	for (size_t k = 0; k < SITE_KEY_LIKENESSES; k++) {
		size_t first = now->likeness[k] != 0 ? first_trace(traces, count, now->likeness[k]) : count;

		for (size_t i = first; i < count && i - first < TRIED_MAX && traces[i].likeness == now->likeness[k]; i++) {
			const struct baseline_site *then = &before->sites[traces[i].site];

			if (!is_taken[traces[i].site] && holds_the_same(then, now, tolerance) &&
			    (best == NULL || difference(then->live_bytes.max, now->live_bytes.min) <
			                         difference(best->live_bytes.max, now->live_bytes.min)))
				best = then;
		}
	}
	if (best != NULL)
		is_taken[best - before->sites] = true;
	return best;
}

const struct baseline_site **
check_match(const struct baseline *before, const struct baseline *after, struct check_tolerance tolerance)
{
	const struct baseline_site **found = memory_zeroed(after->site_count + 1, sizeof(*found));
	bool *is_taken = memory_zeroed(before->site_count + 1, sizeof(*is_taken));
	size_t count;
	struct trace *traces = traces_of_gone(before, after, &count);

	for (size_t i = 0; i < after->site_count; i++) {
		found[i] = baseline_find_site(before, after->sites[i].family);
		if (found[i] == NULL && after->sites[i].live_bytes.min != 0)
			found[i] = find_renamed(before, &after->sites[i], traces, count, is_taken, tolerance);
	}
	free(traces);
	free(is_taken);
	return found;
}
