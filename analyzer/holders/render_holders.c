/*
 * render_holders.c - who holds the largest lines, as text and as JSON.
 *
 * When failing  errors stay in the stream.
 */
#include <stddef.h>
#include <string.h>

#include "base/json_fields.h"
#include "base/units.h"
#include "holders/holders.h"

#define HOLDERS_SCHEMA 1
#define WAYS_SHOWN 4 // of a line

static const char *const kinds[] = { "held", "perhaps", "lost", "unseen", "unread", "unfinished", NULL };

#define OWNER struct holders_way
static const struct json_field way_fields[] = {
	JSON_FIELD(
		kind,
		"held: by a root. perhaps: by a word that may be left over. lost: no pointer leads there, or lost blocks alone. unseen: an object of Python has references "
		"that were found nowhere. unread: nothing leads there in what was read, and not all was. unfinished: there was "
		"no time or room to find it, or the way is very long.",
		.values = kinds),
	JSON_FIELD(
		text,
		"held: from the root to the block. lost: the lost blocks that lead there. unseen: the object. unfinished: why. "
		"[*]: one of many. ?: a guess."),
	JSON_FIELD(samples, "How many of the line's samples are held so."),
	JSON_FIELD(container, "Type of the object with most items on the way; \"\" = none has many."),
	JSON_FIELD(items, "Its items."),
	JSON_FIELD(grown_at, "The line that asked for its storage last; \"\" = not known."),
	{ .name = NULL },
};
static const struct json_object way_object = { "way", "How some samples are held.", way_fields,
	                                           sizeof(struct holders_way), NULL };
#undef OWNER

#define OWNER struct holders_line
static const struct json_field line_fields[] = {
	JSON_FIELD(place, "The line of code that asked for the blocks, as the text has it."),
	JSON_FIELD(file, "Its source file; \"\" = unknown."),
	JSON_FIELD(line, "0 = unknown."),
	JSON_FIELD(function, "\"\" = unknown."),
	JSON_FIELD(bytes, "Live bytes."),
	JSON_FIELD(blocks, "Live blocks, or objects."),
	JSON_FIELD(is_estimated, "Small Python objects are among both, estimated from a sample."),
	JSON_FIELD(samples, "Blocks that were drawn."),
	JSON_FIELD_OF(JSON_OBJECTS, "ways", ways, "Those of most samples first.", .object = &way_object, .is_pointer = true,
	              .count_offset = offsetof(OWNER, way_count)),
	{ .name = NULL },
};
static const struct json_object line_object = { "line", "One of the largest lines.", line_fields,
	                                            sizeof(struct holders_line), NULL };
#undef OWNER

#define OWNER struct holders
static const struct json_field holders_fields[] = {
	JSON_FIELD_WHOLE(JSON_VERSION, "schema", "Version of this schema.", .version = HOLDERS_SCHEMA),
	JSON_FIELD(pid, "The process."),
	JSON_FIELD(stopped_us, "For how long it stood still, in microseconds."),
	JSON_FIELD(read_bytes, "Of its memory, in all passes together."),
	JSON_FIELD(left_out_bytes, "Of blocks that were not read: samples of them hold no pointers."),
	JSON_FIELD(shared_bytes, "Of memory that is shared with other processes, which is not read."),
	JSON_FIELD(passes, "How often its memory was gone through."),
	JSON_FIELD(is_unfinished, "There was no time or room for more."),
	JSON_FIELD(python, "Why objects of Python have no names here; \"\" = they have, or there is no Python."),
	JSON_FIELD_OF(JSON_OBJECTS, "holders", lines, "The largest first.", .object = &line_object, .is_pointer = true,
	              .count_offset = offsetof(OWNER, line_count)),
	{ .name = NULL },
};
static const struct json_object holders_object = { "holders", "What `kmemshim holders --json` prints.", holders_fields,
	                                               sizeof(struct holders), NULL };
#undef OWNER

static void
say_lost(const struct holders_way *way, FILE *stream)
{
	if (way->text[0] == '\0')
		(void)fprintf(stream, "          lost: no pointer leads there");
	else
		(void)fprintf(stream, "          lost: only lost blocks lead there: %s", way->text);
}

static void
say_way(const struct holders_line *line, const struct holders_way *way, FILE *stream)
{
	if (strcmp(way->kind, "lost") == 0)
		say_lost(way, stream);
	else if (strcmp(way->kind, "unread") == 0)
		(void)fprintf(
			stream,
			"          not known: nothing that was read leads there, but memory that other processes share was not read");
	else if (strcmp(way->kind, "unseen") == 0)
		(void)fprintf(stream, "          held by something that was not found: %s", way->text);
	else if (strcmp(way->kind, "unfinished") == 0)
		(void)fprintf(stream, "          not known: %s", way->text);
	else if (strcmp(way->kind, "perhaps") == 0)
		(void)fprintf(stream, "          held, perhaps, by  %s", way->text);
	else
		(void)fprintf(stream, "          held by  %s", way->text);
	if (way->samples != line->samples)
		(void)fprintf(stream, "  (%llu of %llu samples)", (unsigned long long)way->samples,
		              (unsigned long long)line->samples);
	(void)fprintf(stream, "\n");
}

static void
say_line(const struct holders_line *line, FILE *stream)
{
	char size[UNITS_TEXT_BYTES];
	char number[UNITS_TEXT_BYTES];
	uint64_t others = 0;

	const char *about = line->is_estimated ? "≈" : "";
	uint64_t blocks = line->is_estimated ? units_rounded(line->blocks, 3) : line->blocks;

	(void)units_bytes(line->bytes, size);
	(void)fprintf(stream, "%*s%s%s  %s%s block%s allocated at %s\n", 9 - (int)strlen(size) - line->is_estimated, "",
	              about, size, about, units_count(blocks, number), blocks == 1 ? "" : "s", line->place);
	for (size_t i = 0; i < line->way_count; i++) {
		if (i < WAYS_SHOWN)
			say_way(line, &line->ways[i], stream);
		else
			others += line->ways[i].samples;
	}
	if (others != 0)
		(void)fprintf(stream, "          in other ways  (%llu of %llu samples; --json has them)\n",
		              (unsigned long long)others, (unsigned long long)line->samples);
}

void
holders_render_text(const struct holders *holders, FILE *stream)
{
	char read[UNITS_TEXT_BYTES];

	for (size_t i = 0; i < holders->line_count; i++)
		say_line(&holders->lines[i], stream);
	if (holders->line_count == 0)
		(void)fprintf(stream, "process %u holds nothing worth a look\n", holders->pid);
	if (holders->python[0] != '\0')
		(void)fprintf(stream, "Python's names are missing: %s\n", holders->python);
	if (holders->is_unfinished)
		(void)fprintf(stream,
		              "the search ended early: allow more time with --stop, or look at fewer lines with --top\n");
	(void)fprintf(stream, "the program stood still for %.3f s, while %s were read in %u pass%s\n",
	              (double)holders->stopped_us / 1e6, units_bytes(holders->read_bytes, read), holders->passes,
	              holders->passes == 1 ? "" : "es");
}

void
holders_render_json(const struct holders *holders, FILE *stream)
{
	struct json_write json = { .stream = stream, .inline_depth = 4 };

	json_object_write(&json, NULL, &holders_object, holders);
}

void
holders_render_schema(FILE *stream)
{
	json_schema_write(&holders_object, "https://kmemshim.invalid/holders.schema.json", "kmemshim holders, schema 1",
	                  stream);
}
