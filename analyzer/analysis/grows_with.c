/*
 * grows_with.c - do two lines leak together, because one thing keeps the blocks of both (see grows_with.h)?
 */
#include "analysis/grows_with.h"

#define BLOCKS_MIN 16    // fewer are as many by chance
#define ALIKE_PART 16    // the larger number may be a so manyth more
#define SAMPLES_MIN 64   // of lines of which some blocks alone are recorded
#define SAMPLED_PART 3   // and then so much more
#define LOOKED_AT_MAX 64 // lines: who is told of more?

static bool
are_as_many(const struct model_site *left, const struct model_site *right)
{
	bool is_sampled = left->samples != 0 || right->samples != 0;
	uint64_t more = left->live_count > right->live_count ? left->live_count : right->live_count;
	uint64_t less = left->live_count > right->live_count ? right->live_count : left->live_count;

	if ((left->samples != 0 && left->samples < SAMPLES_MIN) || (right->samples != 0 && right->samples < SAMPLES_MIN))
		return false;
	return less >= BLOCKS_MIN && more - less <= more / (is_sampled ? SAMPLED_PART : ALIKE_PART);
}

static bool
can_grow(const struct rank_line *line)
{
	return line->leak == MODEL_LEAK_LEAK && line->where != NULL && line->where->is_user && !line->is_import &&
	       line->telling->process_count == 1;
}

bool
lines_grow_together(const struct rank_line *left, const struct rank_line *right)
{
	if (!can_grow(left) || !can_grow(right) || left->where == right->where ||
	    left->telling->process != right->telling->process || !are_as_many(left->telling, right->telling))
		return false;

	const struct model_frame *caller = model_caller_of(left->telling);
	const struct model_frame *other = model_caller_of(right->telling);

	return (caller != NULL && (caller == other || caller == right->where)) || (other != NULL && other == left->where);
}

struct grows_with
grows_with_of(const struct ranked *ranked, const struct rank_line *line)
{
	struct grows_with found = { .first = NULL };
	size_t count = ranked->line_count < LOOKED_AT_MAX ? ranked->line_count : LOOKED_AT_MAX;

	for (size_t i = 0; i < count && can_grow(line); i++) {
		const struct rank_line *other = &ranked->lines[i];

		if (other == line || !lines_grow_together(line, other))
			continue;
		if (other < line) // before it in the ranking
			return (struct grows_with){ .first = other };
		found.others++;
		found.other_bytes += other->live_bytes;
	}
	return found;
}
