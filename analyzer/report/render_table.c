/*
 * render_table.c - lines of code as a table for a person.
 *
 * 100 columns, no colours, figures right-aligned with their units, the line of code last so that it may be long. The
 * first row is what to look at. What imports left behind comes at the end, one row per module.
 *
 * When failing  errors stay in the stream. All texts are cleaned of control characters here.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/order.h"
#include "base/amount.h"
#include "base/place.h"
#include "base/text_clean.h"
#include "base/units.h"
#include "report/render.h"
#include "report/report.h"
#include "report/table_rows.h"
#include "verdict/words.h"

#define SAME_PART 8 // a line that held less than this part more or less, a moment later, held the same
#define IMPORTS_SHOWN 3
#define COLUMNS_MAX 7
#define LEAKING_PART 10 // where at least this part of a line is no leak, its row says how much is
#define CHANCE_BYTES (2 * KMEM_PYTHON_SAMPLE_BYTES)
#define GUARD_LINES_SHOWN 5
#define RELEASES_WORTH 3 // watched releases that say something
#define RELEASES_SHOWN 3
#define RELEASES_PART 10 // a line that made less than this part of them has no row, unless it is the first
#define TRIFLE_PART 1000 // lines with less than a thousandth of their domain are summed up, the first excepted

/* --- tables ---------------------------------------------------------------------------------------------------- */

/* What it holds is an estimate, of which the error is known. */
static bool
has_error(const struct report_line *line)
{
	return line->estimate.error_bytes != 0 || line->estimate.peak_error_bytes != 0;
}

/* Small objects of Python: all its figures are estimates. */
static bool
is_sampled(const struct report_line *line)
{
	return has_error(line) && !line->estimate.is_rest_of_arenas;
}

/* So few samples that the line may hold next to nothing. */
static bool
is_chance(const struct report_line *line, uint64_t shown_bytes)
{
	return has_error(line) && shown_bytes <= CHANCE_BYTES;
}

struct column {
	const char *title;
	int width;
	const char *(*text)(const struct report_line *line, char text[UNITS_TEXT_BYTES]);
};

/* Of what is in memory, by which rows are ordered. */
static const char *
in_memory_share(const struct report_line *line, uint64_t bytes, char text[UNITS_TEXT_BYTES])
{
	return units_share(verdict_share(amount_less(bytes, line->of.untouched_bytes),
	                                 amount_less(line->domain_bytes, line->domain_untouched_bytes)),
	                   text);
}

static const char *
generations_text(const struct model_site *site, char text[UNITS_TEXT_BYTES])
{
	return memory_text_in(text, UNITS_TEXT_BYTES, "%u/%u", (unsigned)site->generations_alive,
	                      (unsigned)site->generations_total);
}

#define COLUMN_TEXT(name, what)                                                                                  \
	static const char *name(const struct report_line *line, __attribute__((unused)) char text[UNITS_TEXT_BYTES]) \
	{                                                                                                            \
		return what;                                                                                             \
	}

COLUMN_TEXT(text_peak, units_bytes(line->of.peak_bytes, text))
COLUMN_TEXT(text_peak_share, in_memory_share(line, line->of.peak_bytes, text))
COLUMN_TEXT(text_live, units_bytes(line->of.live_bytes, text))
COLUMN_TEXT(text_live_share, in_memory_share(line, line->of.live_bytes, text))
COLUMN_TEXT(text_blocks,
            units_count(is_sampled(line) ? units_rounded(line->of.live_count, 3) : line->of.live_count, text))
COLUMN_TEXT(text_allocated, units_bytes(line->of.allocated_bytes, text))
COLUMN_TEXT(text_calls,
            units_count(is_sampled(line) ? units_rounded(line->of.allocated_count, 3) : line->of.allocated_count, text))
COLUMN_TEXT(text_class, line->may_be_built_once ? "leak?" : model_leak_name(line->of.leak))
COLUMN_TEXT(text_generations, generations_text(line->of.telling, text))
COLUMN_TEXT(text_domain, line->domain)
COLUMN_TEXT(text_released, line->of.released_bytes == 0 ? "-" : units_bytes(line->of.released_bytes, text))

/* A line has the class of its most telling site: other sites of it may hold most of its bytes. */
static void
put_leaking(const struct report_line *line, FILE *stream)
{
	if (line->of.leaking_bytes != 0 && line->of.leaking_bytes < line->of.live_bytes / LEAKING_PART * (LEAKING_PART - 1))
		(void)fprintf(stream, "%20s%-5s%s of it\n", "", "leak", UNITS_BYTES(line->of.leaking_bytes));
}

static void
put_swept(const struct report_line *line, FILE *stream)
{
	uint64_t seen_bytes = line->of.swept_bytes; // at the last look before the peak, as a rule
	bool is_at_peak = line->of.peak_bytes >= seen_bytes && line->of.peak_bytes - seen_bytes <= seen_bytes / SAME_PART;

	if (seen_bytes != 0)
		(void)fprintf(stream,
		              is_at_peak ? "%20sit grew until the peak (%s), then was released, and the program ended\n"
		                         : "%20s%s of it grew until the peak, then was released, and the program ended\n",
		              "", UNITS_BYTES(is_at_peak ? line->of.peak_bytes : seen_bytes));
}

/* Since when, how, and which part that is of all that its process has grown since. */
static void
put_growth(const struct report_line *line, FILE *stream)
{
	static const char *const paces[] = { "evenly", "faster and faster", "in bursts" }; // as enum line_pace
	const struct line_growth *growth = &line->growth;
	double seconds = (double)growth->since_ms / 1e3;

	if (!growth->is_known)
		return;
	(void)fprintf(stream, "%20sgrows %s since ", "", paces[growth->pace]);
	if (seconds < 0.1)
		(void)fputs("the start", stream);
	else if (seconds < 120)
		(void)fprintf(stream, "second %.1f", seconds);
	else if (seconds < 7200)
		(void)fprintf(stream, "minute %.0f", seconds / 60);
	else
		(void)fprintf(stream, "hour %.1f", seconds / 3600);
	(void)fprintf(stream, " of the run: %s of what the process has grown since then\n",
	              UNITS_SHARE(verdict_share(growth->bytes, growth->whole_bytes)));
}

static void
put_steps(const struct report_line *line, FILE *stream)
{
	if (line->kept_in_steps.count != 0)
		(void)fprintf(stream, "%20skeeps %s%s in each of %s\n", "",
		              line->kept_in_steps.is_one_block ? "one block of " : "", UNITS_BYTES(line->kept_in_steps.bytes),
		              verdict_steps_text(&line->kept_in_steps, VERDICT_STEPS_ROOM));
}

static void
put_filling(const struct report_line *line, FILE *stream)
{
	if (line->filled_bytes != 0)
		(void)fprintf(stream, "%20sadds fewer and fewer, as a cache that fills: it seems to end at about %s\n", "",
		              UNITS_BYTES(line->filled_bytes));
}

/* Of lines that leak together the first says so for all. */
static void
put_grows_with(const struct report_line *line, FILE *stream)
{
	if (line->grows_with.is_known)
		(void)fprintf(stream, "%20sgrows with %s, block for block: one thing may keep both\n", "",
		              report_place_text(&line->grows_with, PLACE_ROOM));
	else if (line->others_that_grow != 0)
		(void)fprintf(stream, "%20swith it grow%s %s other line%s (%s), block for block: one thing may keep them\n", "",
		              line->others_that_grow == 1 ? "s" : "", UNITS_COUNT(line->others_that_grow),
		              UNITS_S(line->others_that_grow), UNITS_BYTES(line->other_growing_bytes));
}

/* One caller forgets what the others release. */
static void
put_kept(const struct report_line *line, FILE *stream)
{
	const struct report_kept *kept = &line->kept;
	bool is_estimated = is_sampled(line);

	if (!kept->through.is_known)
		return;
	(void)fprintf(stream, "%20sstill held: %s of %s blocks allocated through %s\n", "",
	              UNITS_COUNT_OF(kept->live_count, is_estimated), UNITS_COUNT_OF(kept->allocated_count, is_estimated),
	              report_place_text(&kept->through, PLACE_ROOM));
	(void)fprintf(stream, "%20s            %s of %s allocated through other callers\n", "",
	              kept->other_live_count == 0 ? "none" : UNITS_COUNT_OF(kept->other_live_count, is_estimated),
	              UNITS_COUNT_OF(kept->other_allocated_count, is_estimated));
}

/* The lines that release some of its blocks: the cure may be there, or where somebody forgets to do the same. */
static void
put_releases(const struct report_line *line, FILE *stream)
{
	if (line->watched_releases < RELEASES_WORTH)
		return;
	for (unsigned i = 0; i < line->release_count && i < RELEASES_SHOWN; i++) {
		if (i != 0 && line->releases[i].count < line->watched_releases / RELEASES_PART)
			return;
		(void)fprintf(stream, "%20s%sreleased by %s (%s of %s sampled releases)\n", "",
		              line->of.live_bytes != 0 ? "other blocks of it were " : "",
		              report_place_text(&line->releases[i].where, PLACE_ROOM), UNITS_COUNT(line->releases[i].count),
		              UNITS_COUNT(line->watched_releases));
	}
}

/* What was asked for and never touched holds nothing. Rows are in the order of what is in memory. */
static bool
put_in_memory(uint64_t untouched, uint64_t shown_bytes, FILE *stream)
{
	if (!render_tells_untouched(untouched, shown_bytes))
		return false;
	(void)fprintf(stream, "%20s%s of it in memory\n", "", UNITS_BYTES(amount_less(shown_bytes, untouched)));
	return true;
}

/* How far figures may be off that were estimated from a sample. */
static bool
put_error(const struct report_line *line, bool is_peak, FILE *stream)
{
	uint64_t error_bytes = is_peak ? line->estimate.peak_error_bytes : line->estimate.error_bytes;
	uint64_t held_bytes = is_peak ? line->of.peak_bytes : line->of.live_bytes;

	if (error_bytes == 0)
		return false;
	if (error_bytes > held_bytes) // the value says less than this
		(void)fprintf(stream, "%20sat most %s", "", UNITS_BYTES(held_bytes + error_bytes));
	else
		(void)fprintf(stream, "%20s±    %s", "", UNITS_BYTES(error_bytes));
	if (line->estimate.samples != 0 && (!is_peak || line->of.peak_bytes == line->of.live_bytes))
		(void)fprintf(stream, ", from %s sample%s", UNITS_COUNT(line->estimate.samples),
		              UNITS_S(line->estimate.samples));
	(void)fputc('\n', stream);
	return true;
}

/* Nobody reports what such an allocator does: its pages are seen to come, and booked at the line that ran then. */
static void
put_library(const struct report_line *line, FILE *stream)
{
	if (line->estimate.library == NULL)
		return;
	const char *name = text_cleaned(TEXT(PLACE_TEXT_BYTES, "%s", line->estimate.library));

	(void)fprintf(stream, "%20sin the allocator of %s, which grew here (estimated)\n", "", name);
}

struct table {
	const char *ranking;
	const char *nothing; // said when no row has anything to show
	uint64_t (*shown)(const struct report_line *line);
	struct column columns[COLUMNS_MAX];
};

#define SHOWN(name, figure)                              \
	static uint64_t name(const struct report_line *line) \
	{                                                    \
		return line->of.figure;                          \
	}

SHOWN(shown_peak, peak_bytes)
SHOWN(shown_any, allocated_count)

/* Or was, and is worth a row. */
static uint64_t
shown_live(const struct report_line *line)
{
	return line->of.live_bytes != 0 ? line->of.live_bytes : line->of.swept_bytes;
}

/* One row per ranking; negative widths align to the left. */
static const struct table tables[] = {
	{ "peak",
	  "nothing was allocated",
	  shown_peak,
	  { { "peak", 9, text_peak },
	    { "of domain", 11, text_peak_share },
	    { "live", 10, text_live },
	    { "blocks", 10, text_blocks },
	    { " domain", -9, text_domain } } },
	{ "leaks",
	  "nothing is live",
	  shown_live,
	  { { "live", 9, text_live },
	    { "of domain", 11, text_live_share },
	    { "blocks", 10, text_blocks },
	    { "released", 10, text_released },
	    { " class", -10, text_class },
	    { "gens", 6, text_generations },
	    { " domain", -9, text_domain } } },
	{ "sites",
	  "nothing was allocated",
	  shown_any,
	  { { "live", 9, text_live },
	    { "blocks", 10, text_blocks },
	    { "allocated", 11, text_allocated },
	    { "calls", 12, text_calls },
	    { " domain", -9, text_domain } } },
};

/* What the rows of one table have in common. */
struct layout {
	const struct table *table;
	int domain_width;  // of the longest name; most are short
	bool has_released; // a process has figures of the moment when it began to exit
};

static int
width_of(const struct column *column, const struct layout *layout)
{
	return column->text == text_domain && layout->domain_width >= -column->width ? -1 - layout->domain_width
	                                                                             : column->width;
}

/* The next column that is shown, from *number on; NULL behind the last one. */
static const struct column *
next_column(const struct layout *layout, size_t *number)
{
	const struct column *columns = layout->table->columns;

	if (*number < COLUMNS_MAX && columns[*number].text == text_released && !layout->has_released)
		(*number)++;
	return *number < COLUMNS_MAX && columns[*number].title != NULL ? &columns[(*number)++] : NULL;
}

static void
put_heading(FILE *stream, const char *heading, size_t processes, const struct layout *layout)
{
	const struct column *column;

	(void)fputs(heading, stream);
	if (processes > 1)
		(void)fprintf(stream, ", summed over %s processes", UNITS_COUNT(processes));
	(void)fputc('\n', stream);
	for (size_t i = 0; (column = next_column(layout, &i)) != NULL;)
		(void)fprintf(stream, "%*s", width_of(column, layout), column->title);
	(void)fputs("  allocated at\n", stream);
}

static bool
is_estimate(const struct column *column, const struct report_line *line)
{
	if (column->text == text_peak || column->text == text_live)
		return has_error(line);
	return is_sampled(line) &&
	       (column->text == text_blocks || column->text == text_allocated || column->text == text_calls);
}

static void
put_row(FILE *stream, const struct layout *layout, const struct report_line *line)
{
	const struct column *column;
	char text[UNITS_TEXT_BYTES];

	for (size_t i = 0; (column = next_column(layout, &i)) != NULL;) {
		int width = width_of(column, layout);
		const char *cell = column->text(line, text);

		/* Wide ones do not run into each other. */
		if (is_estimate(column, line))
			(void)fprintf(stream, "%s%*s%s", i > 1 ? " " : "",
			              width - (i > 1 ? 2 : 1) + (int)strlen("≈") - (int)strlen(cell), "≈", cell);
		else
			(void)fprintf(stream, " %*s", width < 0 ? width + 1 : width - 1, cell);
	}
	(void)fprintf(stream, "  %s\n", report_place_text(&line->where, PLACE_ROOM));
}

/* --- imports --------------------------------------------------------------------------------------------------- */

struct import {
	char label[PLACE_TEXT_BYTES];
	uint64_t bytes;
};

ORDER_OF(compare_by_label, struct import, strcmp(a->label, b->label))

ORDER_OF(compare_by_bytes, struct import, order_numbers(b->bytes, a->bytes) ?: compare_by_label(a, b))

struct imports {
	uint64_t untouched_bytes; // of the rows'
	struct import *rows;
	size_t count;
	size_t room;
	uint64_t start_up_bytes;
};

static void
add_import(struct imports *imports, const struct report_line *line, uint64_t bytes)
{
	if (line->is_start_up) {
		imports->start_up_bytes += bytes;
		return;
	}

	struct import *import = MEMORY_NEXT(imports->rows, imports->count, imports->room);

	import->bytes = bytes;
	imports->untouched_bytes += line->of.untouched_bytes;
	if (line->import[0] != '\0')
		(void)snprintf(import->label, sizeof(import->label), "import %s", line->import);
	else if (strstr(line->where.file, "importlib") != NULL ||
	         (line->where.file[0] == '\0' && line->where.function[0] == '\0')) // nothing but its frames, which are cut
		(void)snprintf(import->label, sizeof(import->label), "the import system");
	else
		(void)report_place_text(&line->where, import->label);
}

/* One row per module, all domains together; the largest first. */
static void
join_imports(struct imports *imports)
{
	size_t joined = 0;

	if (imports->count == 0)
		return;
	SORT(imports->rows, imports->count, compare_by_label);
	for (size_t i = 0; i < imports->count; i++) {
		if (i != 0 && compare_by_label(&imports->rows[joined - 1], &imports->rows[i]) == 0)
			imports->rows[joined - 1].bytes += imports->rows[i].bytes;
		else
			imports->rows[joined++] = imports->rows[i];
	}
	imports->count = joined;
	SORT(imports->rows, joined, compare_by_bytes);
}

/* What imports and the interpreter's start left behind: nobody's doing, and often more than the culprit's. */
static void
put_imports(struct imports *imports, FILE *stream)
{
	uint64_t all = 0;
	uint64_t hidden = 0;

	join_imports(imports);
	for (size_t i = 0; i < imports->count; i++) {
		all += imports->rows[i].bytes;
		hidden += i >= IMPORTS_SHOWN ? imports->rows[i].bytes : 0;
	}
	if (all != 0) {
		(void)fprintf(stream, "%9s  left by imports\n", UNITS_BYTES(all));
		(void)put_in_memory(imports->untouched_bytes, all, stream);
	}
	for (size_t i = 0; i < imports->count && i < IMPORTS_SHOWN; i++)
		(void)fprintf(stream, "%20s  %s\n", UNITS_BYTES(imports->rows[i].bytes), imports->rows[i].label);
	if (imports->count > IMPORTS_SHOWN)
		(void)fprintf(stream, "%20s  %zu more module%s\n", UNITS_BYTES(hidden), imports->count - IMPORTS_SHOWN,
		              UNITS_S(imports->count - IMPORTS_SHOWN));
	if (imports->start_up_bytes != 0)
		(void)fprintf(stream, "%9s  left by the interpreter\n", UNITS_BYTES(imports->start_up_bytes));
}

/* --- the whole table ------------------------------------------------------------------------------------------- */

static bool
is_in_scope(const struct report_line *line, const struct render_options *options)
{
	return options->scope == RENDER_ALL || line->is_device == (options->scope == RENDER_DEVICES);
}

/* What a table is made of, gathered in one pass over all lines. */
struct gathered {
	struct table_line *lines; // that have something to show
	size_t count;
	struct layout layout;
	struct imports imports;
	bool has_imports; // in scope
};

static void
gather(const struct report *report, const struct table *table, const struct render_options *options,
       struct gathered *all)
{
	*all = (struct gathered){ .lines = memory_zeroed(report->line_total, sizeof(*all->lines)),
		                      .layout = { .table = table, .has_released = report->is_at_exit } };
	for (size_t i = 0; i < report->line_total; i++) {
		struct report_line line = report_line_figures(report, i);
		uint64_t shown = table->shown(&line);
		uint64_t untouched = table->shown != shown_any ? line.of.untouched_bytes : 0;

		if (shown == 0)
			continue;
		if (line.of.is_import && table->shown != shown_any)
			add_import(&all->imports, &line, shown);
		if (!is_in_scope(&line, options))
			continue;
		all->has_imports = all->has_imports || line.of.is_import;
		if (line.of.is_import && table->shown != shown_any)
			continue;
		/* What is left out by --top does not move columns. */
		if (!line.of.is_import && (int)strlen(line.domain) > all->layout.domain_width)
			all->layout.domain_width = (int)strlen(line.domain);
		all->lines[all->count++] = (struct table_line){
			.number = i,
			.bytes = table->shown == shown_peak ? line.of.peak_bytes : line.of.live_bytes,
			.in_memory_bytes = amount_less(shown, untouched),
			.is_address_space = line.is_address_space,
			.is_small = table->shown != shown_any &&
			            (shown < line.domain_bytes / TRIFLE_PART || is_chance(&line, shown)),
		};
	}
}

static void
put_rest(FILE *stream, const struct table_rest *rest, const char *what)
{
	if (rest->count != 0)
		(void)fprintf(stream, "%9s  %sin %s other line%s\n", UNITS_BYTES(rest->bytes), what, UNITS_COUNT(rest->count),
		              UNITS_S(rest->count));
}

/* What rows show and a reader may not know: it is explained once, below the table. */
struct remarks {
	bool has_untouched;
	bool has_errors;
	bool has_relations;
	bool has_addresses;
	const struct model_frame *absent; // of a module that does not lie here as it was recorded; NULL = none
};

static void
note_frame(struct remarks *remarks, const struct model_frame *frame, uint64_t offset)
{
	if (offset != 0 && frame->absence == NULL)
		remarks->has_addresses = true;
	else if (offset != 0 && remarks->absent == NULL)
		remarks->absent = frame;
}

static void
put_line(const struct report *report, size_t number, const struct layout *layout, const struct render_options *options,
         struct remarks *remarks, FILE *stream)
{
	const struct table *table = layout->table;
	struct report_line line = report_line(report, number);

	put_row(stream, layout, &line);
	if (table->shown == shown_live) {
		put_leaking(&line, stream);
		put_swept(&line, stream);
		put_growth(&line, stream);
		put_filling(&line, stream);
		put_steps(&line, stream);
		put_grows_with(&line, stream);
		put_kept(&line, stream);
		put_releases(&line, stream);
	}
	bool is_of_all_time = table->shown == shown_any;

	remarks->has_untouched = put_in_memory(line.of.untouched_bytes,
	                                       is_of_all_time ? line.of.live_bytes : table->shown(&line), stream) ||
	                         remarks->has_untouched;
	put_library(&line, stream);
	remarks->has_errors = put_error(&line, table->shown == shown_peak, stream) || remarks->has_errors;
	render_text_source(&line.where, stream);
	if (line.way_count != 0 && table->shown == shown_live) // once in a report
		render_text_holder(&line.ways[0], line.held_samples, stream);
	render_text_stack(report, &line, options, stream);
	remarks->has_relations = remarks->has_relations || line.where.relation[0] != '\0';
	note_frame(remarks, line.largest.of.where, line.where.offset);
	for (uint32_t i = 0; i < line.largest.of.frame_count && options->is_native; i++)
		note_frame(remarks, line.largest.of.frames[i], report_frame(&line.largest, i).offset);
}

static void
put_remarks(const struct remarks *remarks, FILE *stream)
{
	if (remarks->has_untouched)
		(void)fprintf(stream, "%9s  order and shares count only what is in memory\n", "");
	if (remarks->has_errors)
		(void)fprintf(stream, "%9s  ≈ estimated from a sample of small Python objects; see docs/report.md\n", "");
	if (remarks->has_relations)
		(void)fprintf(
			stream, "%9s  [while], [started by]: allocated by threads that ran no line of yours; see docs/report.md\n",
			"");
	if (remarks->absent != NULL)
		(void)fprintf(stream, "%9s  %s+0x...: %s %s\n", "", remarks->absent->module, remarks->absent->module,
		              remarks->absent->absence);
	if (remarks->has_addresses)
		(void)fprintf(stream, "%9s  NAME+0x...: no symbols for NAME; install its debug package, or build it with -g\n",
		              "");
}

void
render_text_lines(const struct report *report, const struct render_options *options, FILE *stream)
{
	const struct table *table = tables;
	struct gathered all;
	struct table_rest rest;
	struct table_rest space; // holds no memory: not in one sum with it
	struct remarks remarks = { .has_untouched = false };

	while (strcmp(table->ranking, report->ranking) != 0)
		table++;
	gather(report, table, options, &all);
	table_rows_choose(all.lines, all.count, report->line_count, &rest, &space);
	put_heading(stream, options->heading != NULL ? options->heading : report->heading, report->process_count,
	            &all.layout);
	for (size_t i = 0; i < all.count; i++) {
		if (all.lines[i].has_row)
			put_line(report, all.lines[i].number, &all.layout, options, &remarks, stream);
	}
	if (all.count == 0 && !all.has_imports)
		(void)fprintf(stream, "%9s  %s\n", "", table->nothing);
	put_rest(stream, &rest, "");
	put_rest(stream, &space, "of address space ");
	put_remarks(&remarks, stream);
	if (options->scope != RENDER_DEVICES)
		put_imports(&all.imports, stream);
	free(all.imports.rows);
	free(all.lines);
}

/* --- the guard ------------------------------------------------------------------------------------------------- */

/* Three columns: bytes, share, domain and line. */
void
render_text_guard(const struct report *report, FILE *stream)
{
	const struct report_guard *guard = &report->guard;
	uint64_t rest_bytes = guard->live_bytes;

	if (guard->line_count == 0 || report->domain != NULL)
		return;
	(void)fprintf(stream, "Held when the guard was passed");
	if (report->process_count > 1)
		(void)fprintf(stream, ", by process %" PRIu32, guard->pid);
	(void)fputc('\n', stream);
	for (size_t i = 0; i < guard->line_count && i < GUARD_LINES_SHOWN; i++) {
		const struct report_holder *line = &guard->lines[i];

		(void)fprintf(stream, "%*s%6s  %-14s %s\n", line->is_estimated ? 11 : 9,
		              TEXT(UNITS_TEXT_BYTES + 4, "%s%s", line->is_estimated ? "≈" : "", UNITS_BYTES(line->live_bytes)),
		              UNITS_SHARE(verdict_share(line->live_bytes, guard->live_bytes)), line->domain,
		              report_place_text(&line->where, PLACE_ROOM));
		render_text_source(&line->where, stream);
		if (line->way != NULL)
			render_text_holder(line->way, line->held_samples, stream);
		rest_bytes -= line->live_bytes < rest_bytes ? line->live_bytes : rest_bytes;
	}
	if (rest_bytes != 0)
		(void)fprintf(stream, "%9s  elsewhere: other lines, imports, the interpreter\n", UNITS_BYTES(rest_bytes));
	if (guard->no_look != NULL)
		(void)fprintf(stream, "  what holds it is not known: %s\n", guard->no_look);
}
