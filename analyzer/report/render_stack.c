/*
 * render_stack.c - who called the line of a row, under that row.
 *
 * A row is the sum of its sites. When they were called from several places, those places are listed with their shares;
 * else the stack of the largest site stands for all.
 */
#include <string.h>

#include "base/items.h"
#include "base/amount.h"
#include "base/document.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/paragraph.h"
#include "base/order.h"
#include "base/place.h"
#include "base/units.h"
#include "base/text_start.h"
#include "model/frame_rules.h"
#include "report/render.h"
#include "report/report.h"

#define FRAME_COLUMNS 75       // of a line below a row
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

		if (frame.of.kind == MODEL_FRAME_PYTHON && frame.relation == MODEL_RELATION_OWN)
			return true;
	}
	return false;
}

/* `inner` is the frame that it called, if there is one. */
static bool
is_shown(const struct report_frame *frame, const struct report_frame *inner, bool has_python)
{
	if (frame->relation == MODEL_RELATION_STARTED_BY) // forty frames of a library do not tell more than the user's own
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

static char *
whole_text(const struct report_frame *frame)
{
	return place_whole(frame->of.file, frame->of.line, frame->of.function, frame->of.module, frame->offset);
}

/* `after` follows the frame and is never cut. */
static void
add_frame(const struct report_frame *frame, const char *relation, const char *after, struct document *document)
{
	const char *again = frame->of.is_repeated ? " (calls itself)" : "";
	OWNED char *place = whole_text(frame);
	OWNED char *fitted = text_fitted(place, FRAME_COLUMNS - strlen(after) - strlen(again));

	document_add(document, DOCUMENT_SOURCE, relation, "%s%s%s", fitted, again, after);
}

/* The column before a frame, outwards of the row's line. */
static const char *
relation_of(const struct report_frame *frame, bool is_native)
{
	if (frame->relation != MODEL_RELATION_OWN)
		return frame->relation == MODEL_RELATION_STARTED_BY ? "by" : "while ";
	return is_native ? "" : "from";
}

void
render_source(const struct report_place *where, struct document *document)
{
	if (where->is_source_changed)
		document_add(document, DOCUMENT_BELOW, "", "(%s was changed since the program started)",
		             place_base(where->file));
	if (where->source[0] != '\0')
		document_add(document, DOCUMENT_SOURCE, "line", "%s", where->source);
}

void
render_holder(const struct holders_way *way, uint64_t samples, struct document *document)
{
	OWNED char *text = model_way_sentence(way, samples);

	if (text != NULL)
		document_add(document, DOCUMENT_BELOW, "held", "%s", text);
}

/* --- several callers ------------------------------------------------------------------------------------------- */

struct caller {
	char *text;
	struct report_frame frame;
	uint64_t bytes;
	UT_hash_handle hh;
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

static int
compare_callers(const struct caller *a, const struct caller *b)
{
	return order_numbers(b->bytes, a->bytes)
	           ?: order_numbers(a->frame.of.line, b->frame.of.line) ?: strcmp(a->text, b->text);
}

/* What the table ranks by; when nothing is held, what was allocated in all. */
static uint64_t
figure_of(const struct report *report, const struct report_line *line, const struct report_site *site)
{
	if (report->ranking == RANK_PEAK)
		return site->of.peak_bytes;
	return line->of.live_bytes != 0 ? site->of.live_bytes : site->of.allocated_bytes;
}

/* False, and nothing added, when one caller stands for all. */
static bool
add_callers(const struct report *report, const struct report_line *line, struct document *document)
{
	struct caller *callers = NULL;
	uint64_t total = 0;
	unsigned shown = 0;

	for (size_t i = 0; i < line->of.site_count; i++) {
		struct report_site site = report_site(report, line->of.first_site + i);
		uint64_t bytes = figure_of(report, line, &site);
		struct report_frame frame;
		struct caller *found;

		total += bytes;
		if (bytes == 0 || !find_caller(&site, &line->where, &frame))
			continue;
		OWNED char *place = whole_text(&frame);

		if (HASH_TEXT_MADE(callers, text, place, found))
			found->frame = frame;
		found->bytes += bytes;
	}
	HASH_SORT(callers, compare_callers);
	unsigned count = HASH_COUNT(callers);
	const struct caller *second = count > 1 ? callers->hh.next : NULL;
	bool are_several = second != NULL && second->bytes >= total / CALLER_PART;

	for (const struct caller *at = callers; are_several && at != NULL && shown < CALLERS_SHOWN;
	     at = at->hh.next, shown++)
		add_frame(&at->frame, relation_of(&at->frame, false),
		          TEXT(UNITS_TEXT_BYTES + 2, "  %s", UNITS_SHARE((uint32_t)((double)at->bytes / (double)total * 1e6))),
		          document);
	if (are_several && count > CALLERS_SHOWN)
		document_add(document, DOCUMENT_BELOW, NULL, "and %s more", UNITS_COUNT(count - CALLERS_SHOWN));
	HASH_FREE(callers, HASH_TEXT_FREE);
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
add_types(const struct report_line *line, struct document *document)
{
	char text[1024] = "";
	uint64_t told = 0;

	for (unsigned i = 0; i < line->type_count && line->types[i].count >= line->types[0].count / 50; i++) {
		TEXT_ADD(text, "%s%s %s", i != 0 ? ", " : "", UNITS_COUNT(units_rounded(line->types[i].count, 2)),
		         line->types[i].name);
		told += line->types[i].count;
	}
	/* Other blocks may be no objects; of these all are. */
	bool has_others = line->of.sample_bytes != 0 && !line->are_types_older &&
	                  told < line->of.live_count / 5 * TOLD_FIFTHS;

	if (text[0] != '\0')
		document_add(document, DOCUMENT_BELOW, "of", "about %s%s%s", text, has_others ? ", and others" : "",
		             line->are_types_older ? " when last counted" : "");
}

/* --- which frames are shown -------------------------------------------------------------------------------------- */

struct stack {
	const struct report_site *site;
	const struct report_place *where;
	struct document *document;
	bool has_python;
	bool is_users_only; // the user's own code stands outside of the line: only these callers are shown
	unsigned frame_count;
	unsigned left_out; // frames for which there was no space
};

static void
add_one(struct stack *stack, const struct report_frame *frame, const char *relation, unsigned frames_max)
{
	if (stack->frame_count++ < frames_max)
		add_frame(frame, relation, "", stack->document);
	else
		stack->left_out++;
}

static struct report_frame
next_frame(const struct stack *stack, uint32_t number)
{
	const struct model_site *site = &stack->site->of;

	if (site->omitted != 0 && number == site->frames_before_gap)
		document_add(stack->document, DOCUMENT_BELOW, "...", "%s frame%s left out", UNITS_COUNT(site->omitted),
		             UNITS_S(site->omitted));
	return report_frame(stack->site, number);
}

static bool
is_shown_of(const struct stack *stack, uint32_t number, const struct report_frame *frame)
{
	struct report_frame inner = number > 0 ? report_frame(stack->site, number - 1) : *frame;

	return is_shown(frame, &inner, stack->has_python);
}

/* What the line called: the frame directly inside, or what the standard library called for it. Returns the number of the line's own frame; the count of all: it is not there. */
static uint32_t
add_inside(struct stack *stack)
{
	const struct model_frame *entered = model_entered_package(&stack->site->of);
	struct report_frame inside = { .identity = NULL };

	for (uint32_t i = 0; i < stack->site->of.frame_count; i++) {
		struct report_frame frame = next_frame(stack, i);

		if (!is_shown_of(stack, i, &frame))
			continue;
		if (!is_place(&frame, stack->where)) {
			if (inside.identity == NULL || inside.identity != entered)
				inside = frame;
			continue;
		}
		if (inside.identity != NULL)
			add_one(stack, &inside, "via", STACK_FRAMES);
		return i;
	}
	return stack->site->of.frame_count;
}

/* Who called it, from the frame of that number outwards. is_of_user: the line is the user's. */
static void
add_outside(struct stack *stack, uint32_t first, bool is_of_user)
{
	for (uint32_t i = first; i < stack->site->of.frame_count; i++) {
		struct report_frame frame = next_frame(stack, i);

		if (!is_shown_of(stack, i, &frame) || (stack->is_users_only && !frame.of.is_user) || is_thread_start(&frame))
			continue;
		/* What dispatches to the user's line is a loop of some library: one frame tells which. */
		if (is_of_user && !stack->is_users_only && frame.relation == MODEL_RELATION_OWN) {
			add_one(stack, &frame, "from", STACK_FRAMES + 1);
			return;
		}
		add_one(stack, &frame, relation_of(&frame, false), STACK_FRAMES);
	}
}

/* --- one stack ------------------------------------------------------------------------------------------------- */

/* Whether native frames are recorded depends on what a stack holds, not on what its line holds. */
static void
add_python_only(const struct report_line *line, struct document *document)
{
	const struct model_site *site = &line->largest.of;
	const char *largest = TEXT(128, " (the largest of %s stacks of this line, %s)", UNITS_COUNT(line->of.site_count),
	                           UNITS_BYTES(amount_greater(site->live_bytes, site->peak_bytes)));

	document_add(document, DOCUMENT_BELOW, "",
	             "it held too little%s to record native frames: KMEMSHIM_NATIVE=to-python records them",
	             line->of.site_count > 1 ? largest : "");
}

static void
add_lost(const struct report *report, const struct report_site *site, struct document *document)
{
	static const char *const why[] = {
		[REPORT_LOST_NO_ROOM] = "no room was left for its stack",
		[REPORT_LOST_NO_STACK] = "its stack could not be taken",
		[REPORT_LOST_UNFINISHED] = "its stack was not finished",
	};

	if (site->lost != REPORT_LOST_NOTHING)
		document_add(document, DOCUMENT_BELOW, NULL, "(%s%s)", why[site->lost],
		             site->lost == REPORT_LOST_UNFINISHED && report->is_damaged ? ", or is damaged" : "");
}

/*
 * What the line called, as "via": the frame directly inside. Who called it, as "from", outward: the user's own callers where there are
 * any; else the first one of a user's line, and all of another line. Only Python frames are shown, unless there are none. Where native
 * frames are wanted everything is shown in order.
 */
void
render_stack(const struct report *report, const struct report_line *line, const struct render_options *options,
             struct document *document)
{
	const struct report_site *site = &line->largest;
	struct stack stack = { .site = site,
		                   .where = &line->where,
		                   .document = document,
		                   .has_python = has_python_frame(site),
		                   .is_users_only = has_user_callers(site, &line->where) };
	uint32_t number;

	add_types(line, document);
	if (options->is_native) {
		if (site->is_python_only)
			add_python_only(line, document);
		for (uint32_t i = 0; i < site->of.frame_count; i++) {
			struct report_frame frame = next_frame(&stack, i);

			add_one(&stack, &frame, relation_of(&frame, true), STACK_FRAMES_NATIVE);
		}
	} else if (!line->where.is_known) {
		add_outside(&stack, 0, false);
	} else if ((number = add_inside(&stack)) < site->of.frame_count) {
		struct report_frame frame = report_frame(site, number);

		/* Nobody but IPython calls a cell. */
		if ((place_is_cell(frame.of.file) && !stack.is_users_only) ||
		    (frame.relation == MODEL_RELATION_OWN && add_callers(report, line, document)))
			return;
		add_outside(&stack, number + 1, frame.of.is_user);
	}
	if (stack.left_out != 0)
		document_add(document, DOCUMENT_BELOW, "...", "%s more", UNITS_COUNT(stack.left_out));
	if (site->of.omitted != 0 &&
	    site->of.frames_before_gap == site->of.frame_count) // a walk ends, too: how many is not known
		document_add(document, DOCUMENT_BELOW, "...", "at least %s outer frame%s not recorded",
		             UNITS_COUNT(site->of.omitted), site->of.omitted == 1 ? " was" : "s were");
	add_lost(report, site, document);
}
