/*
 * top_view.c - a sample as rows of text (see top_view.h).
 */
#include "top/top_view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/place.h"
#include "base/text_clean.h"
#include "base/units.h"
#include "base/paragraph.h"
#include "verdict/words.h"

#define HEAD_ROWS 5u
#define FIGURE_COLUMNS 10u
#define BAR_COLUMNS 20u
#define BAR_LEAST 5u
#define FORECAST_BYTES 80u
#define WIDE_COLUMNS 60u // with less, figures give way to places
#define TEXT_BYTES 1024u
#define SOURCE_AROUND 4u
#define PLACE_LEAST 16u
#define OLD_SECONDS 2.0 // a program that allocates is looked at each second
#define FORECAST_LEAST_SECONDS 10.0
#define FORECAST_LEAST_BYTES (INT64_C(1) << 20)
#define FORECAST_MOST_SECONDS (24 * 3600.0)

/* ---- the canvas ---- */

void
top_canvas_make(struct top_canvas *canvas, unsigned rows, unsigned columns)
{
	canvas->rows = rows != 0 ? rows : 1;
	canvas->columns = columns != 0 ? columns : 1;
	canvas->cells = memory_zeroed((size_t)canvas->rows * canvas->columns, sizeof(struct top_cell));
}

void
top_canvas_free(struct top_canvas *canvas)
{
	free(canvas->cells);
	canvas->cells = NULL;
}

/* One character of UTF-8; what is none, or would not take one column, is '?'. */
static wchar_t
next_character(const char **text)
{
	const unsigned char *at = (const unsigned char *)*text;
	unsigned more = at[0] < 0x80 ? 0 : at[0] < 0xe0 ? 1 : at[0] < 0xf0 ? 2 : 3;
	wchar_t found = more == 0 ? at[0] : at[0] & (0x3f >> more);
	unsigned used = 1;

	for (; used <= more && (at[used] & 0xc0) == 0x80; used++)
		found = found << 6 | (at[used] & 0x3f);
	*text += used;
	if (at[0] < 0x20 || at[0] == 0x7f || used != more + 1)
		return '?';
	return found < 0x80 || wcwidth(found) == 1 ? found : '?';
}

/* From this column on, as far as there is room; returns the column behind. */
static unsigned
put(struct top_canvas *canvas, unsigned row, unsigned column, enum top_style style, const char *text)
{
	for (; row < canvas->rows && column < canvas->columns && *text != '\0'; column++) {
		struct top_cell *cell = &canvas->cells[(size_t)row * canvas->columns + column];

		cell->character = next_character(&text);
		cell->style = (unsigned char)style;
	}
	return column;
}

/* The same up to column `end`; the last one shows that there is more. */
static unsigned
put_part(struct top_canvas *canvas, unsigned row, unsigned column, unsigned end, const char *text)
{
	for (; row < canvas->rows && column < end && *text != '\0'; column++) {
		struct top_cell *cell = &canvas->cells[(size_t)row * canvas->columns + column];

		cell->character = next_character(&text);
		cell->style = TOP_PLAIN;
		if (column + 1 == end && *text != '\0')
			cell->character = L'…';
	}
	return column;
}

#define PUT_TEXT(canvas, row, column, style, ...) put(canvas, row, column, style, TEXT(TEXT_BYTES, __VA_ARGS__))

/* Behind what stands there, two columns apart; nothing where it does not fit: half a figure is another figure. */
static unsigned
add_whole(struct top_canvas *canvas, unsigned row, unsigned column, enum top_style style, const char *text)
{
	return column + 2 + text_columns(text, strlen(text)) > canvas->columns ? column
	                                                                       : put(canvas, row, column + 2, style, text);
}
#define ADD_WHOLE(canvas, row, column, style, ...) add_whole(canvas, row, column, style, TEXT(TEXT_BYTES, __VA_ARGS__))

static void
restyle(struct top_canvas *canvas, unsigned row, enum top_style style)
{
	for (unsigned i = 0; row < canvas->rows && i < canvas->columns; i++)
		canvas->cells[(size_t)row * canvas->columns + i].style = (unsigned char)style;
}

/* ---- words ---- */

static const char *
signed_bytes(int64_t bytes, char text[UNITS_TEXT_BYTES])
{
	if (bytes == 0)
		return "0 B";
	return memory_text_in(text, UNITS_TEXT_BYTES, "%c%.28s", bytes < 0 ? '-' : '+',
	                      UNITS_BYTES((uint64_t)(bytes < 0 ? -bytes : bytes)));
}

static const char *
span(double seconds, char text[UNITS_TEXT_BYTES])
{
	if (seconds >= 0.05 && seconds < 0.95) // "in 0 s" reads as if nothing had been measured
		(void)snprintf(text, UNITS_TEXT_BYTES, "%.1f s", seconds);
	else if (seconds < 100)
		(void)snprintf(text, UNITS_TEXT_BYTES, "%.0f s", seconds);
	else
		(void)snprintf(text, UNITS_TEXT_BYTES, "%.0f min", seconds / 60);
	return text;
}

/* ---- the head ---- */

/* On the right: of when the figures are, and when the next ones come. A slow capture is not read each second. The name is more worth. */
static void
draw_clock(const struct top_state *state, unsigned behind, struct top_canvas *canvas)
{
	char text[48];
	struct tm local;

	if (state->taken == 0)
		return;
	(void)strftime(text, sizeof(text), "%H:%M:%S", localtime_r(&state->taken, &local));
	TEXT_ADD(text, ", every %.0f s", state->every_seconds);
	if (behind + 2 + strlen(text) <= canvas->columns)
		(void)put(canvas, 0, canvas->columns - (unsigned)strlen(text), TOP_SOFT, text);
}

static void
draw_title(const struct top_sample *sample, const struct top_state *state, struct top_canvas *canvas)
{
	const struct report_process *first = &sample->report->processes[0];
	unsigned column = put(canvas, 0, 0, TOP_BOLD, "kmemshim top");

	if (state->process == 0 && sample->report->process_count > 1)
		column = PUT_TEXT(canvas, 0, column + 2, TOP_BOLD, "%zu processes of %s", sample->report->process_count,
		                  first->of.name);
	else
		column = PUT_TEXT(canvas, 0, column + 2, TOP_BOLD, "%s (pid %u)", first->of.name, first->pid);
	if (sample->is_running)
		column = put(canvas, 0, column + 2, TOP_PLAIN, "running");
	else if (first->signal != 0)
		column = PUT_TEXT(canvas, 0, column + 2, TOP_ALARM, "ended: by signal %d", first->signal);
	else if (first->exit_status >= 0)
		column = PUT_TEXT(canvas, 0, column + 2, TOP_PLAIN, "ended: exit status %d", first->exit_status);
	else
		column = put(canvas, 0, column + 2, TOP_ALARM, "ended: nobody saw how");
	draw_clock(state, column, canvas);
}

/* Until the limit, if live bytes go on to grow as since then; FORECAST_MOST_SECONDS: not soon, or nobody knows. */
static double
seconds_left(const struct top_sample *sample)
{
	double left = sample->limit_bytes > sample->used_bytes ? (double)(sample->limit_bytes - sample->used_bytes) : 0;

	if (!sample->is_running || !sample->has_growth || sample->growth_seconds < FORECAST_LEAST_SECONDS ||
	    sample->growth_bytes < FORECAST_LEAST_BYTES)
		return FORECAST_MOST_SECONDS;
	return left / ((double)sample->growth_bytes / sample->growth_seconds);
}

static const char *
forecast_text(const struct top_sample *sample, char text[FORECAST_BYTES])
{
	const struct verdict_forecast *forecast = &sample->report->forecast;

	text[0] = '\0';
	if (forecast->bytes_per_minute != 0)
		(void)snprintf(text, FORECAST_BYTES, "full in about %" PRIu64 " min", forecast->minutes);
	else if (seconds_left(sample) < FORECAST_MOST_SECONDS)
		(void)snprintf(text, FORECAST_BYTES, "full in %s if it goes on so", span(seconds_left(sample), UNITS_ROOM));
	return text;
}

/* The bar takes what the words leave. */
static void
draw_use(const struct top_sample *sample, struct top_canvas *canvas)
{
	char forecast[FORECAST_BYTES];
	uint32_t ppm = (uint32_t)verdict_share(sample->used_bytes, sample->limit_bytes);
	enum top_style style = ppm >= 900000 ? TOP_ALARM : TOP_PLAIN;

	if (sample->limit_bytes == UINT64_MAX || sample->limit_bytes == 0) {
		(void)PUT_TEXT(canvas, 1, 0, TOP_PLAIN, "%s in use, no limit is known", UNITS_BYTES(sample->used_bytes));
		return;
	}

	unsigned column = PUT_TEXT(canvas, 1, 0, style, "%s in use of the limit of %s: %s", UNITS_BYTES(sample->used_bytes),
	                           UNITS_BYTES(sample->limit_bytes), UNITS_SHARE(ppm));

	unsigned behind = forecast_text(sample, forecast)[0] != '\0' ? (unsigned)strlen(forecast) + 2 : 0;
	unsigned bar = canvas->columns > column + 2 + behind ? canvas->columns - column - 2 - behind : 0;

	bar = bar < BAR_COLUMNS ? bar : BAR_COLUMNS;
	column += canvas->columns >= WIDE_COLUMNS && bar >= BAR_LEAST ? 2 : 0;
	for (unsigned i = 0; canvas->columns >= WIDE_COLUMNS && bar >= BAR_LEAST && i < bar; i++)
		column = put(canvas, 1, column, ppm >= 900000 ? TOP_ALARM : TOP_BAR,
		             (uint64_t)i * 1000000 < (uint64_t)ppm * bar ? "█" : "░");
	if (behind != 0)
		(void)ADD_WHOLE(canvas, 1, column, TOP_ALARM, "%s", forecast);
}

static void
draw_sums(const struct top_sample *sample, struct top_canvas *canvas)
{
	char text[UNITS_TEXT_BYTES];
	char time[UNITS_TEXT_BYTES];
	unsigned column = PUT_TEXT(canvas, 2, 0, TOP_PLAIN, "live %s", units_bytes(sample->live_bytes, text));

	if (sample->has_growth)
		column = ADD_WHOLE(canvas, 2, column, TOP_PLAIN, "%s in %s", signed_bytes(sample->growth_bytes, text),
		                   span(sample->growth_seconds, time));
	if (sample->resident_bytes != 0 && sample->resident_age < OLD_SECONDS)
		column = ADD_WHOLE(canvas, 2, column, TOP_PLAIN, "in memory %s", units_bytes(sample->resident_bytes, text));
	else if (sample->resident_bytes != 0)
		column = ADD_WHOLE(canvas, 2, column, TOP_PLAIN, "in memory %s %s%s ago",
		                   units_bytes(sample->resident_bytes, text), sample->model->process_count > 1 ? "up to " : "",
		                   span(sample->resident_age, time));
	if (sample->has_rate)
		column = ADD_WHOLE(canvas, 2, column, TOP_PLAIN, "allocates %s/s", units_bytes(sample->rate_bytes, text));
	if (sample->model->process_count == 1) // of several the peaks were at different moments
		(void)ADD_WHOLE(canvas, 2, column, TOP_PLAIN, "peak %s", units_bytes(sample->peak_bytes, text));
}

static void
draw_wish(const struct top_sample *sample, const struct top_state *state, struct top_canvas *canvas)
{
	static const char *const kinds[TOP_KINDS] = { "all", "Python", "native" };
	static const char *const orders[TOP_ORDERS] = { "live", "growth", "rate" };
	size_t damages = sample->model->damaged_places;
	unsigned column = PUT_TEXT(canvas, 3, 0, TOP_SOFT, "domain: %s  process: %s  lines: %s  order: %s",
	                           state->wish.domain != NULL ? state->wish.domain : "host",
	                           state->process_name != NULL ? state->process_name : "all", kinds[state->wish.kind],
	                           orders[state->wish.order]);

	if (damages != 0)
		(void)PUT_TEXT(canvas, 3, column + 2, TOP_ALARM, "%zu place%s could not be read", damages, UNITS_S(damages));
}

/* ---- rows ---- */

/* What stands behind a place keeps its room, unless little is left. */
static void
put_place(const struct top_row *row, unsigned at, unsigned column, struct top_canvas *canvas)
{
	bool has_domain = row->domain[0] != '\0' && strcmp(row->domain, "heap") != 0;
	unsigned behind = (unsigned)((has_domain ? strlen(row->domain) + 3 : 0) +
	                             (row->leak[0] != '\0' ? strlen(row->leak) + 3 : 0));
	unsigned room = canvas->columns > column ? canvas->columns - column : 0;

	column = put_part(canvas, at, column, room > behind + PLACE_LEAST ? canvas->columns - behind : canvas->columns,
	                  row->place);
	if (has_domain)
		column = PUT_TEXT(canvas, at, column + 1, TOP_SOFT, "[%s]", row->domain);
	if (row->leak[0] != '\0')
		(void)PUT_TEXT(canvas, at, column + 1, TOP_ALARM, "(%s)", row->leak);
}

static void
draw_row(const struct top_sample *sample, const struct top_row *row, unsigned at, struct top_canvas *canvas)
{
	bool is_wide = canvas->columns >= WIDE_COLUMNS;

	const char *figure = TEXT(2 * UNITS_TEXT_BYTES, "%s%s", row->is_estimated ? "≈" : "", UNITS_BYTES(row->live_bytes));
	unsigned column = PUT_TEXT(canvas, at, 0, TOP_PLAIN, "%*s",
	                           (int)(FIGURE_COLUMNS + strlen(figure) - text_columns(figure, strlen(figure))), figure);
	if (is_wide) {
		column = PUT_TEXT(canvas, at, column, TOP_PLAIN, " %5s",
		                  UNITS_SHARE((uint32_t)verdict_share(row->held_bytes, sample->held_bytes)));
		if (sample->has_growth)
			column = PUT_TEXT(canvas, at, column, row->has_growth && row->growth_bytes > 0 ? TOP_BOLD : TOP_PLAIN,
			                  " %10s", row->has_growth ? signed_bytes(row->growth_bytes, UNITS_ROOM) : "");
		if (sample->has_rate)
			column = PUT_TEXT(canvas, at, column, TOP_PLAIN, " %9s", row->has_rate ? UNITS_BYTES(row->rate_bytes) : "");
	}
	put_place(row, at, column + 2, canvas);
}

/* Of what is not known there is no column: a first sample has neither growth nor rates. */
static void
draw_heading(const struct top_sample *sample, struct top_canvas *canvas)
{
	bool is_wide = canvas->columns >= WIDE_COLUMNS;
	unsigned column = PUT_TEXT(canvas, 4, 0, TOP_BOLD, is_wide ? "%10s share" : "%10s", "live");

	if (is_wide && sample->has_growth)
		column = PUT_TEXT(canvas, 4, column, TOP_BOLD, " %10s",
		                  TEXT(UNITS_TEXT_BYTES + 1, "+%s", span(sample->growth_seconds, UNITS_ROOM)));
	if (is_wide && sample->has_rate)
		column = PUT_TEXT(canvas, 4, column, TOP_BOLD, " %9s", "rate/s");
	(void)put(canvas, 4, column, TOP_BOLD, "  allocated at");
}

static void
draw_rows(const struct top_sample *sample, struct top_state *state, struct top_canvas *canvas)
{
	unsigned room = canvas->rows > HEAD_ROWS + 1 ? canvas->rows - HEAD_ROWS - 1 : 0;

	if (state->chosen >= sample->row_count)
		state->chosen = sample->row_count != 0 ? sample->row_count - 1 : 0;
	if (state->chosen < state->first)
		state->first = state->chosen;
	if (room != 0 && state->chosen >= state->first + room)
		state->first = state->chosen - room + 1;
	draw_heading(sample, canvas);
	for (unsigned i = 0; i < room && state->first + i < sample->row_count; i++) {
		draw_row(sample, &sample->rows[state->first + i], HEAD_ROWS + i, canvas);
		if (state->first + i == state->chosen && state->message != NULL)
			restyle(canvas, HEAD_ROWS + i, TOP_CHOSEN);
	}
	if (sample->row_count == 0)
		(void)put(canvas, HEAD_ROWS, 2, TOP_SOFT, "nothing is held here");
}

/* ---- one line: its stack, and its source ---- */

/* Rows are counted from `scrolled` on; the canvas cuts. */
struct page {
	struct top_canvas *canvas;
	size_t row;
	size_t scrolled;
};

static void
page_put(struct page *page, enum top_style style, char *text)
{
	size_t row = page->row++;

	if (row < page->scrolled || row - page->scrolled + HEAD_ROWS + 1 >= page->canvas->rows)
		return;
	(void)text_clean(text, strlen(text));
	(void)put(page->canvas, (unsigned)(row - page->scrolled) + HEAD_ROWS, 0, style, text);
}
#define PAGE_PUT(page, style, ...) page_put(page, style, TEXT(TEXT_BYTES, __VA_ARGS__))

static void
put_source(struct page *page, const struct top_sample *sample, const struct top_row *row)
{
	struct report_line line = report_line_figures(sample->report, row->line);
	struct report_source source;
	uint32_t at = line.where.line;

	if (!report_line_source(sample->report, row->line, &source))
		return;
	PAGE_PUT(page, TOP_BOLD, "Source: %s", source.file);
	for (uint32_t i = at > SOURCE_AROUND ? at - SOURCE_AROUND : 1; i <= at + SOURCE_AROUND; i++) {
		if (i <= source.text.line_count)
			PAGE_PUT(page, i == at ? TOP_BOLD : TOP_PLAIN, "%c%5" PRIu32 "  %*s%s", i == at ? '>' : ' ', i,
			         (int)(source.text.indents[i - 1] < 200 ? source.text.indents[i - 1] : 200), "",
			         source.text.lines[i - 1]);
	}
}

/* How many they are. */
static size_t
put_frames(struct page *page, const struct report_line *line, bool is_python)
{
	char place[PLACE_TEXT_BYTES];
	size_t before = page->row;

	for (uint32_t i = 0; i < line->largest.of.frame_count; i++) {
		struct report_frame frame = report_frame(&line->largest, i);
		const struct model_frame *of = &frame.of;

		if ((of->kind == MODEL_FRAME_PYTHON) != is_python)
			continue;
		(void)verdict_frame_text(of, place);
		PAGE_PUT(page, of->is_user ? TOP_PLAIN : TOP_SOFT, "  %s",
		         place_related(model_relation_name(frame.relation), place));
	}
	return page->row - before;
}

/* Those of Python stand first: the native ones below them may fill the screen. */
static void
put_stack(struct page *page, const struct top_sample *sample, const struct top_row *row, enum top_kind kind)
{
	struct report_line line = report_line(sample->report, row->line);
	size_t count = 0;

	PAGE_PUT(page, TOP_BOLD,
	         "Stack of its largest call site, %s live, innermost first:", UNITS_BYTES(line.largest.of.live_bytes));
	if (kind != TOP_NATIVE)
		count = put_frames(page, &line, true);
	if (kind == TOP_ALL && count != 0 && count < line.largest.of.frame_count)
		PAGE_PUT(page, TOP_BOLD, "Its native frames:");
	if (kind != TOP_PYTHON)
		(void)put_frames(page, &line, false);
	if (line.largest.of.frame_count == 0)
		PAGE_PUT(page, TOP_SOFT, "  it is not known");
}

static void
draw_open(const struct top_sample *sample, struct top_state *state, struct top_canvas *canvas)
{
	struct page page = { .canvas = canvas, .scrolled = state->scrolled };

	if (state->chosen >= sample->row_count) {
		(void)put(canvas, HEAD_ROWS, 2, TOP_SOFT, "nothing is held here");
		return;
	}

	const struct top_row *row = &sample->rows[state->chosen];

	(void)put(canvas, 4, 0, TOP_BOLD, row->place);
	PAGE_PUT(&page, TOP_PLAIN, "%s live, %s allocated in all%s%s", UNITS_BYTES(row->live_bytes),
	         UNITS_BYTES(row->allocated_bytes), row->domain[0] != '\0' ? ", domain " : "", row->domain);
	if (row->line == SIZE_MAX) {
		PAGE_PUT(&page, TOP_SOFT, "many call sites: kmemshim report lists them by module");
		return;
	}
	put_source(&page, sample, row);
	put_stack(&page, sample, row, state->wish.kind);
	if (state->scrolled != 0 && state->scrolled >= page.row)
		state->scrolled = page.row - 1;
}

void
top_view_draw(const struct top_sample *sample, struct top_state *state, struct top_canvas *canvas)
{
	draw_title(sample, state, canvas);
	draw_use(sample, canvas);
	draw_sums(sample, canvas);
	draw_wish(sample, state, canvas);
	if (state->is_open)
		draw_open(sample, state, canvas);
	else
		draw_rows(sample, state, canvas);
	if (state->message != NULL && canvas->rows > HEAD_ROWS + 1) {
		(void)put(canvas, canvas->rows - 1, 0, TOP_SOFT, state->message);
		restyle(canvas, canvas->rows - 1, TOP_SOFT);
	}
}
