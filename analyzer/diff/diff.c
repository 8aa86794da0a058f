/*
 * diff.c - from pairs of lines to rows, and to one sentence.
 *
 * When failing  it cannot.
 */
#include "diff/diff.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/items.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/units.h"
#include "diff/diff_match.h"
#include "base/paragraph.h"

#define LITTLE_BYTES \
	(UINT64_C(64) << 10) // and 1/LITTLE_PART of the whole: no row that changed by less is worth a sentence
#define LITTLE_PART 200
#define SECOND_PART 20 // of the first one's change, for the second to be named

NAMES_OF(diff_state_name, [DIFF_CHANGED] = "changed", [DIFF_NEW] = "new", [DIFF_GONE] = "gone", [DIFF_SAME] = "same")

/* ---- rows ---- */

static void
add_figures(struct diff_figures *to, const struct diff_line *line)
{
	if (line != NULL)
		diff_figures_add(to, &line->held);
}

static const struct diff_line *
larger(const struct diff_line *left, const struct diff_line *right)
{
	if (left == NULL || right == NULL)
		return left == NULL ? right : left;
	return right->held.live_bytes + right->held.peak_bytes > left->held.live_bytes + left->held.peak_bytes ? right
	                                                                                                       : left;
}

static uint64_t
magnitude(int64_t number)
{
	return number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
}

/* The most that changed of it, at the end, at the peak or of what leaks; the sign is lost. */
static uint64_t
amount_of(const struct diff_row *row)
{
	return amount_greater(magnitude(row->leaking_change),
	                      amount_greater(magnitude(row->live_change), magnitude(row->peak_change)));
}

static const char *
where_of(enum diff_by by, const struct diff_line *line)
{
	return by == DIFF_BY_FUNCTION ? line->function : line->where;
}

static void
finish_row(struct diff_row *row, enum diff_by by)
{
	const struct diff_line *line = row->after != NULL ? row->after : row->before;

	row->where = where_of(by, line);
	row->was = row->before != NULL && strcmp(where_of(by, row->before), row->where) != 0 ? where_of(by, row->before)
	                                                                                     : NULL;
	row->domain = line->domain;
	row->file = line->file;
	row->line = line->line;
	row->key = line->place_key;

	row->live_change = (int64_t)(row->now.live_bytes - row->then.live_bytes);
	row->peak_change = (int64_t)(row->now.peak_bytes - row->then.peak_bytes);
	row->leaking_change = (int64_t)(row->now.leaking_bytes - row->then.leaking_bytes);
	row->live_error_bytes = diff_error_together(row->then.live_error_bytes, row->now.live_error_bytes);
	row->peak_error_bytes = diff_error_together(row->then.peak_error_bytes, row->now.peak_error_bytes);
	row->is_within_error = (row->live_error_bytes != 0 || row->peak_error_bytes != 0) &&
	                       magnitude(row->live_change) <= row->live_error_bytes &&
	                       magnitude(row->peak_change) <= row->peak_error_bytes;
	row->is_address_space = domain_is_address_space(line->domain_kind);
	row->state = row->before == NULL   ? DIFF_NEW
	             : row->after == NULL  ? DIFF_GONE
	             : amount_of(row) == 0 ? DIFF_SAME
	                                   : DIFF_CHANGED;
}

static void
make_rows(struct diff *diff, const struct diff_pair *pairs, size_t count)
{
	diff->rows = memory_zeroed(count + 1, sizeof(*diff->rows));
	for (size_t i = 0; i < count; i++) {
		struct diff_row *row = &diff->rows[diff->row_count];
		bool is_next = diff->by == DIFF_BY_FUNCTION && i != 0 && pairs[i].function == pairs[i - 1].function;

		if (is_next)
			row--;
		else
			diff->row_count++;
		row->before = larger(row->before, pairs[i].before);
		row->after = larger(row->after, pairs[i].after);
		row->line_count++;
		add_figures(&row->then, pairs[i].before);
		add_figures(&row->now, pairs[i].after);
	}
	for (size_t i = 0; i < diff->row_count; i++) {
		finish_row(&diff->rows[i], diff->by);
		diff->counts[diff->rows[i].state]++;
	}
}

ORDER_OF(compare_rows, struct diff_row,
	order_numbers(a->state, b->state) ?: order_numbers(a->is_address_space, b->is_address_space)
	?: order_numbers(a->is_within_error, b->is_within_error) ?: order_numbers(amount_of(b), amount_of(a))
	?: order_texts(a->domain, b->domain) ?: order_texts(a->where, b->where)
	?: order_numbers(a->now.peak_bytes, b->now.peak_bytes) ?: order_numbers(a->then.peak_bytes, b->then.peak_bytes))

#define TRIFLE_PART 200 // of what changed most: what changed by less is summed up

struct diff_section
diff_section(const struct diff *diff, enum diff_state state, uint64_t top)
{
	struct diff_section section = { .rows = diff->rows };
	uint64_t most = MOST_OF(row, diff->rows, diff->row_count,
	                        !row->is_address_space && !row->is_within_error ? amount_of(row) : 0);

	for (unsigned earlier = 0; earlier < state; earlier++)
		section.rows += diff->counts[earlier];
	EACH (row, section.rows, diff->counts[state]) {
		bool is_trifle = amount_of(row) < most / TRIFLE_PART;

		if (row->is_address_space) {
			section.space_count++;
			section.space_change += row->live_change;
		} else if (row->is_within_error) {
			section.doubtful_count++;
			section.doubtful_change += row->live_change;
			section.doubtful_error_bytes = diff_error_together(section.doubtful_error_bytes, row->live_error_bytes);
		} else if (section.shown < top && section.rest_count == 0 && !is_trifle) {
			section.shown++;
		} else {
			section.rest_count++;
			section.rest_live_change += row->live_change;
			section.rest_peak_change += row->peak_change;
		}
	}
	return section;
}

char *
diff_name(const struct diff *diff, const char *name)
{
	return text_fitted(name, diff->name_columns);
}

/* ---- the sentence ---- */

/* The memory that the sentence is about: that of the host, or of one device. */
struct scope {
	bool is_host;
	const char *domain; // of a device
	bool is_peak;       // what was held at the peak changed more than what is held at the end
};

static enum domain_kind
kind_of(const struct diff_row *row)
{
	return (row->after != NULL ? row->after : row->before)->domain_kind;
}

static bool
is_in_scope(const struct scope *scope, const struct diff_row *row)
{
	if (row->is_address_space)
		return false;
	return scope->is_host ? domain_is_host(kind_of(row)) : strcmp(row->domain, scope->domain) == 0;
}

static int64_t
change_of(const struct scope *scope, const struct diff_row *row)
{
	return scope->is_peak ? row->peak_change : row->live_change;
}

static uint64_t
held_of(const struct scope *scope, const struct diff_figures *figures)
{
	return scope->is_peak ? figures->peak_bytes : figures->live_bytes;
}

/* By how much it may be named in the sentence: 0 = not at all. scope: NULL = all memory. */
static uint64_t
worth(const struct scope *scope, const struct diff_row *row)
{
	if (row->is_address_space || row->is_within_error || (scope != NULL && !is_in_scope(scope, row)))
		return 0;
	return scope != NULL ? magnitude(change_of(scope, row)) : amount_of(row);
}

/* The row that changed most, whatever its state, but one; NULL = none changed. */
static const struct diff_row *
find_most(const struct diff *diff, const struct scope *scope, const struct diff_row *but)
{
	const struct diff_row *most = NULL;

	EACH (row, diff->rows, diff->row_count) {
		if (row != but && worth(scope, row) > (most != NULL ? worth(scope, most) : 0))
			most = row;
	}
	return most;
}

static const char *
more_or_less(int64_t change)
{
	return change < 0 ? "less" : "more";
}

struct rest {
	size_t count;
	int64_t change;
	int64_t doubtful_change; // of the estimates whose change is within their error
	uint64_t doubtful_error_bytes;
};

static struct rest
rest_of(const struct diff *diff, const struct scope *scope, const struct diff_row *const *named, size_t named_count)
{
	struct rest rest = { .count = 0 };

	EACH (row, diff->rows, diff->row_count) {
		if (ANY(told, named, named_count, *told == row) || !is_in_scope(scope, row) || change_of(scope, row) == 0)
			continue;
		if (row->is_within_error) {
			uint64_t error = scope->is_peak ? row->peak_error_bytes : row->live_error_bytes;

			rest.doubtful_change += change_of(scope, row);
			rest.doubtful_error_bytes = diff_error_together(rest.doubtful_error_bytes, error);
		} else {
			rest.count++;
			rest.change += change_of(scope, row);
		}
	}
	return rest;
}

static void
say_totals(const struct scope *scope, uint64_t then, uint64_t now, FILE *stream)
{
	const char *of = scope->is_host ? "" : " of ";
	const char *domain = scope->is_host ? "" : scope->domain;

	const char *old = UNITS_BYTES(then);
	const char *new = UNITS_BYTES(now);
	const char *change = UNITS_BYTES(now > then ? now - then : then - now);
	(void)fprintf(stream, "%s ", scope->is_peak ? "At the peak" : "At the end");
	if (strcmp(old, new) == 0)
		(void)fprintf(stream, "about as much%s%s %s live (%s)", of, domain, scope->is_peak ? "was" : "is", new);
	else
		(void)fprintf(stream, "%s %s%s%s %s live (%s, before %s)", change, now > then ? "more" : "less", of, domain,
		              scope->is_peak ? "was" : "is", new, old);
}

static void
say_row(const struct diff *diff, const struct scope *scope, const struct diff_row *row, FILE *stream)
{
	OWNED char *name = diff_name(diff, row->where);
	int64_t change = change_of(scope, row);

	(void)fprintf(stream, "%s %s at %s%s%s", UNITS_BYTES(magnitude(change)), more_or_less(change),
	              row->state == DIFF_NEW ? "the new " : "", name, row->state == DIFF_GONE ? ", which is gone" : "");
}

/* How sure the sentence before can be. */
static void
say_doubtful(const struct rest *rest, FILE *stream)
{
	(void)fprintf(stream, "%s %s in small Python objects (estimated, \302\261%s)",
	              UNITS_BYTES(magnitude(rest->doubtful_change)), more_or_less(rest->doubtful_change),
	              UNITS_BYTES(rest->doubtful_error_bytes));
}

static void
say_rows(const struct diff *diff, const struct scope *scope, FILE *stream)
{
	const struct diff_row *first_row = find_most(diff, scope, NULL);
	const struct diff_row *named[] = { first_row, first_row != NULL ? find_most(diff, scope, first_row) : NULL };
	size_t count = named[0] == NULL ? 0 : named[1] == NULL ? 1 : 2;
	const char *unit = diff->by == DIFF_BY_FUNCTION ? "function" : "line";
	uint64_t first = count != 0 ? magnitude(change_of(scope, named[0])) : 0;

	struct rest rest = rest_of(diff, scope, named, count);

	/* A second one that is small beside the first is one of the rest. */
	if (count == COUNT_OF(named) && rest.count != 0 && magnitude(change_of(scope, named[1])) < first / SECOND_PART)
		rest = rest_of(diff, scope, named, count = 1);
	for (size_t i = 0; i < count; i++) {
		(void)fprintf(stream, i == 0 ? ": " : ", ");
		say_row(diff, scope, named[i], stream);
	}
	if (magnitude(rest.change) > first / TRIFLE_PART)
		(void)fprintf(stream, ", %s %s at %zu other %s%s", UNITS_BYTES(magnitude(rest.change)),
		              more_or_less(rest.change), rest.count, unit, UNITS_S(rest.count));
	if (magnitude(rest.doubtful_change) > first / TRIFLE_PART) {
		(void)fprintf(stream, ", ");
		say_doubtful(&rest, stream);
	}
}

static char *
headline_of(const struct diff *diff)
{
	const struct diff_row *most = find_most(diff, NULL, NULL);
	const char *unit = diff->by == DIFF_BY_FUNCTION ? "function" : "line";
	struct scope scope = { .is_host = true };
	char *text;
	FILE *stream = memory_stream(&text, NULL);

	if (most != NULL)
		scope = (struct scope){ .is_host = domain_is_host(kind_of(most)),
			                    .domain = most->domain,
			                    .is_peak = magnitude(most->peak_change) > magnitude(most->live_change) };
	uint64_t then = SUM_OF(row, diff->rows, diff->row_count,
	                       is_in_scope(&scope, row) ? held_of(&scope, &row->then) : 0);
	uint64_t now = SUM_OF(row, diff->rows, diff->row_count, is_in_scope(&scope, row) ? held_of(&scope, &row->now) : 0);
	struct rest rest = rest_of(diff, &scope, &most, most != NULL);

	if (most != NULL &&
	    (amount_of(most) >= LITTLE_BYTES || amount_of(most) >= (then > now ? then : now) / LITTLE_PART)) {
		say_totals(&scope, then, now, stream);
		say_rows(diff, &scope, stream);
	} else {
		OWNED char *name = diff_name(diff, most != NULL ? most->where : "");
		bool is_told = rest.doubtful_error_bytes > (most != NULL ? amount_of(most) : 0);

		if (most != NULL)
			(void)fprintf(stream, "Nearly nothing changed: the most is %s at %s%s", UNITS_BYTES(amount_of(most)), name,
			              is_told ? ", beside " : "");
		else
			(void)fprintf(stream, "No %s changed%s", unit, is_told ? " by more than the error of its estimate: " : "");
		if (is_told)
			say_doubtful(&rest, stream);
	}
	(void)fprintf(stream, ".");
	memory_stream_close(stream);
	return text;
}

/* ---- notes ---- */

static bool
has_domain(const struct diff_side *side, enum domain_kind kind)
{
	return ANY(domain, side->domains, side->domain_count, domain->kind == kind);
}

static char *
note_sides(bool was, bool is, const char *both, const char *one, const char *rest)
{
	return !was && !is ? NULL
	                   : memory_printed("%s%s%s",
	                                    was && is ? "both are "
	                                    : was     ? "the old one is "
	                                              : "the new one is ",
	                                    was && is ? both : one, rest);
}

static void
add_note(struct diff *diff, char *text)
{
	if (text != NULL)
		*MEMORY_NEXT(diff->notes, diff->note_count) = text;
}

static void
add_notes(struct diff *diff)
{
	const struct diff_side *before = diff->before;
	const struct diff_side *after = diff->after;
	OWNED char *program = diff_name(diff, before->program);
	OWNED char *other = diff_name(diff, after->program);
	bool are_python = before->python_version[0] != '\0' && after->python_version[0] != '\0';
	bool were_arenas = has_domain(before, DOMAIN_PYTHON_ARENA);

	if (strcmp(before->program, after->program) != 0)
		add_note(diff, memory_printed("these are two programs: %s, and %s", program, other));
	if (are_python && strcmp(before->python_version, after->python_version) != 0)
		add_note(diff, memory_printed("the old one used Python %s, the new one %s: they allocate in other ways",
		                              before->python_version, after->python_version));
	if (are_python && were_arenas != has_domain(after, DOMAIN_PYTHON_ARENA))
		add_note(diff,
		         memory_printed("only the %s one has Python's arenas; the other was recorded with --python-objects or "
		                        "PYTHONMALLOC=malloc, so lines of small objects differ: record both in the same way",
		                        were_arenas ? "old" : "new"));
	add_note(diff, note_sides(before->cause == VERDICT_RUNNING, after->cause == VERDICT_RUNNING, "still running",
	                          "still running", ": \"at the end\" is now"));
	add_note(diff, note_sides(before->is_snapshot, after->is_snapshot, "snapshots", "a snapshot",
	                          ": \"at the end\" is that moment; peaks are those of the whole run"));
}

/* ---- the whole ---- */

struct diff *
diff_compare(const struct diff_side *before, const struct diff_side *after, enum diff_by by, size_t name_columns)
{
	struct diff *diff = memory_zeroed(1, sizeof(*diff));
	size_t count;
	OWNED struct diff_pair *pairs = diff_match(before, after, &count);

	diff->by = by;
	diff->name_columns = name_columns;
	diff->before = before;
	diff->after = after;
	make_rows(diff, pairs, count);
	diff->row_total = diff->row_count;
	SORT(diff->rows, diff->row_count, compare_rows);
	diff->headline = headline_of(diff);
	add_notes(diff);
	return diff;
}

void
diff_free(struct diff *diff)
{
	if (diff == NULL)
		return;
	for (size_t i = 0; i < diff->note_count; i++)
		free(diff->notes[i]);
	free(diff->notes);
	free(diff->headline);
	free(diff->rows);
	free(diff);
}
