/*
 * render_table.c - lines of code and their stacks, as a table for a person.
 *
 * 100 columns, no colours, figures right-aligned with their units, the line of code last so that it may be long. The
 * first row is what to look at. What imports left behind is one row at the end.
 *
 * Called by   cmd_*.c.
 * When failing  errors stay in the stream. All texts are cleaned of control characters here.
 */
#include <string.h>

#include "place.h"
#include "render.h"
#include "report.h"
#include "text_clean.h"
#include "units.h"

#define PAGE_COLUMNS 100
#define STACK_INDENT 20        // left of the line's own column: paths are long
#define STACK_FRAMES 4         // under a line
#define STACK_FRAMES_NATIVE 32 // the same with --native
#define IMPORTS_NAMED 2
#define TRIFLE_PART 1000       // lines with less than a thousandth of their domain are summed up, the first excepted

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
	return place_text(place->file, place->line, place->function, place->module, text);
}

/* The file as far as it helps: from the package on, or the folder and the name. */
static const char *
short_path(const char *file)
{
	static const char *const roots[] = { "/site-packages/", "/dist-packages/" };
	const char *slash = strrchr(file, '/');

	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		const char *found = strstr(file, roots[i]);

		if (found != NULL)
			return found + strlen(roots[i]);
	}
	return slash != NULL ? slash + 1 : file;
}

/* --- stacks under a line --------------------------------------------------------------------------------------- */

/* What every native stack ends in. */
static bool
is_start_up(const char *function)
{
	static const char *const names[] = { "_start", "start_thread", "clone", "clone3", "__clone", "__clone3" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(function, names[i]) == 0)
			return true;
	}
	return strncmp(function, "__libc_start_", 13) == 0;
}

static bool
is_shown(const struct report_frame *frame, bool has_python, bool is_native)
{
	if (is_native || strcmp(frame->kind, "python") == 0)
		return true;
	return !has_python && frame->function[0] != '\0' && !is_start_up(frame->function);
}

static bool
is_place(const struct report_frame *frame, const struct report_place *where)
{
	return frame->line == where->line && strcmp(frame->file, where->file) == 0 &&
	       strcmp(frame->function, where->function) == 0;
}

static void
put_frame(FILE *stream, const struct report_frame *frame, size_t indent, const char *relation)
{
	size_t room = PAGE_COLUMNS - 5 - indent;
	char text[1024];

	if (strcmp(frame->kind, "native") == 0 && frame->file[0] == '\0')
		(void)snprintf(text, sizeof(text), "%s (%s)", frame->function[0] != '\0' ? frame->function : "?",
		               frame->module);
	else if (frame->line != 0)
		(void)snprintf(text, sizeof(text), "%s:%u %s", short_path(frame->file), (unsigned)frame->line,
		               frame->function);
	else
		(void)snprintf(text, sizeof(text), "%s %s", short_path(frame->file), frame->function);
	if (strlen(text) > room)
		(void)snprintf(text + room - 3, sizeof(text) - room, "...");
	(void)text_clean(text, strlen(text));
	(void)fprintf(stream, "%*s%-5s%s\n", (int)indent, "", relation, text);
}

/*
 * What the line called, and who called it: "via" the frame directly inside, "from" the callers outward. Only Python
 * frames, unless there are none or the native ones are wanted, in which case everything is shown in order.
 */
static void
put_stack(FILE *stream, const struct report_line *line, const struct render_options *options, size_t indent)
{
	const struct report_site *site = &line->largest;
	unsigned most = options->is_native ? STACK_FRAMES_NATIVE : STACK_FRAMES;
	unsigned shown = 0;
	unsigned left_out = 0;
	bool has_python = false;
	bool is_past = !line->where.is_known;
	struct report_frame inside = { .kind = NULL };

	for (uint32_t i = 0; i < site->frame_count && !has_python; i++)
		has_python = strcmp(report_frame(site, i).kind, "python") == 0;
	for (uint32_t i = 0; i < site->frame_count; i++) {
		struct report_frame frame = report_frame(site, i);

		if (site->frames_omitted != 0 && i == site->frames_before_gap)
			(void)fprintf(stream, "%*s...  %u frames left out\n", (int)indent, "", (unsigned)site->frames_omitted);
		if (!is_shown(&frame, has_python, options->is_native))
			continue;
		if (!is_past && is_place(&frame, &line->where)) {
			is_past = true;
			if (inside.kind != NULL && !options->is_native) {
				put_frame(stream, &inside, indent, "via");
				shown++;
			}
			if (!options->is_native)
				continue;
		}
		inside = frame;
		if (!is_past && !options->is_native)
			continue;
		if (shown < most) {
			put_frame(stream, &frame, indent, options->is_native ? "" : "from");
			shown++;
		} else {
			left_out++;
		}
	}
	if (left_out != 0)
		(void)fprintf(stream, "%*s...  %u more\n", (int)indent, "", left_out);
	if (site->lost[0] != '\0')
		(void)fprintf(stream, "%*s(%s)\n", (int)indent, "",
		              strcmp(site->lost, "no-room") == 0    ? "no room was left for its stack"
		              : strcmp(site->lost, "no-stack") == 0 ? "its stack could not be taken"
		                                                    : "its stack was not finished");
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

static const char *
text_peak_share(const struct report_line *line, char text[UNITS_TEXT_BYTES])
{
	return units_share(share_ppm(line->peak_bytes, line->domain_bytes), text);
}

static const char *
text_live(const struct report_line *line, char text[UNITS_TEXT_BYTES])
{
	return units_bytes(line->live_bytes, text);
}

static const char *
text_live_share(const struct report_line *line, char text[UNITS_TEXT_BYTES])
{
	return units_share(share_ppm(line->live_bytes, line->domain_bytes), text);
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
	return line->leak.class_name;
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

struct table {
	const char *ranking;
	const char *nothing; // said when no row has anything to show
	uint64_t (*shown)(const struct report_line *line);
	struct column columns[7];
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
	    { "share", 7, text_peak_share },
	    { "live", 10, text_live },
	    { "blocks", 10, text_blocks },
	    { " domain", -9, text_domain } } },
	{ "leaks",
	  "nothing is live",
	  shown_live,
	  { { "live", 9, text_live },
	    { "share", 7, text_live_share },
	    { "blocks", 10, text_blocks },
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

static void
put_heading(FILE *stream, const char *heading, const struct table *table)
{
	(void)fprintf(stream, "%s\n", heading);
	for (size_t i = 0; i < 7 && table->columns[i].title != NULL; i++) {
		(void)fprintf(stream, "%*s", table->columns[i].width, table->columns[i].title);
	}
	(void)fputs("  allocated at\n", stream);
}

static void
put_row(FILE *stream, const struct table *table, const struct report_line *line)
{
	char text[UNITS_TEXT_BYTES];
	char place[PLACE_TEXT_BYTES];

	for (size_t i = 0; i < 7 && table->columns[i].title != NULL; i++) {
		int width = table->columns[i].width;
		const char *cell = table->columns[i].text(line, text);

		if (width < 0)
			(void)fprintf(stream, " %*s", width + 1, cell);
		else
			(void)fprintf(stream, "%*s", width, cell);
	}
	(void)fprintf(stream, "  %s\n", place_words(&line->where, place));
}

/* What imports left behind, in one row: it is nobody's doing and often outweighs the culprit. */
static void
put_imports(FILE *stream, const struct report *report, const struct table *table)
{
	char bytes[UNITS_TEXT_BYTES];
	char place[PLACE_TEXT_BYTES];
	uint64_t total = 0;
	size_t lines = 0;

	for (size_t i = 0; i < report->line_total; i++) {
		struct report_line line = report_line(report, i);

		if (line.is_import) {
			total += table->shown(&line);
			lines++;
		}
	}
	if (total == 0 || table->shown == shown_any)
		return;
	(void)fprintf(stream, "%9s  left by imports:", units_bytes(total, bytes));
	for (size_t i = 0, named = 0; i < report->line_total && named < IMPORTS_NAMED; i++) {
		struct report_line line = report_line(report, i);

		if (!line.is_import || table->shown(&line) == 0)
			continue;
		(void)fprintf(stream, "%s %s %s", named++ != 0 ? "," : "", place_words(&line.where, place),
		              units_bytes(table->shown(&line), bytes));
	}
	(void)fprintf(stream, "%s\n", lines > IMPORTS_NAMED ? ", ..." : "");
}

static bool
is_in_scope(const struct report_line *line, const struct render_options *options)
{
	return options->scope == RENDER_ALL || line->is_device == (options->scope == RENDER_DEVICES);
}

/* Too little of its domain to be worth a row. */
static bool
is_trifle(const struct table *table, const struct report_line *line)
{
	return table->shown != shown_any && table->shown(line) < line->domain_bytes / TRIFLE_PART;
}

void
render_text_lines(const struct report *report, const struct render_options *options, FILE *stream)
{
	const struct table *table = tables;
	char text[UNITS_TEXT_BYTES];
	uint64_t hidden_bytes = 0;
	size_t shown = 0;
	size_t hidden = 0;

	while (strcmp(table->ranking, report->ranking) != 0)
		table++;
	put_heading(stream, options->heading != NULL ? options->heading : report->heading, table);
	for (size_t i = 0; i < report->line_total; i++) {
		struct report_line line = report_line(report, i);

		if (!is_in_scope(&line, options) || table->shown(&line) == 0 || (line.is_import && table->shown != shown_any))
			continue;
		if (shown >= report->line_count || (shown != 0 && is_trifle(table, &line))) {
			hidden++;
			hidden_bytes += table->shown == shown_peak ? line.peak_bytes : line.live_bytes;
			continue;
		}
		put_row(stream, table, &line);
		put_stack(stream, &line, options, STACK_INDENT);
		shown++;
	}
	if (shown == 0)
		(void)fprintf(stream, "%9s  %s\n", "", table->nothing);
	if (hidden != 0)
		(void)fprintf(stream, "%9s  %s in %zu more line%s\n", units_bytes(hidden_bytes, text),
		              table->shown == shown_peak ? "held then" : "live", hidden, hidden == 1 ? "" : "s");
	if (options->scope != RENDER_DEVICES)
		put_imports(stream, report, table);
}
