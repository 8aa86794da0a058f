/*
 * render_table.c - lines of code as a table for a person.
 *
 * 100 columns, no colours, figures right-aligned with their units, the line of code last so that it may be long. The
 * first row is what to look at. What imports left behind comes at the end, one row per module.
 *
 * When failing  errors stay in the stream. All texts are cleaned of control characters here.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/place.h"
#include "base/text_clean.h"
#include "base/units.h"
#include "report/render.h"
#include "report/report.h"

#define IMPORTS_SHOWN 3
#define COLUMNS_MAX 7
#define LEAKING_PART 10 // of which at least one is no leak: worth saying how much is
#define UNTOUCHED_SHOWN_BYTES (UINT64_C(1) << 20)
#define UNTOUCHED_PART 10 // of what the row shows; less of it that is not in memory is not told
#define TRIFLE_PART 1000  // lines with less than a thousandth of their domain are summed up, the first excepted

static uint32_t
share_ppm(uint64_t part, uint64_t whole)
{
	if (whole == 0)
		return 0;
	return part >= whole ? 1000000 : (uint32_t)((double)part / (double)whole * 1e6);
}

static const char *
place_words(const struct report_place *place, char text[PLACE_TEXT_BYTES])
{
	(void)place_text(place->file, place->line, place->function, place->module, place->offset, text);
	return place_related(place->relation, text);
}

/* --- tables ---------------------------------------------------------------------------------------------------- */

struct column {
	const char *title;
	int width;
	const char *(*text)(const struct report_line *line, char text[UNITS_TEXT_BYTES]);
};

static const char *
text_peak(const struct report_line *line, char text[UNITS_TEXT_BYTES])
{
	return units_bytes(line->peak_bytes, text);
}

static uint64_t
without(uint64_t bytes, uint64_t untouched_bytes)
{
	return bytes > untouched_bytes ? bytes - untouched_bytes : 0;
}

/* Of what is in memory, by which rows are ordered. */
static const char *
in_memory_share(const struct report_line *line, uint64_t bytes, char text[UNITS_TEXT_BYTES])
{
	return units_share(share_ppm(without(bytes, line->in_memory.untouched_bytes),
	                             without(line->domain_bytes, line->domain_untouched_bytes)),
	                   text);
}

static const char *
text_peak_share(const struct report_line *line, char text[UNITS_TEXT_BYTES])
{
	return in_memory_share(line, line->peak_bytes, text);
}

static const char *
text_live(const struct report_line *line, char text[UNITS_TEXT_BYTES])
{
	return units_bytes(line->live_bytes, text);
}

static const char *
text_live_share(const struct report_line *line, char text[UNITS_TEXT_BYTES])
{
	return in_memory_share(line, line->live_bytes, text);
}

static const char *
text_blocks(const struct report_line *line, char text[UNITS_TEXT_BYTES])
{
	return units_count(line->live_count, text);
}

static const char *
text_allocated(const struct report_line *line, char text[UNITS_TEXT_BYTES])
{
	return units_bytes(line->allocated_bytes, text);
}

static const char *
text_calls(const struct report_line *line, char text[UNITS_TEXT_BYTES])
{
	return units_count(line->allocated_count, text);
}

static const char *
text_class(const struct report_line *line, char text[UNITS_TEXT_BYTES])
{
	(void)text;
	return line->may_be_built_once ? "leak?" : line->leak.class_name;
}

static const char *
text_generations(const struct report_line *line, char text[UNITS_TEXT_BYTES])
{
	(void)snprintf(text, UNITS_TEXT_BYTES, "%u/%u", (unsigned)line->leak.generations_alive,
	               (unsigned)line->leak.generations_total);
	return text;
}

static const char *
text_domain(const struct report_line *line, char text[UNITS_TEXT_BYTES])
{
	(void)text;
	return line->domain;
}

/* A line's class is that of its most telling site; others below it may hold most of what it holds. */
static void
put_leaking(const struct report_line *line, FILE *stream)
{
	char bytes[UNITS_TEXT_BYTES];

	if (line->leaking_bytes != 0 && line->leaking_bytes < line->live_bytes / LEAKING_PART * (LEAKING_PART - 1))
		(void)fprintf(stream, "%20s%-5s%s of it\n", "", "leak", units_bytes(line->leaking_bytes, bytes));
}

static const char *
text_released(const struct report_line *line, char text[UNITS_TEXT_BYTES])
{
	if (line->released_bytes == 0)
		return "-";
	return units_bytes(line->released_bytes, text);
}

/* What was asked for and never touched holds nothing. Rows are in the order of what is in memory. */
static bool
put_in_memory(const struct report_line *line, uint64_t shown_bytes, FILE *stream)
{
	uint64_t untouched = line->in_memory.untouched_bytes;
	char bytes[UNITS_TEXT_BYTES];

	if (untouched < UNTOUCHED_SHOWN_BYTES || untouched < shown_bytes / UNTOUCHED_PART)
		return false;
	(void)fprintf(stream, "%20s%s of it in memory\n", "", units_bytes(without(shown_bytes, untouched), bytes));
	return true;
}

/* Nobody reports what such an allocator does: its pages are seen to come, and booked at the line that ran then. */
static void
put_library(const struct report_line *line, FILE *stream)
{
	char name[PLACE_TEXT_BYTES];

	if (line->library[0] == '\0')
		return;
	(void)snprintf(name, sizeof(name), "%s", line->library);
	(void)text_clean(name, strlen(name));
	(void)fprintf(stream, "%20sin the own allocator of %s, which grew here (estimated)\n", "", name);
}

struct table {
	const char *ranking;
	const char *nothing; // said when no row has anything to show
	uint64_t (*shown)(const struct report_line *line);
	struct column columns[COLUMNS_MAX];
};

static uint64_t
shown_peak(const struct report_line *line)
{
	return line->peak_bytes;
}

static uint64_t
shown_live(const struct report_line *line)
{
	return line->live_bytes;
}

static uint64_t
shown_any(const struct report_line *line)
{
	return line->allocated_count;
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
	char count[UNITS_TEXT_BYTES];

	(void)fputs(heading, stream);
	if (processes > 1)
		(void)fprintf(stream, ", summed over %s processes", units_count(processes, count));
	(void)fputc('\n', stream);
	for (size_t i = 0; (column = next_column(layout, &i)) != NULL;)
		(void)fprintf(stream, "%*s", width_of(column, layout), column->title);
	(void)fputs("  allocated at\n", stream);
}

static void
put_row(FILE *stream, const struct layout *layout, const struct report_line *line)
{
	const struct column *column;
	char text[UNITS_TEXT_BYTES];
	char place[PLACE_TEXT_BYTES];

	for (size_t i = 0; (column = next_column(layout, &i)) != NULL;) {
		int width = width_of(column, layout);
		const char *cell = column->text(line, text);

		(void)fprintf(stream, " %*s", width < 0 ? width + 1 : width - 1, cell); // wide ones do not run into each other
	}
	(void)fprintf(stream, "  %s\n", place_words(&line->where, place));
}

/* --- imports --------------------------------------------------------------------------------------------------- */

struct import {
	char label[PLACE_TEXT_BYTES];
	uint64_t bytes;
};

static int
compare_by_label(const void *a, const void *b)
{
	return strcmp(((const struct import *)a)->label, ((const struct import *)b)->label);
}

static int
compare_by_bytes(const void *a, const void *b)
{
	uint64_t left = ((const struct import *)a)->bytes;
	uint64_t right = ((const struct import *)b)->bytes;

	return left != right ? (left > right ? -1 : 1) : compare_by_label(a, b);
}

/* One row per module, all domains together; the largest first. The caller frees them. */
static struct import *
collect_imports(const struct report *report, const struct table *table, size_t *count, uint64_t *start_up)
{
	struct import *imports = NULL;
	size_t room = 0;
	size_t found = 0;

	*count = 0;
	*start_up = 0;
	for (size_t i = 0; i < report->line_total; i++) {
		struct report_line line = report_line(report, i);
		uint64_t bytes = line.is_import ? table->shown(&line) : 0;

		if (line.is_start_up)
			*start_up += bytes;
		if (bytes == 0 || line.is_start_up)
			continue;
		imports = memory_grown(imports, &room, found + 1, sizeof(*imports));
		imports[found].bytes = bytes;
		if (line.import[0] != '\0')
			(void)snprintf(imports[found].label, sizeof(imports[found].label), "import %s", line.import);
		else if (strstr(line.where.file, "importlib") != NULL) // the import system itself
			(void)snprintf(imports[found].label, sizeof(imports[found].label), "the import system");
		else
			(void)place_words(&line.where, imports[found].label);
		found++;
	}
	if (found == 0)
		return NULL;
	qsort(imports, found, sizeof(*imports), compare_by_label);
	for (size_t i = 0; i < found; i++) {
		if (i != 0 && compare_by_label(&imports[*count - 1], &imports[i]) == 0)
			imports[*count - 1].bytes += imports[i].bytes;
		else
			imports[(*count)++] = imports[i];
	}
	qsort(imports, *count, sizeof(*imports), compare_by_bytes);
	return imports;
}

/* What imports and the interpreter's start left behind: nobody's doing, and often more than the culprit's. */
static void
put_imports(FILE *stream, const struct report *report, const struct table *table)
{
	char text[UNITS_TEXT_BYTES];
	uint64_t start_up;
	uint64_t all = 0;
	uint64_t hidden = 0;
	size_t count;
	struct import *imports;

	if (table->shown == shown_any)
		return;
	imports = collect_imports(report, table, &count, &start_up);
	for (size_t i = 0; i < count; i++) {
		all += imports[i].bytes;
		hidden += i >= IMPORTS_SHOWN ? imports[i].bytes : 0;
	}
	if (all != 0)
		(void)fprintf(stream, "%9s  left by imports\n", units_bytes(all, text));
	for (size_t i = 0; i < count && i < IMPORTS_SHOWN; i++)
		(void)fprintf(stream, "%20s  %s\n", units_bytes(imports[i].bytes, text), imports[i].label);
	if (count > IMPORTS_SHOWN)
		(void)fprintf(stream, "%20s  %zu more module%s\n", units_bytes(hidden, text), count - IMPORTS_SHOWN,
		              count - IMPORTS_SHOWN == 1 ? "" : "s");
	if (start_up != 0)
		(void)fprintf(stream, "%9s  started the interpreter\n", units_bytes(start_up, text));
	free(imports);
}

/* --- the whole table ------------------------------------------------------------------------------------------- */

static bool
is_in_scope(const struct report_line *line, const struct render_options *options)
{
	return options->scope == RENDER_ALL || line->is_device == (options->scope == RENDER_DEVICES);
}

/* Too little of its domain to be worth a row. */
static bool
is_below_row_threshold(const struct table *table, const struct report_line *line)
{
	return table->shown != shown_any && table->shown(line) < line->domain_bytes / TRIFLE_PART;
}

static bool
has_row(const struct table *table, const struct report_line *line, const struct render_options *options)
{
	return is_in_scope(line, options) && table->shown(line) != 0 && (!line->is_import || table->shown == shown_any);
}

static uint64_t
in_memory_of(const struct table *table, const struct report_line *line)
{
	uint64_t untouched = table->shown != shown_any ? line->in_memory.untouched_bytes : 0;

	return without(table->shown(line), untouched);
}

/* The number of the line that shows most in memory; no order may leave it out. report->line_total: there is none. */
static size_t
find_largest(const struct report *report, const struct table *table, const struct render_options *options)
{
	size_t largest = report->line_total;
	uint64_t most = 0;

	for (size_t i = 0; i < report->line_total; i++) {
		struct report_line line = report_line(report, i);

		if (!has_row(table, &line, options) || line.is_address_space || in_memory_of(table, &line) <= most)
			continue;
		most = in_memory_of(table, &line);
		largest = i;
	}
	return largest;
}

/* Of the domains of all lines with something to show: what is left out by --top does not move columns. */
static int
domain_width_of(const struct report *report, const struct table *table, const struct render_options *options)
{
	size_t most = 0;

	for (size_t i = 0; i < report->line_total; i++) {
		struct report_line line = report_line(report, i);

		if (has_row(table, &line, options) && !line.is_import && strlen(line.domain) > most)
			most = strlen(line.domain);
	}
	return (int)most;
}

/* Lines without a row of their own. */
struct rest {
	uint64_t bytes;
	size_t count;
};

static void
put_rest(FILE *stream, const struct rest *rest, const char *what)
{
	char text[UNITS_TEXT_BYTES];
	char count[UNITS_TEXT_BYTES];

	if (rest->count != 0)
		(void)fprintf(stream, "%9s  %s in %s more line%s\n", units_bytes(rest->bytes, text), what,
		              units_count(rest->count, count), rest->count == 1 ? "" : "s");
}

/* Is anything of what is shown of the line an address? */
static bool
has_address(const struct report_line *line, const struct render_options *options)
{
	if (line->where.offset != 0)
		return true;
	for (uint32_t i = 0; i < line->largest.frame_count && options->is_native; i++) {
		if (report_frame(&line->largest, i).offset != 0)
			return true;
	}
	return false;
}

void
render_text_lines(const struct report *report, const struct render_options *options, FILE *stream)
{
	const struct table *table = tables;
	struct layout layout;
	struct rest rest = { .count = 0 };
	struct rest space = { .count = 0 }; // holds no memory: not in one sum with it
	size_t shown = 0;
	size_t largest;
	bool has_imports = false;
	bool has_relations = false;
	bool has_addresses = false;
	bool has_untouched = false;

	while (strcmp(table->ranking, report->ranking) != 0)
		table++;
	layout = (struct layout){ table, domain_width_of(report, table, options), report->is_at_exit };
	largest = find_largest(report, table, options);
	put_heading(stream, options->heading != NULL ? options->heading : report->heading, report->process_count, &layout);
	for (size_t i = 0; i < report->line_total; i++) {
		struct report_line line = report_line(report, i);

		has_imports = has_imports || (line.is_import && is_in_scope(&line, options) && table->shown(&line) != 0);
		if (!has_row(table, &line, options))
			continue;
		/* The last row is for the largest line that comes after it. */
		if (shown >= report->line_count || (shown != 0 && is_below_row_threshold(table, &line)) ||
		    (shown != 0 && shown + 1 == report->line_count && i < largest && largest < report->line_total)) {
			struct rest *left = line.is_address_space ? &space : &rest;

			left->count++;
			left->bytes += table->shown == shown_peak ? line.peak_bytes : line.live_bytes;
			continue;
		}
		put_row(stream, &layout, &line);
		if (table->shown == shown_live)
			put_leaking(&line, stream);
		if (table->shown != shown_any)
			has_untouched = put_in_memory(&line, table->shown(&line), stream) || has_untouched;
		put_library(&line, stream);
		render_text_source(&line.where, stream);
		render_text_stack(report, &line, options, stream);
		has_relations = has_relations || line.where.relation[0] != '\0';
		has_addresses = has_addresses || has_address(&line, options);
		shown++;
	}
	if (shown == 0 && rest.count + space.count == 0 && !has_imports)
		(void)fprintf(stream, "%9s  %s\n", "", table->nothing);
	put_rest(stream, &rest, table->shown == shown_peak ? "held then" : "live");
	put_rest(stream, &space, "of address space");
	if (has_untouched)
		(void)fprintf(stream, "%9s  rows, and their share of the domain, go by what is in memory\n", "");
	if (has_relations)
		(void)fprintf(stream, "%9s  [while], [started by]: allocated by threads without Python frames; see README\n",
		              "");
	if (has_addresses)
		(void)fprintf(
			stream, "%9s  NAME+0x...: NAME has no symbols here; its debug package, or building with -g, brings names\n",
			"");
	if (options->scope != RENDER_DEVICES)
		put_imports(stream, report, table);
}
