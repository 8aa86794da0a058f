/*
 * render_waste.c - what was wasted: freed and still in memory, asked for and never touched, allocated again and again.
 *
 * The capture has sums for each stack, not single blocks. So a size is the average of one stack, and how soon blocks were released is
 * known of a sample. What a line held between the peak and the end is not known either; a line that allocated many times what it held at
 * both moments must have released it in between.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/document.h"
#include "base/items.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/place.h"
#include "base/text_clean.h"
#include "base/units.h"
#include "report/render.h"
#include "report/report.h"

#define WORTH_BYTES (UINT64_C(1) << 20) // less is no waste to speak of
#define TURNS_MIN 4                     // so often as much as it held
#define CALLS_MIN 16                    // fewer are steps of the program
#define SIZES_SHOWN 3
#define WATCHED_MIN 8 // of fewer releases nothing can be said

/* What a line is listed for. */
struct wasted {
	size_t number; // of the line in the report
	uint64_t bytes;
};

static uint64_t
most_held(const struct rank_line *line)
{
	return line->peak_bytes > line->live_bytes ? line->peak_bytes : line->live_bytes;
}

static uint64_t
untouched_of(const struct report_line *line)
{
	return line->of.untouched_bytes;
}

static uint64_t
pinned_of(const struct report_line *line)
{
	return line->of.pinned_bytes;
}

/* What was allocated beyond what the line held at the peak or at the end. */
static uint64_t
turned_over(const struct report_line *line)
{
	uint64_t held = most_held(&line->of);

	return line->of.allocated_bytes / TURNS_MIN > held && line->of.allocated_count >= CALLS_MIN &&
	               !line->estimate.is_rest_of_arenas
	           ? line->of.allocated_bytes - held
	           : 0;
}

ORDER_OF(compare_wasted, struct wasted, order_numbers(b->bytes, a->bytes) ?: order_numbers(a->number, b->number))

/* The lines that waste so much, the most first. */
static struct wasted *
list_lines(const struct report *report, uint64_t (*waste_of)(const struct report_line *line), size_t *count)
{
	struct wasted *lines = memory_zeroed(report->line_total, sizeof(*lines));

	*count = 0;
	for (size_t i = 0; i < report->line_total; i++) {
		struct report_line line = report_line_figures(report, i);
		uint64_t bytes = line.is_address_space || !report_has_domain(report, line.domain) ? 0 : waste_of(&line);

		if (bytes >= WORTH_BYTES)
			lines[(*count)++] = (struct wasted){ .number = i, .bytes = bytes };
	}
	SORT(lines, *count, compare_wasted);
	return lines;
}

static const char *
place_of(const struct report_line *line, char text[PLACE_TEXT_BYTES])
{
	if (line->of.is_import && line->import[0] != '\0')
		return text_cleaned(memory_text_in(text, PLACE_TEXT_BYTES, "import %s", line->import));
	return report_place_text(&line->where, text);
}

static void
add_rest(const struct wasted *lines, size_t shown, size_t count, struct document *document)
{
	uint64_t bytes = SUM_OF(line, lines + shown, count - shown, line->bytes);

	if (shown < count)
		document_add(document, DOCUMENT_LINE, NULL, "%9s  in %zu other line%s", UNITS_BYTES(bytes), count - shown,
		             UNITS_S(count - shown));
}

/* ---- freed, and still in memory ---- */

static bool
add_freed(const struct report *report, struct document *document)
{
	bool has_any = false;

	EACH (process, report->processes, report->process_count) {
		const struct verdict_freed *freed = &process->fragmentation.of;

		if (freed->freed_bytes == 0)
			continue;
		has_any = true;
		document_add(document, DOCUMENT_LINE, NULL, "%9s  by %s (pid %" PRIu32 "): %s of what it had in memory",
		             UNITS_BYTES(freed->freed_bytes), process->of.name, process->pid,
		             UNITS_SHARE((uint32_t)process->fragmentation.share_ppm));
		if (freed->empty_bytes != 0)
			document_add(document, DOCUMENT_LINE, NULL,
			             "%20s in pages without any block: malloc_trim(0) gives them back",
			             UNITS_BYTES(freed->empty_bytes));
		if (freed->sparse_bytes > freed->sparse_live_bytes && freed->sparse_live_bytes != 0)
			document_add(document, DOCUMENT_LINE, NULL, "%20s in pages that blocks fill by less than half",
			             UNITS_BYTES(freed->sparse_bytes - freed->sparse_live_bytes));
	}
	return has_any;
}

static void
add_fragmentation(const struct report *report, uint64_t top, struct document *document)
{
	size_t count;
	OWNED struct wasted *lines = list_lines(report, pinned_of, &count);
	const struct report_memory *memory = report->verdict.memory;
	const struct verdict_part *kept = memory != NULL ? FIRST(part, memory->of.parts, memory->of.part_count,
	                                                         part->bar == VERDICT_BAR_FREED)
	                                                 : NULL;

	document_add(document, DOCUMENT_HEADING, NULL, "Freed, and still in memory (what malloc keeps)");
	bool is_told = add_freed(report, document);

	if (!is_told && kept != NULL && kept->bytes >= WORTH_BYTES) // the part that the verdict tells
		document_add(document, DOCUMENT_LINE, NULL, "%9s  in all: %s of what was in memory", UNITS_BYTES(kept->bytes),
		             UNITS_SHARE(verdict_share(kept->bytes, memory->of.bytes)));
	else if (!is_told)
		document_add(document, DOCUMENT_LINE, NULL, "%9s  little, or not sampled", "");
	for (size_t i = 0; i < count && i < top; i++) {
		struct report_line line = report_line_figures(report, lines[i].number);

		document_add(document, DOCUMENT_LINE, NULL, "%20s of pages are kept by few blocks of %s",
		             UNITS_BYTES(lines[i].bytes), place_of(&line, PLACE_ROOM));
	}
}

/* ---- never touched ---- */

static void
add_untouched(const struct report *report, uint64_t top, struct document *document)
{
	static const struct document_column columns[] = {
		{ "", 9, 0 }, { "", -12, 0 }, { "", -8, 0 }, { "", -1, 0 }, { .title = NULL }
	};
	size_t count;
	OWNED struct wasted *lines = list_lines(report, untouched_of, &count);
	size_t shown = count < top ? count : (size_t)top;

	document_add(document, DOCUMENT_HEADING, NULL, "Asked for, and never touched (takes addresses, no memory)");
	document_table(document, NULL, columns);
	for (size_t i = 0; i < shown; i++) {
		struct report_line line = report_line(report, lines[i].number);

		DOCUMENT_ROW(document, UNITS_BYTES(lines[i].bytes), TEXT(64, "of %s", UNITS_BYTES(line.of.live_bytes)),
		             line.domain, place_of(&line, PLACE_ROOM));
		render_source(&line.where, document);
	}
	add_rest(lines, shown, count, document);
	if (count == 0)
		document_add(document, DOCUMENT_LINE, NULL, "%9s  nothing of 1 MiB and more at the last sample", "");
}

/* ---- again and again ---- */

struct size_class {
	uint64_t calls;
	uint64_t bytes;
};
#define SIZE_CLASSES 65

static unsigned
class_of(uint64_t bytes)
{
	return bytes == 0 ? 0 : 64 - (unsigned)__builtin_clzll(bytes);
}

/*
 * How many calls below a line asked for which size, on average of their stack. Returns whether it is one size, as far as sums can tell.
 */
static bool
sizes_of(const struct report *report, const struct rank_line *line, struct size_class classes[SIZE_CLASSES],
         uint64_t *size)
{
	bool is_one_size = true;

	memset(classes, 0, SIZE_CLASSES * sizeof(*classes));
	*size = 0;
	for (size_t i = 0; i < line->site_count; i++) {
		struct report_site site = report_site(report, line->first_site + i);
		uint64_t calls = site.of.allocated_count;
		uint64_t average = calls != 0 ? site.of.allocated_bytes / calls : 0;

		if (calls == 0)
			continue;
		classes[class_of(average)].calls += calls;
		classes[class_of(average)].bytes += site.of.allocated_bytes;
		is_one_size = is_one_size && site.of.allocated_bytes % calls == 0 && (*size == 0 || average == *size);
		*size = average;
	}
	return is_one_size && line->sample_bytes == 0;
}

/* The class with most calls; SIZE_CLASSES: none is left. */
static unsigned
largest_class(const struct size_class classes[SIZE_CLASSES])
{
	unsigned best = SIZE_CLASSES;

	for (unsigned i = 0; i < SIZE_CLASSES; i++) {
		if (classes[i].calls != 0 && (best == SIZE_CLASSES || classes[i].calls > classes[best].calls))
			best = i;
	}
	return best;
}

/* Consumes the classes. */
static void
add_histogram(struct size_class classes[SIZE_CLASSES], uint64_t calls, bool is_estimated, struct document *document)
{
	static const char full[] = "██████████";
	unsigned best;

	for (unsigned round = 0; round < SIZES_SHOWN && (best = largest_class(classes)) != SIZE_CLASSES; round++) {
		int tenths = calls != 0 ? (int)((double)classes[best].calls / (double)calls * 10 + 0.5) : 0;
		const char *range = TEXT(2 * UNITS_TEXT_BYTES + 8, "%s to %s",
		                         UNITS_BYTES(best == 0 ? 0 : UINT64_C(1) << (best - 1)),
		                         UNITS_BYTES(best == 64 ? UINT64_MAX : UINT64_C(1) << best));

		document_add(document, DOCUMENT_LINE, NULL, "%20s%-20s %.*s%*s %s call%s", round == 0 ? "average size " : "",
		             range, tenths * (int)strlen("█"), full, 10 - tenths, "",
		             UNITS_COUNT_OF(classes[best].calls, is_estimated), UNITS_S(classes[best].calls));
		classes[best].calls = 0;
	}
}

static void
add_turning_line(const struct report *report, size_t number, struct document *document)
{
	struct report_line line = report_line(report, number);
	bool is_estimated = line.of.sample_bytes != 0;
	uint64_t calls = line.of.allocated_count;
	struct size_class classes[SIZE_CLASSES];
	uint64_t size;
	bool is_one_size = sizes_of(report, &line.of, classes, &size);

	DOCUMENT_ROW(document, UNITS_BYTES_OF(line.of.allocated_bytes, is_estimated), UNITS_COUNT_OF(calls, is_estimated),
	             UNITS_BYTES(most_held(&line.of)), line.domain, place_of(&line, PLACE_ROOM));
	render_source(&line.where, document);
	if (is_one_size && calls > 1)
		document_add(document, DOCUMENT_LINE, NULL, "%20s%s each, as far as sums can tell", "size ", UNITS_BYTES(size));
	else
		add_histogram(classes, calls, is_estimated, document);
	if (line.temporary_of >= WATCHED_MIN && !is_estimated)
		document_add(document, DOCUMENT_LINE, NULL,
		             "%20s%s of %s blocks of a sample were released before their thread allocated again", "temporary ",
		             UNITS_COUNT(line.temporary_releases), UNITS_COUNT(line.temporary_of));
}

static void
add_turning(const struct report *report, uint64_t top, struct document *document)
{
	static const struct document_column columns[] = {
		{ "allocated", 9, 0 }, { "calls", 12, 0 },        { "held", 10, 0 },
		{ "domain", -13, 0 },  { "allocated at", -1, 0 }, { .title = NULL },
	};
	size_t count;
	OWNED struct wasted *lines = list_lines(report, turned_over, &count);
	size_t shown = count < top ? count : (size_t)top;

	document_add(document, DOCUMENT_HEADING, NULL,
	             "Allocated again and again (at least four times what the line held at the peak, or holds at the end)");
	document_table(document, NULL, columns);
	for (size_t i = 0; i < shown; i++)
		add_turning_line(report, lines[i].number, document);
	add_rest(lines, shown, count, document);
	if (count == 0)
		document_add(document, DOCUMENT_LINE, NULL, "%9s  no line of 1 MiB and more", "");
}

void
render_waste(const struct report *report, uint64_t top, struct document *document)
{
	add_fragmentation(report, top, document);
	add_untouched(report, top, document);
	add_turning(report, top, document);
	document_add(document, DOCUMENT_LINE, NULL, "%s", "");
	document_add(
		document, DOCUMENT_PARAGRAPH, NULL,
		"Not known: the size of each block. The capture has sums of each stack. A size is the average of the calls "
		"through one stack. How soon a block was released is known of a sample, and not of small Python objects.");
}
