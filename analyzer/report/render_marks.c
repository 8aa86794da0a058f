/*
 * render_marks.c - the text of steps and marks (see render.h).
 *
 * When failing  errors stay in the stream.
 */
#include <inttypes.h>
#include <string.h>

#include "base/items.h"
#include "base/units.h"
#include "report/render.h"
#include "report/report.h"

#define MARKS_SHOWN 16u // the newest; --json lists all

static void
put_steps(const struct report_process *process, FILE *stream)
{
	const struct report_steps *steps = &process->steps;
	const char *slash = strrchr(steps->file, '/');

	(void)fprintf(stream, "%s ", UNITS_COUNT(steps->count));
	if (strcmp(steps->source, "cells") == 0)
		(void)fprintf(stream, "cell%s", UNITS_S(steps->count));
	else if (strcmp(steps->source, "program") == 0)
		(void)fprintf(stream, "step%s of the program", UNITS_S(steps->count));
	else if (steps->line != 0)
		(void)fprintf(stream, "rounds, seen at %s:%" PRIu32 " %s", slash != NULL ? slash + 1 : steps->file, steps->line,
		              steps->function);
	else
		(void)fprintf(stream, "rounds of a loop");
	if (steps->is_estimated) // what one takes is not known either
		(void)fprintf(stream, "; there may be more: most rounds of a quick loop are not seen");
	else if (steps->ns != 0)
		(void)fprintf(stream, ", %.3g ms each", (double)steps->ns / 1e6);
}

/* The high-water mark is no person's. */
static bool
is_shown(const struct report_mark *mark)
{
	return mark->of.kind != KMEM_MARK_HIGH_WATER;
}

static void
put_mark(const struct report_mark *mark, FILE *stream)
{
	bool is_own = mark->of.kind == KMEM_MARK_PROGRAM || mark->of.kind == KMEM_MARK_OUTSIDE;

	(void)fprintf(stream, "%8.1f s %9s %9s %9s  #%-4" PRIu64, (double)mark->age_ns / 1e9, UNITS_COUNT(mark->of.step),
	              UNITS_BYTES(mark->of.live_bytes),
	              mark->of.resident_bytes != 0 ? UNITS_BYTES(mark->of.resident_bytes) : "", mark->of.sequence);
	if (mark->of.kind == KMEM_MARK_GUARD)
		(void)fprintf(stream, "the guard was passed");
	else if (mark->of.kind == KMEM_MARK_REFUSED)
		(void)fprintf(stream, "a request was refused: %s", mark->of.name);
	else if (!is_own)
		(void)fprintf(stream, "at an even distance");
	else
		(void)fprintf(stream, "%s%s", mark->of.name, mark->of.is_cut ? "..." : "");
	(void)fprintf(stream, "%s\n", mark->of.is_snapshot ? " (snapshot)" : "");
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
put_process(const struct report_process *process, bool is_alone, FILE *stream)
{
	size_t count = process->of.mark_count;
	size_t first;
	size_t shown = shown_marks(process, &first);

	if (process->steps.count == 0 && shown == 0)
		return;
	(void)fprintf(stream, "\nSteps");
	if (!is_alone)
		(void)fprintf(stream, " of process %" PRIu32, process->pid);
	if (process->steps.count != 0) {
		(void)fprintf(stream, ": ");
		put_steps(process, stream);
	}
	(void)fprintf(stream, "\n");
	if (shown == 0)
		return;
	(void)fprintf(stream, "      time      step      live  resident  mark\n");
	for (size_t i = first; i < count; i++) {
		if (is_shown(&process->marks[i]))
			put_mark(&process->marks[i], stream);
	}
}

/* Workers do the same: of those without marks the first process, and the one that took most steps, stand for all. */
void
render_text_marks(const struct report *report, bool has_all, FILE *stream)
{
	const struct report_process *most = &report->processes[0];
	size_t left_out = 0;
	size_t first;

	EACH (process, report->processes, report->process_count)
		most = process->steps.count > most->steps.count ? process : most;
	EACH (process, report->processes, report->process_count) {
		if (has_all || process == report->processes || process == most || shown_marks(process, &first) != 0)
			put_process(process, report->process_count == 1, stream);
		else
			left_out += process->steps.count != 0;
	}
	if (left_out != 0)
		(void)fprintf(stream, "  ... and of %zu more process%s: --all shows them\n", left_out,
		              left_out == 1 ? "" : "es");
}
