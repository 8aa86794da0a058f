/*
 * advice_kept.c - what keeps the blocks of a line alive, and what to do about that (see advice_rows.h)?
 */
#include <string.h>

#include "base/units.h"
#include "verdict/advice_rows.h"
#include "verdict/words.h"

/* Of a sure leak it would take back what was just said. */
const char *
if_data_set(const struct verdict *verdict, const struct rank_line *line)
{
	bool may_be_one = line->leak == MODEL_LEAK_LEAK && rank_may_be_built_once(line->telling);

	if (line->leak != MODEL_LEAK_LEAK || line->telling->volume_bytes == 0)
		return "";
	if (verdict->cause == VERDICT_CHILD_KILLED)
		return may_be_one ? "; if it is a data set, load less of it at once, or give the program more memory" : "";
	if (verdict->end != VERDICT_END_OK)
		return may_be_one ? "; if it is a data set, load less of it at once" : "";
	if (line->released_bytes >= line->live_bytes / 2)
		return "; unless all of it is meant to be kept until the program exits";
	return verdict->lost_child == NULL && may_be_one ? "; if it is a data set, no action is needed" : "";
}

/* A stack or a register is nothing that a person can act on. */
bool
is_holder_known(const struct verdict_facts *facts, const struct rank_line *line)
{
	const struct holders_line *held = verdict_holders_of(facts, line);
	const struct holders_way *way = held != NULL ? model_holders_way(held) : NULL;

	return way != NULL &&
	       ((strcmp(way->kind, "held") == 0 && !model_holders_is_of_call(way)) || strcmp(way->kind, "lost") == 0);
}

/* Where the graph's first nodes were made: " of train.py:28 fit, one after another, grad_fn chain ...". Returns bytes. */
static size_t
graph_place(const char *way, const char *graph, const char **place)
{
	*place = graph;
	for (const char *at = strstr(way, " -> block"); at != NULL && at < graph; at = strstr(at + 1, " -> block"))
		*place = strstr(at, " of ");
	if (*place >= graph)
		return 0;
	*place += strlen(" of ");

	size_t bytes = strcspn(*place, ",");

	return memchr(*place, ':', bytes) != NULL ? bytes : 0; // else it is of no line: "of 80 bytes?"
}

/* Blocks that hang on a graph of PyTorch, which hangs on one variable. False: the way goes through none. */
static bool
say_graph(const struct holders_way *way, const char *line, struct verdict *verdict)
{
	const char *graph = strstr(way->text, "grad_fn chain of ");
	const char *nodes = graph != NULL ? strstr(graph, " nodes") : NULL;
	const char *root_end = strstr(way->text, " -> ");
	const char *place;

	if (nodes == NULL || root_end == NULL || root_end > graph)
		return false;

	size_t place_bytes = graph_place(way->text, graph, &place);

	say_next(
		verdict,
		"take .item() or .detach() of what %s gets%s%.*s: it keeps the graph of PyTorch (%.*s nodes when kmemshim looked), and so "
		"the blocks of %s",
		verdict_way_text(way, (size_t)(root_end - way->text), VERDICT_WAY_ROOM), place_bytes != 0 ? " at " : "",
		(int)place_bytes, place, (int)(nodes - graph), graph, line);
	return true;
}

bool
say_holder(const struct verdict_facts *facts, const struct rank_line *line, struct verdict *verdict)
{
	static const char cache[] = " -> functools._lru_cache_wrapper";
	const struct holders_line *held = verdict_holders_of(facts, line);
	const struct holders_way *way = held != NULL ? model_holders_way(held) : NULL;
	bool is_held = way != NULL && strcmp(way->kind, "held") == 0;
	const char *wrapper = is_held ? strstr(way->text, cache) : NULL;
	size_t container = is_held ? model_holders_container(way) : 0;
	char place[PLACE_TEXT_BYTES];

	(void)verdict_line_text(line, place);

	bool is_grown_elsewhere = is_held && way->grown_at[0] != '\0' && strcmp(way->grown_at, place) != 0;

	if (way != NULL && model_holders_are_circles(way))
		say_next(
			verdict,
			"nothing but themselves holds the objects of %s: such circles wait for the garbage collector. Is it off "
			"(gc.disable), or does it come too seldom? Call gc.collect(), or break the circle (weakref)",
			place);
	else if (way != NULL && strcmp(way->kind, "lost") == 0)
		say_next(verdict, "free the blocks of %s: nothing leads to them any more", place);
	else if (wrapper != NULL)
		say_next(verdict, "bound the cache that is %s (maxsize of lru_cache): it keeps the blocks of %s alive",
		         verdict_way_text(way, (size_t)(wrapper - way->text), VERDICT_WAY_ROOM), place);
	else if (container != 0)
		say_next(
			verdict,
			"bound the %s at %s (%s items%s%s), or drop what is not needed from it: it keeps the blocks of %s alive",
			way->container, verdict_way_text(way, container, VERDICT_WAY_ROOM), UNITS_COUNT(way->items),
			is_grown_elsewhere ? ", grown at " : "", is_grown_elsewhere ? way->grown_at : "", place);
	else if (!is_held)
		return false;
	else if (!say_graph(way, place, verdict))
		say_next(verdict, "let go of the blocks of %s: they are held by %s", place,
		         verdict_way_text(way, strlen(way->text), VERDICT_WAY_ROOM));
	return true;
}

/* One caller forgets what the others do. False: there is none. */
static bool
say_forgetful(const struct verdict_facts *facts, const struct rank_line *line, struct verdict *verdict)
{
	const struct verdict_kept *kept = &facts->top_kept;

	if (kept->count == 0 || line->largest != facts->top_live.largest)
		return false;
	say_next(verdict,
	         "look at %s: %s of %s blocks that %s allocated for it stay, and those of other callers are released",
	         verdict_frame_text(kept->through, PLACE_ROOM), UNITS_COUNT(kept->count),
	         UNITS_COUNT(kept->allocated_count), verdict_line_text(line, PLACE_ROOM));
	if (kept->released_at != NULL)
		say_next(verdict, ", most at %s", verdict_frame_text(kept->released_at, PLACE_ROOM));
	return true;
}

const char *
if_unfinished(const struct verdict_facts *facts, const struct rank_line *line)
{
	const struct holders_line *held = verdict_holders_of(facts, line);

	return held != NULL && held->way_count != 0 && strcmp(held->ways[0].kind, "unfinished") == 0
	           ? "; `kmemshim run --holders-stop 5s` gives the search for what holds it more time"
	           : "";
}

/* In a Python program too: nothing of Python keeps what a library in C forgets to free. */
static bool
is_native(const struct verdict_facts *facts, const struct rank_line *line)
{
	return line->where != NULL ? line->where->kind == MODEL_FRAME_NATIVE : facts->live_process->python_version == 0;
}

void
say_blocks_kept(const struct verdict_facts *facts, const struct rank_line *line, struct verdict *verdict)
{
	if (say_holder(facts, line, verdict) || say_forgetful(facts, line, verdict)) {
		say_next(verdict, "%s", if_data_set(verdict, line));
		return;
	}
	if (line->telling->is_of_call) {
		say_next(verdict, "load less of it at once at %s, piece by piece: the call that makes them has not returned",
		         verdict_line_text(line, PLACE_ROOM));
		return;
	}
	say_next(verdict, "look for what keeps the blocks of %s alive: %s%s%s", verdict_line_text(line, PLACE_ROOM),
	         is_native(facts, line) ? "often a container that grows, a cache, or a release that is missing"
	         : verdict_has_tensors(facts->model)
	             ? "often a list that is appended to, a running sum of tensors, or a cache"
	             : "often a list that is appended to, or a cache",
	         if_unfinished(facts, line), if_data_set(verdict, line));
}

void
say_tensors_kept(const struct rank_line *line, const char *otherwise, struct verdict *verdict)
{
	say_next(
		verdict,
		"look for what keeps the tensors of %s alive: often losses in a list or a running sum (take loss.item()), or outputs "
		"that are collected (.detach().cpu())%s",
		verdict_line_text(line, PLACE_ROOM), otherwise);
}

void
say_growth_kept(const struct verdict_facts *facts, const struct rank_line *growing, struct verdict *verdict)
{
	bool was_short = verdict_was_memory_short(verdict->cause) && facts->refused == NULL;

	if (facts->model->domains[growing->domain].id.kind == DOMAIN_TENSORS)
		say_tensors_kept(growing, if_data_set(verdict, growing), verdict);
	else
		say_blocks_kept(facts, growing, verdict);
	if (was_short && facts->last_taker.site_count != 0) {
		add_advice("hold-less", verdict);
		say_next(verdict, "; or hold less at once at %s, which took much last",
		         verdict_line_text(&facts->last_taker, PLACE_ROOM));
	}
	if (was_short && facts->pace_bytes != 0) {
		add_advice("more-memory", verdict);
		say_next(verdict, "; to finish this run first, give it more memory: it took %s more each minute",
		         UNITS_BYTES(facts->pace_bytes));
	}
}
