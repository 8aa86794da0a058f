/*
 * words.c - which words do sentences share?
 *
 * A line is where memory "was allocated". A text is appended to what is there.
 *
 * When full  texts are cut.
 */
#include "verdict/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/items.h"
#include "base/memory.h"
#include "base/text_clean.h"
#include "base/text_start.h"
#include "base/units.h"
#include "model/model_library.h"

#define WORTH_BYTES (UINT64_C(1) << 20) // less is not said of a process
#define KIND_PART 100                   // of a line that has several kinds of memory, less is not a kind of its own
#define RECURSION_FRAMES 64             // of one function: no data that is parsed is so deep

const char *
verdict_frame_text(const struct model_frame *frame, char text[PLACE_TEXT_BYTES])
{
	return place_text(frame->file, frame->line, frame->function, frame->module, frame->module_offset, text);
}

const char *
verdict_line_text(const struct rank_line *line, char text[PLACE_TEXT_BYTES])
{
	if (line->where == NULL)
		return place_text("", 0, "", "", 0, text);
	(void)verdict_frame_text(line->where, text);
	return place_related(line->largest != NULL ? model_relation_name(line->largest->where_relation) : "", text);
}

const char *
verdict_steps_text(const struct line_steps *kept, char text[VERDICT_STEPS_BYTES])
{
	const struct model_frame *where = kept->from->where;
	const char *slash = where != NULL ? strrchr(where->file, '/') : NULL;
	bool is_loop = kept->from->source == KMEM_STEPS_LOOP;

	const char *number = UNITS_COUNT(is_loop ? units_rounded(kept->count, 2) : kept->count);
	(void)snprintf(text, VERDICT_STEPS_BYTES, "%s%s %s", is_loop ? "about " : "", number,
	               is_loop                                  ? "rounds"
	               : kept->from->source == KMEM_STEPS_CELLS ? "cells"
	                                                        : "steps");
	if (is_loop && where != NULL && where->line != 0)
		memory_text_add(text, VERDICT_STEPS_BYTES, " (seen at %.200s:%" PRIu32 ")",
		                slash != NULL ? slash + 1 : where->file, where->line);
	if (kept->since_ms != 0)
		memory_text_add(text, VERDICT_STEPS_BYTES, " since second %.1f of the run", (double)kept->since_ms / 1e3);
	if (kept->bytes_per_hour != 0)
		memory_text_add(text, VERDICT_STEPS_BYTES, ", %s an hour", UNITS_BYTES(kept->bytes_per_hour));
	(void)text_clean(text, strlen(text));
	return text;
}

const char *
verdict_where_word(const struct verdict_facts *facts, const struct rank_line *line, char text[VERDICT_WORD_BYTES])
{
	const struct model_runtime *runtime = line->largest != NULL ? model_runtime_of(facts->model, line->largest) : NULL;

	if (runtime != NULL) {
		return memory_text_in(text, VERDICT_WORD_BYTES, "in the heap of %s, which grew at", runtime->name);
	}
	if (line->sample_bytes != 0 && facts->model->domains[line->domain].id.kind == DOMAIN_PYTHON_OBJECT &&
	    line->exact_bytes <= line->score_bytes / KIND_PART)
		return "small Python objects allocated at";
	if (line->largest == NULL || line->largest->library == NULL)
		return verdict_is_rest_of_arenas(line) ? "kept by Python, though"
		       : verdict_is_arena(facts, line) ? "in"
		                                       : "allocated at";
	return memory_text_in(text, VERDICT_WORD_BYTES, "in the allocator of %s, which grew (estimated) at",
	                      text_cleaned(TEXT(64, "%s", line->largest->library)));
}

const char *
verdict_process_text(const struct model_process *process, char text[PLACE_TEXT_BYTES])
{
	const char *name = text_cleaned(TEXT(PLACE_TEXT_BYTES - 32, "%s", process->name));

	return memory_text_in(text, PLACE_TEXT_BYTES, "%s (pid %" PRIu32 ")", name, process->identity->pid);
}

void
verdict_add_held(const struct model_process *process, char *text, size_t bytes)
{
	uint64_t peak_bytes = verdict_peak_of(process);
	bool is_copied_unknown = process->copied_bytes < WORTH_BYTES && process->inherited_bytes >= WORTH_BYTES &&
	                         !model_is_copied_known(process);

	memory_text_add(text, bytes, "%s", UNITS_BYTES(process->live_bytes));
	if (peak_bytes / 2 > process->live_bytes && peak_bytes >= WORTH_BYTES)
		memory_text_add(text, bytes, " (%s at its peak)", UNITS_BYTES(peak_bytes));
	if (process->copied_bytes >= WORTH_BYTES)
		memory_text_add(text, bytes, " and had copied at least %s of its parent's", UNITS_BYTES(process->copied_bytes));
	memory_text_add(text, bytes, ".");
	if (is_copied_unknown)
		memory_text_add(text, bytes, " It is not known how much it copied of its parent's %s.",
		                UNITS_BYTES(process->inherited_bytes));
}

const char *
verdict_wanted_text(const struct model *model, const struct model_failed *refused, char text[VERDICT_STEPS_BYTES])
{
	struct rank_line line = { .where = refused->site != NULL ? refused->site->where : NULL, .largest = refused->site };

	memory_text_in(text, VERDICT_STEPS_BYTES, "for %s in %s", UNITS_BYTES(refused->bytes),
	               model->domains[refused->domain].name);
	if (line.where != NULL)
		memory_text_add(text, VERDICT_STEPS_BYTES, " at %s", verdict_line_text(&line, PLACE_ROOM));
	return text;
}

/* Is it held by something that is there when the call has returned? */
static bool
is_held_beyond_call(const struct verdict_facts *facts, const struct rank_line *line)
{
	const struct holders_line *held = verdict_holders_of(facts, line);
	const struct holders_way *way = held != NULL ? model_holders_way(held) : NULL;

	return way != NULL && way->kind == HOLDERS_HELD && !model_holders_is_of_call(way) &&
	       !model_holders_is_local_of(way, line->where->function);
}

bool
verdict_is_of_recursion(const struct verdict_facts *facts, const struct rank_line *line)
{
	const struct model_site *site = line->telling;

	return line->where != NULL && !is_held_beyond_call(facts, line) &&
	       SUM_OF(frame, site->frames, site->frame_count,
	              strcmp((*frame)->function, line->where->function) == 0 &&
	                  strcmp((*frame)->file, line->where->file) == 0) >= RECURSION_FRAMES;
}

const char *
verdict_way_text(const struct holders_way *way, size_t first, size_t count, bool is_cut, char text[VERDICT_WAY_BYTES])
{
	static const char arrow[] = " -> ";
	OWNED char *words = model_way_words(way, first, count, is_cut);
	size_t bytes = strlen(words);

	if (bytes < VERDICT_WAY_BYTES)
		return memory_text_in(text, VERDICT_WAY_BYTES, "%s", words);
	/* Its first and its last steps tell most. */
	const char *last = strstr(&words[bytes - VERDICT_WAY_BYTES / 2], arrow) ?: "";
	size_t room = VERDICT_WAY_BYTES - sizeof(" -> ...") - strlen(last);
	size_t head = room;

	while (head > 0 && !text_starts(&words[head], arrow))
		head--;
	if (head == 0)
		return memory_text_in(text, VERDICT_WAY_BYTES, "%.*s ...%s", (int)text_whole(words, room), words, last);
	return memory_text_in(text, VERDICT_WAY_BYTES, "%.*s -> ...%s", (int)head, words, last);
}

const char *
verdict_way_short(const struct holders_way *way, char text[VERDICT_WAY_BYTES])
{
	const struct way_step *graph = FIRST(step, way->steps, way->step_count, step->nodes != 0);

	if (graph == NULL || graph == way->steps)
		return verdict_way_text(way, 0, way->step_count, false, text);
	return memory_text_in(text, VERDICT_WAY_BYTES, "%s through %s%s linked graph nodes",
	                      verdict_way_text(way, 0, 1, false, VERDICT_WAY_ROOM), graph->is_graph_cut ? "at least " : "",
	                      UNITS_COUNT(graph->nodes));
}
