/*
 * advice_kept.c - what keeps the blocks of a line alive, and what to do about that (see advice_rows.h)?
 */
#include <stdio.h>
#include <string.h>

#include "base/items.h"
#include "base/memory.h"
#include "base/text_start.h"
#include "base/units.h"
#include "verdict/advice_rows.h"
#include "verdict/words.h"

#define HOLDER_BYTES (VERDICT_WAY_BYTES + PLACE_TEXT_BYTES + 64)
#define DRAINED_MIN 3  // watched releases elsewhere, and
#define DRAINED_PART 8 // of all of the line's: fewer are no consumer's

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

/* A stack, a register or an address is nothing that a person can act on, nor is a call that goes on. */
static bool
is_named(const struct holders_way *way)
{
	return way->kind == HOLDERS_PERHAPS  ? way->step_count != 0 && way->steps[0].kind < WAY_TEMPORARY
	       : way->kind == HOLDERS_HELD   ? !model_holders_is_of_call(way)
	       : way->kind == HOLDERS_UNSEEN ? way->step_count != 0 && way->steps[0].count != 0
	                                     : way->kind == HOLDERS_LOST;
}

/* Is it the way of most samples that could be followed? */
static bool
is_of_most(const struct holders_line *held, const struct holders_way *way)
{
	uint64_t followed = SUM_OF(one, held->ways, held->way_count, one->kind != HOLDERS_UNFINISHED ? one->samples : 0);

	return way->samples >= followed - followed / 2;
}

bool
is_holder_known(const struct verdict_facts *facts, const struct rank_line *line)
{
	const struct holders_line *held = verdict_holders_of(facts, line);
	const struct holders_way *way = held != NULL ? model_holders_way(held) : NULL;

	return way != NULL && is_named(way) && !line->telling->is_of_call;
}

/* Blocks that hang on a graph of PyTorch, which hangs on one variable. False: the way goes through none. */
static bool
say_graph(const struct holders_way *way, const char *blocks, struct verdict *verdict)
{
	const struct way_step *graph = FIRST(step, way->steps, way->step_count, step->nodes != 0);

	if (graph == NULL || graph == way->steps)
		return false;

	OWNED char *nodes = model_way_graph(graph);

	say_next(
		verdict,
		"take .item() or .detach() of what %s gets%s%s: it keeps the graph of PyTorch (%s when kmemshim looked), and so "
		"%s",
		verdict_way_text(way, 0, 1, false, VERDICT_WAY_ROOM), graph->of[0] != '\0' ? " at " : "", graph->of, nodes,
		blocks);
	return true;
}

/* "a.b" is of a/b.py, or of a/b/__init__.py. */
static bool
is_module_of(const char *module, const char *file)
{
	char *name = TEXT(HOLDER_BYTES, "/%s", module);

	for (char *dot = name; (dot = strchr(dot, '.')) != NULL;)
		*dot = '/';
	return text_ends(file, TEXT(HOLDER_BYTES + 16, "%s.py", name)) ||
	       text_ends(file, TEXT(HOLDER_BYTES + 16, "%s/__init__.py", name));
}

/* Its root is a module's, or a class's of it, and another module adds to it: a library's, perhaps, which nobody bounds. */
static bool
is_grown_from_outside(const struct holders_way *way)
{
	return way->module[0] != '\0' && way->grown_file[0] != '\0' && !is_module_of(way->module, way->grown_file);
}

/*
 * What a person can act on: "the list at global `x` of module m (30 items at the look, grown at a.py:9 g)", or the way itself. A local variable of a
 * call in a library is left out. Is it a container?
 */
static bool
holder_text(const struct holders_way *way, bool is_grown_elsewhere, char text[HOLDER_BYTES])
{
	const size_t sure = way->kind == HOLDERS_HELD ? way->step_count : model_holders_sure(way);
	const size_t container = model_holders_container(way);
	const bool is_of_call = way->call != WAY_CALL_NONE;
	const bool is_cut = sure < way->step_count &&
	                    way->steps[sure].kind != WAY_BLOCK; // what it is is known, but not by what it holds
	const size_t first = is_of_call && sure + is_cut > 1;

	if (container != 0 && container < sure) {
		const size_t named = is_of_call ? container - 1 : 0; // a library's local has no name: its attribute has
		const bool is_named = !is_of_call || (named != 0 && way->steps[named].by == WAY_BY_ATTRIBUTE);

		is_grown_elsewhere |= !is_named && way->grown_at[0] != '\0'; // else nobody knows which one
		(void)snprintf(
			text, HOLDER_BYTES, "the %s%s%s (%s items at the look%s%s)", way->container, is_named ? " at " : "",
			is_named ? verdict_way_text(way, named, container - named, false, VERDICT_WAY_ROOM) : "",
			UNITS_COUNT(way->items), is_grown_elsewhere ? ", grown at " : "", is_grown_elsewhere ? way->grown_at : "");
		return true;
	}
	(void)verdict_way_text(way, first, sure + is_cut - first, is_cut, text);
	return false;
}

/*
 * The error that ended the program keeps local variables of the calls that it ended: sys.last_traceback is no name of the person's. Returns
 * the way's own steps, for free(); NULL: it stays as it was.
 */
static struct way_step *
begin_at_ended_call(struct holders_way *way)
{
	const struct way_step *root = way->steps;
	size_t local = way->step_count;

	while (local > 0 && way->steps[local - 1].by != WAY_BY_LOCAL)
		local--;
	if (local < 2 || root->kind != WAY_GLOBAL || strcmp(root->of, "sys") != 0 || !text_starts(root->name, "last_"))
		return NULL;
	struct way_step *steps = memory_zeroed(way->step_count -= local - 1, sizeof(*steps));

	memcpy(steps, &root[local - 1], way->step_count * sizeof(*steps));
	steps[0] = model_way_step(WAY_LOCAL, steps[0].member, steps[0].function);
	way->module = "";
	return steps;
}

bool
say_holder(const struct verdict_facts *facts, const struct rank_line *line, struct verdict *verdict)
{
	const struct holders_line *held = verdict_holders_of(facts, line);
	char holder[HOLDER_BYTES];

	if (!is_holder_known(facts, line))
		return false;

	const struct holders_way *const found = model_holders_way(held);
	struct holders_way own = *found;
	OWNED struct way_step *steps = facts->end == VERDICT_END_FAILED ? begin_at_ended_call(&own) : NULL;
	const struct holders_way *const way = &own;

	if (steps != NULL)
		own.steps = steps;

	const char *place = verdict_line_text(line, PLACE_ROOM);
	const char *blocks = TEXT(PLACE_TEXT_BYTES + 32, "%sthe blocks of %s", is_of_most(held, found) ? "" : "a part of ",
	                          place);

	const struct way_step *wrapper = FIRST(step, way->steps, way->step_count,
	                                       strcmp(step->name, "functools._lru_cache_wrapper") == 0);
	bool is_grown_elsewhere = model_holders_is_grown_elsewhere(way, line->largest);
	bool is_added = is_grown_elsewhere && is_grown_from_outside(way);
	bool is_container = holder_text(way, is_grown_elsewhere && !is_added, holder);

	if (way->uncollected[0] != '\0')
		say_next(
			verdict,
			"break the circle that holds the objects of %s (weakref), or give %s tp_traverse and tp_clear: the garbage collector does not see it, so gc.collect() frees none of them",
			place, way->uncollected);
	else if (model_holders_are_circles(way))
		say_next(
			verdict,
			"nothing but themselves holds the objects of %s: such circles wait for the garbage collector. Is it off "
			"(gc.disable), or does it come too seldom? Call gc.collect(), or break the circle (weakref)",
			place);
	else if (way->kind == HOLDERS_LOST && way->text[0] != '\0')
		say_next(
			verdict,
			"free %s and what leads to them: it is lost too (%s). If they count references to each other in a circle, make "
			"one of these weak",
			blocks, verdict_way_text(way, 0, way->step_count, false, VERDICT_WAY_ROOM));
	else if (way->kind == HOLDERS_LOST)
		say_next(verdict, "free %s: nothing leads to them any more", blocks);
	else if (way->kind == HOLDERS_UNSEEN)
		say_next(
			verdict,
			"look in the native extension that %s calls for a Py_DECREF that is missing: nothing holds the references that "
			"keep %s alive",
			place, blocks);
	else if (way->kind == HOLDERS_PERHAPS)
		say_next(verdict, "look at %s: perhaps it keeps %s alive", holder, blocks);
	else if (wrapper != NULL)
		say_next(verdict, "bound the cache that is %s (maxsize of lru_cache): it keeps %s alive",
		         verdict_way_text(way, 0, (size_t)(wrapper - way->steps), false, VERDICT_WAY_ROOM), blocks);
	else if (model_holders_is_unsent(way))
		say_next(
			verdict,
			"wait for the other side after each write at %s (await drain()): it reads more slowly than that, and %s wait in %s",
			place, blocks, holder);
	else if (is_container && is_added)
		say_next(
			verdict,
			"let %s add less to %s, give that a bound, or undo what it added (cancel, close, unregister): it keeps %s alive",
			way->grown_at, holder, blocks);
	else if (is_container)
		say_next(verdict, "bound %s, or drop what is not needed from it: it keeps %s alive", holder, blocks);
	else if (!say_graph(way, blocks, verdict))
		say_next(verdict, "let go of %s: they are held by %s", blocks, holder);
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
	         verdict_frame_text(kept->through, PLACE_ROOM), UNITS_COUNT_OF(kept->count, line->sample_bytes != 0),
	         UNITS_COUNT_OF(kept->allocated_count, line->sample_bytes != 0), verdict_line_text(line, PLACE_ROOM));
	if (kept->released_at != NULL)
		say_next(verdict, ", most at %s", verdict_frame_text(kept->released_at, PLACE_ROOM));
	return true;
}

const char *
if_unfinished(const struct verdict_facts *facts, const struct rank_line *line)
{
	const struct holders_line *held = verdict_holders_of(facts, line);

	return held != NULL && held->way_count != 0 && held->ways[0].kind == HOLDERS_UNFINISHED
	           ? "; `kmemshim run --holders-stop 5s` gives the search for what holds it more time"
	           : "";
}

/* In a Python program too: nothing of Python keeps what a library in C forgets to free. */
static bool
is_native(const struct verdict_facts *facts, const struct rank_line *line)
{
	return line->where != NULL ? line->where->kind == MODEL_FRAME_NATIVE : facts->live_process->python_version == 0;
}

bool
verdict_is_mapped(const struct verdict_facts *facts, const struct rank_line *line)
{
	enum domain_kind kind = facts->model->domains[line->domain].id.kind;

	return kind == DOMAIN_MMAP || kind == DOMAIN_SHARED || kind == DOMAIN_FILE;
}

/* Of a line that keeps most of its blocks: another line of the user's that releases some, as the consumer of a queue does; NULL: none does. */
static const struct model_frame *
drain_of(const struct rank_line *line)
{
	const struct model_site *site = line->telling;
	const struct model_tally *found = FIRST(release, site->releases, site->release_count,
	                                        release->where != line->where && release->where->is_user &&
	                                            release->where->line != 0 && release->count >= DRAINED_MIN &&
	                                            release->count >= site->watched_releases / DRAINED_PART);

	return found != NULL && site->live_count >= site->allocated_count / 2 ? found->where : NULL;
}

/* What keeps blocks that no look has followed. */
static const char *
often_text(const struct verdict_facts *facts, const struct rank_line *line, char text[PLACE_TEXT_BYTES + 128])
{
	const struct model_frame *drain = drain_of(line);

	if (is_native(facts, line))
		return "often a container that grows, a cache, or a release that is missing";
	if (verdict_has_tensors(facts->model))
		return "often a list that is appended to, a running sum of tensors, or a cache";
	if (drain == NULL && facts->model->domains[line->domain].id.kind == DOMAIN_PYTHON_OBJECT)
		return "often a list that is appended to, a cache, or objects in circles while the garbage collector is off (gc.disable)";
	if (drain == NULL)
		return "often a list that is appended to, or a cache";
	return memory_text_in(text, PLACE_TEXT_BYTES + 128,
	                      "often a list that is appended to, a cache, or a queue that %s drains too slowly",
	                      verdict_frame_text(drain, PLACE_ROOM));
}

/* A module's body runs in each load. False: it ran once. */
static bool
say_loads(const struct verdict_facts *facts, const struct rank_line *line, struct verdict *verdict)
{
	const struct model_frame *importer = rank_loaded_again_at(facts->model, line->telling);

	if (importer == NULL)
		return false;
	say_next(
		verdict,
		"look at %s: it loads the module of %s again and again, and what earlier loads made stays: often in sys.modules, or in a list of "
		"what was loaded",
		verdict_frame_text(importer, PLACE_ROOM), verdict_line_text(line, PLACE_ROOM));
	return true;
}

void
say_blocks_kept(const struct verdict_facts *facts, const struct rank_line *line, struct verdict *verdict)
{
	if (verdict_is_of_recursion(facts, line)) {
		say_next(
			verdict,
			"let %s call itself less deep, or hold less in each call: what %s allocates stays until the call returns",
			line->where->function, verdict_line_text(line, PLACE_ROOM));
		return;
	}
	if (say_holder(facts, line, verdict) || say_forgetful(facts, line, verdict) || say_loads(facts, line, verdict)) {
		say_next(verdict, "%s", if_data_set(verdict, line));
		return;
	}
	if (line->telling->is_of_call) {
		say_next(verdict, "load less of it at once at %s, piece by piece: the call that makes them has not returned",
		         verdict_line_text(line, PLACE_ROOM));
		return;
	}
	if (verdict->end == VERDICT_END_OK && rank_is_of_allocator(facts->model, line->telling)) {
		say_next(
			verdict,
			"no action is needed, unless something keeps what %s makes: the allocator of %s also keeps what was freed",
			verdict_line_text(line, PLACE_ROOM), line->telling->library);
		return;
	}
	if (verdict_is_mapped(facts, line)) {
		say_next(
			verdict,
			"look for what keeps the mappings of %s, or makes them larger: often objects in a list or a cache, or a buffer "
			"without a bound (kmemshim looks for holders of blocks of the heap alone)%s",
			verdict_line_text(line, PLACE_ROOM), if_data_set(verdict, line));
		return;
	}
	say_next(verdict, "look for what keeps the blocks of %s alive: %s%s%s", verdict_line_text(line, PLACE_ROOM),
	         often_text(facts, line, (char[PLACE_TEXT_BYTES + 128]){ "" }), if_unfinished(facts, line),
	         if_data_set(verdict, line));
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
