/*
 * render_table.c - lines of code as a table for a person.
 *
 * The line of code comes last, so that it may be long. The first row is what to look at. What imports left behind comes at the end, one
 * row per module.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/document.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/items.h"
#include "base/order.h"
#include "base/amount.h"
#include "base/place.h"
#include "base/units.h"
#include "report/render.h"
#include "report/report.h"
#include "verdict/words.h"

#define SAME_PART 8 // a line that held less than this part more or less, a moment later, held the same
#define IMPORTS_SHOWN 3
#define LEAKING_PART 10 // where at least this part of a line is no leak, its row says how much is
#define CHANCE_BYTES (2 * KMEM_PYTHON_SAMPLE_BYTES)
#define GUARD_LINES_SHOWN 5
#define RELEASES_WORTH 3 // watched releases that say something
#define RELEASES_SHOWN 3
#define RELEASES_PART 10 // a line that made less than this part of them has no row, unless it is the first
#define TRIFLE_PART 1000 // lines with less than a thousandth of their domain are summed up, the first excepted

/* --- figures ---------------------------------------------------------------------------------------------------- */

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

/* What a table of each ranking shows of a line, by which lines have a row. */
static uint64_t
shown_peak(const struct report_line *line)
{
	return line->of.peak_bytes;
}

static uint64_t
shown_any(const struct report_line *line)
{
	return line->of.allocated_count;
}

/* Or was, and is worth a row. */
static uint64_t
shown_live(const struct report_line *line)
{
	return line->of.live_bytes ?: line->of.swept_bytes * (line->of.leak == MODEL_LEAK_SWEPT);
}

struct table {
	const char *nothing; // said when no row has anything to show
	uint64_t (*shown)(const struct report_line *line);
	struct document_column columns[9];
};

#define PLACES                            \
	{ "domain", -8, 0 },                  \
	{                                     \
		"allocated at", -1, DOCUMENT_CODE \
	}
static const struct table tables[] = {
	[RANK_PEAK] = { "nothing was allocated",
	                shown_peak,
	                { { "peak", 9, 0 }, { "of domain", 11, 0 }, { "live", 10, 0 }, { "blocks", 10, 0 }, PLACES } },
	[RANK_LEAKS] = { "nothing is live",
	                 shown_live,
	                 { { "live", 9, 0 },
	                   { "of domain", 11, 0 },
	                   { "blocks", 10, 0 },
	                   { "released", 10, 0 },
	                   { "class", -8, 0 },
	                   { "gens", 7, 0 },
	                   PLACES } },
	[RANK_SITES] = { "nothing was allocated",
	                 shown_any,
	                 { { "live", 9, 0 }, { "blocks", 10, 0 }, { "allocated", 11, 0 }, { "calls", 12, 0 }, PLACES } },
};

/* Of what the table shows of a line, not in memory. */
static uint64_t
untouched_of(const struct table *table, const struct report_line *line)
{
	return table->shown == shown_peak ? line->of.peak_untouched_bytes : line->of.untouched_bytes;
}

/* ranked_bytes: by which rows are ordered; its share is that of what is in memory. */
static void
add_row(const struct table *table, const struct report_line *line, bool has_released, struct document *document)
{
	const struct rank_line *of = &line->of;
	uint64_t ranked_bytes = table->shown == shown_peak ? of->peak_bytes : of->live_bytes;
	const char *live = UNITS_BYTES_OF(of->live_bytes, has_error(line));
	const char *blocks = UNITS_COUNT_OF(of->live_count, is_sampled(line));
	const char *place = report_place_text(&line->where, PLACE_ROOM);
	const char *share = UNITS_SHARE(verdict_share(amount_less(ranked_bytes, untouched_of(table, line)),
	                                              amount_less(line->domain_bytes, line->domain_untouched_bytes)));

	if (table->shown == shown_peak)
		DOCUMENT_ROW(document, UNITS_BYTES_OF(of->peak_bytes, has_error(line)), share, live, blocks, line->domain,
		             place);
	else if (table->shown == shown_live)
		DOCUMENT_ROW(document, live, share, blocks,
		             !has_released             ? ""
		             : of->released_bytes == 0 ? "-"
		                                       : UNITS_BYTES(of->released_bytes),
		             line->may_be_built_once ? "leak?" : model_leak_name(of->leak),
		             TEXT(UNITS_TEXT_BYTES, "%u/%u", (unsigned)of->telling->generations_alive,
		                  (unsigned)of->telling->generations_total),
		             line->domain, place);
	else
		DOCUMENT_ROW(document, live, blocks, UNITS_BYTES_OF(of->allocated_bytes, is_sampled(line)),
		             UNITS_COUNT_OF(of->allocated_count, is_sampled(line)), line->domain, place);
}

/* --- below a row ------------------------------------------------------------------------------------------------ */

/* A line has the class of its most telling site: other sites of it may hold most of its bytes. */
static void
add_leaking(const struct report_line *line, struct document *document)
{
	if (line->of.leaking_bytes != 0 && line->of.leaking_bytes < line->of.live_bytes / LEAKING_PART * (LEAKING_PART - 1))
		document_add(document, DOCUMENT_BELOW, "leak", "%s of it", UNITS_BYTES(line->of.leaking_bytes));
}

static void
add_swept(const struct report_line *line, struct document *document)
{
	uint64_t seen_bytes = line->of.swept_bytes; // at the last look before the peak, as a rule
	bool is_at_peak = line->of.peak_bytes >= seen_bytes && line->of.peak_bytes - seen_bytes <= seen_bytes / SAME_PART;

	if (seen_bytes != 0 && is_at_peak)
		document_add(document, DOCUMENT_BELOW, NULL,
		             "it grew until the peak (%s), then was released, and the program ended",
		             UNITS_BYTES(line->of.peak_bytes));
	else if (seen_bytes != 0)
		document_add(document, DOCUMENT_BELOW, NULL,
		             "%s of it grew until the peak, then was released, and the program ended", UNITS_BYTES(seen_bytes));
}

/* Since when, how, and which part that is of all that its process has grown since. */
static void
add_growth(const struct report_line *line, struct document *document)
{
	static const char *const paces[] = { "evenly", "faster and faster", "in bursts" }; // as enum line_pace
	const struct line_growth *growth = &line->growth;
	double seconds = (double)growth->since_ms / 1e3;

	if (!growth->is_known)
		return;
	const char *since = seconds < 0.1    ? "the start"
	                    : seconds < 120  ? TEXT(64, "second %.1f", seconds)
	                    : seconds < 7200 ? TEXT(64, "minute %.0f", seconds / 60)
	                                     : TEXT(64, "hour %.1f", seconds / 3600);

	document_add(document, DOCUMENT_BELOW, NULL, "grows %s since %s of the run: %s of the process's growth since then",
	             paces[growth->pace], since, UNITS_SHARE(verdict_share(growth->bytes, growth->whole_bytes)));
}

static void
add_steps(const struct report_line *line, struct document *document)
{
	if (line->kept_in_steps.count != 0)
		document_add(document, DOCUMENT_BELOW, NULL, "keeps %s%s in each of %s",
		             line->kept_in_steps.is_one_block ? "one block of " : "", UNITS_BYTES(line->kept_in_steps.bytes),
		             verdict_steps_text(&line->kept_in_steps, VERDICT_STEPS_ROOM));
	if (line->filled_bytes != 0)
		document_add(document, DOCUMENT_BELOW, NULL,
		             "adds fewer and fewer, as a cache that fills: it seems to end at about %s",
		             UNITS_BYTES(line->filled_bytes));
}

static void
add_cells(const struct report_line *line, struct document *document)
{
	if (line->of.where != NULL && line->of.where->cell_count != 0)
		document_add(document, DOCUMENT_BELOW, NULL, "the same line of %s cells, of which the newest is named",
		             UNITS_COUNT(line->of.where->cell_count));
}

/* Of lines that leak together the first says so for all. */
static void
add_grows_with(const struct report_line *line, struct document *document)
{
	if (line->grows_with.is_known)
		document_add(document, DOCUMENT_BELOW, NULL, "grows with %s, block for block: one thing may keep both",
		             report_place_text(&line->grows_with, PLACE_ROOM));
	else if (line->others_that_grow != 0)
		document_add(document, DOCUMENT_BELOW, NULL,
		             "with it grow%s %s other line%s (%s), block for block: one thing may keep them",
		             line->others_that_grow == 1 ? "s" : "", UNITS_COUNT(line->others_that_grow),
		             UNITS_S(line->others_that_grow), UNITS_BYTES(line->other_growing_bytes));
}

/* One caller forgets what the others release. */
static void
add_kept(const struct report_line *line, struct document *document)
{
	const struct report_kept *kept = &line->kept;
	bool is_estimated = is_sampled(line);

	if (kept->through.is_known)
		document_add(document, DOCUMENT_BELOW, NULL,
		             "still held: %s of %s blocks allocated through %s; %s of %s allocated through other callers",
		             UNITS_COUNT_OF(kept->live_count, is_estimated),
		             UNITS_COUNT_OF(kept->allocated_count, is_estimated), report_place_text(&kept->through, PLACE_ROOM),
		             kept->other_live_count == 0 ? "none" : UNITS_COUNT_OF(kept->other_live_count, is_estimated),
		             UNITS_COUNT_OF(kept->other_allocated_count, is_estimated));
}

/* The lines that release some of its blocks: the cure may be there, or where somebody forgets to do the same. */
static void
add_releases(const struct report_line *line, struct document *document)
{
	if (line->watched_releases < RELEASES_WORTH)
		return;
	for (unsigned i = 0; i < line->release_count && i < RELEASES_SHOWN; i++) {
		if (i != 0 && line->releases[i].count < line->watched_releases / RELEASES_PART)
			return;
		document_add(document, DOCUMENT_BELOW, NULL, "%sreleased by %s (%s of %s sampled releases)",
		             line->of.live_bytes != 0 ? "other blocks of it were " : "",
		             report_place_text(&line->releases[i].where, PLACE_ROOM), UNITS_COUNT(line->releases[i].count),
		             UNITS_COUNT(line->watched_releases));
	}
}

/* How far figures may be off that were estimated from a sample. */
static bool
add_error(const struct report_line *line, bool is_peak, struct document *document)
{
	uint64_t error_bytes = is_peak ? line->estimate.peak_error_bytes : line->estimate.error_bytes;
	uint64_t held_bytes = is_peak ? line->of.peak_bytes : line->of.live_bytes;
	bool is_more = error_bytes > held_bytes; // the value says less than this
	bool has_samples = line->estimate.samples != 0 && (!is_peak || line->of.peak_bytes == line->of.live_bytes);
	const char *samples = TEXT(64, ", from %s sample%s", UNITS_COUNT(line->estimate.samples),
	                           UNITS_S(line->estimate.samples));

	if (error_bytes != 0)
		document_add(document, DOCUMENT_BELOW, is_more ? NULL : "±", "%s%s%s", is_more ? "at most " : "",
		             UNITS_BYTES(is_more ? held_bytes + error_bytes : error_bytes), has_samples ? samples : "");
	return error_bytes != 0;
}

/* --- imports --------------------------------------------------------------------------------------------------- */

/* A module, all domains together. */
struct import {
	char *name;
	uint64_t bytes;
	UT_hash_handle hh;
};

struct imports {
	struct import *rows;      // uthash
	uint64_t untouched_bytes; // of the rows'
	uint64_t start_up_bytes;
};

static int
compare_imports(const struct import *a, const struct import *b)
{
	return order_numbers(b->bytes, a->bytes) ?: strcmp(a->name, b->name);
}

static void
add_import(struct imports *imports, const struct report_line *line, uint64_t bytes, uint64_t untouched_bytes)
{
	struct import *import;
	bool is_of_system = strstr(line->where.file, "importlib") != NULL || // or nothing but its frames, which are cut
	                    (line->where.file[0] == '\0' && line->where.function[0] == '\0');
	const char *name = line->import[0] != '\0' ? TEXT(PLACE_TEXT_BYTES, "import %s", line->import)
	                   : is_of_system          ? "the import system"
	                                           : report_place_text(&line->where, PLACE_ROOM);

	if (line->is_start_up) {
		imports->start_up_bytes += bytes;
		return;
	}
	(void)HASH_TEXT_MADE(imports->rows, name, name, import);
	import->bytes += bytes;
	imports->untouched_bytes += untouched_bytes;
}

/* What imports and the interpreter's start left behind: nobody's doing, and often more than the culprit's. */
static void
add_imports(struct imports *imports, struct document *document)
{
	uint64_t all = 0;
	uint64_t shown_bytes = 0;
	unsigned count = HASH_COUNT(imports->rows);
	unsigned shown = 0;

	HASH_SORT(imports->rows, compare_imports);
	for (const struct import *import = imports->rows; import != NULL; import = import->hh.next)
		all += import->bytes;
	if (all != 0) {
		document_add(document, DOCUMENT_LINE, NULL, "%9s  left by imports", UNITS_BYTES(all));
		(void)render_in_memory(imports->untouched_bytes, all, document);
	}
	for (const struct import *at = imports->rows; at != NULL && shown < IMPORTS_SHOWN; at = at->hh.next, shown++) {
		document_add(document, DOCUMENT_LINE, NULL, "%20s  %s", UNITS_BYTES(at->bytes), at->name);
		shown_bytes += at->bytes;
	}
	if (count > shown)
		document_add(document, DOCUMENT_LINE, NULL, "%20s  %u more module%s", UNITS_BYTES(all - shown_bytes),
		             count - shown, UNITS_S(count - shown));
	if (imports->start_up_bytes != 0)
		document_add(document, DOCUMENT_LINE, NULL, "%9s  left by the interpreter",
		             UNITS_BYTES(imports->start_up_bytes));
	HASH_FREE(imports->rows, HASH_NAME_FREE);
}

/* --- the whole table ------------------------------------------------------------------------------------------- */

static bool
is_in_scope(const struct report_line *line, const struct render_options *options)
{
	return options->scope == RENDER_ALL || line->is_device == (options->scope == RENDER_DEVICES);
}

struct table_line {
	size_t number;            // of the line in the report
	uint64_t bytes;           // what it holds
	uint64_t in_memory_bytes; // of what its row would show
	bool is_address_space;    // holds no memory
	bool is_small;            // too little of its domain for a row, unless it is the first
	bool has_row;
};

/* Lines without a row. */
struct table_rest {
	uint64_t bytes;
	size_t count;
};

/* The line that shows most memory; `count`: no line shows any. */
static size_t
find_largest(const struct table_line *lines, size_t count)
{
	size_t largest = count;
	uint64_t most = 0;

	for (size_t i = 0; i < count; i++) {
		if (lines[i].is_address_space || lines[i].in_memory_bytes <= most)
			continue;
		most = lines[i].in_memory_bytes;
		largest = i;
	}
	return largest;
}

/*
 * The first ones of the ranking have a row, and always the line that shows most memory. rest, space: sums of the lines without a row, of
 * memory and of address space, which are not added up.
 */
static void
choose_rows(struct table_line *lines, size_t count, size_t top, struct table_rest *rest, struct table_rest *space)
{
	size_t largest = find_largest(lines, count);
	size_t shown = 0;

	*rest = *space = (struct table_rest){ .count = 0 };
	for (size_t i = 0; i < count; i++) {
		bool is_last = shown + 1 == top;
		bool is_kept_for_largest = shown != 0 && is_last && i < largest && largest < count;

		lines[i].has_row = shown < top && !is_kept_for_largest && (shown == 0 || !lines[i].is_small);
		if (lines[i].has_row) {
			shown++;
			continue;
		}
		struct table_rest *left = lines[i].is_address_space ? space : rest;

		left->count++;
		left->bytes += lines[i].bytes;
	}
}

/* What a table is made of, gathered in one pass over all lines. */
struct gathered {
	struct table_line *lines; // that have something to show
	size_t count;
	struct imports imports;
	bool has_imports; // in scope
};

static void
gather(const struct report *report, const struct table *table, const struct render_options *options,
       struct gathered *all)
{
	bool is_of_all_time = table->shown == shown_any;

	*all = (struct gathered){ .lines = memory_zeroed(report->line_total, sizeof(*all->lines)) };
	for (size_t i = 0; i < report->line_total; i++) {
		struct report_line line = report_line_figures(report, i);
		uint64_t shown = table->shown(&line);

		if (shown == 0)
			continue;
		if (line.of.is_import && !is_of_all_time && !line.is_address_space && options->scope != RENDER_DEVICES)
			add_import(&all->imports, &line, shown, untouched_of(table, &line));
		if (!is_in_scope(&line, options))
			continue;
		all->has_imports = all->has_imports || line.of.is_import;
		if (line.of.is_import && !is_of_all_time)
			continue;
		all->lines[all->count++] = (struct table_line){
			.number = i,
			.bytes = table->shown == shown_peak ? line.of.peak_bytes : line.of.live_bytes,
			.in_memory_bytes = amount_less(shown, is_of_all_time ? 0 : untouched_of(table, &line)),
			.is_address_space = line.is_address_space,
			.is_small = !is_of_all_time && (shown < line.domain_bytes / TRIFLE_PART || is_chance(&line, shown)),
		};
	}
}

static void
add_rest(const struct table_rest *rest, const char *what, struct document *document)
{
	if (rest->count != 0)
		document_add(document, DOCUMENT_LINE, NULL, "%9s  %sin %s other line%s", UNITS_BYTES(rest->bytes), what,
		             UNITS_COUNT(rest->count), UNITS_S(rest->count));
}

/* What rows show and a reader may not know: it is explained once, below the table. */
struct remarks {
	bool has_untouched;
	bool has_errors;
	bool has_relations;
	bool has_mappings; // that several processes may have
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
add_line(const struct report *report, size_t number, const struct table *table, const struct render_options *options,
         struct remarks *remarks, struct document *document)
{
	struct report_line line = report_line(report, number);
	bool is_of_all_time = table->shown == shown_any;

	add_row(table, &line, report->is_at_exit, document);
	if (table->shown == shown_live) {
		add_leaking(&line, document);
		add_swept(&line, document);
		add_cells(&line, document);
		add_growth(&line, document);
		add_steps(&line, document);
		add_grows_with(&line, document);
		add_kept(&line, document);
		add_releases(&line, document);
	}
	remarks->has_untouched |= render_in_memory(untouched_of(table, &line),
	                                           is_of_all_time ? line.of.live_bytes : table->shown(&line), document);
	if (line.estimate.library !=
	    NULL) // it reports nothing: its pages are seen to come, and booked at the line that ran then
		document_add(document, DOCUMENT_BELOW, NULL, "in the allocator of %s, which grew here (estimated)",
		             line.estimate.library);
	remarks->has_errors |= add_error(&line, table->shown == shown_peak, document);
	render_source(&line.where, document);
	if (line.way_count != 0 && table->shown == shown_live) // once in a report
		render_holder(&line.ways[0], line.held_samples, document);
	render_stack(report, &line, options, document);
	remarks->has_mappings |= line.is_in_each;
	remarks->has_relations |= line.where.relation != MODEL_RELATION_OWN;
	note_frame(remarks, line.largest.of.where, line.where.offset);
	for (uint32_t i = 0; i < line.largest.of.frame_count && options->is_native; i++)
		note_frame(remarks, line.largest.of.frames[i], report_frame(&line.largest, i).offset);
}

static void
add_remarks(const struct remarks *remarks, struct document *document)
{
	const char *module = remarks->absent != NULL ? remarks->absent->module : "";
	const struct {
		bool is_told;
		const char *text;
	} texts[] = {
		{ remarks->has_untouched, "order and shares count only what is in memory" },
		{ remarks->has_errors, "≈ estimated from a sample; see docs/report.md" },
		{ remarks->has_relations,
		  "[while], [started by]: allocated by threads that ran no line of yours; see docs/report.md" },
		{ remarks->has_mappings, "a shared mapping is counted in each process that has it" },
		{ module[0] != '\0',
		  TEXT(512, "%s+0x...: %s %s", module, module, module[0] != '\0' ? remarks->absent->absence : "") },
		{ remarks->has_addresses, "NAME+0x...: no symbols for NAME; install its debug package, or build it with -g" },
	};

	EACH (remark, texts, COUNT_OF(texts)) {
		if (remark->is_told)
			document_add(document, DOCUMENT_LINE, NULL, "%9s  %s", "", remark->text);
	}
}

void
render_lines(const struct report *report, const struct render_options *options, struct document *document)
{
	const struct table *table = &tables[report->ranking];
	struct gathered all;
	struct table_rest rest;
	struct table_rest space; // holds no memory: not in one sum with it
	struct remarks remarks = { .has_untouched = false };

	gather(report, table, options, &all);
	choose_rows(all.lines, all.count, report->line_count, &rest, &space);
	document_add(document, DOCUMENT_HEADING, NULL, "%s%s",
	             options->heading != NULL ? options->heading : report->heading,
	             render_summed(report, RENDER_SUMMED_ROOM));
	document_table(document, NULL, table->columns);
	for (size_t i = 0; i < all.count; i++) {
		if (all.lines[i].has_row)
			add_line(report, all.lines[i].number, table, options, &remarks, document);
	}
	if (all.count == 0 && !all.has_imports)
		document_add(document, DOCUMENT_LINE, NULL, "%9s  %s", "", table->nothing);
	add_rest(&rest, "", document);
	add_rest(&space, "of address space ", document);
	add_remarks(&remarks, document);
	add_imports(&all.imports, document);
	free(all.lines);
}

/* --- the guard ------------------------------------------------------------------------------------------------- */

void
render_guard(const struct report *report, struct document *document)
{
	static const struct document_column columns[] = {
		{ "", 9, 0 }, { "", 6, 0 }, { "", -14, 0 }, { "", -1, DOCUMENT_CODE }, { .title = NULL }
	};
	const struct report_guard *guard = &report->guard;
	uint64_t rest_bytes = guard->live_bytes;

	if (guard->line_count == 0 || report->domain != NULL)
		return;
	document_add(document, DOCUMENT_HEADING, NULL, "Live when the guard was passed%s",
	             report->process_count > 1 ? TEXT(64, ", by process %" PRIu32, guard->pid) : "");
	document_table(document, NULL, columns);
	for (size_t i = 0; i < guard->line_count && i < GUARD_LINES_SHOWN; i++) {
		const struct report_holder *line = &guard->lines[i];

		DOCUMENT_ROW(document, UNITS_BYTES_OF(line->live_bytes, line->is_estimated),
		             UNITS_SHARE(verdict_share(line->live_bytes, guard->live_bytes)), line->domain,
		             report_place_text(&line->where, PLACE_ROOM));
		render_source(&line->where, document);
		if (line->way != NULL)
			render_holder(line->way, line->held_samples, document);
		rest_bytes -= line->live_bytes < rest_bytes ? line->live_bytes : rest_bytes;
	}
	if (rest_bytes != 0)
		document_add(document, DOCUMENT_LINE, NULL, "%9s  elsewhere: other lines, imports, the interpreter",
		             UNITS_BYTES(rest_bytes));
	if (guard->no_look != NULL)
		document_add(document, DOCUMENT_LINE, NULL, "  what holds it is not known: %s", guard->no_look);
}
