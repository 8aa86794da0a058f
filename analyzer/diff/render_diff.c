/*
 * render_diff.c - what changed, for a person: in a terminal, or as Markdown in a comment on a change.
 */
#include <inttypes.h>
#include <string.h>

#include "base/document.h"
#include "base/items.h"
#include "base/memory.h"
#include "base/units.h"
#include "diff/diff.h"
#include "report/render.h"

#define CHANGE_BYTES (UNITS_TEXT_BYTES + 1)
#define CHANGE(bytes) change_text(bytes, (char[CHANGE_BYTES]){ 0 })

/* Of what is new or gone only the amounts are told. */
static const struct document_column columns[] = {
	{ "at the end", 12, 0 }, { "old", 11, 0 }, { "new", 11, 0 },    { "at the peak", 14, 0 },
	{ "old", 11, 0 },        { "new", 11, 0 }, { "domain", -6, 0 }, { "allocated at", -1, DOCUMENT_CODE },
	{ .title = NULL },
};

/* "+128 MiB", "-3 KiB", "0 B" */
static const char *
change_text(int64_t change, char text[CHANGE_BYTES])
{
	uint64_t bytes = change < 0 ? 0 - (uint64_t)change : (uint64_t)change;

	return memory_text_in(text, CHANGE_BYTES, "%s%s", change < 0 ? "-" : change > 0 ? "+" : "", UNITS_BYTES(bytes));
}

static void
add_change(const struct diff_figures *then, const struct diff_figures *now, const char *domain, const char *name,
           struct document *document)
{
	DOCUMENT_ROW(document, CHANGE((int64_t)(now->live_bytes - then->live_bytes)), UNITS_BYTES(then->live_bytes),
	             UNITS_BYTES(now->live_bytes), CHANGE((int64_t)(now->peak_bytes - then->peak_bytes)),
	             UNITS_BYTES(then->peak_bytes), UNITS_BYTES(now->peak_bytes), domain, name);
}

static void
add_side(const char *name, const struct diff_side *side, struct document *document)
{
	document_add(document, DOCUMENT_LINE, NULL, "%s  %s: %s (pid %" PRIu32 "%s)%s%s, %s", name, side->path,
	             side->program, side->pid, side->process_count > 1 ? " and others" : "",
	             side->python_version[0] != '\0' ? ", Python " : "", side->python_version,
	             verdict_cause_name(side->cause));
}

static struct diff_figures
figures_of(const struct diff_side *side, const char *name)
{
	const struct diff_domain *found = FIRST(domain, side->domains, side->domain_count, strcmp(domain->name, name) == 0);

	return found != NULL ? found->held : (struct diff_figures){ .live_bytes = 0 };
}

/* "; 1.0 MiB of it in memory, before 40.0 MiB", where much of what one of them shows is not. NULL = it was not, or is not, there. */
static const char *
in_memory_text(const struct diff_figures *then, const struct diff_figures *now, char text[128])
{
	const struct diff_figures *sides[] = { now, then };
	bool is_told = false;

	EACH (side, sides, 2)
		is_told = is_told || (*side != NULL && render_in_memory_text((*side)->untouched_bytes, (*side)->live_bytes,
		                                                             (char[64]){ 0 })[0] != '\0');
	text[0] = '\0';
	for (size_t i = 0; i < 2 && is_told; i++) {
		if (sides[i] != NULL)
			memory_text_add(text, 128, text[0] == '\0' ? "; %s of it in memory" : ", before %s",
			                UNITS_BYTES(sides[i]->live_bytes - sides[i]->untouched_bytes));
	}
	return text;
}

/* remarks: each with "; " before it. */
static void
add_below(const char *remarks, struct document *document)
{
	if (remarks[0] != '\0')
		document_add(document, DOCUMENT_BELOW, NULL, "%s", remarks + strlen("; "));
}

static void
add_domains(const struct diff *diff, struct document *document)
{
	const struct diff_side *sides[] = { diff->after, diff->before };

	document_add(document, DOCUMENT_HEADING, NULL, "All");
	document_table(document, NULL, columns);
	for (size_t of = 0; of < 2; of++) {
		EACH (domain, sides[of]->domains, sides[of]->domain_count) {
			struct diff_figures then = figures_of(diff->before, domain->name);
			struct diff_figures now = figures_of(diff->after, domain->name);

			if (of == 1 &&
			    ANY(known, sides[0]->domains, sides[0]->domain_count, strcmp(known->name, domain->name) == 0))
				continue;
			add_change(&then, &now, domain->name, "", document);
			add_below(in_memory_text(&then, &now, (char[128]){ 0 }), document);
		}
	}
}

/* Below a row: what leaks, what the line was called, how sure the figures are. */
static void
add_remarks(const struct diff *diff, const struct diff_row *row, struct document *document)
{
	uint64_t error = row->live_error_bytes > row->peak_error_bytes ? row->live_error_bytes : row->peak_error_bytes;
	const char *was = row->was;
	const char *then = UNITS_BYTES(row->then.leaking_bytes);
	const char *now = UNITS_BYTES(row->now.leaking_bytes);
	OWNED char *name = diff_name(diff, was != NULL ? was : "");
	char text[512] = "";

	if (was != NULL && strcmp(row->before->function, row->after->function) == 0)
		TEXT_ADD(text, "; was line %" PRIu32, row->before->line);
	else if (was != NULL)
		TEXT_ADD(text, "; was %s", name);
	if (row->now.leaking_bytes != 0)
		TEXT_ADD(text, "; leaks %s", now);
	if (row->now.leaking_bytes != 0 && row->before != NULL && strcmp(then, now) != 0)
		TEXT_ADD(text, ", before %s", row->then.leaking_bytes != 0 ? then : "nothing");
	if (row->now.leaking_bytes == 0 && row->then.leaking_bytes != 0)
		TEXT_ADD(text, "; leaked %s%s", then, row->after != NULL ? ", now nothing" : "");
	TEXT_ADD(text, "%s",
	         in_memory_text(row->before != NULL ? &row->then : NULL, row->after != NULL ? &row->now : NULL,
	                        (char[128]){ 0 }));
	if (error != 0)
		TEXT_ADD(text, "; an estimate, ±%s", UNITS_BYTES(error));
	add_below(text, document);
}

static void
add_row(const struct diff *diff, const struct diff_row *row, struct document *document)
{
	OWNED char *name = diff_name(diff, row->where);
	const struct diff_figures *only = row->state == DIFF_GONE ? &row->then : &row->now;

	if (row->state == DIFF_CHANGED)
		add_change(&row->then, &row->now, row->domain, name, document);
	else
		DOCUMENT_ROW(document, UNITS_BYTES(only->live_bytes), "", "", UNITS_BYTES(only->peak_bytes), "", "",
		             row->domain, name);
	add_remarks(diff, row, document);
}

/* What is not in the rows. */
static void
add_rest(const struct diff_section *section, const char *unit, struct document *document)
{
	if (section->rest_count != 0)
		document_add(document, DOCUMENT_LINE, NULL, "%s%zu more %s%s: %s at the end, %s at the peak",
		             section->shown != 0 ? "and " : "", section->rest_count, unit, UNITS_S(section->rest_count),
		             CHANGE(section->rest_live_change), CHANGE(section->rest_peak_change));
	if (section->doubtful_count != 0)
		document_add(document, DOCUMENT_LINE, NULL,
		             "%s%zu %s%s of small Python objects: less than the error of the estimate (together %s ±%s)",
		             section->shown != 0 ? "and " : "", section->doubtful_count, unit, UNITS_S(section->doubtful_count),
		             CHANGE(section->doubtful_change), UNITS_BYTES(section->doubtful_error_bytes));
	if (section->space_count != 0)
		document_add(document, DOCUMENT_LINE, NULL, "%s%zu %s%s of address space, which is not memory: %s",
		             section->shown != 0 ? "and " : "", section->space_count, unit, UNITS_S(section->space_count),
		             CHANGE(section->space_change));
}

void
render_diff(const struct diff *diff, uint64_t top, struct document *document)
{
	static const char *const headings[][DIFF_SAME] = {
		[DIFF_BY_LINE] = { "Lines that changed", "New lines", "Lines that are gone" },
		[DIFF_BY_FUNCTION] = { "Functions that changed", "New functions", "Functions that are gone" },
	};
	const char *unit = diff->by == DIFF_BY_FUNCTION ? "function" : "line";

	document_add(document, DOCUMENT_LINE, NULL, "%s", diff->headline);
	add_side("old", diff->before, document);
	add_side("new", diff->after, document);
	EACH (note, diff->notes, diff->note_count)
		document_add(document, DOCUMENT_NOTE, NULL, "%s", *note);
	add_domains(diff, document);
	for (enum diff_state state = DIFF_CHANGED; state < DIFF_SAME; state++) {
		struct diff_section section = diff_section(diff, state, top);

		if (diff->counts[state] == 0)
			continue;
		document_add(document, DOCUMENT_HEADING, NULL, "%s", headings[diff->by][state]);
		document_table(document, NULL, columns);
		for (size_t i = 0; i < section.shown; i++)
			add_row(diff, &section.rows[i], document);
		add_rest(&section, unit, document);
	}
	if (diff->counts[DIFF_SAME] != 0)
		document_add(document, DOCUMENT_PARAGRAPH, NULL, "%zu %s%s the same.", diff->counts[DIFF_SAME], unit,
		             diff->counts[DIFF_SAME] == 1 ? " holds" : "s hold");
}
