/*
 * render_lost.c - what is lost, as text and as JSON.
 *
 * When failing  errors stay in the stream.
 */
#include <stddef.h>

#include "base/json_fields.h"
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

static void
say_total(const struct lost *lost, FILE *stream)
{
	uint64_t blocks = lost_blocks(&lost->all);

	if (blocks == 0)
		(void)fprintf(stream, "process %u has lost nothing: a pointer leads to each live block\n", lost->pid);
	else
		(void)fprintf(stream, "process %u has lost %s in %s block%s: no pointer leads there any more\n", lost->pid,
		              UNITS_BYTES(lost_bytes(&lost->all)), UNITS_COUNT(blocks), UNITS_S(blocks));
}

/* It has lost nearly all: what is left is so by chance, perhaps. */
static bool
is_chance(const struct lost_line *line)
{
	return line->counts[REACH_REACHABLE].blocks != 0 &&
	       line->counts[REACH_REACHABLE].bytes < lost_bytes(line) / CHANCE_PART;
}

static void
say_rest(const struct lost *lost, FILE *stream)
{
	const struct reach_count *reachable = &lost->all.counts[REACH_REACHABLE];

	(void)fprintf(stream, "still reachable: %s in %s block%s\n", UNITS_BYTES(reachable->bytes),
	              UNITS_COUNT(reachable->blocks), UNITS_S(reachable->blocks));
	(void)fprintf(stream, "the program stood still for %.3f s, while %s were read\n", (double)lost->stopped_us / 1e6,
	              UNITS_BYTES(lost->read_bytes));
}

void
lost_render_text(const struct lost *lost, uint64_t top, FILE *stream)
{
	uint64_t left_out = 0;

	say_total(lost, stream);
	for (size_t i = 0; i < lost->line_count; i++) {
		const struct lost_line *line = &lost->lines[i];

		if (lost_blocks(line) == 0)
			break;
		if (i >= top) {
			left_out++;
			continue;
		}
		if (i == 0)
			(void)fprintf(stream, "\n%10s  %10s  %10s  %10s  %s\n", "directly", "indirectly", "blocks", "reachable",
			              "line of code");
		(void)fprintf(stream, "%10s  %10s  %10s  %10s  %s%s\n", UNITS_BYTES(line->counts[REACH_DIRECTLY_LOST].bytes),
		              UNITS_BYTES(line->counts[REACH_INDIRECTLY_LOST].bytes), UNITS_COUNT(lost_blocks(line)),
		              UNITS_BYTES(line->counts[REACH_REACHABLE].bytes), line->place,
		              is_chance(line) ? "  (some reachable by chance?)" : "");
	}
	if (left_out != 0)
		(void)fprintf(stream, "and %llu more line%s (--top)\n", (unsigned long long)left_out, UNITS_S(left_out));
	if (lost_blocks(&lost->all) != 0)
		(void)fprintf(stream, "\n");
	say_rest(lost, stream);
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
