/*
 * lost.c - stops a program, looks for what is lost, and sums it by line (see lost.h).
 *
 * The capture is read afterwards: then it has the records of all blocks that were seen.
 */
#include "holders/lost.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/order.h"
#include "base/text_pool.h"
#include "base/regular_file.h"
#include "capture/running_capture.h"
#include "holders/exit_watch.h"
#include "holders/process_look.h"
#include "holders/reachability.h"
#include "holders/site_lines.h"

#define COMMAND "lost"

ORDER_OF(compare, struct lost_line,
	order_numbers(lost_bytes(b), lost_bytes(a))
	?: order_numbers(b->counts[REACH_REACHABLE].bytes, a->counts[REACH_REACHABLE].bytes)
	?: order_texts(a->place, b->place))
ORDER_OF(compare_places, struct lost_line, order_texts(a->place, b->place) ?: order_texts(a->file, b->file))

static void
add(struct lost_line *line, const struct reach_count counts[REACH_COUNT])
{
	for (size_t i = 0; i < REACH_COUNT; i++) {
		line->counts[i].bytes += counts[i].bytes;
		line->counts[i].blocks += counts[i].blocks;
	}
}

static void
describe(struct lost_line *line, const struct site_line *from, struct text_pool *texts)
{
	const struct model_frame *frame = from->site != NULL ? from->site->where : NULL;

	line->place = text_pool_add_text(texts, site_lines_text(from, PLACE_ROOM));
	line->file = text_pool_add_text(texts, frame != NULL ? frame->file : "");
	line->function = text_pool_add_text(texts, frame != NULL ? frame->function : "");
	line->line = frame != NULL ? frame->line : 0;
}

/* The compiler may make several pieces of one line: they are one row. */
static void
join_lines(struct lost *lost)
{
	size_t count = 0;

	SORT(lost->lines, lost->line_count, compare_places);
	for (size_t i = 0; i < lost->line_count; i++) {
		struct lost_line *line = &lost->lines[i];

		if (count != 0 && order_texts(lost->lines[count - 1].place, line->place) == 0 &&
		    order_texts(lost->lines[count - 1].file, line->file) == 0)
			add(&lost->lines[count - 1], line->counts);
		else
			lost->lines[count++] = *line;
	}
	lost->line_count = count;
}

/* Site number 0 has blocks of other domains, too: it is left out. */
static void
sum_up(const struct model *model, const struct reachability *found, struct lost *lost)
{
	struct site_lines lines;

	site_lines_make(model, false, &lines);
	lost->texts = text_pool_new();
	lost->lines = text_pool_room(lost->texts, lines.count * sizeof(*lost->lines));
	for (size_t i = 1; i < lines.count; i++)
		describe(&lost->lines[i - 1], &lines.lines[i], lost->texts);
	for (uint32_t i = 1; i < found->site_count; i++) {
		uint32_t number = site_lines_of(&lines, i);

		if (number == 0)
			continue;
		add(&lost->lines[number - 1], found->sites[i]);
		add(&lost->all, found->sites[i]);
	}
	lost->line_count = lines.count - 1;
	join_lines(lost);
	SORT(lost->lines, lost->line_count, compare);
	site_lines_free(&lines);
}

/* process: it stands still already; NULL = it runs */
static bool
look(pid_t pid, const struct stopped_process *process, const char *capture, uint64_t stop_ns,
     struct reachability *found, struct lost *lost, struct fail *fail)
{
	struct process_look look;

	if (process != NULL ? !process_look_open_stopped(COMMAND, process, NULL, stop_ns, &look, fail)
	                    : !process_look_open(COMMAND, pid, capture, stop_ns, &look, fail))
		return false;
	reachability_find(&look.memory, &look.process, look.blocks, &look.ranges, found);
	bool is_whole = process_look_resume(COMMAND, &look, fail);
	lost->stopped_us = look.stopped_ns / 1000;
	lost->read_bytes = look.memory.scanned_bytes;
	process_look_close(&look);
	if (is_whole && !found->is_unfinished)
		return true;
	reachability_free(found);
	if (!is_whole)
		return false;
	(void)fail_set(fail, EXIT_USAGE, COMMAND ": process %d stood still for %.3f s and its memory was not read yet",
	               (int)pid, (double)lost->stopped_us / 1e6);
	return fail_late(fail);
}

static bool
find(const char *pid, struct stopped_process *process, struct model_options *options, uint64_t stop_ns,
     struct lost *lost, struct fail *fail)
{
	char path[RUNNING_CAPTURE_PATH_BYTES];
	bool is_ours = process != NULL; // and ended in its capture already
	OWNED_FILE int fd = is_ours ? -1 : running_capture_open(COMMAND, pid, O_RDONLY, path, fail);
	struct reachability found;

	*lost = (struct lost){ .pid = (uint32_t)strtoul(pid, NULL, 10) };
	if (is_ours ? !running_capture_path(COMMAND, pid, path, fail) : fd < 0) {
		if (is_ours)
			(void)stopped_process_resume(process);
		if (is_ours)
			stopped_process_free(process);
		return false;
	}
	if (!look((pid_t)lost->pid, process, path, stop_ns, &found, lost, fail))
		return false;

	struct model *model = process_look_model(COMMAND, (pid_t)lost->pid, path, options, fail);

	if (model != NULL)
		sum_up(model, &found, lost);
	model_free(model);
	reachability_free(&found);
	return model != NULL;
}

bool
lost_find(const char *pid, struct model_options *options, uint64_t stop_ns, struct lost *lost, struct fail *fail)
{
	return find(pid, NULL, options, stop_ns, lost, fail);
}

bool
lost_at_exit(char *const *arguments, struct model_options *options, uint64_t stop_ns, struct lost *lost, int *status,
             struct fail *fail)
{
	struct stopped_process process;
	pid_t pid;

	*status = -1;
	if (!exit_watch_start(COMMAND, arguments, &pid, fail) || !exit_watch_wait(COMMAND, pid, &process, status, fail))
		return false;

	bool is_done = find(TEXT(24, "%d", (int)pid), &process, options, stop_ns, lost, fail);

	while (waitpid(pid, status, __WALL) < 0 && errno == EINTR)
		continue;
	return is_done;
}

void
lost_free(struct lost *lost)
{
	text_pool_free(lost->texts);
	*lost = (struct lost){ 0 };
}
