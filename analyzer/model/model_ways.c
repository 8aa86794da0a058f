/*
 * model_ways.c - the way from a root to a block, in words: the one place that has them (see model_holders.h).
 *
 *     global `bus` of module __main__ -> Bus ._handlers -> dict ['message'] -> list of 9,000 [*] -> function .__closure__ -> ...
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/items.h"
#include "base/memory.h"
#include "base/units.h"
#include "model/model_holders.h"

static const struct words {
	const char *name;
	const char *format;
#define ROW(number, name, format) [WAY_##number] = { name, format },
} kinds[] = { WAY_STEPS(ROW) }, members[] = { WAY_MEMBERS(ROW) };

const char *
model_way_step_kind(unsigned number)
{
	return number < COUNT_OF(kinds) ? kinds[number].name : NULL;
}

const char *
model_way_member(unsigned number)
{
	return number < COUNT_OF(members) ? members[number].name : NULL;
}

NAMES_OF(model_holders_kind, "held", "perhaps", "lost", "unseen", "unread", "unfinished")
NAMES_OF(model_way_repeat, "", "until-last", "each")
NAMES_OF(model_way_call, "", "python", "native")

struct way_step
model_way_step(enum way_step_kind kind, const char *name, const char *of)
{
	return (struct way_step){ .kind = kind, .name = name, .of = of, .member = "", .function = "" };
}

static void
say(const struct way_step *step, const char *format, FILE *stream)
{
	for (; *format != '\0'; format++) {
		if (*format != '%')
			(void)fputc(*format, stream);
		else if (*++format == 'c')
			(void)fprintf(stream, "%" PRIu64, step->count);
		else
			(void)fputs(*format == 'n'   ? step->name
			            : *format == 'o' ? step->of
			            : *format == 'm' ? step->member
			                             : step->function,
			            stream);
	}
}

char *
model_way_graph(const struct way_step *step)
{
	return memory_printed("grad_fn chain of %s%s nodes", step->is_graph_cut ? "at least " : "",
	                      UNITS_COUNT(step->nodes));
}

static void
say_step(const struct holders_way *way, const struct way_step *step, bool is_cut, FILE *stream)
{
	static const char repeated[] = ", one after another";
	const bool has_member = step->by != WAY_BY_NOTHING && !is_cut;

	say(step, kinds[step->kind].format, stream);
	if (step->kind == WAY_BLOCK && step->name[0] != '\0')
		(void)fprintf(stream, " (%s)", step->name);
	if (step->kind == WAY_BLOCK)
		say(step, step->of[0] != '\0' ? " of %o" : " of %c bytes?", stream);
	if (step->kind == WAY_OBJECT && step->count != 0)
		(void)fprintf(stream, " of %s", UNITS_COUNT(step->count));
	if (step->is_container && way->grown_at[0] != '\0')
		(void)fprintf(stream, ", grown at %s%s", way->grown_at, step->by == WAY_BY_STORAGE ? "" : ",");
	if (step->repeat == WAY_UNTIL_LAST)
		(void)fprintf(stream, "%s%s", repeated, has_member ? "," : "");
	if (has_member)
		say(step, members[step->by].format, stream);
	if (step->repeat == WAY_EACH)
		(void)fputs(repeated, stream);
	if (step->nodes != 0) {
		OWNED char *graph = model_way_graph(step);

		(void)fprintf(stream, ", %s", graph);
	}
}

char *
model_way_words(const struct holders_way *way, size_t first, size_t count, bool is_cut)
{
	FILE *stream;
	char *text;

	if (way->step_count == 0)
		return memory_text(way->text);
	stream = memory_stream(&text, NULL);
	for (size_t i = first; i < first + count; i++) {
		if (i != first)
			(void)fputs(way->steps[i - 1].kind == WAY_REASON ? ": " : " -> ", stream);
		say_step(way, &way->steps[i], is_cut && i + 1 == first + count, stream);
	}
	memory_stream_close(stream);
	return text;
}

bool
model_way_steps_are_alike(const struct way_step *a, const struct way_step *b)
{
	const bool has_same_count = a->count == b->count || a->kind == WAY_OBJECT || a->kind == WAY_MORE;

	return a->kind == b->kind && a->by == b->by && a->repeat == b->repeat && a->nodes == b->nodes && has_same_count &&
	       strcmp(a->name, b->name) == 0 && strcmp(a->of, b->of) == 0 && strcmp(a->member, b->member) == 0 &&
	       strcmp(a->function, b->function) == 0;
}

char *
model_way_sentence(const struct holders_way *way, uint64_t samples)
{
	static const char *const words[] = {
		[HOLDERS_HELD] = "by ",
		[HOLDERS_PERHAPS] = "perhaps by ",
		[HOLDERS_LOST] = "by nothing: ",
		[HOLDERS_UNSEEN] = "by something that was not found: ",
		[HOLDERS_UNREAD] = "by nothing that was read; memory that other processes share was not",
	};
	const char *lost = way->kind != HOLDERS_LOST ? ""
	                   : way->uncollected[0] != '\0'
	                       ? TEXT(256, "in a circle, which gc.collect() cannot free, for it does not see %s: ",
	                              way->uncollected)
	                   : model_holders_are_circles(way) ? "in a circle, which gc.collect() frees: "
	                   : way->text[0] != '\0'           ? "only lost blocks lead there: "
	                                                    : "no pointer leads there";

	if (way->kind == HOLDERS_UNFINISHED)
		return NULL;
	return memory_printed(
		"%s%s%s%s", words[way->kind], lost, way->text,
		way->samples != samples ? TEXT(64, "  (%" PRIu64 " of %" PRIu64 " samples)", way->samples, samples) : "");
}
