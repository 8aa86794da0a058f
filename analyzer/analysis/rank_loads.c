/*
 * rank_loads.c - is what a line keeps a data set that was loaded once, or a leak?
 *
 * Both have blocks of all generations. A load has an end, or does little else while it runs, or a call that has not returned holds it.
 */
#include <stdlib.h>
#include <string.h>

#include "analysis/rank.h"
#include "base/amount.h"
#include "base/hash.h"
#include "base/items.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/text_start.h"
#include "model/model_holders.h"
#include "model/site_key.h"

#define LOADED_PART 4                   // of all, by a line below which nearly all was allocated:
#define THROUGH_PART 4                  // this part may be elsewhere
#define LOADED_BLOCKS_MIN 1024          // of the rows of a data set that is loaded by several lines, or parsed
#define STOPPED_NS UINT64_C(1000000000) // a program that ends takes a part of this, and adds nothing
#define STOPPED_PART 16                 // less than this part of it may come later
#define WORK_POINTS_MIN 8               // who waits allocates nothing, and so has no points
#define SUDDEN_PART 4                   // in its last quarter it came to more than four times as much
#define STEPS_MIN 6                     // a line that keeps a block in each of so many steps is no data set

/* A data set is not loaded with one block in each step or notebook cell. Recognised rounds are too rough for this. */
static bool
keeps_in_each_step(const struct model *model, const struct model_site *site, uint64_t live_count)
{
	enum kmem_step_source source = model->processes[site->process].steps.source;

	return (source == KMEM_STEPS_PROGRAM || source == KMEM_STEPS_CELLS) && site->process_count == 1 &&
	       site->steps >= STEPS_MIN && live_count * 4 >= site->steps * 3 && !site->has_paused;
}

/*
 * For each process: when did the last line of the user's appear that no import runs? Module bodies that began before it have ended. For
 * free().
 */
static uint64_t *
find_latest_lines(const struct model *model)
{
	uint64_t *latest_ms = memory_zeroed(model->process_count, sizeof(*latest_ms));

	EACH (site, model->sites, model->site_count) {
		if (site->first_ms > latest_ms[site->process] && site->where != NULL && site->where->is_user &&
		    !rank_is_below_import(site) && !rank_is_import(site))
			latest_ms[site->process] = site->first_ms;
	}
	return latest_ms;
}

/* Did the other allocate between two ticks in which the site did? */
static bool
is_interleaved(const struct model_site *site, const struct model_site *other)
{
	bool has_begun = false;
	bool is_past = false;

	for (uint32_t tick = 0; tick <= KMEM_CLOCK_MAX; tick++) {
		bool is_born = model_has_tick(site->ticks.born, tick);

		if (is_born && is_past)
			return true;
		is_past = is_past || (has_begun && model_has_tick(other->ticks.born, tick));
		has_begun = has_begun || is_born;
	}
	return false;
}

/* The line outside of the body, of the user's, that imports the module. */
static const struct model_frame *
importer_of(const struct model_site *site)
{
	bool is_past = false;

	for (uint32_t i = 0; i < site->frame_count; i++) {
		if (is_past && site->frames[i]->is_user)
			return site->frames[i];
		is_past = is_past || site->frames[i]->is_importlib;
	}
	return NULL;
}

const struct model_frame *
rank_loaded_again_at(const struct model *model, const struct model_site *site)
{
	const struct model_frame *importer = rank_is_below_import(site) ? importer_of(site) : NULL;
	bool is_again = importer != NULL &&
	                ANY(other, model->sites, model->site_count,
	                    other->process == site->process && other->where == importer && is_interleaved(site, other));

	return is_again ? importer : NULL;
}

ORDER_OF_POINTERS(compare_functions, struct model_site,
                  order_numbers(a->process, b->process) ?: rank_compare_functions(a, b))
ORDER_OF_POINTERS(compare_lines_of_functions, struct model_site,
                  compare_functions(left, right) ?: order_numbers(a->where->line, b->where->line))

/* What the lines of a function at which something leaks allocated: what leaks, and all of their other stacks; and the one that holds most. */
struct loading {
	uint64_t bytes;
	uint64_t live_count; // of what leaks
	const struct model_site *largest;
};

static struct loading
loading_of(struct model_site *const *sites, size_t count)
{
	struct loading loading = { .bytes = 0 };

	for (size_t first = 0, end; first < count; first = end) {
		uint64_t line_bytes = 0;
		bool is_leaking = false;

		for (end = first; end < count && sites[end]->where->line == sites[first]->where->line; end++) {
			const struct model_site *site = sites[end];
			bool is_leak = site->leak == MODEL_LEAK_LEAK;

			line_bytes += is_leak ? site->live_bytes : site->allocated_bytes;
			is_leaking = is_leaking || is_leak;
			loading.live_count += is_leak ? site->live_count : 0;
			if (is_leak && (loading.largest == NULL || site->live_bytes > loading.largest->live_bytes))
				loading.largest = site;
		}
		loading.bytes += is_leaking ? line_bytes : 0;
	}
	return loading;
}

/*
 * A loop that loads a data set may keep what several of its lines make, and throws away what it is made of: a parser's work, at the same
 * lines. For each site: does its function do little else but that? For free().
 */
static bool *
find_loads(const struct model *model)
{
	bool *is_load = memory_zeroed(model->site_count, sizeof(*is_load));
	OWNED struct model_site **sites = memory_zeroed(model->site_count, sizeof(*sites));
	size_t count = 0;

	for (size_t i = 0; i < model->site_count; i++) {
		const struct model_site *site = &model->sites[i];
		enum domain_kind kind = model->domains[site->domain].id.kind;

		if (site->where != NULL && domain_is_host(kind) && !domain_is_address_space(kind) && !site->is_rest_of_arenas)
			sites[count++] = &model->sites[i];
	}
	SORT(sites, count, compare_lines_of_functions);
	for (size_t first = 0, end; first < count; first = end) {
		end = first + 1;
		while (end < count && compare_functions(&sites[first], &sites[end]) == 0)
			end++;
		struct loading loading = loading_of(&sites[first], end - first);

		for (size_t i = first; i < end && loading.largest != NULL; i++)
			is_load[sites[i] - model->sites] = loading.largest->volume_bytes != 0 &&
			                                   loading.live_count >= LOADED_BLOCKS_MIN &&
			                                   loading.bytes >= loading.largest->volume_bytes / 2;
	}
	return is_load;
}

/*
 * The program went on for as long as the line grew, and did not add to it. It ended by itself, or was at work and had room: a service that waits
 * does not add, nor does who is about to be killed at a limit.
 */
static bool
has_stopped(const struct model *model, struct model_site *const *leaking, size_t count)
{
	const struct model_process *process = &model->processes[leaking[0]->process];
	size_t last = process->point_count - 1;
	uint64_t begin_ns = process->identity->start_monotonic_ns;
	size_t point = 0;

	if (ANY(site, leaking, count, (*site)->process_count != 1 || (*site)->process != leaking[0]->process) ||
	    process->point_count == 0)
		return false;
	uint64_t whole_bytes = MOST_OF(seen, process->points, process->point_count,
	                               rank_held_at(model, seen, leaking[0])); // destructors may release it

	for (uint64_t held; point < last; point++) {
		held = rank_held_at(model, &process->points[point], leaking[0]);
		if (held >= whole_bytes - whole_bytes / STOPPED_PART)
			break;
		begin_ns = held == 0 ? process->points[point].monotonic_ns : begin_ns;
	}
	bool is_over = process->state == KMEM_STATE_CLEAN_EXIT;
	uint64_t stop_ns = process->points[point].monotonic_ns;
	uint64_t since_ns = amount_less(is_over ? model_ended_ns(process) : process->points[last].monotonic_ns, stop_ns);

	return (is_over || (!model_was_nearly_full(process) && last >= point + WORK_POINTS_MIN)) && whole_bytes != 0 &&
	       stop_ns > begin_ns && since_ns >= stop_ns - begin_ns && since_ns >= STOPPED_NS;
}

/*
 * For three quarters of its time the line, or the pool that it grew in, held a quarter of this at most: the calls before let go of what they
 * took, and the last one takes more at once.
 */
static bool
came_at_once(const struct model *model, const struct model_site *site)
{
	const struct model_process *process = &model->processes[site->process];
	size_t count = process->point_count;
	uint64_t begin_ns = process->identity->start_monotonic_ns + site->first_ms * 1000000;
	uint64_t time_ns = amount_less(count != 0 ? process->points[count - 1].monotonic_ns : 0, begin_ns);

	return site->library != NULL && site->process_count == 1 && count >= WORK_POINTS_MIN &&
	       !ANY(point, process->points, count,
	            point->monotonic_ns <= begin_ns + time_ns / 4 * 3 && site->domain < point->domain_count &&
	                point->domain_bytes[site->domain] > site->live_bytes / SUDDEN_PART);
}

/*
 * What leaks, or is loaded, at the same line of its function, in all kinds of memory: of a comprehension what the rest of the line keeps, and of
 * that what the comprehension does.
 */
static uint64_t
leaking_beside(const struct model *model, const struct model_site *line)
{
	const struct model_frame *frame = site_key_function_of(line);

	return SUM_OF(site, model->sites, model->site_count,
	              (site->leak == MODEL_LEAK_LEAK || site->may_be_built_once) &&
	                      domain_is_host(model->domains[site->domain].id.kind) && frame != NULL &&
	                      site_key_function_of(site) == frame && rank_compare_places(site, line) != 0
	                  ? site->live_bytes
	                  : 0);
}

/* What its process allocated at the line, and in calls that the line made. */
static uint64_t
bytes_through(const struct model *model, const struct model_site *line)
{
	const struct model_frame *frame_of_line = site_key_function_of(line);
	uint64_t bytes = 0;

	EACH (site, model->sites, model->site_count) {
		if (site->process == line->process && line->where != NULL &&
		    !domain_is_address_space(model->domains[site->domain].id.kind) &&
		    ANY(frame, site->frames, site->frame_count, *frame == frame_of_line))
			bytes += site->allocated_bytes;
	}
	return bytes;
}

/* For each process: single blocks of the latest tick. As much at once tells nothing of how others grew. For free(). */
static uint64_t *
find_newest_bytes(const struct model *model)
{
	uint64_t *bytes = memory_zeroed(model->process_count, sizeof(*bytes));

	EACH (site, model->sites, model->site_count) {
		if (site->generations_total == 1 && site->allocated_count == 1 &&
		    !domain_is_address_space(model->domains[site->domain].id.kind))
			bytes[site->process] += site->allocated_bytes;
	}
	return bytes;
}

/* Does one of the functions that the line of code calls hold it in a local variable? Then that call has not returned. */
static bool
is_local_of_call(const struct model_site *site, const struct holders_way *way)
{
	bool is_found = false;

	for (uint32_t i = 0; i < site->frame_count && site->frames[i] != site->where && !is_found; i++)
		is_found = model_holders_is_local_of(way, site->frames[i]->function);
	return is_found;
}

static const struct holders_way *
way_of(const struct model *model, const struct model_site *site)
{
	const struct holders_line *line = model_holders_of(model, site->where, model->domains[site->domain].id.kind);

	return line != NULL ? model_holders_way(line) : NULL;
}

bool
rank_is_of_call(const struct model *model, const struct model_site *site)
{
	const struct holders_way *way = way_of(model, site);
	bool is_load = way != NULL && (way->items >= LOADED_BLOCKS_MIN || (way->items == 0 && site->is_growing_storage));

	/* What a call loads it keeps by itself: a container that another line fills is that line's, as where the call is a loop of events. */
	return is_load && site->where->kind == MODEL_FRAME_PYTHON &&
	       (is_local_of_call(site, way) || model_holders_is_of_call(way)) &&
	       !model_holders_is_grown_elsewhere(way, site);
}

bool
rank_is_unsent(const struct model *model, const struct model_site *site)
{
	const struct holders_way *way = way_of(model, site);

	return way != NULL && model_holders_is_unsent(way);
}

static bool
is_through(const struct model_site *site, const struct model_frame *function)
{
	return ANY(frame, site->frames, site->frame_count,
	           strcmp((*frame)->function, function->function) == 0 && strcmp((*frame)->file, function->file) == 0);
}

bool
rank_is_of_constructor(const struct model *model, const struct model_site *site)
{
	const struct model_steps *steps = &model->processes[site->process].steps;
	const struct model_frame *builder = steps->source == KMEM_STEPS_LOOP ? steps->where : NULL;

	if (builder == NULL || builder->kind != MODEL_FRAME_PYTHON || !text_ends(builder->function, "__init__") ||
	    !is_through(site, builder) ||
	    strcmp(site->where->function, builder->function) == 0) // a block of each call, perhaps
		return false;
	/* Of one that is called again and again, others do something between. */
	return SUM_OF(other, model->sites, model->site_count,
	              is_through(other, builder) && other->process == site->process &&
	                      !domain_is_address_space(model->domains[other->domain].id.kind)
	                  ? other->allocated_bytes
	                  : 0) >= site->volume_bytes / THROUGH_PART * (THROUGH_PART - 1);
}

bool
rank_is_of_allocator(const struct model *model, const struct model_site *site)
{
	const struct holders_way *way = way_of(model, site);

	return site->library != NULL && (way == NULL || way->kind != HOLDERS_HELD);
}

/* No data set is what nothing leads to. */
static bool
is_load_by_look(const struct model *model, struct model_site *site, bool guess)
{
	const struct holders_way *way = way_of(model, site);

	site->is_of_call = rank_is_of_call(model, site);
	return site->is_of_call || (guess && (way == NULL || way->kind != HOLDERS_LOST));
}

/* The storage of a container may be newer than the objects in it: a line has paused in all that it holds. These have not. */
struct line_at_work {
	struct line_of_process {
		const struct model_frame *where;
		uint64_t process;
	} line;
	UT_hash_handle hh;
};

static struct line_at_work *
find_at_work(const struct model *model)
{
	struct line_at_work *lines = NULL;
	struct line_at_work *line;

	EACH (site, model->sites, model->site_count) {
		if (site->live_bytes != 0 && !site->has_paused)
			(void)HASH_MADE(lines, line, ((struct line_of_process){ site->where, site->process }), line);
	}
	return lines;
}

static bool
has_line_paused(const struct line_at_work *at_work, const struct model_site *site)
{
	const struct line_of_process line = { site->where, site->process };
	const struct line_at_work *found;

	HASH_FIND(hh, at_work, &line, sizeof(line), found);
	return found == NULL;
}

/*
 * A line that holds half of all that was allocated since it began has run nearly alone, as the loading of a data set does; so has one whose
 * calls allocated nearly all, and which holds a good part of it. A loop that leaks
 * does other work between two of its blocks, and goes on. So a whole tick without a block of the line says that the loading is over. The
 * body of a module that is loaded once runs once, so what it keeps is no leak either.
 */
static void
judge(const struct model *model, const uint64_t *latest_ms, const uint64_t *newest_bytes, const bool *is_load,
      const struct line_at_work *at_work, struct model_site **leaking, size_t count)
{
	uint64_t live_bytes = leaking_beside(model, leaking[0]);
	uint64_t live_count = SUM_OF(site, leaking, count, (*site)->live_count);
	bool is_of_load = true;
	uint64_t volume_bytes = 0;
	bool is_of_steps = false;
	bool is_of_import = true;
	bool is_again = false;
	bool is_over = true;

	for (size_t i = 0; i < count; i++) {
		live_bytes += leaking[i]->live_bytes;
		is_of_steps = is_of_steps || keeps_in_each_step(model, leaking[i], live_count);
		is_of_load = is_of_load && is_load[leaking[i] - model->sites];
		uint64_t while_bytes = amount_less(leaking[i]->span_bytes ?: leaking[i]->volume_bytes,
		                                   newest_bytes[leaking[i]->process]);

		volume_bytes = while_bytes > volume_bytes ? while_bytes : volume_bytes;
		is_of_import = is_of_import && rank_is_below_import(leaking[i]);
		is_again = is_again || rank_loaded_again_at(model, leaking[i]) != NULL;
		is_over = is_over && is_of_import && latest_ms[leaking[i]->process] > leaking[i]->first_ms;
	}
	bool is_alone = is_of_load ||
	                (volume_bytes != 0 &&
	                 (live_bytes >= volume_bytes / 2 ||
	                  (live_bytes >= volume_bytes / LOADED_PART &&
	                   bytes_through(model, leaking[0]) >= volume_bytes / THROUGH_PART * (THROUGH_PART - 1))));
	bool is_guess = is_of_import || is_alone || rank_is_of_constructor(model, leaking[0]);
	bool may_be_built_once = is_load_by_look(model, leaking[0], is_guess) && !is_of_steps && !is_again;

	is_over = (may_be_built_once &&
	           (is_over || has_line_paused(at_work, leaking[0]) || has_stopped(model, leaking, count))) ||
	          came_at_once(model, leaking[0]);
	for (size_t i = 0; i < count; i++) {
		leaking[i]->may_be_built_once = may_be_built_once || rank_is_of_allocator(model, leaking[i]);
		leaking[i]->is_of_call = leaking[0]->is_of_call;
		leaking[i]->leak = is_over ? MODEL_LEAK_STEADY : MODEL_LEAK_LEAK;
	}
}

void
rank_loads_judge(const struct model *model, struct model_site **leaking, size_t count,
                 void then(const struct model *model, struct model_site **line, size_t count))
{
	OWNED uint64_t *latest_ms = find_latest_lines(model);
	OWNED uint64_t *newest_bytes = find_newest_bytes(model);
	OWNED bool *is_load = find_loads(model);
	struct line_at_work *at_work = find_at_work(model);

	for (size_t first = 0, end; first < count; first = end) {
		end = first + 1;
		while (end < count && rank_compare_places(leaking[first], leaking[end]) == 0)
			end++;
		judge(model, latest_ms, newest_bytes, is_load, at_work, &leaking[first], end - first);
		then(model, &leaking[first], end - first);
	}
	HASH_FREE(at_work, free);
}
