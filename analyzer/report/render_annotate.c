/*
 * render_annotate.c - a source file, and beside each line what it held.
 *
 * Figures of a line are those of the lines of code of the report, all domains of the host's memory together. What a line's calls held
 * is counted in the lines that these reached; `through` says how much that was at the peak.
 *
 * When failing  one line: no file of that name allocated anything, or several did.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/amount.h"
#include "base/document.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/place.h"
#include "base/units.h"
#include "base/text_start.h"
#include "report/render.h"
#include "report/report.h"
#include "verdict/findings.h"

#define NAMES_SHOWN 4 // of files, in a message
#define GAP_LINES 12  // a stretch of more lines without a figure is left out
#define CONTEXT_LINES 3
#define INDENT_MOST 100

/* ---- which file ---- */

struct file {
	const char *name;
	bool is_user;
	uint64_t bytes; // at its lines, at the peak
	size_t site;    // whose frame is in it
	uint32_t frame;
	UT_hash_handle hh;
};

static struct file *
file_of(struct file **files, const char *name)
{
	struct file *found;

	HASH_FIND_STR(*files, name, found);
	if (found == NULL) {
		found = memory_zeroed(1, sizeof(*found));
		found->name = name;
		found->site = SIZE_MAX;
		HASH_ADD_KEYPTR(hh, *files, name, strlen(name), found);
	}
	return found;
}

/* The module that lies here no more as it was recorded and held most at the peak; NULL = there is none. */
static const struct model_frame *
find_absent(const struct report *report)
{
	const struct model_frame *absent = NULL;
	uint64_t most = 0;

	for (size_t i = 0; i < report->site_total; i++) {
		struct report_site site = report_site(report, i);

		if (site.of.where != NULL && site.of.where->absence != NULL && site.of.peak_bytes >= most) {
			absent = site.of.where;
			most = site.of.peak_bytes;
		}
	}
	return absent;
}

/* Every file of every stack. Neighbouring frames mostly are in the same one. */
static struct file *
list_files(const struct report *report)
{
	struct file *files = NULL;

	for (size_t i = 0; i < report->site_total; i++) {
		struct report_site site = report_site(report, i);
		struct file *file = NULL;

		for (uint32_t n = 0; n < site.of.frame_count; n++) {
			const struct model_frame *frame = site.of.frames[n];

			if (frame->file[0] == '\0')
				continue;
			if (file == NULL || file->name != frame->file)
				file = file_of(&files, frame->file);
			file->is_user = file->is_user || frame->is_user;
			if (frame == site.of.where && report_sums_up(report, site.of.domain))
				file->bytes += site.of.peak_bytes;
			if (file->site == SIZE_MAX || frame == site.of.where) { // its own line says best whether that file ran
				file->site = i;
				file->frame = n;
			}
		}
	}
	return files;
}

static bool
ends_with_path(const char *path, const char *end)
{
	size_t length = strlen(path);
	size_t end_length = strlen(end);

	return end_length != 0 && text_ends(path, end) && (length == end_length || path[length - end_length - 1] == '/');
}

/* The argument, read in each way that it allows; the first reading that fits a file counts. */
struct wanted {
	const char *as_given;
	char real[PATH_MAX];            // without symbolic links; "" = there is no such file here
	char modules[2][PATH_MAX + 16]; // "pkg/sub.py", "pkg/sub/__init__.py" of "pkg.sub"
	char cell[64];                  // "cell In[3]" of "In[3]"
};

enum { MATCH_EXACT, MATCH_END, MATCH_MODULE, MATCHES };

static void
make_wanted(const char *name, struct wanted *wanted)
{
	*wanted = (struct wanted){ .as_given = name };
	if (realpath(name, wanted->real) == NULL)
		wanted->real[0] = '\0';
	(void)snprintf(wanted->cell, sizeof(wanted->cell), "cell %.50s", name);
	char *module = TEXT(PATH_MAX, "%s", name);
	if (strchr(name, '/') != NULL)
		return;
	for (char *at = module; *at != '\0'; at++)
		*at = *at == '.' ? '/' : *at;
	(void)snprintf(wanted->modules[0], sizeof(wanted->modules[0]), "%s.py", module);
	(void)snprintf(wanted->modules[1], sizeof(wanted->modules[1]), "%s/__init__.py", module);
}

static int
match_of(const struct wanted *wanted, const char *file)
{
	if (strcmp(file, wanted->as_given) == 0 || strcmp(file, wanted->cell) == 0 ||
	    (wanted->real[0] != '\0' && strcmp(file, wanted->real) == 0))
		return MATCH_EXACT;
	if (ends_with_path(file, wanted->as_given))
		return MATCH_END;
	if (ends_with_path(file, wanted->modules[0]) || ends_with_path(file, wanted->modules[1]))
		return MATCH_MODULE;
	return MATCHES;
}

/* Files that exist only as names come last. */
static bool
is_pseudo(const struct file *file)
{
	return file->name[0] == '<';
}

ORDER_OF_POINTERS(compare_files, struct file,
	order_numbers(is_pseudo(a), is_pseudo(b)) ?: order_numbers(b->is_user, a->is_user)
	?: order_numbers(b->bytes, a->bytes) ?: strcmp(a->name, b->name))

/* "a.py, b/c.py and 3 more": the user's first, then those that held most. */
static void
name_files(const struct file *const *files, size_t count, bool is_whole, char text[640])
{
	text[0] = '\0';
	for (size_t i = 0; i < count && i < NAMES_SHOWN; i++) {
		const char *name = is_whole ? files[i]->name : place_short(files[i]->name);
		size_t length = strlen(name);

		memory_text_add(text, 640, "%s%s%s", i != 0 ? ", " : "", length > 120 ? "..." : "",
		                length > 120 ? name + length - 117 : name);
	}
	if (count > NAMES_SHOWN)
		memory_text_add(text, 640, " and %zu more", count - NAMES_SHOWN);
}

/* NULL and *fail: no file fits, or several do. The only one of several that is the user's own is taken. */
static const struct file *
choose_file(const struct report *report, struct file *files, const char *name, FILE *notes, struct fail *fail)
{
	OWNED const struct file **fits = memory_zeroed(HASH_COUNT(files), sizeof(*fits));
	const struct model_frame *absent = find_absent(report);
	struct wanted wanted;
	char names[640];
	size_t count = 0;
	int best = MATCHES;

	make_wanted(name, &wanted);
	for (const struct file *file = files; file != NULL; file = file->hh.next) {
		int match = match_of(&wanted, file->name);

		count = match < best ? 0 : count;
		best = match < best ? match : best;
		if (match == best)
			fits[count++] = file;
	}
	SORT(fits, count, compare_files);
	name_files(fits, count, best != MATCHES, names);
	if (best == MATCHES && absent != NULL) {
		(void)fail_set(
			fail, EXIT_USAGE,
			"annotate: %.200s: no stack names it, and %.200s %s: report where it was recorded, or give the old "
			"files with --sysroot",
			name, absent->module_path, absent->absence);
	} else if (best == MATCHES) {
		(void)fail_set(fail, EXIT_USAGE, "annotate: %.200s: nothing was allocated there; %s%s", name,
		               count != 0 ? "there are " : "no stack names a file", names);
	} else if (count == 1 || (fits[0]->is_user && !fits[1]->is_user)) {
		if (count > 1)
			(void)fprintf(notes,
			              "kmemshim: %zu files of libraries are called so, too: give more of the path to see one\n",
			              count - 1);
		return fits[0];
	} else {
		(void)fail_set(fail, EXIT_USAGE, "annotate: %.200s: %zu files are called so: %s: give more of the path", name,
		               count, names);
	}
	return NULL;
}

/* ---- its lines ---- */

struct annotated {
	uint32_t line;
	uint64_t peak_bytes;
	uint64_t live_bytes;
	uint64_t allocated_bytes;
	uint64_t untouched_bytes;      // of live_bytes, not in memory
	uint64_t peak_untouched_bytes; // of peak_bytes
	uint64_t through_bytes;        // at the peak, of stacks that pass here and end elsewhere
	const char *growth;            // its class; NULL = it allocated nothing itself
	enum model_leak_class leak;
	uint64_t error_bytes;      // of live_bytes, and of peak_bytes: how far estimates may be off
	uint64_t peak_error_bytes; //
	uint64_t estimated_bytes;  // of allocated_bytes
	bool is_estimated;         // has a part that is
	const char *function;
	size_t last_site; // the last one that was counted in through_bytes, from 1
	UT_hash_handle hh;
};

struct annotation {
	struct annotated *lines; // uthash
	struct annotated sum;    // of no class
	bool has_devices;        // left out of all figures
};

static struct annotated *
line_of(struct annotation *all, uint32_t line, const char *function)
{
	struct annotated *found;

	if (HASH_MADE(all->lines, line, line, found))
		found->function = function;
	return found;
}

static void
add_figures(struct annotated *to, const struct report_line *line)
{
	to->peak_bytes += line->of.peak_bytes;
	to->live_bytes += line->of.live_bytes;
	to->untouched_bytes += line->of.untouched_bytes;
	to->peak_untouched_bytes += line->of.peak_untouched_bytes;
	to->allocated_bytes += line->of.allocated_bytes;
	to->error_bytes += line->estimate.error_bytes;
	to->peak_error_bytes += line->estimate.peak_error_bytes;
	to->estimated_bytes += line->estimate.is_estimated ? line->of.allocated_bytes : 0;
	to->is_estimated = to->is_estimated || (line->estimate.is_estimated && line->of.allocated_bytes != 0);
}

static void
add_growth(struct annotated *to, const struct report_line *line)
{
	if (to->growth == NULL || model_leak_is_more_telling(line->of.leak, to->leak)) {
		to->leak = line->of.leak;
		to->growth = line->may_be_built_once ? "leak?" : model_leak_name(line->of.leak);
	}
}

static void
add_own(struct annotation *all, const struct report *report, const char *file)
{
	for (size_t i = 0; i < report->line_total; i++) {
		struct report_line line = report_line_figures(report, i);

		if (strcmp(line.where.file, file) != 0 || line.is_address_space)
			continue;
		if (!report_sums_up(report, line.of.domain)) {
			all->has_devices = all->has_devices || report->domain == NULL;
			continue;
		}

		struct annotated *to = line_of(all, line.where.line, line.where.function);

		add_figures(to, &line);
		add_growth(to, &line);
		add_figures(&all->sum, &line);
	}
}

/* A line that calls itself counts once. */
static void
add_once(struct annotated *to, size_t site, uint64_t bytes)
{
	if (to->last_site == site + 1)
		return;
	to->last_site = site + 1;
	to->through_bytes += bytes;
}

static void
add_through(struct annotation *all, const struct report *report, const char *file)
{
	for (size_t i = 0; i < report->site_total; i++) {
		struct report_site site = report_site(report, i);

		uint64_t peak_bytes = amount_less(site.of.peak_bytes, site.of.untouched_bytes);

		if (peak_bytes == 0 || !report_sums_up(report, site.of.domain))
			continue;
		for (uint32_t n = 0; n < site.of.frame_count; n++) {
			const struct model_frame *frame = site.of.frames[n];

			if (order_texts(frame->file, file) != 0 || (site.of.where != NULL && frame->line == site.of.where->line &&
			                                            order_texts(site.of.where->file, file) == 0))
				continue;
			add_once(line_of(all, frame->line, frame->function), i, peak_bytes);
			if (site.of.where == NULL || order_texts(site.of.where->file, file) != 0)
				add_once(&all->sum, i, peak_bytes);
		}
	}
}

ORDER_OF_POINTERS(compare_lines, struct annotated, order_numbers(a->line, b->line))

static const struct annotated **
sorted_lines(const struct annotation *all, size_t *count)
{
	const struct annotated **sorted = memory_zeroed(HASH_COUNT(all->lines), sizeof(struct annotated *));

	*count = 0;
	for (const struct annotated *line = all->lines; line != NULL; line = line->hh.next)
		sorted[(*count)++] = line;
	SORT(sorted, *count, compare_lines);
	return sorted;
}

/* ---- text ---- */

/* unsure_bytes: how far it may be off, or the part of it that is an estimate. */
static const char *
figure_text(uint64_t bytes, bool is_shown, uint64_t unsure_bytes, char text[UNITS_TEXT_BYTES])
{
	return is_shown ? units_bytes_of(bytes, unsure_bytes > bytes / CLEAR_PART, text) : "";
}

/* line: NULL = it held nothing. */
static void
add_line(const struct annotated *line, const char *number, const char *text, struct document *document)
{
	static const struct annotated nothing;
	const struct annotated *shown = line != NULL ? line : &nothing;
	bool has_own = shown->growth != NULL;

	DOCUMENT_ROW(document, figure_text(shown->peak_bytes, has_own, shown->peak_error_bytes, UNITS_ROOM),
	             figure_text(shown->live_bytes, has_own, shown->error_bytes, UNITS_ROOM),
	             figure_text(shown->allocated_bytes, has_own, shown->estimated_bytes, UNITS_ROOM),
	             has_own ? shown->growth : "",
	             figure_text(shown->through_bytes, shown->through_bytes != 0, 0, UNITS_ROOM), number, text);
	(void)render_in_memory(shown->untouched_bytes, shown->live_bytes, document);
}

#define NUMBER(line) TEXT(16, "%" PRIu32, line)

/* How many lines from here on have no figure near them, up to the end of the file. */
static uint32_t
gap_at(const struct annotated *const *lines, size_t next, size_t count, uint32_t number, uint32_t line_count)
{
	uint32_t held = next < count && lines[next]->line <= line_count ? lines[next]->line
	                                                                : line_count + 1 + CONTEXT_LINES;
	uint32_t end = held > CONTEXT_LINES ? held - CONTEXT_LINES : 0;

	if (next > 0 && number <= lines[next - 1]->line + CONTEXT_LINES)
		return 0;
	return end > number && end - number > GAP_LINES ? end - number : 0;
}

static void
add_text(const struct annotated *const *lines, size_t count, const struct source_text *text, bool has_all,
         struct document *document)
{
	size_t next = 0;

	while (next < count && lines[next]->line == 0)
		add_line(lines[next++], "0", "(line not known)", document);
	for (uint32_t number = 1; number <= text->line_count; number++) {
		bool is_held = next < count && lines[next]->line == number;
		uint32_t gap = has_all || is_held ? 0 : gap_at(lines, next, count, number, text->line_count);
		int indent = text->indents[number - 1] < INDENT_MOST ? text->indents[number - 1] : INDENT_MOST;
		OWNED char *line = memory_printed("%*s%s", indent, "", text->lines[number - 1]);

		if (gap != 0) {
			add_line(NULL, "...", TEXT(64, "(%" PRIu32 " lines without memory)", gap), document);
			number += gap - 1;
			continue;
		}
		add_line(is_held ? lines[next] : NULL, NUMBER(number),
		         line + strspn(line, " ") * (text->lines[number - 1][0] == '\0'), document);
		next += is_held;
	}
	for (; next < count; next++)
		add_line(lines[next], NUMBER(lines[next]->line), "(behind the end of the file)", document);
}

static void
add_heading(const struct report *report, const struct annotation *all, const char *file, enum source_state state,
            struct document *document)
{
	static const char *const states[] = {
		[SOURCE_CHANGED] = "The file was changed after the program started: the texts of its lines are not shown.",
		[SOURCE_GONE] = "The file is gone: the texts of its lines are not shown.",
		[SOURCE_UNKNOWN] = "The texts of its lines are not shown: nobody knows whether the file here is the one that "
						   "ran (another machine, a restart, another owner).",
	};
	static const struct document_column columns[] = {
		{ "peak", 9, 0 },     { "live", 10, 0 }, { "allocated", 10, 0 }, { "class", -7, 0 },
		{ "through", 11, 0 }, { "line", 6, 0 },  { "", -1, 0 },          { .title = NULL },
	};
	uint64_t whole_bytes = 0;

	for (size_t i = 0; i < report->site_total; i++) {
		struct report_site site = report_site(report, i);

		whole_bytes += report_sums_up(report, site.of.domain) ? amount_less(site.of.peak_bytes, site.of.untouched_bytes)
		                                                      : 0;
	}
	uint64_t held_bytes = all->sum.peak_bytes - all->sum.peak_untouched_bytes;
	const char *share = TEXT(128, ": %s of what %s held at the peak",
	                         UNITS_SHARE(verdict_share(held_bytes, whole_bytes)), render_what(report));

	document_add(document, DOCUMENT_LINE, NULL, "%s", file);
	if (state != SOURCE_KNOWN)
		document_add(document, DOCUMENT_LINE, NULL, "%s", states[state]);
	document_table(document, NULL, columns);
	add_line(&all->sum, "", TEXT(160, "all lines of this file%s", held_bytes != 0 ? share : ""), document);
	render_peaks_apart(report, held_bytes != 0 ? whole_bytes : 0, document);
}

static void
add_remarks(const struct annotation *all, struct document *document)
{
	bool has_through = false;

	for (const struct annotated *line = all->lines; line != NULL; line = line->hh.next)
		has_through = has_through || line->through_bytes != 0;
	if (has_through)
		document_add(
			document, DOCUMENT_LINE, NULL,
			"through: held at the peak by what the line called; counted in the lines that these calls reached");
	if (all->sum.is_estimated)
		document_add(document, DOCUMENT_LINE, NULL, "≈ estimated from a sample; see docs/report.md");
	render_left_devices(all->has_devices, document);
}

bool
render_annotate(const struct report *report, const struct annotate_options *options, struct document *document,
                FILE *notes, struct fail *fail)
{
	struct annotation all = { .sum = { .growth = "-" } };
	struct file *files = list_files(report);
	const struct file *file = choose_file(report, files, options->file, notes, fail);
	struct source_text text = { .line_count = 0 };
	size_t count;

	if (file == NULL) {
		HASH_FREE(files, free);
		return false;
	}

	struct report_site site = report_site(report, file->site);
	enum source_state state = report_frame_source(report, &site, file->frame, &text);

	add_own(&all, report, file->name);
	add_through(&all, report, file->name);

	OWNED const struct annotated **lines = sorted_lines(&all, &count);

	add_heading(report, &all, file->name, state, document);
	if (state == SOURCE_KNOWN)
		add_text(lines, count, &text, options->has_all, document);
	for (size_t i = 0; i < count && state != SOURCE_KNOWN; i++) // its functions, and what each line held
		add_line(lines[i], NUMBER(lines[i]->line), lines[i]->function, document);
	add_remarks(&all, document);
	HASH_FREE(all.lines, free);
	HASH_FREE(files, free);
	return true;
}
