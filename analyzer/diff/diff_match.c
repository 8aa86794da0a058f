/*
 * diff_match.c - which line of the newer side is this line of the older one?
 *
 * Lines of equal functions are paired in their order, so that no two pairs cross: of all such ways the one with most points. Points
 * are for what two lines have in common: their text, their place in the function, the size of their blocks. Within a session nothing
 * is edited: a line is itself there, or it is gone.
 *
 * When full     functions with more than about a thousand lines are paired by line numbers alone.
 */
#include "diff/diff_match.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/likeness.h"
#include "base/memory.h"
#include "base/order.h"

#define ALIGNED_MOST (UINT64_C(1) << 20) // lines of the one side times lines of the other
#define RENAMED_WORTH_BYTES 4096         // who holds less is not looked for under another name
#define RENAMED_PART 8                   // who holds an eighth more or less may be another one

struct points {
	int any;          // they are of one function
	int same_place;   // in the function
	int same_line;    // number
	int same_size;    // of blocks, nearly
	int same_text;    // of the line
	int another_text; // less
};
static const struct points points = { 1, 3, 2, 3, 8, 3 };

/* The lines of one function of one side. */
struct function {
	uint64_t key;
	const struct diff_line **lines;
	size_t count;
	bool is_paired;
};

struct matching {
	const struct diff_line **lines[2];
	size_t line_counts[2];
	struct function *functions[2]; // by key
	size_t counts[2];
	struct diff_pair *pairs;
	size_t pair_count;
	size_t function_count; // numbers that were given
	bool is_one_session;
};

ORDER_OF_POINTERS(compare_by_place, struct diff_line,
	order_numbers(a->position, b->position) ?: order_texts(a->where, b->where)
	?: order_numbers(a->held.live_bytes, b->held.live_bytes)
	?: order_numbers(a->held.peak_bytes, b->held.peak_bytes))

ORDER_OF_POINTERS(compare_by_qualified, struct diff_line,
                  order_numbers(a->qualified_key, b->qualified_key) ?: compare_by_place(&a, &b))

ORDER_OF_POINTERS(compare_by_key, struct diff_line,
                  order_numbers(a->place_key, b->place_key) ?: compare_by_place(&a, &b))

/* The lines that are left, by function. */
static void
group(struct matching *matching, unsigned of, bool is_qualified)
{
	const struct diff_line **lines = matching->lines[of];
	struct function *functions = matching->functions[of];
	size_t count = 0;

	SORT(lines, matching->line_counts[of], is_qualified ? compare_by_qualified : compare_by_key);
	for (size_t i = 0; i < matching->line_counts[of]; i++) {
		uint64_t key = is_qualified ? lines[i]->qualified_key : lines[i]->place_key;

		if (count == 0 || functions[count - 1].key != key)
			functions[count++] = (struct function){ .key = key, .lines = &lines[i] };
		functions[count - 1].count++;
	}
	matching->counts[of] = count;
}

static void
take_lines(struct matching *matching, unsigned of, const struct diff_side *side)
{
	matching->lines[of] = memory_zeroed(side->line_count + 1, sizeof(struct diff_line *));
	matching->functions[of] = memory_zeroed(side->line_count + 1, sizeof(struct function));
	matching->line_counts[of] = side->line_count;
	for (size_t i = 0; i < side->line_count; i++)
		matching->lines[of][i] = &side->lines[i];
}

/* Leaves the lines of functions that have no pair. */
static void
keep_unpaired(struct matching *matching, unsigned of)
{
	size_t kept = 0;

	for (size_t i = 0; i < matching->counts[of]; i++) {
		const struct function *function = &matching->functions[of][i];

		for (size_t j = 0; !function->is_paired && j < function->count; j++)
			matching->lines[of][kept++] = function->lines[j];
	}
	matching->line_counts[of] = kept;
}

static void
add_pair(struct matching *matching, const struct diff_line *before, const struct diff_line *after)
{
	matching->pairs[matching->pair_count++] = (struct diff_pair){ before, after, matching->function_count };
}

static bool
is_near(uint64_t left, uint64_t right)
{
	uint64_t difference = left > right ? left - right : right - left;

	return difference <= left / 8;
}

static int
points_of(const struct matching *matching, const struct diff_line *before, const struct diff_line *after)
{
	int sum = points.any;

	if (matching->is_one_session && (before->position != after->position || strcmp(before->file, after->file) != 0))
		return 0;
	if (before->line_in_function != 0 && before->line_in_function == after->line_in_function)
		sum += points.same_place;
	if (before->line != 0 && before->line == after->line)
		sum += points.same_line;
	if (is_near(before->block_bytes, after->block_bytes))
		sum += points.same_size;
	if (before->source[0] != '\0' && after->source[0] != '\0')
		sum += strcmp(before->source, after->source) == 0 ? points.same_text : -points.another_text;
	return sum;
}

/* By their numbers alone: they come in that order. */
static void
pair_by_position(struct matching *matching, const struct function *before, const struct function *after)
{
	size_t i = 0;
	size_t j = 0;

	while (i < before->count || j < after->count) {
		int order = i == before->count  ? 1
		            : j == after->count ? -1
		                                : order_numbers(before->lines[i]->position, after->lines[j]->position);

		add_pair(matching, order <= 0 ? before->lines[i] : NULL, order >= 0 ? after->lines[j] : NULL);
		i += order <= 0;
		j += order >= 0;
	}
}

/* best[i * width + j]: most points of the lines from i and from j on. */
static void
pair_by_points(struct matching *matching, const struct function *before, const struct function *after)
{
	size_t width = after->count + 1;
	OWNED int *best = memory_zeroed((before->count + 1) * width, sizeof(*best));
	size_t i = before->count;
	size_t j;

	while (i-- > 0) {
		for (j = after->count; j-- > 0;) {
			int skipped = best[(i + 1) * width + j];
			int paired = points_of(matching, before->lines[i], after->lines[j]);

			if (best[i * width + j + 1] > skipped)
				skipped = best[i * width + j + 1];
			paired = paired > 0 ? paired + best[(i + 1) * width + j + 1] : 0;
			best[i * width + j] = paired > skipped ? paired : skipped;
		}
	}
	for (i = 0, j = 0; i < before->count || j < after->count;) {
		const int *here = &best[i * width + j];
		bool is_end = i == before->count || j == after->count;
		int paired = is_end ? 0 : points_of(matching, before->lines[i], after->lines[j]);
		bool is_pair = paired > 0 && here[0] == paired + here[width + 1];
		bool is_gone = !is_pair && i < before->count && (j == after->count || here[0] == here[width]);

		add_pair(matching, is_pair || is_gone ? before->lines[i] : NULL, is_gone ? NULL : after->lines[j]);
		i += is_pair || is_gone;
		j += !is_gone;
	}
}

/* Of one function: where a single line is gone and a single one is new between two that are paired, it was edited. */
static void
pair_edited(struct matching *matching, size_t first)
{
	struct diff_pair *pairs = matching->pairs;
	size_t kept = first;

	for (size_t i = first; i < matching->pair_count;) {
		size_t end = i;

		while (end < matching->pair_count && (pairs[end].before == NULL || pairs[end].after == NULL))
			end++;
		if (end - i == 2 && (pairs[i].before == NULL) != (pairs[i + 1].before == NULL)) {
			const struct diff_pair *gone = pairs[i].before != NULL ? &pairs[i] : &pairs[i + 1];
			const struct diff_pair *new = pairs[i].before != NULL ? &pairs[i + 1] : &pairs[i];

			pairs[kept++] = (struct diff_pair){ gone->before, new->after, gone->function };
			i = end;
		}
		for (end += end < matching->pair_count; i < end; i++)
			pairs[kept++] = pairs[i];
	}
	matching->pair_count = kept;
}

static void
pair_function(struct matching *matching, struct function *before, struct function *after)
{
	static const struct function none = { .count = 0 };
	const struct function *old = before != NULL ? before : &none;
	const struct function *new = after != NULL ? after : &none;
	size_t first = matching->pair_count;

	if ((uint64_t)old->count * new->count > ALIGNED_MOST)
		pair_by_position(matching, old, new);
	else
		pair_by_points(matching, old, new);
	if (!matching->is_one_session)
		pair_edited(matching, first);
	matching->function_count++;
	if (before != NULL)
		before->is_paired = true;
	if (after != NULL)
		after->is_paired = true;
}

static void
pair_equal(struct matching *matching)
{
	size_t i = 0;
	size_t j = 0;

	while (i < matching->counts[0] && j < matching->counts[1]) {
		struct function *before = &matching->functions[0][i];
		struct function *after = &matching->functions[1][j];
		int order = order_numbers(before->key, after->key);

		if (order == 0)
			pair_function(matching, before, after);
		i += order <= 0;
		j += order >= 0;
	}
}

/* ---- functions under another name ---- */

static uint64_t
worth(const struct function *function)
{
	uint64_t live_bytes = 0;
	uint64_t peak_bytes = 0;

	for (size_t i = 0; i < function->count; i++) {
		live_bytes += function->lines[i]->held.live_bytes;
		peak_bytes += function->lines[i]->held.peak_bytes;
	}
	return live_bytes > peak_bytes ? live_bytes : peak_bytes;
}

static const struct diff_line *
largest_of(const struct function *function)
{
	const struct diff_line *largest = function->lines[0];

	for (size_t i = 1; i < function->count; i++) {
		if (function->lines[i]->held.live_bytes + function->lines[i]->held.peak_bytes >
		    largest->held.live_bytes + largest->held.peak_bytes)
			largest = function->lines[i];
	}
	return largest;
}

struct wanted {
	const struct function *gone;
	const struct function *now;
	uint64_t part; // what it held may differ by 1 / part
};

static uint64_t
distance(const void *context, size_t item)
{
	const struct wanted *wanted = context;
	uint64_t then = worth(&wanted->gone[item]);
	uint64_t now = worth(wanted->now);
	uint64_t difference = then > now ? then - now : now - then;

	if (strcmp(wanted->gone[item].lines[0]->domain, wanted->now->lines[0]->domain) != 0 ||
	    difference > then / wanted->part)
		return LIKENESS_TOO_FAR;
	return difference;
}

/* Whoever holds exactly as much is asked for first: callers alone make two functions alike that are not one. */
static void
pair_renamed(struct matching *matching)
{
	static const uint64_t parts[] = { UINT64_MAX, RENAMED_PART };
	struct likeness_index *gone = likeness_index_new();

	for (size_t i = 0; i < matching->counts[0]; i++) {
		const struct function *function = &matching->functions[0][i];

		if (!function->is_paired && worth(function) >= RENAMED_WORTH_BYTES)
			likeness_index_add(gone, largest_of(function)->likeness, i);
	}
	for (size_t i = 0; i < 2 * matching->counts[1]; i++) {
		struct function *now = &matching->functions[1][i % matching->counts[1]];
		const struct wanted wanted = { matching->functions[0], now, parts[i / matching->counts[1]] };
		size_t item = LIKENESS_NONE;

		if (!now->is_paired && worth(now) >= RENAMED_WORTH_BYTES)
			item = likeness_index_take(gone, largest_of(now)->likeness, distance, &wanted);
		if (item != LIKENESS_NONE)
			pair_function(matching, &matching->functions[0][item], now);
	}
	likeness_index_free(gone);
}

static void
leave_alone(struct matching *matching)
{
	for (size_t i = 0; i < matching->counts[0]; i++) {
		if (!matching->functions[0][i].is_paired)
			pair_function(matching, &matching->functions[0][i], NULL);
	}
	for (size_t i = 0; i < matching->counts[1]; i++) {
		if (!matching->functions[1][i].is_paired)
			pair_function(matching, NULL, &matching->functions[1][i]);
	}
}

struct diff_pair *
diff_match(const struct diff_side *before, const struct diff_side *after, size_t *count)
{
	struct matching matching = { .is_one_session = strcmp(before->session, after->session) == 0 };

	matching.pairs = memory_zeroed(before->line_count + after->line_count + 1, sizeof(*matching.pairs));
	take_lines(&matching, 0, before);
	take_lines(&matching, 1, after);
	for (unsigned is_qualified = 2;
	     is_qualified-- > 0;) { // first by whole names, which not all compilers and versions tell
		group(&matching, 0, is_qualified != 0);
		group(&matching, 1, is_qualified != 0);
		pair_equal(&matching);
		keep_unpaired(&matching, 0);
		keep_unpaired(&matching, 1);
	}
	group(&matching, 0, false);
	group(&matching, 1, false);
	if (!matching.is_one_session)
		pair_renamed(&matching);
	leave_alone(&matching);
	for (unsigned of = 0; of < 2; of++) {
		free(matching.functions[of]);
		free(matching.lines[of]);
	}
	*count = matching.pair_count;
	return matching.pairs;
}
