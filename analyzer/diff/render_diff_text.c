/*
 * render_diff_text.c - what changed, for a person.
 *
 * When failing  errors stay in the stream.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/items.h"
#include "base/memory.h"
#include "diff/diff_words.h"

static const enum diff_state shown_states[] = { DIFF_CHANGED, DIFF_NEW, DIFF_GONE };

static void
put_side(const char *name, const struct diff_side *side, FILE *stream)
{
	(void)fprintf(stream, "%s  %s: %s (pid %" PRIu32 "%s)", name, side->path, side->program, side->pid,
	              side->process_count > 1 ? " and others" : "");
	if (side->python_version[0] != '\0')
		(void)fprintf(stream, ", Python %s", side->python_version);
	(void)fprintf(stream, ", %s\n", side->cause);
}

static void
put_figures(uint64_t then, uint64_t now, FILE *stream)
{
	(void)fprintf(stream, "%10s %10s %10s", diff_change_text((int64_t)(now - then), DIFF_CHANGE_ROOM),
	              UNITS_BYTES(then), UNITS_BYTES(now));
}

static void
put_columns(const char *first, const char *last, int width, FILE *stream)
{
	(void)fprintf(stream, "%-21s%11s   %-22s%10s\n%10s %10s %10s   %10s %10s %10s   %-*s%s\n", first, "at the end", "",
	              "at the peak", "change", "old", "new", "change", "old", "new", width, "domain", last);
}

static const struct diff_domain *
find_domain(const struct diff_side *side, const char *name)
{
	return FIRST(domain, side->domains, side->domain_count, strcmp(domain->name, name) == 0);
}

static void
put_domain(const struct diff *diff, const char *name, FILE *stream)
{
	static const struct diff_domain none = { .name = "" };
	const struct diff_domain *before = find_domain(diff->before, name);
	const struct diff_domain *after = find_domain(diff->after, name);

	before = before != NULL ? before : &none;
	after = after != NULL ? after : &none;
	put_figures(before->live_bytes, after->live_bytes, stream);
	(void)fputs("   ", stream);
	put_figures(before->peak_bytes, after->peak_bytes, stream);
	(void)fprintf(stream, "   %s\n", name);
}

static void
put_domains(const struct diff *diff, FILE *stream)
{
	put_columns("All", "", 0, stream);
	for (size_t i = 0; i < diff->after->domain_count; i++)
		put_domain(diff, diff->after->domains[i].name, stream);
	for (size_t i = 0; i < diff->before->domain_count; i++) {
		if (find_domain(diff->after, diff->before->domains[i].name) == NULL)
			put_domain(diff, diff->before->domains[i].name, stream);
	}
}

static int
domain_width(const struct diff_section *section)
{
	return (int)amount_greater(strlen("domain"),
	                           MOST_OF(row, section->rows, section->shown, strlen(diff_row_domain(row))));
}

static void
put_row(const struct diff *diff, const struct diff_row *row, int width, FILE *stream)
{
	OWNED char *remark = diff_remark(diff, row);
	OWNED char *name = diff_name(diff, diff_row_where(diff, row));
	const struct diff_figures *only = row->state == DIFF_GONE ? &row->then : &row->now;

	if (row->state == DIFF_CHANGED) {
		put_figures(row->then.live_bytes, row->now.live_bytes, stream);
		(void)fputs("   ", stream);
		put_figures(row->then.peak_bytes, row->now.peak_bytes, stream);
	} else {
		(void)fprintf(stream, "%10s   %10s", UNITS_BYTES(only->live_bytes), UNITS_BYTES(only->peak_bytes));
	}
	(void)fprintf(stream, "   %-*s %s", width, diff_row_domain(row), name);
	if (remark[0] != '\0')
		(void)fprintf(stream, " [%s]", remark);
	(void)fputc('\n', stream);
}

static void
put_section(const struct diff *diff, enum diff_state state, uint64_t top, FILE *stream)
{
	struct diff_section section = diff_section(diff, state, top);
	int width = domain_width(&section);
	char rest[DIFF_REST_BYTES];

	if (diff->counts[state] == 0)
		return;
	(void)fprintf(stream, "\n%s\n", diff_heading(diff, state));
	if (section.shown != 0 && state == DIFF_CHANGED)
		put_columns("", " allocated at", width, stream);
	else if (section.shown != 0)
		(void)fprintf(stream, "%10s  %10s   %-*s allocated at\n", "at the end", "at the peak", width, "domain");
	for (size_t i = 0; i < section.shown; i++)
		put_row(diff, &section.rows[i], width, stream);
	for (unsigned i = 0; diff_rest_text(diff, &section, i, rest); i++)
		(void)fprintf(stream, "%s%s\n", section.shown != 0 ? "and " : "", rest);
}

void
render_diff_text(const struct diff *diff, uint64_t top, FILE *stream)
{
	OWNED char *headline = diff_headline(diff);
	char *note;

	(void)fprintf(stream, "%s\n\n", headline);
	put_side("old", diff->before, stream);
	put_side("new", diff->after, stream);
	for (unsigned i = 0; (note = diff_note(diff, i)) != NULL; i++) {
		(void)fprintf(stream, "note: %s\n", note);
		free(note);
	}
	(void)fputc('\n', stream);
	put_domains(diff, stream);
	for (size_t i = 0; i < COUNT_OF(shown_states); i++)
		put_section(diff, shown_states[i], top, stream);
	if (diff->counts[DIFF_SAME] != 0)
		(void)fprintf(stream, "\n%zu %s%s the same.\n", diff->counts[DIFF_SAME],
		              diff->by == DIFF_BY_FUNCTION ? "function" : "line",
		              diff->counts[DIFF_SAME] == 1 ? " holds" : "s hold");
}
