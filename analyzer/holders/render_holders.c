/*
 * render_holders.c - who holds the largest lines, as text and as JSON.
 *
 * When failing  errors stay in the stream.
 */
#include <assert.h>
#include <string.h>

#include "base/json_fields.h"
#include "base/memory.h"
#include "base/units.h"
#include "holders/holders.h"

#define WAYS_SHOWN 4 // of a line

static_assert(HOLDERS_SHARE_MIN == 64, "texts below say so");

static void
say_way(const struct holders_line *line, const struct holders_way *way, FILE *stream)
{
	OWNED char *text = model_way_sentence(way, line->samples);

	(void)fprintf(stream, "          %s%s\n", text != NULL ? "held " : "not known: ", text != NULL ? text : way->text);
}

static void
say_line(const struct holders_line *line, FILE *stream)
{
	uint64_t others = 0;

	const char *about = line->is_estimated ? "≈" : "";
	uint64_t blocks = line->is_estimated ? units_rounded(line->blocks, 3) : line->blocks;

	const char *size = UNITS_BYTES(line->bytes);
	(void)fprintf(stream, "%*s%s%s  %s%s %s%s allocated at %s\n", 9 - (int)strlen(size) - line->is_estimated, "", about,
	              size, about, UNITS_COUNT(blocks), line->is_estimated ? "small Python object" : "block",
	              UNITS_S(blocks), line->place);
	for (size_t i = 0; i < line->way_count; i++) {
		if (i < WAYS_SHOWN)
			say_way(line, &line->ways[i], stream);
		else
			others += line->ways[i].samples;
	}
	if (line->samples == 0 && line->blocks != 0)
		(void)fprintf(stream, "          not known: its blocks were released before the program stood still\n");
	if (others != 0)
		(void)fprintf(stream, "          in other ways  (%llu of %llu samples; --json has them)\n",
		              (unsigned long long)others, (unsigned long long)line->samples);
}

static void
say_left_out(const struct holders *holders, FILE *stream)
{
	const struct {
		uint64_t count;
		const char *why;
	} parts[] = { { holders->small_lines, "with less than 1/64 of what is live" },
		          { holders->released_lines, "most of which was released before the look" },
		          { holders->import_lines, "of what imports left" },
		          { holders->more_lines, "beyond --top" } };
	bool is_first = true;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (parts[i].count == 0)
			continue;
		(void)fprintf(stream, "%s%s %s", is_first ? "lines left out: " : ", ", UNITS_COUNT(parts[i].count),
		              parts[i].why);
		is_first = false;
	}
	if (!is_first)
		(void)fprintf(stream, "\n");
}

void
holders_render_text(const struct holders *holders, FILE *stream)
{
	if (holders->why[0] != '\0') {
		(void)fprintf(stream, "process %u was not examined: %s\n", holders->pid, holders->why);
		return;
	}
	for (size_t i = 0; i < holders->line_count; i++)
		say_line(&holders->lines[i], stream);
	if (holders->line_count == 0)
		(void)fprintf(stream, "no line of process %u holds much\n", holders->pid);
	say_left_out(holders, stream);
	if (holders->python[0] != '\0')
		(void)fprintf(stream, "Python's names are missing: %s\n", holders->python);
	if (holders->is_unfinished)
		(void)fprintf(stream, "the search ended early: allow more time with %s\n",
		              holders->sequence != 0 ? "--holders-stop" : "--stop, or show fewer lines with --top");
	if (holders->stopped_us != 0) // else it was a core
		(void)fprintf(stream, "the program stood still for %.3f s, while ", (double)holders->stopped_us / 1e6);
	(void)fprintf(stream, "%s were read in %u pass%s\n", UNITS_BYTES(holders->read_bytes), holders->passes,
	              holders->passes == 1 ? "" : "es");
}

void
holders_render_json(const struct holders *holders, FILE *stream)
{
	struct json_write json = { .stream = stream, .inline_depth = 4 };

	json_object_write(&json, NULL, &model_holders_object, holders);
}
