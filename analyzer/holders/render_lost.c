/*
 * render_lost.c - what is lost, as text and as JSON.
 */
#include <stddef.h>

#include "base/document.h"
#include "base/json_fields.h"
#include "base/memory.h"
#include "base/units.h"
#include "holders/lost.h"

#define LOST_SCHEMA 1
#define CHANCE_PART 32 // of what a line has lost

#define COUNTS                                                                                   \
	JSON_FIELD_AS("direct_bytes", counts[REACH_DIRECTLY_LOST].bytes,                             \
	              "Requested bytes of blocks that no pointer leads to."),                        \
		JSON_FIELD_AS("direct_blocks", counts[REACH_DIRECTLY_LOST].blocks, "These blocks."),     \
		JSON_FIELD_AS("indirect_bytes", counts[REACH_INDIRECTLY_LOST].bytes,                     \
	                  "Of blocks that only lost blocks lead to."),                               \
		JSON_FIELD_AS("indirect_blocks", counts[REACH_INDIRECTLY_LOST].blocks, "These blocks."), \
		JSON_FIELD_AS("reachable_bytes", counts[REACH_REACHABLE].bytes,                          \
	                  "Of blocks that a root or a reachable block leads to."),                   \
		JSON_FIELD_AS("reachable_blocks", counts[REACH_REACHABLE].blocks, "These blocks.")

#define OWNER struct lost_line
static const struct json_field counts_fields[] = { COUNTS };
static JSON_OBJECT_OF(counts, NULL, "Live blocks of the heap.");
static const struct json_field line_fields[] = {
	JSON_FIELD(place, "The line of code that asked for the blocks, as the text has it."),
	JSON_FIELD(file, "Its source file; \"\" = unknown."),
	JSON_FIELD(line, "0 = unknown."),
	JSON_FIELD(function, "\"\" = unknown."),
	COUNTS,
};
static JSON_OBJECT_OF(line, NULL, "One line of code.");
#undef OWNER

#define OWNER struct lost
static const struct json_field lost_fields[] = {
	JSON_FIELD_WHOLE(JSON_VERSION, "schema", "Version of this schema.", .version = LOST_SCHEMA),
	JSON_FIELD(pid, "The process."),
	JSON_FIELD(stopped_us, "For how long it stood still, in microseconds."),
	JSON_FIELD(read_bytes, "Of its memory, meanwhile."),
	JSON_FIELD_OF(JSON_OBJECT, "all", all, "Of all lines together.", .object = &counts_object),
	JSON_LIST("lines", lines, line_count, line, "Those that lost most first."),
};
JSON_OBJECT_OF(lost, NULL, "What `kmemshim lost --json` prints.");
#undef OWNER

/* It has lost nearly all: what is left is so by chance, perhaps. */
static bool
is_chance(const struct lost_line *line)
{
	return line->counts[REACH_REACHABLE].blocks != 0 &&
	       line->counts[REACH_REACHABLE].bytes < lost_bytes(line) / CHANCE_PART;
}

void
lost_render_text(const struct lost *lost, uint64_t top, FILE *stream)
{
	static const struct document_column columns[] = {
		{ "directly", 10, 0 },  { "indirectly", 12, 0 },   { "blocks", 12, 0 },
		{ "reachable", 12, 0 }, { "line of code", -1, 0 }, { .title = NULL },
	};
	const struct reach_count *reachable = &lost->all.counts[REACH_REACHABLE];
	struct document document = { .count = 0 };
	uint64_t blocks = lost_blocks(&lost->all);
	uint64_t shown = 0;

	document_add(&document, DOCUMENT_LINE, NULL, "process %u has lost %s%s", lost->pid,
	             blocks != 0 ? TEXT(128, "%s in %s block%s", UNITS_BYTES(lost_bytes(&lost->all)), UNITS_COUNT(blocks),
	                                UNITS_S(blocks))
	                         : "nothing",
	             blocks != 0 ? ": no pointer leads there any more" : ": a pointer leads to each live block");
	document_table(&document, NULL, columns);
	for (; shown < lost->line_count && lost_blocks(&lost->lines[shown]) != 0; shown++) {
		const struct lost_line *line = &lost->lines[shown];

		if (shown >= top)
			continue;
		DOCUMENT_ROW(&document, UNITS_BYTES(line->counts[REACH_DIRECTLY_LOST].bytes),
		             UNITS_BYTES(line->counts[REACH_INDIRECTLY_LOST].bytes), UNITS_COUNT(lost_blocks(line)),
		             UNITS_BYTES(line->counts[REACH_REACHABLE].bytes), line->place);
		if (is_chance(line))
			document_add(&document, DOCUMENT_BELOW, NULL, "some reachable by chance?");
	}
	if (shown > top)
		document_add(&document, DOCUMENT_LINE, NULL, "and %s more line%s (--top)", UNITS_COUNT(shown - top),
		             UNITS_S(shown - top));
	document_add(&document, DOCUMENT_LINE, NULL, "still reachable: %s in %s block%s", UNITS_BYTES(reachable->bytes),
	             UNITS_COUNT(reachable->blocks), UNITS_S(reachable->blocks));
	document_add(&document, DOCUMENT_LINE, NULL, "the program stood still for %.3f s, while %s were read",
	             (double)lost->stopped_us / 1e6, UNITS_BYTES(lost->read_bytes));
	document_put(&document, stream);
}

void
lost_render_json(const struct lost *lost, uint64_t top, FILE *stream)
{
	struct json_write json = { .stream = stream, .inline_depth = 2 };
	struct lost shown = *lost;

	if (top < shown.line_count)
		shown.line_count = top;
	json_object_write(&json, NULL, &lost_object, &shown);
}
