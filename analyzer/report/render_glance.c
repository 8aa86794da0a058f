/*
 * render_glance.c - what a person sees when the program has ended: how it ended, how much it took, the lines that held most.
 *
 * At most 8 lines when all went well, 15 when it died (18 where three rows need them), on a terminal that is not narrow. The page says the rest.
 *
 * When failing  errors stay in the stream. All texts are cleaned of control characters here.
 */
#include <stdlib.h>
#include <string.h>

#include "base/items.h"
#include "base/memory.h"
#include "base/place.h"
#include "base/text_clean.h"
#include "base/units.h"
#include "base/paragraph.h"
#include "report/render.h"
#include "report/report.h"
#include "verdict/findings.h"

#define LINES_WELL 8
#define LINES_DIED 15
#define ROWS_WELL 3
#define ROWS_DIED 5
#define ROWS_LEAST 3
#define MOST_BYTES 512
#define CANDIDATES (4 * ROWS_DIED) // of which some are one line in several domains
#define BAR_COLUMNS 10
#define BAR_FROM_COLUMNS 60 // a narrower terminal has no room for it
#define PLACE_COLUMN 33     // of a row with a bar
#define SOURCE_LEAST 16     // columns: less of the line of code says nothing
#define SOURCE_MOST 60
#define COLUMNS_LEAST 40 // a narrower terminal breaks lines itself
#define COLUMNS_MOST 120 // longer lines are hard to read
#define LARGER_TIMES 4   // a peak of so many times what was left
#define TRIFLE_PART 100  // rows of less are left out, the first excepted, and so is the word for a part that leaks
#define REST_PART 20     // rows that are left out are mentioned where they hold this part of all

/* ---- looks ---- */

struct style {
	const char *bold;
	const char *alarm;
	const char *bar;
	const char *off;
};

static const struct style coloured = { "\033[1m", "\033[1;31m", "\033[36m", "\033[0m" };
static const struct style plain = { "", "", "", "" };

/* ---- which moment the lines are of ---- */

static const struct report_finding *
find(const struct report *report, enum finding_kind kind)
{
	return FIRST(finding, report->verdict.findings, report->verdict.finding_count, finding->kind == kind);
}

/* What the rows are about. */
struct moment {
	const char *heading;
	const struct ranking *ranking; // NULL: the lines of the guard
	bool is_peak;
	bool has_host;
	bool has_devices;
};

static bool
is_mostly_device(const struct report *report)
{
	uint64_t device_bytes = 0;
	uint64_t host_bytes = 0;

	EACH (domain, report->domains, report->domain_count) {
		if (domain->of.id.kind == DOMAIN_DEVICE)
			device_bytes += domain->of.peak_bytes;
		else if (!domain->is_device && !domain->is_address_space)
			host_bytes += domain->of.peak_bytes;
	}
	return device_bytes > host_bytes;
}

static struct moment
moment_of(const struct report *report, const char *domain)
{
	static const struct moment on_device = { "Held on the device at its peak", &rank_peak, true, false, true };

	if (domain != NULL)
		return (struct moment){ "Held at the peak", &rank_peak, true, true, true };
	if (find(report, FINDING_DEVICE_FULL) != NULL || (report->verdict.has_ended_well && is_mostly_device(report)))
		return on_device;
	if (find(report, FINDING_DEVICE_REFUSED) != NULL)
		return (struct moment){ "Held on the device now", &rank_peak, false, false, true };
	if (find(report, FINDING_LIVE) != NULL)
		return (struct moment){ report->processes[0].state == REPORT_RUNNING ? "Held now" : "Held at the end",
			                    &rank_sites, false, true, false };
	if (find(report, FINDING_DEVICE_HELD) != NULL)
		return on_device;
	if (report->guard.line_count != 0)
		return (struct moment){ "Live when the guard was passed", NULL, false, true, false };
	return (struct moment){ "Held at the peak", &rank_peak, true, true, false };
}

/* ---- rows ---- */

struct row {
	uint64_t bytes;
	uint64_t error_bytes; // how far off an estimate may be; 0 = exact
	bool is_swept;        // it grew until the peak, and was released as the program ended
	bool is_leak;
	bool may_be_built_once; // with is_leak
	uint64_t leaking_bytes; // of these: what is live at those of its sites that leak
	size_t number;          // of the line
	const char *text;       // what it is instead of a line; NULL = a line
	struct report_place where;
};

struct rows {
	struct row rows[CANDIDATES];
	size_t count;
	uint64_t total_bytes;  // of all lines
	uint64_t end_bytes;    // of the peak: what was left at the end, where that is to be said; 0 = it is not
	bool is_without_cache; // the cache of PyTorch is left out: its tensors are told
	bool has_mappings;     // that several processes may have
};

/* Keeps the largest, in order. */
static void
add_row(struct rows *rows, const struct row *row)
{
	size_t at = rows->count;

	while (at != 0 && rows->rows[at - 1].bytes < row->bytes)
		at--;
	if (at >= CANDIDATES)
		return;
	rows->count += rows->count < CANDIDATES;
	memmove(&rows->rows[at + 1], &rows->rows[at], (rows->count - 1 - at) * sizeof(*row));
	rows->rows[at] = *row;
}

/* The report's words for it are explained on its page. */
static const char *
relation_words(enum model_relation relation)
{
	return relation == MODEL_RELATION_WHILE        ? "in other threads meanwhile"
	       : relation == MODEL_RELATION_STARTED_BY ? "in threads it gave work to"
	                                               : "";
}

static const char *
row_text(const struct row *row, char text[PLACE_TEXT_BYTES])
{
	const struct report_place *where = &row->where;

	if (row->text != NULL)
		return row->text;
	(void)place_text(where->file, where->line, where->function, where->module, where->offset, text);
	return place_related(relation_words(where->relation), text);
}

/* A line of code is one row, whatever its domains: objects of a list, the list, and what malloc made of it. */
static void
join_rows(struct rows *rows)
{
	struct rows joined = { .total_bytes = rows->total_bytes,
		                   .end_bytes = rows->end_bytes,
		                   .is_without_cache = rows->is_without_cache };
	bool is_taken[CANDIDATES] = { false };

	for (size_t i = 0; i < rows->count; i++) {
		struct row sum = rows->rows[i];

		if (is_taken[i])
			continue;
		for (size_t j = i + 1; j < rows->count; j++) {
			if (strcmp(row_text(&rows->rows[i], PLACE_ROOM), row_text(&rows->rows[j], PLACE_ROOM)) != 0)
				continue;
			is_taken[j] = true;
			sum.bytes += rows->rows[j].bytes;
			sum.error_bytes += rows->rows[j].error_bytes;
			sum.may_be_built_once = sum.is_leak ? sum.may_be_built_once : rows->rows[j].may_be_built_once;
			sum.is_swept = sum.is_swept || rows->rows[j].is_swept;
			sum.is_leak = sum.is_leak || rows->rows[j].is_leak;
			sum.leaking_bytes += rows->rows[j].leaking_bytes;
		}
		add_row(&joined, &sum);
	}
	*rows = joined;
}

static uint64_t
in_memory_of(const struct report_line *line, bool is_peak)
{
	return is_peak ? line->of.peak_bytes - line->of.peak_untouched_bytes
	               : line->of.live_bytes - line->of.untouched_bytes;
}

/*
 * How much of the free arenas is not to be counted. Each domain had its peak at its own moment, and arenas are free when their objects
 * are gone: the sum of the peaks may be more than the process ever held.
 */
static uint64_t
less_free_arenas(const struct report *report, const struct moment *moment, uint64_t total_bytes, uint64_t free_bytes)
{
	uint64_t most_bytes = report->processes[0].peak_bytes;
	uint64_t beyond_bytes = total_bytes > most_bytes ? total_bytes - most_bytes : 0;

	if (!moment->is_peak || report->process_count > 1)
		return 0;
	return beyond_bytes < free_bytes ? beyond_bytes : free_bytes;
}

/* The place of a line takes time: only those that are chosen get theirs. */
static void
gather(struct report *report, const struct moment *moment, struct rows *rows)
{
	uint64_t import_bytes = 0;
	struct row free_arenas = { .bytes = 0 };

	for (size_t i = 0; i < report->line_count; i++) {
		struct row row;

		struct report_line line = report_line_figures(report, i);
		uint64_t bytes = in_memory_of(&line, moment->is_peak);

		if (line.is_device && !line.of.is_import && line.of.tier != 0) {
			rows->is_without_cache = rows->is_without_cache || (moment->has_devices && bytes != 0);
			continue; // a cache, of which the tensors are told
		}
		if (line.is_address_space || bytes == 0 || !(line.is_device ? moment->has_devices : moment->has_host))
			continue;
		rows->total_bytes += bytes;
		rows->has_mappings = rows->has_mappings || line.is_in_each;
		if (line.of.is_import) {
			import_bytes += bytes;
			continue;
		}
		row = (struct row){ .bytes = bytes,
			                .error_bytes = moment->is_peak ? line.estimate.peak_error_bytes : line.estimate.error_bytes,
			                .is_swept = line.of.leak == MODEL_LEAK_SWEPT,
			                .is_leak = line.of.leak == MODEL_LEAK_LEAK,
			                .may_be_built_once = line.may_be_built_once,
			                .leaking_bytes = line.of.leak == MODEL_LEAK_LEAK ? line.of.leaking_bytes : 0,
			                .number = i };
		row.text = line.estimate.is_rest_of_arenas ? "free, kept by Python for small objects" : NULL;
		if (line.estimate.is_rest_of_arenas)
			free_arenas = row;
		else
			add_row(rows, &row);
	}
	if (free_arenas.bytes != 0) {
		uint64_t beyond_bytes = less_free_arenas(report, moment, rows->total_bytes, free_arenas.bytes);

		rows->total_bytes -= beyond_bytes;
		free_arenas.bytes -= beyond_bytes;
		add_row(rows, &free_arenas);
	}
	if (import_bytes != 0)
		add_row(rows, &(struct row){ .bytes = import_bytes, .text = "left by imports and the interpreter" });
	for (size_t i = 0; i < rows->count; i++) {
		if (rows->rows[i].text == NULL)
			rows->rows[i].where = report_line(report, rows->rows[i].number).where;
	}
}

/* A program that ended well and held far more before: what that was is the question, and not what little was left. */
static struct moment
larger_of(struct report *report, const struct moment *end, uint64_t end_bytes, struct rows *rows)
{
	const struct moment peak = { "Held at the peak", &rank_peak, true, true, false };
	const struct report_options wanted = { .top = UINT64_MAX };
	struct rows at_peak = { .end_bytes = end_bytes };
	struct fail fail = { 0 };

	if (end->ranking != &rank_sites || !report->verdict.has_ended_well || report->process_count != 1 ||
	    report->processes[0].peak_bytes < LARGER_TIMES * end_bytes || !report_rank(report, &rank_peak, &wanted, &fail))
		return *end;
	gather(report, &peak, &at_peak);
	*rows = at_peak;
	return peak;
}

static void
gather_guard(const struct report *report, struct rows *rows)
{
	const struct report_guard *guard = &report->guard;

	rows->total_bytes = guard->live_bytes;
	EACH (holder, guard->lines, guard->line_count) {
		add_row(rows, &(struct row){ .bytes = holder->live_bytes,
		                             .error_bytes = holder->is_estimated ? holder->live_bytes : 0,
		                             .where = holder->where });
	}
}

/* Eighths of a column, so that small shares are seen. */
static void
put_bar(uint64_t bytes, uint64_t total_bytes, const struct style *style, FILE *stream)
{
	static const char *const eighths[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
	unsigned units = total_bytes != 0 ? (unsigned)((double)bytes / (double)total_bytes * 8 * BAR_COLUMNS + 0.5) : 0;
	unsigned used = units / 8 + (units % 8 != 0);

	(void)fputs(style->bar, stream);
	for (unsigned i = 0; i < units / 8; i++)
		(void)fputs("█", stream);
	(void)fprintf(stream, "%s%s%*s", eighths[units % 8], style->off, (int)(used < BAR_COLUMNS ? BAR_COLUMNS - used : 0),
	              "");
}

static void
put_source(const struct report_place *where, size_t columns, FILE *stream)
{
	char text[SOURCE_MOST * 4 + 1];
	size_t used = 0;
	size_t shown = 0;
	const char *at = where->source + strspn(where->source, " \t");

	if (columns < SOURCE_LEAST || at[0] == '\0')
		return;
	columns = (columns < SOURCE_MOST ? columns : SOURCE_MOST) - 1;
	while (at[used] != '\0' && used < sizeof(text) - 4 && shown <= columns)
		shown += ((unsigned char)at[used++] & 0xc0) != 0x80;
	while (used != 0 && shown > columns)
		shown -= ((unsigned char)at[--used] & 0xc0) != 0x80;
	memcpy(text, at, used);
	text[used] = '\0';
	(void)text_clean(text, used);
	(void)fprintf(stream, "  %s%s", text, at[used] != '\0' ? "…" : "");
}

/*
 * "(leak)" or "(grew until the peak)", with "?" where it may be a one-time load, and how much of the row it is where that is less than half.
 * False: nothing, or a trifle of all rows.
 */
static bool
growth_text(const struct row *row, uint64_t total_bytes, char text[UNITS_TEXT_BYTES + 16])
{
	const char *doubt = row->may_be_built_once ? "?" : "";

	if (!row->is_leak)
		(void)snprintf(text, UNITS_TEXT_BYTES + 16, "(grew until the peak)");
	else if (row->leaking_bytes < row->bytes / 2)
		(void)snprintf(text, UNITS_TEXT_BYTES + 16, "(leak%s of %s)", doubt, UNITS_BYTES(row->leaking_bytes));
	else
		(void)snprintf(text, UNITS_TEXT_BYTES + 16, "(leak%s)", doubt);
	if (row->is_leak && row->leaking_bytes < row->bytes / 2 && row->leaking_bytes < total_bytes / TRIFLE_PART)
		return false;
	return row->is_leak || row->is_swept;
}

static void
put_row(const struct row *row, uint64_t total_bytes, struct units_column units, size_t columns,
        const struct style *style, FILE *stream)
{
	bool has_bar = columns >= BAR_FROM_COLUMNS;
	size_t column = has_bar ? PLACE_COLUMN : PLACE_COLUMN - BAR_COLUMNS - 2;
	char growth[UNITS_TEXT_BYTES + 16];
	char text[PLACE_TEXT_BYTES];
	const char *place = row_text(row, text);

	const char *figure = TEXT(UNITS_TEXT_BYTES + 4, "%s%s", row->error_bytes > row->bytes / CLEAR_PART ? "≈" : "",
	                          UNITS_BYTES_IN(units, row->bytes));
	(void)fprintf(stream, "%*s%s%7s  ", (int)(11 - text_columns(figure, strlen(figure))), "", figure,
	              UNITS_SHARE(verdict_share(row->bytes, total_bytes)));
	if (has_bar)
		put_bar(row->bytes, total_bytes, style, stream);
	column += text_columns(place, strlen(place));
	(void)fprintf(stream, "%s%s", has_bar ? "  " : "", place);
	if (growth_text(row, total_bytes, growth)) {
		(void)fprintf(stream, "  %s%s%s", row->is_leak ? style->alarm : style->bold, growth, style->off);
		column += 2 + strlen(growth);
	}
	if (row->text == NULL)
		put_source(&row->where, columns > column + 2 ? columns - column - 2 : 0, stream);
	(void)fputc('\n', stream);
}

/* Some of it was never touched, or not all of it was there at once. */
static bool
is_more_than_memory(const struct report *report, const struct moment *moment, uint64_t total_bytes)
{
	uint64_t most_bytes = report->processes[0].max_resident_bytes;

	return moment->is_peak && moment->has_host && !moment->has_devices && report->process_count == 1 &&
	       verdict_is_beyond_memory(total_bytes, most_bytes);
}

/* "Held at the peak of each of 6 processes (206 MiB in sum": of figures that were not there at one time, no sum was. */
static void
put_heading(const struct rows *rows, const struct moment *moment, const struct report *report, FILE *stream)
{
	bool is_of_host = moment->is_peak && moment->has_host;
	bool is_of_many = report->process_count > 1 && moment->ranking != NULL;
	bool is_more = is_more_than_memory(report, moment, rows->total_bytes);
	bool is_apart = !is_more && is_of_host && report_peaks_are_apart(report, rows->total_bytes);

	(void)fprintf(stream, "%s", moment->heading);
	if (is_of_many)
		(void)fprintf(stream, is_of_host ? " of each of %s processes" : ", summed over %s processes",
		              UNITS_COUNT(report->process_count));
	if (is_apart)
		(void)fputs(" of each kind of memory", stream);
	(void)fprintf(stream, " (%s in %s%s%s", UNITS_BYTES(rows->total_bytes),
	              is_apart || (is_of_many && is_of_host) ? "sum" : "all",
	              rows->has_mappings ? ", shared mappings in each" : "",
	              rows->is_without_cache ? ", without what PyTorch caches" : "");
	if (is_more)
		(void)fprintf(stream, ", at most %s of it in memory", UNITS_BYTES(report->processes[0].max_resident_bytes));
	if (rows->end_bytes != 0)
		(void)fprintf(stream, ", %s at the end", UNITS_BYTES(rows->end_bytes));
	(void)fputs("):\n", stream);
}

static void
put_rows(const struct rows *rows, size_t room, const struct moment *moment, const struct report *report, size_t columns,
         const struct style *style, FILE *stream)
{
	struct row rest = { .bytes = rows->total_bytes, .text = "in other lines" };
	struct units_column units = units_column_of(rows->total_bytes);

	put_heading(rows, moment, report, stream);
	for (size_t i = 0; i < rows->count && i < room; i++) {
		if (i != 0 && rows->rows[i].bytes < rows->total_bytes / TRIFLE_PART)
			continue;
		put_row(&rows->rows[i], rows->total_bytes, units, columns, style, stream);
		rest.bytes -= rows->rows[i].bytes < rest.bytes ? rows->rows[i].bytes : rest.bytes;
	}
	if (rest.bytes > rows->total_bytes / REST_PART)
		put_row(&rest, rows->total_bytes, units, columns, style, stream);
}

/* ---- what is said above them ---- */

static const char incomplete[] = "Not all was recorded: the report says under Losses what is missing.";

/* "It had at most 59.4 MiB in memory: 10 % of the container's limit of 600 MiB. cuda:0 had at most 48.0 MiB." "" = not known. */
static void
most_text(const struct report *report, char text[MOST_BYTES])
{
	const struct report_process *largest = NULL;

	text[0] = '\0';
	for (size_t i = 0; i < report->process_count && report->verdict.bar_count == 0; i++) {
		if (report->processes[i].max_resident_bytes != 0 &&
		    (largest == NULL || report->processes[i].max_resident_bytes > largest->max_resident_bytes))
			largest = &report->processes[i];
	}
	if (largest != NULL) {
		bool is_container = largest->limit_bytes < largest->machine_bytes;
		uint64_t whole_bytes = is_container ? largest->limit_bytes : largest->machine_bytes;

		memory_text_add(text, MOST_BYTES, "%s had at most %s in memory",
		                report->process_count > 1 ? "Its largest process" : "It",
		                UNITS_BYTES(largest->max_resident_bytes));
		if (find(report, FINDING_ADDRESS_LIMIT) != NULL)
			; // that was the limit, and is told next
		else if (whole_bytes != 0 && is_container && largest->max_charged_bytes != 0)
			memory_text_add(
				text, MOST_BYTES,
				". Of the container's limit of %s at most %s (%s) was in use at a sample: libraries and files "
				"that another container read first do not count",
				UNITS_BYTES(whole_bytes), UNITS_BYTES(largest->max_charged_bytes),
				UNITS_SHARE(verdict_share(largest->max_charged_bytes, whole_bytes)));
		else if (whole_bytes != 0 && largest->max_resident_bytes > whole_bytes && is_container)
			memory_text_add(
				text, MOST_BYTES,
				". The container's limit is %s: libraries and files that another container read first do not "
				"count against it",
				UNITS_BYTES(whole_bytes));
		else if (whole_bytes != 0 && largest->max_resident_bytes > whole_bytes)
			memory_text_add(text, MOST_BYTES, "; the machine has %s", UNITS_BYTES(whole_bytes));
		else if (whole_bytes != 0)
			memory_text_add(text, MOST_BYTES, ": %s of the %s %s",
			                UNITS_SHARE(verdict_share(largest->max_resident_bytes, whole_bytes)),
			                is_container ? "container's limit of" : "machine's", UNITS_BYTES(whole_bytes));
		memory_text_add(text, MOST_BYTES, ".");
	}
	EACH (domain, report->domains, report->domain_count) {
		if (domain->is_device && strchr(domain->of.name, '/') == NULL && domain->of.peak_bytes != 0)
			memory_text_add(text, MOST_BYTES, "%s%s held at most %s.", text[0] != '\0' ? " " : "", domain->of.name,
			                UNITS_BYTES(domain->of.peak_bytes));
	}
}

/* How many rows leave room for the text around them. */
static size_t
rows_room(bool is_all_well, size_t lines)
{
	size_t room = is_all_well ? ROWS_WELL : ROWS_DIED;

	while (room > ROWS_LEAST && lines + room > (is_all_well ? LINES_WELL : LINES_DIED))
		room--;
	return room;
}

static void
put_glance(struct report *report, const struct moment *moment, struct rows *rows, size_t columns,
           const struct style *style, FILE *stream)
{
	bool has_died = !report->verdict.has_ended_well;
	char most[MOST_BYTES];
	size_t lines;

	most_text(report, most);
	if (report_has_losses(report, true))
		TEXT_ADD(most, "%s%s", most[0] != '\0' ? " " : "", incomplete);
	if (report->verdict.needs_nothing)
		report->verdict.next = ""; // not worth a line
	(void)fprintf(stream, "\n%s--- kmemshim ---%s\n", style->bold, style->off);
	lines = 3 + render_headline(report, columns, style->bold, style->off, stream);
	if (most[0] != '\0')
		lines += paragraph_put(stream, columns, most, 0, 0);
	if (rows->count != 0)
		put_rows(rows, rows_room(!has_died && report->verdict.next[0] == '\0', lines), moment, report, columns, style,
		         stream);
}

bool
render_glance(struct report *report, const struct glance_options *options, FILE *stream, struct fail *fail)
{
	size_t columns = options->columns < COLUMNS_LEAST  ? COLUMNS_LEAST
	                 : options->columns > COLUMNS_MOST ? COLUMNS_MOST
	                                                   : options->columns;
	struct moment moment = moment_of(report, options->domain);
	const struct report_options wanted = { .top = UINT64_MAX, .domain = options->domain };
	struct rows rows = { .count = 0 };

	if (moment.ranking != NULL && !report_rank(report, moment.ranking, &wanted, fail))
		return false;
	if (moment.ranking != NULL)
		gather(report, &moment, &rows);
	else
		gather_guard(report, &rows);
	if (options->domain == NULL)
		moment = larger_of(report, &moment, rows.total_bytes, &rows);
	join_rows(&rows);
	put_glance(report, &moment, &rows, columns, options->has_color ? &coloured : &plain, stream);
	return true;
}
