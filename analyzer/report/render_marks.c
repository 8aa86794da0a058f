/*
 * render_marks.c - the text of steps and marks (see render.h).
 */
#include <inttypes.h>
#include <string.h>

#include "base/document.h"
#include "base/items.h"
#include "base/memory.h"
#include "base/place.h"
#include "base/units.h"
#include "report/render.h"
#include "report/report.h"

#define MARKS_SHOWN 16u // the newest; --json lists all

/* "1,000 cells, 2.5 ms each" */
static const char *
steps_text(const struct report_steps *steps, char text[512])
{
	const char *what = steps->source == REPORT_STEPS_CELLS ? "cell" : "step";
	const char *of = steps->source == REPORT_STEPS_PROGRAM ? " of the program" : "";

	if (steps->source != REPORT_STEPS_LOOP)
		memory_text_in(text, 512, "%s %s%s%s", UNITS_COUNT(steps->count), what, UNITS_S(steps->count), of);
	else if (steps->line != 0)
		memory_text_in(text, 512, "%s rounds, seen at %s:%" PRIu32 " %s", UNITS_COUNT(steps->count),
		               place_base(steps->file), steps->line, steps->function);
	else
		memory_text_in(text, 512, "%s rounds of a loop", UNITS_COUNT(steps->count));
	if (steps->is_estimated) // what one takes is not known either
		memory_text_add(text, 512, "; there may be more: most rounds of a quick loop are not seen");
	else if (steps->ns != 0)
		memory_text_add(text, 512, ", %.3g ms each", (double)steps->ns / 1e6);
	return text;
}

/* The high-water mark is no person's. */
static bool
is_shown(const struct report_mark *mark)
{
	return mark->of.kind != KMEM_MARK_HIGH_WATER;
}

static void
add_mark(const struct report_mark *mark, struct document *document)
{
	bool is_own = mark->of.kind == KMEM_MARK_PROGRAM || mark->of.kind == KMEM_MARK_OUTSIDE;
	bool is_refused = mark->of.kind == KMEM_MARK_REFUSED;
	const char *before = is_refused                         ? "a request was refused: "
	                     : mark->of.kind == KMEM_MARK_GUARD ? "the guard was passed"
	                     : !is_own                          ? "at an even distance"
	                                                        : "";
	OWNED char *name = memory_printed("%s%s%s%s", before, is_own || is_refused ? mark->of.name : "",
	                                  is_own && mark->of.is_cut ? "..." : "",
	                                  mark->of.is_snapshot ? " (snapshot)" : "");

	DOCUMENT_ROW(document, TEXT(32, "%.1f s", (double)mark->age_ns / 1e9), UNITS_COUNT(mark->of.step),
	             UNITS_BYTES(mark->of.live_bytes),
	             mark->of.resident_bytes != 0 ? UNITS_BYTES(mark->of.resident_bytes) : "",
	             TEXT(32, "#%" PRIu64, mark->of.sequence), name);
}

/* How many marks are shown, from *first on. */
static size_t
shown_marks(const struct report_process *process, size_t *first)
{
	size_t shown = 0;

	*first = process->of.mark_count;
	while (*first > 0 && shown < MARKS_SHOWN)
		shown += is_shown(&process->marks[--*first]);
	return shown;
}

static void
add_process(const struct report_process *process, bool is_alone, struct document *document)
{
	static const struct document_column columns[] = {
		{ "time", 10, 0 }, { "step", 10, 0 }, { "live", 10, 0 }, { "resident", 10, 0 },
		{ "mark", -5, 0 }, { "", -1, 0 },     { .title = NULL },
	};
	size_t first;
	size_t shown = shown_marks(process, &first);

	if (process->steps.count == 0 && shown == 0)
		return;
	document_add(document, DOCUMENT_HEADING, NULL, "Steps%s%s%s",
	             is_alone ? "" : TEXT(64, " of process %" PRIu32, process->pid), process->steps.count != 0 ? ": " : "",
	             process->steps.count != 0 ? steps_text(&process->steps, (char[512]){ 0 }) : "");
	document_table(document, NULL, columns);
	EACH (mark, process->marks + first, process->of.mark_count - first) {
		if (is_shown(mark))
			add_mark(mark, document);
	}
}

/* Workers do the same: of those without marks the first process, and the one that took most steps, stand for all. */
void
render_marks(const struct report *report, bool has_all, struct document *document)
{
	const struct report_process *most = &report->processes[0];
	size_t left_out = 0;
	size_t first;

	EACH (process, report->processes, report->process_count)
		most = process->steps.count > most->steps.count ? process : most;
	EACH (process, report->processes, report->process_count) {
		if (has_all || process == report->processes || process == most || shown_marks(process, &first) != 0)
			add_process(process, report->process_count == 1, document);
		else
			left_out += process->steps.count != 0;
	}
	if (left_out != 0)
		document_add(document, DOCUMENT_LINE, NULL, "  ... and of %zu more process%s: --all shows them", left_out,
		             left_out == 1 ? "" : "es");
}
