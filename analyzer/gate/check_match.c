/* check_match.c - see check_match.h. */
#include "gate/check_match.h"

#include <string.h>

#include "analysis/likeness.h"
#include "base/memory.h"

uint64_t
check_limit(const struct baseline_figure *before, struct check_tolerance tolerance)
{
	uint64_t relative = (uint64_t)((double)before->max * tolerance.relative_ppm / 1e6);
	uint64_t allowed = relative > tolerance.absolute_bytes ? relative : tolerance.absolute_bytes;
	uint64_t spread = before->max - before->min;

	if (tolerance.is_from_runs && spread > allowed / 2)
		allowed = spread > UINT64_MAX / 2 ? UINT64_MAX : 2 * spread;
	return before->max > UINT64_MAX - allowed ? UINT64_MAX : before->max + allowed;
}

/* An index of all lines of the baseline that the runs do not have. */
static struct likeness_index *
index_of_gone(const struct baseline *before, const struct baseline *after)
{
	struct likeness_index *index = likeness_index_new();

	for (size_t i = 0; i < before->site_count; i++) {
		if (baseline_find_site(after, before->sites[i].family) == NULL)
			likeness_index_add(index, before->sites[i].likeness, i);
	}
	return index;
}

static bool
holds_the_same(const struct baseline_site *then, const struct baseline_site *now, struct check_tolerance tolerance)
{
	return strcmp(then->domain, now->domain) == 0 && (now->leak != MODEL_LEAK_LEAK || then->leak == MODEL_LEAK_LEAK) &&
	       now->live_bytes.min <= check_limit(&then->live_bytes, tolerance) &&
	       now->live_bytes.min >= then->live_bytes.max / 2;
}

static uint64_t
difference(uint64_t left, uint64_t right)
{
	return left > right ? left - right : right - left;
}

/* A line of the runs that may be one of the baseline under another name. */
struct renamed {
	const struct baseline *before;
	const struct baseline_site *now;
	struct check_tolerance tolerance;
};

static uint64_t
distance(const void *context, size_t item)
{
	const struct renamed *renamed = context;
	const struct baseline_site *then = &renamed->before->sites[item];

	return holds_the_same(then, renamed->now, renamed->tolerance)
	           ? difference(then->live_bytes.max, renamed->now->live_bytes.min)
	           : LIKENESS_TOO_FAR;
}

const struct baseline_site **
check_match(const struct baseline *before, const struct baseline *after, struct check_tolerance tolerance)
{
	const struct baseline_site **found = memory_zeroed(after->site_count + 1, sizeof(*found));
	struct likeness_index *gone = index_of_gone(before, after);

	for (size_t i = 0; i < after->site_count; i++) {
		const struct renamed renamed = { before, &after->sites[i], tolerance };
		size_t item = LIKENESS_NONE;

		found[i] = baseline_find_site(before, after->sites[i].family);
		if (found[i] == NULL && after->sites[i].live_bytes.min != 0)
			item = likeness_index_take(gone, after->sites[i].likeness, distance, &renamed);
		if (item != LIKENESS_NONE)
			found[i] = &before->sites[item];
	}
	likeness_index_free(gone);
	return found;
}
