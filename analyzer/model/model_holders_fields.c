/* model_holders_fields.c - the fields of a look's JSON: it is printed, kept in captures, and a part of reports. */
#include <stddef.h>

#include "base/json_fields.h"
#include "model/model_holders.h"

#define OWNER struct way_step
static const struct json_field step_fields[] = {
	JSON_FIELD_OF(JSON_ENUM, "kind", kind, "A root, which is first, an object of Python, a block, or what is left out.",
	              .value_of = model_way_step_kind),
	JSON_FIELD(name, "Of a variable; the type of an object, the types of C++ of a block.", .without = JSON_LEFT_OUT),
	JSON_FIELD(of, "The function, module, class or library of a variable; the line that asked for a block.",
	           .without = JSON_LEFT_OUT),
	JSON_FIELD(
		count,
		"Of an object its items, where they are many; bytes of a block; the thread of a root; steps that are left out.",
		.without = JSON_LEFT_OUT),
	JSON_FIELD_OF(JSON_ENUM, "by", by, "By what it holds the next one; place and temporary are guesses.",
	              .value_of = model_way_member),
	JSON_FIELD(member, "The name, key, index or offset of that; *: one of many.", .without = JSON_LEFT_OUT),
	JSON_FIELD(function, "Whose local variable, or temporary value, that is.", .without = JSON_LEFT_OUT),
	JSON_FIELD_OF(JSON_ENUM, "repeat", repeat,
	              "Of several alike, one after another, each one holds the next by that, or the last one does.",
	              .value_of = model_way_repeat),
	JSON_FIELD(nodes, "Of a graph of PyTorch that begins here.", .without = JSON_LEFT_OUT),
	JSON_FIELD(is_graph_cut, "It has more of them.", .without = JSON_LEFT_OUT),
	JSON_FIELD(is_container, "The container that the way names.", .without = JSON_LEFT_OUT),
};
static JSON_OBJECT_OF(step, NULL, "An object, a block or a root on a way.");
#undef OWNER

#define OWNER struct holders_way
static const struct json_field way_fields[] = {
	JSON_FIELD_OF(
		JSON_ENUM, "kind", kind,
		"held: by a root. perhaps: by a word that may be left over. lost: no pointer leads there, or lost blocks alone. unseen: an object of Python has references "
		"that were found nowhere. unread: nothing leads there in what was read, and not all was. unfinished: there was "
		"no time or room to find it, or the way is very long.",
		.value_of = model_holders_kind),
	JSON_FIELD(text, "Its steps in words. [*]: one of many. ?: a guess."),
	JSON_LIST(
		"steps", steps, step_count, step,
		"held: from the root to the block. lost: the lost blocks that lead there. unseen: the object. unfinished: why."),
	JSON_FIELD(samples, "How many of the line's samples are held so."),
	JSON_FIELD(container, "Type of the outermost object on the way that has many items; \"\" = none has many."),
	JSON_FIELD(items, "Its items."),
	JSON_FIELD(grown_at, "The line that asked for its storage last; \"\" = not known."),
	JSON_FIELD_OF(
		JSON_ENUM, "call", call,
		"Of a Python program, whose local variable the root is. python: of a library's function. native: of native code. \"\": it is none of both.",
		.value_of = model_way_call),
	JSON_FIELD(module,
	           "Of Python: of the class that has the container, else of the root; \"\" = none, or the script itself."),
	JSON_FIELD(grown_file, "The source file of grown_at; \"\" = not known."),
	JSON_FIELD(uncollected,
	           "Of a circle, a type that the garbage collector cannot see, so that it frees none of it; \"\" = none."),
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
	JSON_FIELD(released_lines, "And most of which was released when the program was looked at."),
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
