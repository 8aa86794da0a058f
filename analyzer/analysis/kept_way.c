/*
 * kept_way.c - is there one way through the program whose blocks stay (see kept_way.h)?
 */
#include "analysis/kept_way.h"

#include <stdlib.h>
#include <uthash.h>

#include "base/hash.h"

#define LIVE_PART 10           // of the blocks that are alive, all but one part of so many come this way,
#define KEPT_PART 2            // of its blocks one part of so many stays,
#define OTHER_KEPT_PART 10     // of others less than one part of so many
#define OTHER_ALLOCATED_MIN 16 // and there are others

struct caller {
	const struct model_frame *frame;
	uint64_t live_count;
	uint64_t allocated_count;
	uint32_t depth; // from the line of code outwards, in the first stack that has it
	size_t site;    // the last one that was counted: a frame may stand in a stack twice
	UT_hash_handle hh;
};

static void
count_caller(struct caller **callers, const struct model_site *site, size_t number, const struct model_frame *frame,
             uint32_t depth)
{
	struct caller *found;

	if (HASH_MADE(*callers, frame, frame, found)) {
		found->depth = depth;
	} else if (found->site == number) {
		return;
	}
	found->site = number;
	found->live_count += site->live_count;
	found->allocated_count += site->allocated_count;
}

/* From the line of code outwards. */
static void
count_site(struct caller **callers, const struct model_site *site, size_t number)
{
	bool is_outside = false;
	uint32_t depth = 0;

	for (uint32_t i = 0; i < site->frame_count; i++) {
		if (is_outside && site->frames[i] != site->where && site->frames[i]->line != 0)
			count_caller(callers, site, number, site->frames[i], depth++);
		is_outside = is_outside || site->frames[i] == site->where;
	}
}

static bool
is_way(const struct caller *caller, const struct rank_line *line)
{
	uint64_t other_live = line->live_count - caller->live_count;
	uint64_t other_allocated = line->allocated_count - caller->allocated_count;

	return caller->live_count != 0 && other_live <= line->live_count / LIVE_PART &&
	       caller->live_count >= caller->allocated_count / KEPT_PART && other_allocated >= OTHER_ALLOCATED_MIN &&
	       other_live < other_allocated / OTHER_KEPT_PART;
}

/* The one that leaves most to others; of several the innermost. */
static bool
is_better(const struct caller *caller, const struct caller *than)
{
	if (than == NULL || caller->allocated_count != than->allocated_count)
		return than == NULL || caller->allocated_count < than->allocated_count;
	return caller->depth < than->depth;
}

bool
kept_way_find(const struct ranked *ranked, const struct rank_line *line, struct kept_way *way)
{
	struct caller *callers = NULL;
	const struct caller *best = NULL;
	struct caller *caller;
	struct caller *next;

	if (line->where == NULL || line->is_import || line->live_count == 0 || line->live_count == line->allocated_count)
		return false;
	for (size_t i = 0; i < line->site_count; i++)
		count_site(&callers, ranked->sites[line->first_site + i], i);
	HASH_ITER(hh, callers, caller, next)
	{
		if (is_way(caller, line) && is_better(caller, best))
			best = caller;
	}
	if (best != NULL)
		*way = (struct kept_way){ .through = best->frame,
			                      .live_count = best->live_count,
			                      .allocated_count = best->allocated_count,
			                      .other_live_count = line->live_count - best->live_count,
			                      .other_allocated_count = line->allocated_count - best->allocated_count };
	HASH_FREE(callers, free);
	return best != NULL;
}
