/* model_holders_fields.c - the fields of a look's JSON: it is printed, kept in captures, and a part of reports. */
#include <stddef.h>

#include "base/json_fields.h"
#include "model/model_holders.h"

#define OWNER struct holders_way
static const struct json_field way_fields[] = {
	JSON_FIELD(
		kind,
		"held: by a root. perhaps: by a word that may be left over. lost: no pointer leads there, or lost blocks alone. unseen: an object of Python has references "
		"that were found nowhere. unread: nothing leads there in what was read, and not all was. unfinished: there was "
		"no time or room to find it, or the way is very long.",
		.values = model_holders_kinds),
	JSON_FIELD(
		text,
		"held: from the root to the block. lost: the lost blocks that lead there. unseen: the object. unfinished: why. "
		"[*]: one of many. ?: a guess."),
	JSON_FIELD(samples, "How many of the line's samples are held so."),
	JSON_FIELD(container, "Type of the outermost object on the way that has many items; \"\" = none has many."),
	JSON_FIELD(items, "Its items."),
	JSON_FIELD(grown_at, "The line that asked for its storage last; \"\" = not known."),
	JSON_FIELD(
		call,
		"Of a Python program, whose local variable the root is. python: of a library's function. native: of native code. \"\": it is none of both."),
	JSON_FIELD(module,
	           "Of Python: of the class that has the container, else of the root; \"\" = none, or the script itself."),
	JSON_FIELD(grown_file, "The source file of grown_at; \"\" = not known."),
};
const struct json_object model_way_object = { "way", "How some samples are held.", JSON_ROWS_OF(way_fields),
	                                          sizeof(OWNER), NULL };
#undef OWNER

#define OWNER struct holders_line
static const struct json_field held_line_fields[] = {
	JSON_FIELD(place, "The line of code that asked for the blocks, as the text has it."),
	JSON_FIELD(file, "Its source file; \"\" = unknown."),
	JSON_FIELD(line, "0 = unknown."),
	JSON_FIELD(function, "\"\" = unknown."),
	JSON_FIELD(bytes, "Live bytes."),
	JSON_FIELD(blocks, "Live blocks, or objects."),
	JSON_FIELD(is_estimated, "They are small Python objects, and both figures estimates from a sample."),
	JSON_FIELD(samples, "Blocks that were drawn."),
	JSON_LIST("ways", ways, way_count, model_way, "Those of most samples first."),
};
static JSON_OBJECT_OF(held_line, NULL, "One of the largest lines.");
#undef OWNER

#define OWNER struct holders
static const struct json_field holders_fields[] = {
	JSON_FIELD_WHOLE(JSON_VERSION, "schema", "Version of this schema.", .version = MODEL_HOLDERS_SCHEMA),
	JSON_FIELD(pid, "The process."),
	JSON_FIELD(stopped_us, "For how long it stood still, in microseconds."),
	JSON_FIELD(read_bytes, "Of its memory, in all passes together."),
	JSON_FIELD(left_out_bytes, "Of blocks that were not read: samples of them hold no pointers."),
	JSON_FIELD(shared_bytes, "Of memory that is shared with other processes, which is not read."),
	JSON_FIELD(passes, "How often its memory was gone through."),
	JSON_FIELD(small_lines, "Lines that are not told: they hold less than 1/64 of what is live."),
	JSON_FIELD(import_lines, "And that hold mostly what modules keep that were imported."),
	JSON_FIELD(more_lines, "And that were not asked for (--top)."),
	JSON_FIELD(is_unfinished, "There was no time or room for more."),
	JSON_FIELD(python, "Why Python objects have no names here; \"\" = they have, or there is no Python."),
	JSON_FIELD(why, "Why nothing was found out; \"\" = it was."),
	JSON_LIST("holders", lines, line_count, held_line, "The largest first."),
};
const struct json_object model_holders_object = { "holders", "What `kmemshim holders --json` prints.",
	                                              JSON_ROWS_OF(holders_fields), sizeof(OWNER), NULL };
#undef OWNER
