/* model_holders.c - reads the result of a look from its JSON (see model_holders.h), which is foreign input. */
#include "model/model_holders.h"

#include <stdlib.h>
#include <string.h>

#include "base/items.h"
#include "base/json_read.h"
#include "base/memory.h"
#include "base/place.h"
#include "base/text_pool.h"
#include "base/text_start.h"
#include "model/model.h"

#define MANY_PART 4 // of a line's samples: a way with less says little

struct holders
model_holders_made(uint32_t pid)
{
	return (struct holders){ .texts = text_pool_new(), .pid = pid, .python = "", .why = "" };
}

static bool
is_known(const struct way_step *step)
{
	return step->kind < WAY_STEP_COUNT && step->by < WAY_MEMBER_COUNT && step->repeat < WAY_REPEATS;
}

/* A way of a kind that is none of ours is left out; steps that are none are, and its text stays; so is what it says of a call. */
static void
keep_known_ways(struct holders_line *line)
{
	size_t kept = 0;

	EACH (way, line->ways, line->way_count) {
		if (SUM_OF(step, way->steps, way->step_count, is_known(step)) != way->step_count)
			way->step_count = 0;
		if (way->call >= WAY_CALLS)
			way->call = WAY_CALL_NONE;
		if (way->kind < HOLDERS_KINDS)
			line->ways[kept++] = *way;
	}
	line->way_count = kept;
}

struct holders *
model_holders_read(const char *text, size_t bytes)
{
	json_t *root = json_read_text(text, bytes);
	struct holders *holders = NULL;

	if (json_is_array(json_object_get(root, "holders")) &&
	    json_integer_value(json_object_get(root, "schema")) == MODEL_HOLDERS_SCHEMA) {
		holders = memory_zeroed(1, sizeof(*holders));
		*holders = model_holders_made(0);
		json_read_object(root, &model_holders_object, holders->texts, holders);
		for (size_t i = 0; i < holders->line_count; i++)
			keep_known_ways(&holders->lines[i]);
	}
	json_decref(root);
	return holders;
}

void
model_holders_free(struct holders *holders)
{
	if (holders == NULL)
		return;
	text_pool_free(holders->texts);
	*holders = (struct holders){ 0 };
}

/* The line of the heap, or that of small objects. An older look, whose ways are words alone, took both together. */
static const struct holders_line *
line_in(const struct holders *holders, const struct model_frame *where, bool is_estimated)
{
	const struct holders_line *older = NULL;

	EACH (line, holders->lines, holders->line_count) {
		if (line->line != where->line || strcmp(line->file, where->file) != 0 ||
		    strcmp(line->function, where->function) != 0)
			continue;
		if (line->is_estimated == is_estimated)
			return line;
		older = line->is_estimated && !ANY(way, line->ways, line->way_count, way->step_count != 0) ? line : older;
	}
	return older;
}

bool
model_holders_are_circles(const struct holders_way *way)
{
	return way->uncollected[0] != '\0' ||
	       (way->kind == HOLDERS_LOST && way->step_count != 0 && way->steps[0].kind == WAY_OBJECT);
}

bool
model_holders_is_unsent(const struct holders_way *way)
{
	return ANY(step, way->steps, way->step_count,
	           text_starts(step->name, "asyncio.") && strstr(step->name, "Transport") != NULL &&
	               step->by == WAY_BY_ATTRIBUTE && strcmp(step->member, "_buffer") == 0);
}

bool
model_holders_came_late(const struct holders *holders)
{
	const struct holders_way *way = holders->line_count != 0 ? model_holders_way(&holders->lines[0]) : NULL;

	return way != NULL && ANY(step, way->steps, way->step_count, step->kind == WAY_RELEASED);
}

const struct holders_line *
model_holders_of(const struct model *model, const struct model_frame *where, enum domain_kind kind)
{
	const struct holders_line *found = NULL;
	uint64_t newest_ns = 0;

	if (!domain_is_heap(kind) && kind != DOMAIN_PYTHON_OBJECT)
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
model_holders_is_grown_elsewhere(const struct holders_way *way, const struct model_site *site)
{
	const struct model_frame *where = site->where;
	char place[PLACE_TEXT_BYTES];

	(void)place_text(where->file, where->line, where->function, where->module, where->module_offset, place);
	return way->grown_at[0] != '\0' &&
	       strcmp(way->grown_at, place_related(model_relation_name(site->where_relation), place)) != 0;
}

static enum way_step_kind
root_of(const struct holders_way *way)
{
	return way->step_count != 0 ? way->steps[0].kind : WAY_STEP_COUNT;
}

bool
model_holders_is_of_call(const struct holders_way *way)
{
	const enum way_step_kind root = root_of(way);

	/* What an expression makes has no name yet. An object whose method runs is such a value, too: its attributes have names. */
	return way->call == WAY_CALL_NATIVE || root == WAY_STACK || root == WAY_REGISTER ||
	       (root == WAY_TEMPORARY && way->step_count > 1 &&
	        !ANY(step, way->steps, way->step_count, step->by == WAY_BY_ATTRIBUTE));
}

bool
model_holders_is_local_of(const struct holders_way *way, const char *function)
{
	return root_of(way) == WAY_LOCAL && function[0] != '\0' && text_starts(way->steps[0].of, function) &&
	       way->steps[0].of[strlen(function)] == '(';
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

size_t
model_holders_container(const struct holders_way *way)
{
	const struct way_step *container = FIRST(step, way->steps, way->step_count, step->is_container);

	return container != NULL ? (size_t)(container - way->steps) : 0;
}

size_t
model_holders_sure(const struct holders_way *way)
{
	const struct way_step *guess = FIRST(step, way->steps, way->step_count,
	                                     step->by >= WAY_BY_PLACE || (step->kind == WAY_BLOCK && step->of[0] == '\0'));

	return guess != NULL ? (size_t)(guess - way->steps) : way->step_count;
}

/* A guess that ends with a call is told where there is nothing better: it may be what was left over, or a copy under way. */
static bool
may_be_told(const struct holders_line *line, const struct holders_way *way, bool is_any)
{
	return way->kind != HOLDERS_UNFINISHED && way->samples >= line->samples / MANY_PART &&
	       (is_any || way->kind != HOLDERS_PERHAPS || !model_holders_is_of_call(way));
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

	return first != NULL && first->kind != HOLDERS_UNFINISHED && first->samples >= line->samples / MANY_PART ? first
	                                                                                                         : NULL;
}
