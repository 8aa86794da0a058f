/*
 * render_stack.c - who called the line of a row, under that row.
 *
 * A row is the sum of its sites. When they were called from several places, those places are listed with their shares;
 * else the stack of the largest site stands for all.
 *
 * When failing  errors stay in the stream. All texts are cleaned of control characters here.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/items.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/place.h"
#include "base/text_clean.h"
#include "base/units.h"
#include "base/text_start.h"
#include "model/frame_rules.h"
#include "report/render.h"
#include "report/report.h"

#define PAGE_COLUMNS 100
#define INDENT 20              // left of the line's own column: paths are long
#define STACK_FRAMES 4         // under a line
#define STACK_FRAMES_NATIVE 32 // the same with --native
#define CALLERS_SHOWN 3
#define TOLD_FIFTHS 4   // of the objects of a line: where fewer are of the kinds that are told, there are others
#define CALLER_PART 100 // with less than a hundredth of the row a second caller does not count

/* Python frames of its own. */
static bool
has_python_frame(const struct report_site *site)
{
	for (uint32_t i = 0; i < site->of.frame_count; i++) {
		struct report_frame frame = report_frame(site, i);

		if (frame.of.kind == MODEL_FRAME_PYTHON && frame.relation[0] == '\0')
			return true;
	}
	return false;
}

/* `inner` is the frame that it called, if there is one. */
static bool
is_shown(const struct report_frame *frame, const struct report_frame *inner, bool has_python)
{
	if (frame->is_of_starter) // forty frames of a library do not tell more than the user's own
		return frame->of.is_user;
	if (frame->of.kind == MODEL_FRAME_PYTHON)
		return true;
	if (has_python || frame_rules_is_start_up(&frame->of, &inner->of))
		return false;
	// stripped: an address is better than nothing, in code of the user's
	return frame->of.function[0] != '\0' || (frame->of.is_user && frame->of.module[0] != '\0');
}

/* What every Python thread starts in: it says nothing of who wanted the memory. */
static bool
is_thread_start(const struct report_frame *frame)
{
	static const char *const files[] = { "/threading.py", "/concurrent/futures/thread.py" };

	return !frame->of.is_user && ANY(file, files, COUNT_OF(files), text_ends(frame->of.file, *file));
}

static bool
is_place(const struct report_frame *frame, const struct report_place *where)
{
	return frame->of.line == where->line && strcmp(frame->of.file, where->file) == 0 &&
	       strcmp(frame->of.function, where->function) == 0 && frame->offset == where->offset &&
	       (where->offset == 0 || strcmp(frame->of.module, where->module) == 0);
}

/* `after` follows the frame and is never cut. */
static void
put_frame(FILE *stream, const struct report_frame *frame, const char *relation, const char *after)
{
	const char *again = frame->of.is_repeated ? " (calls itself)" : "";
	size_t room = PAGE_COLUMNS - 5 - INDENT - strlen(after) - strlen(again);
	char text[1024];

	if (frame->of.kind == MODEL_FRAME_NATIVE && frame->of.file[0] == '\0' && frame->of.function[0] != '\0')
		(void)snprintf(text, sizeof(text), "%s (%s)", frame->of.function, frame->of.module);
	else if (frame->of.file[0] == '\0' || place_is_cell(frame->of.file))
		(void)place_text(frame->of.file, frame->of.line, frame->of.function, frame->of.module, frame->offset, text);
	else if (frame->of.line != 0)
		(void)snprintf(text, sizeof(text), "%s:%u %s", place_short(frame->of.file), (unsigned)frame->of.line,
		               frame->of.function);
	else
		(void)snprintf(text, sizeof(text), "%s %s", place_short(frame->of.file), frame->of.function);
	if (strlen(text) > room)
		(void)snprintf(text + room - 3, sizeof(text) - room, "...");
	(void)text_clean(text, strlen(text));
	(void)fprintf(stream, "%*s%-5s%s%s%s\n", INDENT, "", relation, text, again, after);
}

/* The column before a frame, outwards of the row's line. */
static const char *
relation_of(const struct report_frame *frame, bool is_native)
{
	if (frame->relation[0] != '\0')
		return frame->is_of_starter ? "by" : "while ";
	return is_native ? "" : "from";
}

void
render_text_source(const struct report_place *where, FILE *stream)
{
	const size_t room = PAGE_COLUMNS - 5 - INDENT;
	char text[256];

	if (where->is_source_changed)
		(void)fprintf(stream, "%*s     (%s was changed since the program started)\n", INDENT, "",
		              place_base(where->file));
	if (where->source[0] == '\0')
		return;
	(void)snprintf(text, sizeof(text), "%s", where->source);

	size_t length = strlen(text);

	if (length > room)
		(void)snprintf(text + room - 3, sizeof(text) - room, "...");
	(void)text_clean(text, strlen(text));
	(void)fprintf(stream, "%*s%-5s%s\n", INDENT, "", "line", text);
}

/* How much of a text fits in one row, up to its last blank there. */
static size_t
row_of(const char *text, size_t room)
{
	size_t length = strlen(text);

	if (length <= room)
		return length;
	length = room;
	while (length > 0 && text[length] != ' ')
		length--;
	return length != 0 ? length : strcspn(text, " "); // one word that is longer
}

void
render_text_holder(const struct holders_way *way, uint64_t samples, FILE *stream)
{
	OWNED char *text = model_way_sentence(way, samples);

	for (const char *at = text; at != NULL && *at != '\0';) {
		size_t length = row_of(at, PAGE_COLUMNS - 5 - INDENT);

		(void)fprintf(stream, "%*s%-5s%.*s\n", INDENT, "", at == text ? "held" : "", (int)length, at);
		at += length;
		at += strspn(at, " ");
	}
}

/* --- several callers ------------------------------------------------------------------------------------------- */

struct caller {
	struct report_frame frame;
	uint64_t bytes;
};

/* The user's own frame that called the row's line; where there is none, whoever called it. */
static bool
find_caller(const struct report_site *site, const struct report_place *where, struct report_frame *caller)
{
	bool has_python = has_python_frame(site);
	bool is_past = false;
	bool is_found = false;

	for (uint32_t i = 0; i < site->of.frame_count; i++) {
		struct report_frame frame = report_frame(site, i);
		struct report_frame inner = i > 0 ? report_frame(site, i - 1) : frame;

		if (is_place(&frame, where)) {
			is_past = true;
			continue;
		}
		if (!is_past || is_thread_start(&frame) || !is_shown(&frame, &inner, has_python) ||
		    (is_found && !frame.of.is_user))
			continue;
		*caller = frame;
		is_found = true;
		if (frame.of.is_user)
			break;
	}
	return is_found;
}

ORDER_OF(compare_by_place, struct caller,
	order_numbers(a->frame.of.line, b->frame.of.line) ?: order_texts(a->frame.of.file, b->frame.of.file)
	?: order_texts(a->frame.of.function, b->frame.of.function) ?: order_texts(a->frame.of.module, b->frame.of.module))

ORDER_OF(compare_by_bytes, struct caller, order_numbers(b->bytes, a->bytes) ?: compare_by_place(a, b))

/* What the table ranks by; when nothing is held, what was allocated in all. */
static uint64_t
figure_of(const struct report *report, const struct report_line *line, const struct report_site *site)
{
	if (strcmp(report->ranking, "peak") == 0)
		return site->of.peak_bytes;
	return line->of.live_bytes != 0 ? site->of.live_bytes : site->of.allocated_bytes;
}

/* The callers of the line's sites, the largest first; the caller frees them. */
static struct caller *
collect_callers(const struct report *report, const struct report_line *line, size_t *count, uint64_t *total)
{
	struct caller *callers = memory_zeroed(line->of.site_count, sizeof(*callers));
	size_t found = 0;

	*count = 0;
	*total = 0;
	for (size_t i = 0; i < line->of.site_count; i++) {
		struct report_site site = report_site(report, line->of.first_site + i);
		uint64_t bytes = figure_of(report, line, &site);

		*total += bytes;
		if (bytes == 0 || !find_caller(&site, &line->where, &callers[found].frame))
			continue;
		callers[found++].bytes = bytes;
	}
	if (found == 0)
		return callers;
	SORT(callers, found, compare_by_place);
	for (size_t i = 0; i < found; i++) {
		if (i != 0 && compare_by_place(&callers[*count - 1], &callers[i]) == 0)
			callers[*count - 1].bytes += callers[i].bytes;
		else
			callers[(*count)++] = callers[i];
	}
	SORT(callers, *count, compare_by_bytes);
	return callers;
}

/* False, and nothing written, when one caller stands for all. */
static bool
put_callers(FILE *stream, const struct report *report, const struct report_line *line)
{
	size_t count;
	uint64_t total;
	OWNED struct caller *callers = collect_callers(report, line, &count, &total);
	bool are_several = count > 1 && callers[1].bytes >= total / CALLER_PART;

	for (size_t i = 0; are_several && i < count && i < CALLERS_SHOWN; i++) {

		put_frame(stream, &callers[i].frame, relation_of(&callers[i].frame, false),
		          TEXT(UNITS_TEXT_BYTES + 2, "  %s",
		               UNITS_SHARE((uint32_t)((double)callers[i].bytes / (double)total * 1e6))));
	}
	if (are_several && count > CALLERS_SHOWN)
		(void)fprintf(stream, "%*sand %s more\n", INDENT, "", UNITS_COUNT(count - CALLERS_SHOWN));
	return are_several;
}

/* Does the user's own code stand outside of the row's line? */
static bool
has_user_callers(const struct report_site *site, const struct report_place *where)
{
	for (uint32_t i = site->of.frame_count; i > 0; i--) {
		struct report_frame frame = report_frame(site, i - 1);

		if (is_place(&frame, where))
			return false;
		if (frame.of.is_user)
			return true;
	}
	return false;
}

/* --- what is alive ---------------------------------------------------------------------------------------------- */

static void
put_types(const struct report_line *line, FILE *stream)
{
	char text[1024] = "";
	uint64_t told = 0;

	for (unsigned i = 0; i < line->type_count && line->types[i].count >= line->types[0].count / 50; i++) {
		TEXT_ADD(text, "%s%s %s", i != 0 ? ", " : "", UNITS_COUNT(units_rounded(line->types[i].count, 2)),
		         line->types[i].name);
		told += line->types[i].count;
	}
	if (text[0] == '\0')
		return;
	(void)text_clean(text, strlen(text));
	/* Other blocks may be no objects; of these all are. */

	bool has_others = line->of.sample_bytes != 0 && !line->are_types_older &&
	                  told < line->of.live_count / 5 * TOLD_FIFTHS;

	(void)fprintf(stream, "%*sof   about %s%s%s\n", INDENT, "", text, has_others ? ", and others" : "",
	              line->are_types_older ? " when last counted" : "");
}

/* The end of a list of frames: how many had no space here, and how many callers were not recorded. */
static void
put_end(FILE *stream, unsigned left_out, uint32_t omitted)
{
	if (left_out == 0 && omitted == 0)
		return;
	(void)fprintf(stream, "%*s...  ", INDENT, "");
	if (left_out != 0)
		(void)fprintf(stream, "%s more%s", UNITS_COUNT(left_out), omitted != 0 ? "; " : "");
	if (omitted != 0) // a walk ends, too: how many there are is not known
		(void)fprintf(stream, "at least %s outer frame%s not recorded", UNITS_COUNT(omitted),
		              omitted == 1 ? " was" : "s were");
	(void)fputc('\n', stream);
}

/* --- which frames are shown -------------------------------------------------------------------------------------- */

struct stack {
	const struct report_site *site;
	const struct report_place *where;
	bool has_python;
	bool is_users_only; // the user's own code stands outside of the line: only these callers are shown
};

/* Rows of a stack, to be written in this order. */
struct choice {
	struct {
		const char *relation; // NULL = a gap
		struct report_frame frame;
	} rows[STACK_FRAMES_NATIVE + 1];
	unsigned row_count;
	unsigned frame_count;
	unsigned left_out; // frames for which there was no space
};

static void
choose(struct choice *choice, const struct report_frame *frame, const char *relation, unsigned frames_max)
{
	if (choice->frame_count == frames_max) {
		choice->left_out++;
		return;
	}
	choice->rows[choice->row_count].frame = *frame;
	choice->rows[choice->row_count++].relation = relation;
	choice->frame_count++;
}

static void
choose_gap(struct choice *choice, const struct report_site *site, uint32_t number)
{
	if (site->of.omitted != 0 && number == site->of.frames_before_gap)
		choice->rows[choice->row_count++].relation = NULL;
}

static void
choose_all(const struct report_site *site, struct choice *choice)
{
	for (uint32_t i = 0; i < site->of.frame_count; i++) {
		struct report_frame frame = report_frame(site, i);

		choose_gap(choice, site, i);
		choose(choice, &frame, relation_of(&frame, true), STACK_FRAMES_NATIVE);
	}
}

static bool
is_shown_of(const struct stack *stack, uint32_t number, struct report_frame *frame)
{
	*frame = report_frame(stack->site, number);

	struct report_frame inner = number > 0 ? report_frame(stack->site, number - 1) : *frame;

	return is_shown(frame, &inner, stack->has_python);
}

/* What the line called: the frame directly inside. Returns the number of the line's own frame; the count of all: it is not there. */
static uint32_t
choose_inside(const struct stack *stack, struct choice *choice)
{
	struct report_frame inside = { .identity = NULL };

	for (uint32_t i = 0; i < stack->site->of.frame_count; i++) {
		struct report_frame frame;

		choose_gap(choice, stack->site, i);
		if (!is_shown_of(stack, i, &frame))
			continue;
		if (!is_place(&frame, stack->where)) {
			inside = frame;
			continue;
		}
		if (inside.identity != NULL)
			choose(choice, &inside, "via", STACK_FRAMES);
		return i;
	}
	return stack->site->of.frame_count;
}

/* Who called it, from the frame of that number outwards. is_of_user: the line is the user's. */
static void
choose_callers(const struct stack *stack, uint32_t first, bool is_of_user, struct choice *choice)
{
	for (uint32_t i = first; i < stack->site->of.frame_count; i++) {
		struct report_frame frame;

		choose_gap(choice, stack->site, i);
		if (!is_shown_of(stack, i, &frame) || (stack->is_users_only && !frame.of.is_user) || is_thread_start(&frame))
			continue;
		/* What dispatches to the user's line is a loop of some library: one frame tells which. */
		if (is_of_user && !stack->is_users_only && frame.relation[0] == '\0') {
			choose(choice, &frame, "from", STACK_FRAMES + 1);
			return;
		}
		choose(choice, &frame, relation_of(&frame, false), STACK_FRAMES);
	}
}

static void
put_choice(const struct report_site *site, const struct choice *choice, unsigned first, FILE *stream)
{
	for (unsigned i = first; i < choice->row_count; i++) {
		if (choice->rows[i].relation != NULL)
			put_frame(stream, &choice->rows[i].frame, choice->rows[i].relation, "");
		else
			(void)fprintf(stream, "%*s...  %s frame%s left out\n", INDENT, "", UNITS_COUNT(site->of.omitted),
			              UNITS_S(site->of.omitted));
	}
}

/* --- one stack ------------------------------------------------------------------------------------------------- */

/* Whether native frames are recorded depends on what a stack holds, not on what its line holds. */
static void
put_python_only(const struct report_line *line, FILE *stream)
{
	const struct report_site *site = &line->largest;

	const char *held = UNITS_BYTES(site->of.live_bytes > site->of.peak_bytes ? site->of.live_bytes
	                                                                         : site->of.peak_bytes);
	if (line->of.site_count > 1)
		(void)fprintf(stream,
		              "%*s     (the largest of %s stacks of this line; it held %s, too little to record native "
		              "frames: KMEMSHIM_NATIVE=to-python records them)\n",
		              INDENT, "", UNITS_COUNT(line->of.site_count), held);
	else
		(void)fprintf(stream,
		              "%*s     (it held too little to record native frames: KMEMSHIM_NATIVE=to-python records them)\n",
		              INDENT, "");
}

static void
put_lost(const struct report *report, const struct report_site *site, FILE *stream)
{
	static const char *const why[] = {
		[REPORT_LOST_NO_ROOM] = "no room was left for its stack",
		[REPORT_LOST_NO_STACK] = "its stack could not be taken",
		[REPORT_LOST_UNFINISHED] = "its stack was not finished",
	};

	if (site->lost != REPORT_LOST_NOTHING)
		(void)fprintf(stream, "%*s(%s%s)\n", INDENT, "", why[site->lost],
		              site->lost == REPORT_LOST_UNFINISHED && report->is_damaged ? ", or is damaged" : "");
}

/*
 * What the line called, as "via": the frame directly inside. Who called it, as "from", outward: the user's own callers where there are
 * any; else the first one of a user's line, and all of another line. Only Python frames are shown, unless there are none. Where native
 * frames are wanted everything is shown in order.
 */
void
render_text_stack(const struct report *report, const struct report_line *line, const struct render_options *options,
                  FILE *stream)
{
	const struct report_site *site = &line->largest;
	const struct stack stack = { site, &line->where, has_python_frame(site), has_user_callers(site, &line->where) };
	struct choice choice = { .row_count = 0 };
	struct report_frame frame;
	uint32_t number;
	unsigned put = 0;

	put_types(line, stream);
	if (options->is_native) {
		if (site->is_python_only)
			put_python_only(line, stream);
		choose_all(site, &choice);
	} else if (!line->where.is_known) {
		choose_callers(&stack, 0, false, &choice);
	} else if ((number = choose_inside(&stack, &choice)) < site->of.frame_count) {
		frame = report_frame(site, number);
		put_choice(site, &choice, 0, stream);
		put = choice.row_count;
		/* Nobody but IPython calls a cell. */
		if ((place_is_cell(frame.of.file) && !stack.is_users_only) ||
		    (frame.relation[0] == '\0' && put_callers(stream, report, line)))
			return;
		choose_callers(&stack, number + 1, frame.of.is_user, &choice);
	}
	put_choice(site, &choice, put, stream);
	put_end(stream, choice.left_out, site->of.frames_before_gap == site->of.frame_count ? site->of.omitted : 0);
	put_lost(report, site, stream);
}
