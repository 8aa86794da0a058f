/* model_holders.c - reads the result of a look from its JSON (see model_holders.h). It is foreign input: every text is cleaned. */
#include "model/model_holders.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "base/memory.h"
#include "base/text_clean.h"
#include "base/text_start.h"
#include "base/units.h"
#include "model/model.h"

#define ENTRIES_MAX 4096u // of an array: more is not ours
#define MANY_PART 4       // of a line's samples: a way with less says little

const char *const model_holders_kinds[] = { "held", "perhaps", "lost", "unseen", "unread", "unfinished", NULL };

static char *
text_in(const json_t *object, const char *name)
{
	const char *found = json_string_value(json_object_get(object, name));

	return text_cleaned(memory_text(found != NULL ? found : ""));
}

static uint64_t
number_in(const json_t *object, const char *name)
{
	json_int_t number = json_integer_value(json_object_get(object, name));

	return number > 0 ? (uint64_t)number : 0;
}

/* One of model_holders_kinds, by address; NULL: another word. */
static const char *
kind_in(const json_t *object)
{
	const char *found = json_string_value(json_object_get(object, "kind"));
	size_t i = 0;

	while (model_holders_kinds[i] != NULL && (found == NULL || strcmp(model_holders_kinds[i], found) != 0))
		i++;
	return model_holders_kinds[i];
}

static size_t
count_in(const json_t *array)
{
	size_t count = json_array_size(array);

	return count < ENTRIES_MAX ? count : ENTRIES_MAX;
}

static void
read_line(const json_t *from, struct holders_line *line)
{
	const json_t *ways = json_object_get(from, "ways");

	*line = (struct holders_line){
		.place = text_in(from, "place"),
		.file = text_in(from, "file"),
		.function = text_in(from, "function"),
		.line = (uint32_t)number_in(from, "line"),
		.bytes = number_in(from, "bytes"),
		.blocks = number_in(from, "blocks"),
		.is_estimated = json_is_true(json_object_get(from, "is_estimated")),
		.samples = number_in(from, "samples"),
	};
	line->ways = memory_zeroed(count_in(ways) + 1, sizeof(*line->ways));
	for (size_t i = 0; i < count_in(ways); i++) {
		const json_t *way = json_array_get(ways, i);

		if (kind_in(way) != NULL)
			line->ways[line->way_count++] = (struct holders_way){
				.kind = kind_in(way),
				.text = text_in(way, "text"),
				.samples = number_in(way, "samples"),
				.container = text_in(way, "container"),
				.items = number_in(way, "items"),
				.grown_at = text_in(way, "grown_at"),
				.call = text_in(way, "call"),
			};
	}
}

struct holders *
model_holders_read(const char *text, size_t bytes)
{
	json_t *root = json_read_text(text, bytes);
	const json_t *lines = json_object_get(root, "holders");
	struct holders *holders = NULL;

	if (json_is_array(lines) && number_in(root, "schema") == MODEL_HOLDERS_SCHEMA) {
		holders = memory_zeroed(1, sizeof(*holders));
		*holders = (struct holders){
			.pid = (uint32_t)number_in(root, "pid"),
			.stopped_us = number_in(root, "stopped_us"),
			.read_bytes = number_in(root, "read_bytes"),
			.left_out_bytes = number_in(root, "left_out_bytes"),
			.shared_bytes = number_in(root, "shared_bytes"),
			.passes = (uint32_t)number_in(root, "passes"),
			.small_lines = number_in(root, "small_lines"),
			.import_lines = number_in(root, "import_lines"),
			.more_lines = number_in(root, "more_lines"),
			.is_unfinished = json_is_true(json_object_get(root, "is_unfinished")),
			.python = text_in(root, "python"),
			.why = text_in(root, "why"),
		};
		holders->lines = memory_zeroed(count_in(lines) + 1, sizeof(*holders->lines));
		for (size_t i = 0; i < count_in(lines); i++)
			read_line(json_array_get(lines, i), &holders->lines[holders->line_count++]);
	}
	json_decref(root);
	return holders;
}

static void
free_text(const char *text)
{
	free((void *)(uintptr_t)text);
}

void
model_holders_free_way(struct holders_way *way)
{
	free_text(way->text);
	free_text(way->container);
	free_text(way->grown_at);
	free_text(way->call);
}

void
model_holders_free_line(struct holders_line *line)
{
	for (size_t i = 0; i < line->way_count; i++)
		model_holders_free_way(&line->ways[i]);
	free_text(line->place);
	free_text(line->file);
	free_text(line->function);
	free(line->ways);
}

void
model_holders_free(struct holders *holders)
{
	if (holders == NULL)
		return;
	for (size_t i = 0; i < holders->line_count; i++)
		model_holders_free_line(&holders->lines[i]);
	free(holders->lines);
	free_text(holders->python);
	free_text(holders->why);
	*holders = (struct holders){ 0 };
}

/* The line of the heap, or that of small objects. An older look took both together: its lines are of the heap. */
static const struct holders_line *
line_in(const struct holders *holders, const struct model_frame *where, bool is_estimated)
{
	const struct holders_line *older = NULL;

	for (size_t i = 0; i < holders->line_count; i++) {
		const struct holders_line *line = &holders->lines[i];

		if (line->line != where->line || strcmp(line->file, where->file) != 0 ||
		    strcmp(line->function, where->function) != 0)
			continue;
		if (line->is_estimated == is_estimated)
			return line;
		older = line->is_estimated ? line : older;
	}
	return older;
}

bool
model_holders_are_circles(const struct holders_way *way)
{
	return strcmp(way->kind, "lost") == 0 && way->text[0] != '\0' && !text_starts(way->text, "block");
}

const struct holders_line *
model_holders_of(const struct model *model, const struct model_frame *where, enum domain_kind kind)
{
	const struct holders_line *found = NULL;
	uint64_t newest_ns = 0;

	if (kind != DOMAIN_HEAP && kind != DOMAIN_PYTHON_OBJECT)
		return NULL;
	for (size_t i = 0; i < model->process_count && where != NULL; i++) {
		const struct holders *holders = model->processes[i].holders;
		const struct holders_line *line = holders != NULL && holders->monotonic_ns >= newest_ns
		                                      ? line_in(holders, where, kind == DOMAIN_PYTHON_OBJECT)
		                                      : NULL;

		if (line == NULL)
			continue;
		found = line;
		newest_ns = holders->monotonic_ns;
	}
	return found;
}

bool
model_holders_is_of_call(const struct holders_way *way)
{
	return strcmp(way->call, "native") == 0 || text_starts(way->text, "the stack of thread ") ||
	       text_starts(way->text, "a register of thread ");
}

bool
model_holders_is_local_of(const struct holders_way *way, const char *function)
{
	static const char middle[] = "` of ";
	const char *found = text_starts(way->text, "local `") ? strstr(way->text, middle) : NULL;

	return found != NULL && function[0] != '\0' && text_starts(found + strlen(middle), function) &&
	       found[strlen(middle) + strlen(function)] == '(';
}

const struct holders *
model_holders_look(const struct model *model, const struct holders_line *line)
{
	const struct holders *found = NULL;

	for (size_t i = 0; i < model->process_count; i++) {
		const struct holders *holders = model->processes[i].holders;

		if (holders != NULL && line >= holders->lines && line < holders->lines + holders->line_count)
			found = holders;
	}
	return found;
}

static bool
is_part_of_number(const char *text)
{
	text += *text == ',';
	return *text >= '0' && *text <= '9';
}

size_t
model_holders_container(const struct holders_way *way)
{
	if (way->container[0] == '\0')
		return 0;

	OWNED char *wanted = memory_printed(" -> %s of %s", way->container, UNITS_COUNT(way->items));
	const char *at = strstr(way->text, wanted);

	while (at != NULL && is_part_of_number(at + strlen(wanted)))
		at = strstr(at + 1, wanted);
	return at != NULL ? (size_t)(at - way->text) : 0;
}

/* A guess that ends with a call is told where there is nothing better: it may be what was left over, or a copy under way. */
static bool
may_be_told(const struct holders_line *line, const struct holders_way *way, bool is_any)
{
	return strcmp(way->kind, "unfinished") != 0 && way->samples >= line->samples / MANY_PART &&
	       (is_any || strcmp(way->kind, "perhaps") != 0 || !model_holders_is_of_call(way));
}

void
model_holders_put_found_first(struct holders_line *line)
{
	size_t found = line->way_count;

	for (unsigned is_any = 0; is_any <= 1 && found == line->way_count; is_any++) {
		for (found = 0; found < line->way_count && !may_be_told(line, &line->ways[found], is_any != 0);)
			found++;
	}
	if (found == line->way_count)
		return;
	struct holders_way first = line->ways[found];

	memmove(&line->ways[1], &line->ways[0], found * sizeof(line->ways[0]));
	line->ways[0] = first;
}

const struct holders_way *
model_holders_way(const struct holders_line *line)
{
	const struct holders_way *first = line->way_count != 0 ? &line->ways[0] : NULL;

	return first != NULL && strcmp(first->kind, "unfinished") != 0 && first->samples >= line->samples / MANY_PART
	           ? first
	           : NULL;
}
