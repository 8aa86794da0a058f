/*
 * holders.c - samples of the largest lines, the ways to them, and what many ways have in common (see holders.h).
 *
 * The capture is read first, to know which lines are the largest. While the program stands still samples are drawn and ways are found and
 * told, as far as Python's names go; then it goes on, and symbols are read.
 */
#include "holders/holders.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/items.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/read_each.h"
#include "base/text_pool.h"
#include "base/text_start.h"
#include "capture/running_capture.h"
#include "holders/holder_roots.h"
#include "holders/holder_ways.h"
#include "holders/holder_words.h"
#include "holders/process_look.h"
#include "holders/site_lines.h"
#include "kmem_words.h"

#define COMMAND "holders"
#define BLOCKS_UNREGARDED 4096 // between two looks at the clock
#define SEED UINT64_C(0x2545f4914f6cdd1d)

struct sample {
	double key;     // the smallest are kept
	uint64_t bytes; // of the line, for which the block stands
	struct live_block block;
};

struct chosen_line {
	uint32_t number; // in the lines
	size_t count;
	double next_key;     // the smallest that was not kept
	uint64_t seen_bytes; // of all its blocks
	struct sample samples[HOLDERS_SAMPLES];
};

struct choice {
	const struct site_lines *lines;
	uint32_t *place_of; // number of a line -> place in `chosen` + 1
	size_t count;
	struct chosen_line chosen[HOLDERS_LINES_MAX];
	uint64_t random;
	struct holder_search *search;
	uint64_t seen;
};

/* ---- which lines, which blocks ---- */

ORDER_OF_POINTERS(compare_lines, struct site_line,
                  order_numbers(b->memory_bytes, a->memory_bytes) ?: order_numbers((uintptr_t)a, (uintptr_t)b))

static void
choose_lines(const struct site_lines *lines, uint64_t top, struct choice *choice, struct holders *holders)
{
	OWNED const struct site_line **sorted = memory_zeroed(lines->count, sizeof(*sorted));
	uint64_t all_bytes = 0;

	*choice = (struct choice){ .lines = lines, .random = SEED };
	choice->place_of = memory_zeroed(lines->count, sizeof(*choice->place_of));
	for (size_t i = 0; i < lines->count; i++) {
		sorted[i] = &lines->lines[i];
		all_bytes += lines->lines[i].memory_bytes;
	}
	SORT(sorted, lines->count, compare_lines);
	for (size_t i = 0; i < lines->count; i++) {
		uint32_t number = (uint32_t)(sorted[i] - lines->lines);
		uint64_t *left_out = site_lines_is_of_import(lines, number)                       ? &holders->import_lines
		                     : sorted[i]->memory_bytes < all_bytes / HOLDERS_SHARE_MIN    ? &holders->small_lines
		                     : choice->count == HOLDERS_LINES_MAX || choice->count >= top ? &holders->more_lines
		                                                                                  : NULL;

		if (sorted[i]->site == NULL || sorted[i]->memory_bytes == 0)
			continue;
		if (left_out != NULL) {
			(*left_out)++;
			continue;
		}
		choice->chosen[choice->count].number = number;
		choice->chosen[choice->count++].next_key = INFINITY;
		choice->place_of[number] = (uint32_t)choice->count;
	}
}

/* Above 0, at most 1. */
static double
draw(struct choice *choice)
{
	choice->random ^= choice->random << 13;
	choice->random ^= choice->random >> 7;
	choice->random ^= choice->random << 17;
	return (double)((choice->random >> 11) + 1) / (double)(UINT64_C(1) << 53);
}

/*
 * Draws blocks without replacement, each with a probability that grows with the bytes for which it stands: the smallest of as many
 * exponential numbers are kept. False: there is no time for more.
 */
static bool
draw_block(void *context, const struct live_block *block)
{
	struct choice *choice = context;
	uint32_t place = choice->place_of[site_lines_of(choice->lines, block->site)];
	uint64_t bytes;

	if (choice->seen++ % BLOCKS_UNREGARDED == 0 && process_memory_is_late(&choice->search->look->memory))
		return false;
	holder_search_show(choice->search, block);
	if (place == 0)
		return true;

	struct chosen_line *line = &choice->chosen[place - 1];

	bytes = site_lines_bytes_for(choice->lines, block->site, block->bytes);
	line->seen_bytes += bytes;

	double key = -log(draw(choice)) / (double)bytes;

	if (line->count == HOLDERS_SAMPLES && key >= line->samples[line->count - 1].key) {
		line->next_key = fmin(line->next_key, key);
		return true;
	}
	if (line->count == HOLDERS_SAMPLES)
		line->next_key = line->samples[line->count - 1].key;

	size_t at = line->count < HOLDERS_SAMPLES ? line->count++ : line->count - 1;

	for (; at > 0 && line->samples[at - 1].key > key; at--)
		line->samples[at] = line->samples[at - 1];
	line->samples[at] = (struct sample){ key, bytes, *block };
	return true;
}

/* For how many bytes of its line a sample stands: for its own where all blocks were drawn, for equally many where all are small. */
static double
bytes_for(const struct chosen_line *line, const struct sample *sample)
{
	return (double)sample->bytes / -expm1(-(double)sample->bytes * line->next_key);
}

/* ---- ways ---- */

struct found_way {
	uint32_t place; // in the choice
	double bytes;   // for which the sample stands
	struct holder_way way;
};

/* The ways of one line, while they are merged. */
struct merged_ways {
	double bytes[HOLDERS_SAMPLES];
	double all_bytes;
};

/* One for each sample of the search. The caller frees them. */
static struct found_way *
add_samples(struct holder_search *search, const struct choice *choice)
{
	struct found_way *found = memory_zeroed(choice->count * HOLDERS_SAMPLES, sizeof(*found));

	for (uint32_t i = 0; i < choice->count; i++) {
		EACH (sample, choice->chosen[i].samples, choice->chosen[i].count) {
			if (holder_search_ask(search, &sample->block))
				found[search->sample_count - 1] = (struct found_way){ .place = i,
					                                                  .bytes = bytes_for(&choice->chosen[i], sample) };
		}
	}
	return found;
}

/*
 * Its call ends: a look often falls into the one that copies a container's storage into a larger block. Names with two underscores are those
 * of the C and C++ library: their calls end first.
 */
static unsigned
soon_over(const struct holders_way *way)
{
	bool is_local = way->step_count != 0 && way->steps[0].kind == WAY_LOCAL;

	return is_local && text_starts(way->steps[0].name, "__") ? 2 : is_local || model_holders_is_of_call(way);
}

ORDER_OF(compare_ways, struct holders_way,
	order_numbers(b->samples, a->samples) ?: order_numbers(a->kind, b->kind)
	?: order_numbers(soon_over(a), soon_over(b)) ?: order_texts(a->text, b->text))

/* Do they begin with as many steps that are alike, and have them? */
static bool
begin_alike(const struct holders_way *a, const struct holders_way *b, size_t count)
{
	size_t same = 0;

	while (same < count && same < a->step_count && same < b->step_count &&
	       model_way_steps_are_alike(&a->steps[same], &b->steps[same]))
		same++;
	return a->kind == b->kind && same == count;
}

static void
add_way(struct holders_line *line, struct merged_ways *merged, const struct holders_way *told, double bytes)
{
	size_t i = 0;

	line->samples++;
	merged->all_bytes += bytes;
	while (i < line->way_count &&
	       (line->ways[i].step_count != told->step_count || !begin_alike(&line->ways[i], told, told->step_count)))
		i++;
	merged->bytes[i] += bytes;
	if (i == line->way_count)
		line->ways[line->way_count++] = *told;
}

/* How many steps lead to a container and through one of its items; 0 = there is none. */
static size_t
steps_of_begin(const struct holders_way *way)
{
	size_t container = model_holders_container(way);

	return container != 0 && container + 1 < way->step_count ? container + 1 : 0;
}

/* Keeps the steps that both have. */
static void
cut_where_they_part(struct holders_way *way, const struct holders_way *other, struct text_pool *texts)
{
	size_t same = 0;

	while (begin_alike(way, other, same + 1))
		same++;
	way->steps[same] = model_way_step(WAY_OTHERS, "", "");
	way->step_count = same + 1;

	OWNED char *text = model_way_words(way, 0, way->step_count, false);

	way->text = text_pool_add_text(texts, text);
}

/* Where no way holds half of the samples, those that lead through one container are one: it is what they have in common. */
static void
join_alike(struct holders_line *line, struct merged_ways *merged, struct text_pool *texts)
{
	size_t kept = 0;

	for (size_t i = 0; i < line->way_count; i++) {
		if (line->ways[i].kind != HOLDERS_UNFINISHED && merged->bytes[i] >= merged->all_bytes / 2)
			return;
	}
	for (size_t i = 0; i < line->way_count; i++) {
		struct holders_way way = line->ways[i];
		size_t begin = steps_of_begin(&way);
		size_t k = begin != 0 ? 0 : kept;

		while (k < kept && (steps_of_begin(&line->ways[k]) != begin || !begin_alike(&line->ways[k], &way, begin)))
			k++;
		if (k < kept) {
			cut_where_they_part(&line->ways[k], &way, texts);
			merged->bytes[k] += merged->bytes[i];
		} else {
			merged->bytes[kept] = merged->bytes[i];
			line->ways[kept++] = way;
		}
	}
	line->way_count = kept;
}

/*
 * A line's ways share its samples as they share its bytes: small and large blocks were drawn, and all blocks where a line has few. Whole
 * shares are given first; the samples that are left go to the ways with the largest remainders. A way without a sample is not told.
 */
static void
share_samples(struct holders_line *line, struct merged_ways *merged)
{
	uint64_t left = line->samples;

	for (size_t i = 0; i < line->way_count; i++) {
		merged->bytes[i] *= (double)line->samples / merged->all_bytes;
		line->ways[i].samples = (uint64_t)merged->bytes[i];
		merged->bytes[i] -= (double)line->ways[i].samples;
		left -= line->ways[i].samples;
	}
	for (; line->way_count != 0 && left != 0; left--) {
		size_t next = 0;

		for (size_t i = 1; i < line->way_count; i++)
			next = merged->bytes[i] > merged->bytes[next] ? i : next;
		line->ways[next].samples++;
		merged->bytes[next] = 0;
	}
	SORT(line->ways, line->way_count, compare_ways);
	while (line->way_count > 1 && line->ways[line->way_count - 1].samples == 0)
		line->way_count--;
	model_holders_put_found_first(line);
}

static void
describe(struct holders_line *line, const struct site_line *from, struct text_pool *texts)
{
	const struct model_frame *frame = from->site->where;

	line->place = text_pool_add_text(texts, site_lines_text(from, PLACE_ROOM));
	line->file = text_pool_add_text(texts, frame != NULL ? frame->file : "");
	line->function = text_pool_add_text(texts, frame != NULL ? frame->function : "");
	line->line = frame != NULL ? frame->line : 0;
	line->bytes = from->live_bytes;
	line->blocks = from->live_count;
	line->is_estimated = from->is_estimated;
	line->ways = text_pool_room(texts, HOLDERS_SAMPLES * sizeof(*line->ways));
}

static void
merge(const struct holder_search *search, struct stack_locals *locals, const struct choice *choice,
      struct found_way *found, bool is_private, struct holders *holders)
{
	holders->lines = text_pool_room(holders->texts, choice->count * sizeof(*holders->lines));
	for (uint32_t i = 0; i < choice->count; i++) {
		const struct site_line *from = &choice->lines->lines[choice->chosen[i].number];
		struct holders_line *line = &holders->lines[holders->line_count];
		struct merged_ways merged = { .all_bytes = 0 };

		/* The capture was read, and then most of it was released: who holds the rest says nothing of the line. */
		if (choice->chosen[i].seen_bytes < from->live_bytes / 2) {
			holders->released_lines++;
			continue;
		}
		holders->line_count++;
		describe(line, from, holders->texts);
		for (size_t k = 0; k < search->sample_count; k++) {
			if (found[k].place != i)
				continue;
			holder_words(search, locals, is_private, holders->texts, &found[k].way);
			add_way(line, &merged, &found[k].way.told, found[k].bytes);
		}
		join_alike(line, &merged, holders->texts);
		share_samples(line, &merged);
	}
}

/* Does the capture say that it was recorded so? */
static bool
was_private(const struct model_process *process)
{
	return ANY(note, process->notes, process->note_count, text_starts(*note, KMEM_NOTE_PRIVATE));
}

/* Is the program to leave out what may be personal? Its environment says so, or that of this command. */
static bool
is_private_now(pid_t pid)
{
	static const char setting[] = "KMEMSHIM_PRIVATE=";

	EACH_PART (line, TEXT(64, "/proc/%d/environ", (int)pid), '\0') {
		if (text_starts(line, setting) && kmem_is_wanted(line + sizeof(setting) - 1))
			return true;
	}
	return kmem_is_wanted(getenv("KMEMSHIM_PRIVATE"));
}

/* Searches while the process stands still. merge() does the rest afterwards. */
static bool
search_ways(struct process_look *look, struct python_objects *python, struct process_modules *modules,
            const struct thread_areas *areas, struct choice *choice, bool is_private, struct holders *holders,
            struct fail *fail)
{
	struct holder_search search;
	struct stack_locals locals = { 0 };
	OWNED struct found_way *found = NULL;

	holder_search_begin(look, python, modules, areas, choice->lines, &search);
	choice->search = &search;

	bool is_drawn = live_blocks_visit(look->blocks, draw_block, choice);

	if (is_drawn) {
		found = add_samples(&search, choice);
		holder_search_run(&search);
	}
	for (size_t i = 0; i < search.sample_count; i++) {
		holder_way_read(&search, search.samples[i], holders->texts, &found[i].way);
		holder_root_copy(&search, &found[i].way, &locals);
	}
	holders->is_unfinished = search.is_late || search.is_full || holder_search_is_over(&search);

	bool is_whole = process_look_resume(COMMAND, look, fail);

	holders->passes = search.passes;
	holders->left_out_bytes = search.stage < HOLDER_STAGE_LEFT_OUT ? search.skips.bytes : 0;
	holders->shared_bytes = look->ranges.shared_bytes;
	if (is_drawn && is_whole)
		merge(&search, &locals, choice, found, is_private, holders);
	for (size_t i = 0; i < search.sample_count; i++)
		free(found[i].way.steps);
	stack_locals_free(&locals);
	holder_search_end(&search);
	if (!is_whole || is_drawn)
		return is_whole;
	(void)fail_set(fail, EXIT_USAGE, COMMAND ": process %d stood still for %.3f s and its blocks were not read yet",
	               (int)look->process.pid, (double)look->stopped_ns / 1e9);
	return fail_late(fail);
}

/* core: NULL = it runs */
static bool
look_into(pid_t pid, const char *core, const struct model *model, uint64_t stop_ns, uint64_t top,
          struct holders *holders, struct fail *fail)
{
	if (model->heap_sample_bytes != 0)
		return fail_set(
			fail, EXIT_USAGE,
			COMMAND ": of the heap a sample is recorded (KMEMSHIM_SAMPLE): a way to a block leads through others that "
					"are not in it; run again without KMEMSHIM_SAMPLE");

	struct text_pool *pool = text_pool_new();
	struct process_modules modules;
	struct thread_areas areas;
	struct python_objects python;
	struct process_look look;
	struct site_lines lines;
	struct choice choice;
	bool is_done = core != NULL ? process_look_open_core(COMMAND, core, stop_ns, &look, fail)
	                            : process_look_open(COMMAND, pid, model->processes[0].path, stop_ns, &look, fail);

	if (is_done && core != NULL && look.process.pid != pid) {
		is_done = fail_set(fail, EXIT_USAGE,
		                   COMMAND ": --core %.600s: this is of process %d, and the capture of process %d", core,
		                   (int)look.process.pid, (int)pid);
		process_look_close(&look);
	}
	if (is_done) {
		site_lines_make(model, true, &lines);
		choose_lines(&lines, top, &choice, holders);
		process_modules_make(&look.memory, core != NULL ? 0 : pid, pool, &modules);
		thread_areas_find(&look.memory, &look.process, &modules, &areas);
		python_objects_attach(&look.memory, &modules, model->processes[0].python_version, &python);
		holders->python = python.why;
		is_done = search_ways(&look, &python, &modules, &areas, &choice,
		                      was_private(&model->processes[0]) || is_private_now(core != NULL ? 0 : pid), holders,
		                      fail);
		holders->stopped_us = core != NULL ? 0 : look.stopped_ns / 1000;
		holders->read_bytes = look.memory.scanned_bytes;
		python_objects_detach(&python);
		thread_areas_free(&areas);
		process_modules_free(&modules);
		free(choice.place_of);
		site_lines_free(&lines);
		process_look_close(&look);
	}
	text_pool_free(pool);
	return is_done;
}

bool
holders_find_in(const char *pid, const struct model *model, uint64_t stop_ns, uint64_t top, struct holders *holders,
                struct fail *fail)
{
	*holders = model_holders_made((uint32_t)strtoul(pid, NULL, 10));
	if (look_into((pid_t)holders->pid, NULL, model, stop_ns, top, holders, fail))
		return true;
	model_holders_free(holders);
	return false;
}

bool
holders_find_in_core(const char *core, struct model_options *options, uint64_t stop_ns, uint64_t top,
                     struct holders *holders, struct fail *fail)
{
	options->wants_symbols = true;
	options->wants_records = true;

	struct model *model = model_load(options, fail);

	if (model == NULL)
		return false;
	*holders = model_holders_made(model->processes[0].identity->pid);

	bool is_done = model->process_count == 1
	                   ? look_into((pid_t)holders->pid, core, model, stop_ns, top, holders, fail)
	                   : fail_set(fail, EXIT_USAGE,
	                              COMMAND ": %.600s: there are captures of %zu processes: give that of the core",
	                              model->argument, model->process_count);
	model_free(model);
	if (!is_done)
		model_holders_free(holders);
	return is_done;
}

bool
holders_find(const char *pid, struct model_options *options, uint64_t stop_ns, uint64_t top, struct holders *holders,
             struct fail *fail)
{
	char path[RUNNING_CAPTURE_PATH_BYTES];
	int fd = running_capture_open(COMMAND, pid, O_RDONLY, path, fail);

	if (fd < 0)
		return false;
	(void)close(fd);

	struct model *model = process_look_model(COMMAND, (pid_t)strtoul(pid, NULL, 10), path, options, fail);

	if (model == NULL)
		return false;

	bool is_done = holders_find_in(pid, model, stop_ns, top, holders, fail);

	model_free(model);
	return is_done;
}

bool
holders_stored(struct model_options *options, uint64_t top, struct holders *holders, struct fail *fail)
{
	struct model *model = model_load(options, fail);
	struct holders *newest = NULL;

	if (model == NULL)
		return false;
	for (size_t i = 0; i < model->process_count; i++) {
		struct holders *one = model->processes[i].holders;

		if (one != NULL && (newest == NULL || one->monotonic_ns > newest->monotonic_ns))
			newest = one;
	}
	if (newest == NULL && model->damage_count != 0)
		(void)fail_set(fail, EXIT_CAPTURE,
		               COMMAND ": what holds the memory was not recorded, or cannot be read: %.600s",
		               model->damages[0]);
	else if (newest == NULL)
		(void)fail_set(
			fail, EXIT_USAGE,
			COMMAND ": %.400s: what holds its memory was not recorded: kmemshim run --guard SIZE records it when the "
					"guard is passed, kmemshim holders PID asks a running program",
			model->argument);
	else {
		for (; newest->line_count > top; newest->more_lines++)
			newest->line_count--;
		*holders = *newest;
		*newest = (struct holders){ 0 };
	}
	model_free(model);
	return newest != NULL;
}
