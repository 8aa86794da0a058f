/*
 * render_efforts.c - what did recording do beyond the fast way: as a table, and as rows of the JSON.
 */

#include "base/document.h"
#include "base/items.h"
#include "base/memory.h"
#include "base/units.h"
#include "report/render_json.h"

#define WORDS(constant, name, words) [KMEM_EFFORT_##constant] = (words),
static const char *const words[KMEM_EFFORT_COUNT] = { KMEM_EFFORTS(WORDS) };
#undef WORDS
#define NAME(constant, name, words) [KMEM_EFFORT_##constant] = (name),
static const char *const names[KMEM_EFFORT_COUNT + 1] = { KMEM_EFFORTS(NAME) };
#undef NAME

static bool
is_any(const struct model_efforts *efforts)
{
	return ANY(count, efforts->counts, KMEM_EFFORT_COUNT, *count != 0);
}

void
render_efforts(const struct report *report, struct document *document)
{
	static const struct document_column columns[] = {
		{ "What recording did", 18, 0 }, { "per 1,000 events", 18, 0 }, { "", -1, 0 }, { .title = NULL }
	};
	const struct model_efforts *efforts = &report->efforts;

	if (!is_any(efforts)) // an older capture
		return;
	document_add(document, DOCUMENT_LINE, NULL, "%s", "");
	document_table(document, NULL, columns);
	DOCUMENT_ROW(document, UNITS_COUNT(efforts->events), "", "allocations and releases that were recorded");
	for (unsigned i = 0; i < KMEM_EFFORT_COUNT; i++) {
		double rate = efforts->events != 0 ? (double)efforts->counts[i] * 1000 / (double)efforts->events : 0;

		if (efforts->counts[i] != 0)
			DOCUMENT_ROW(document, UNITS_COUNT(efforts->counts[i]), efforts->events != 0 ? TEXT(32, "%.2f", rate) : "",
			             words[i]);
	}
	if (efforts->longest_pause_ns != 0)
		DOCUMENT_ROW(document, TEXT(32, "%.3f ms", (double)efforts->longest_pause_ns / 1e6), "",
		             TEXT(256, "the longest pause, in one of the %s", words[efforts->longest_pause]));
}

static const char *
pause_name(unsigned number)
{
	return number < KMEM_EFFORT_COUNT ? names[number] : NULL;
}

#define OWNER struct model_efforts
JSON_KNOWN(has_pause, longest_pause_ns != 0)

#define FIELD(constant, name_, words_)                                                 \
	{                                                                                  \
		.name = (name_),                                                               \
		.meaning = (words_),                                                           \
		.kind = JSON_U64,                                                              \
		.offset = offsetof(OWNER, counts) + KMEM_EFFORT_##constant * sizeof(uint64_t), \
	},
static const struct json_field efforts_fields[] = {
	JSON_FIELD(
		events,
		"Allocations and releases that were recorded; a resize is both. All counts here are of these, or beside them."),
	JSON_FIELD(
		longest_pause_ns,
		"Nanoseconds that the longest of what is timed took: a stack that was walked until its site was known, a search for operator new, a look. What the system did meanwhile, also for other programs, is in it; events on the fast way are not timed. null = none, or there was no clock.",
		.without = JSON_NULL, .is_known = has_pause),
	JSON_FIELD_OF(
		JSON_ENUM, "longest_pause", longest_pause,
		"What it was, by its name here: walks, new_stacks (the stack was stored), growths (the capture grew), new_searches, library_looks, heartbeats.",
		.without = JSON_NULL, .value_of = pause_name, .is_known = has_pause),
	KMEM_EFFORTS(FIELD)
};
JSON_OBJECT_OF(
	efforts, NULL,
	"What recording itself did beyond the fast way of an event: counts, which do not depend on how fast the machine is. Of a thread that runs or was killed up to 63 of each are missing, but of new_stacks and what follows it none; system_calls are as of when something else was counted last.");
#undef OWNER
