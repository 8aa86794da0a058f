/*
 * holders_keep.c - looks at a process that has passed its guard, or of which a line grows, and writes what was found into its capture (see holders.h).
 *
 * When failing  why nobody looked is written instead, unless there is an earlier look; without a place to write, nothing.
 */
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/model_finish.h"
#include "analysis/rank.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/read_each.h"
#include "base/regular_file.h"
#include "base/text_pool.h"
#include "base/units.h"
#include "capture/capture_holders.h"
#include "capture/kill_counters.h"
#include "capture/running_capture.h"
#include "holders/holders.h"
#include "holders/process_look.h"

#define COMMAND "holders"
#define NEEDED_BYTES (UINT64_C(32) << 20)         // that a look takes, and more where a program has many symbols
#define NEEDED_OF_ALL_BYTES (UINT64_C(128) << 20) // where the program would be ended for it
#define DOUBLED 2                                 // since the last look
#define LEAK_PART 8                               // of the limit
#define STOP_GROWING_NS \
	(3 * PROCESS_LOOK_NS) // where something grows towards a limit: the program has nothing better to do

/* Writes at most `ways_max` ways of each line, those of most samples. Returns bytes; *text is freed by the caller. */
static size_t
write_text(const struct holders *holders, size_t ways_max, char **text)
{
	struct holders cut = *holders;
	size_t bytes;
	FILE *stream = memory_stream(text, &bytes);

	cut.lines = memory_zeroed(cut.line_count, sizeof(*cut.lines));
	for (size_t i = 0; i < cut.line_count; i++) {
		cut.lines[i] = holders->lines[i];
		if (cut.lines[i].way_count > ways_max)
			cut.lines[i].way_count = ways_max;
	}
	holders_render_json(&cut, stream);
	memory_stream_close(stream);
	free(cut.lines);
	return bytes;
}

/* Keeps as much of it as there is room for. */
static void
keep(int fd, const struct holders *holders)
{
	OWNED struct kmem_holders *look = memory_zeroed(1, sizeof(*look));
	size_t ways = HOLDERS_SAMPLES;
	char *text;
	size_t bytes = write_text(holders, ways, &text);

	while (bytes > sizeof(look->text) && ways > 0) {
		free(text);
		bytes = write_text(holders, ways /= 2, &text);
	}
	if (bytes <= sizeof(look->text)) {
		memcpy(look->text, text, bytes);
		look->text_bytes = (uint32_t)bytes;
		look->sequence = holders->sequence;
		look->monotonic_ns = clock_monotonic_ns();
		look->volume_bytes = holders->volume_bytes;
		look->leak_bytes = holders->leak_bytes;
		(void)capture_holders_write(fd, look);
	}
	free(text);
}

/* 0 where it cannot be read. */
static uint64_t
file_bytes_of(const char *pid)
{
	unsigned long long file_pages = 0;

	EACH_LINE (line, TEXT(64, "/proc/%.20s/statm", pid))
		(void)sscanf(line, "%*u %*u %llu", &file_pages);
	return file_pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* How much memory is left where the kernel would end the program for what this command takes: see kill_counters.h. */
static uint64_t
room_of_all(int fd, const char *pid)
{
	OWNED struct kmem_identity *identity = memory_zeroed(1, sizeof(*identity));
	uint64_t room = UINT64_MAX;

	if (pread(fd, identity, sizeof(*identity), offsetof(struct kmem_header, identity)) == (ssize_t)sizeof(*identity)) {
		identity->cgroup_path[sizeof(identity->cgroup_path) - 1] = '\0';
		identity->limit_path[sizeof(identity->limit_path) - 1] = '\0';
		room = kill_counters_room_of_all(identity, file_bytes_of(pid));
	}
	return room;
}

/* A look takes memory, but none of the program's address space. */
static bool
has_memory(const struct kmem_guard_passing *guard, uint64_t room_bytes, struct fail *fail)
{
	uint64_t left = guard->limit_bytes > guard->used_bytes ? guard->limit_bytes - guard->used_bytes : 0;

	if (room_bytes < NEEDED_OF_ALL_BYTES)
		return fail_set(
			fail, EXIT_USAGE,
			COMMAND
			": only %s were left below the limit, and a look needs 128 MiB where the kernel would end the program "
			"and not the look (memory.oom.group, or much of its memory is pages of files): set the guard lower",
			UNITS_BYTES(room_bytes));
	return guard->number == 0 || guard->limit_kind == KMEM_LIMIT_ADDRESS_SPACE || left >= NEEDED_BYTES ||
	       fail_set(fail, EXIT_USAGE,
	                COMMAND ": only %s were left below the limit, and a look needs 32 MiB: set the guard lower",
	                UNITS_BYTES(left));
}

/* Has a line that grows, that is too short to judge and kept all, or that is a queue which lags, more than so much? */
static bool
has_growth(struct model *model, uint64_t bytes)
{
	struct ranked *ranked = rank_run(model_finish(model, verdict_now()), &rank_leaks, NULL);
	bool is_found = false;

	for (size_t i = 0; i < ranked->line_count && !is_found; i++) {
		const struct rank_line *line = &ranked->lines[i];
		enum domain_kind kind = model->domains[line->domain].id.kind;

		is_found = (domain_is_heap(kind) || kind == DOMAIN_PYTHON_OBJECT) &&
		           (line->leaking_bytes > bytes ||
		            ((rank_keeps_all(line->telling) || line->leak == MODEL_LEAK_BACKLOG) && line->live_bytes > bytes));
	}
	rank_free(ranked);
	return is_found;
}

/* Has enough changed since the last look? A look at a leak is followed by one when the guard is passed: mostly the last one. */
static bool
is_due(const struct holders *before, const struct holders *now)
{
	if (before == NULL || (before->leak_bytes != 0 && now->leak_bytes == 0))
		return true;
	return before->leak_bytes != 0 ? now->leak_bytes / DOUBLED >= before->leak_bytes
	                               : now->volume_bytes / DOUBLED >= before->volume_bytes;
}

/* For a leak holders_keep() has made sure that there is memory. */
static bool
may_take_memory(const struct model *model, const struct holders *now, uint64_t room_bytes, struct fail *fail)
{
	return now->leak_bytes != 0 || has_memory(&model->processes[0].guard, room_bytes, fail);
}

static void
look(int fd, const char *pid, const struct model *model, const struct holders *now, uint64_t room_bytes,
     uint64_t stop_ns)
{
	const struct holders *before = model->processes[0].holders;
	struct holders holders = { 0 };
	struct fail fail;

	if (!is_due(before, now))
		return;
	if (!may_take_memory(model, now, room_bytes, &fail) ||
	    !holders_find_in(pid, model, stop_ns, HOLDERS_LINES_MAX, &holders, &fail)) {
		if (before != NULL && before->why[0] == '\0')
			return;
		OWNED char *why = memory_printed("%s%s", fail.text + strlen(COMMAND ": "), // which nobody has called
		                                 fail.needs_time ? ": allow more with --holders-stop" : "");

		holders = model_holders_made((uint32_t)strtoul(pid, NULL, 10));
		holders.why = text_pool_add_text(holders.texts, why);
	}
	holders.sequence = before != NULL ? before->sequence + 1 : 1;
	holders.volume_bytes = now->volume_bytes;
	holders.leak_bytes = now->leak_bytes;
	if (before == NULL || before->line_count == 0 || !model_holders_came_late(&holders)) // else that one tells more
		keep(fd, &holders);
	model_holders_free(&holders);
}

/* What is live and in memory, and what was allocated in all. */
static void
measure(const struct model *model, struct holders *now)
{
	for (size_t i = 0; i < model->site_count; i++) {
		if (!domain_is_heap(model->domains[model->sites[i].domain].id.kind))
			continue;
		now->leak_bytes += rank_live_in_memory(&model->sites[i]);
		now->volume_bytes += model->sites[i].allocated_bytes;
	}
}

void
holders_keep(const char *pid, uint64_t leak_limit_bytes, uint64_t stop_ns)
{
	char path[RUNNING_CAPTURE_PATH_BYTES];
	struct model_options options = { .capture = path, .wants_records = true };
	struct holders now = { 0 };
	struct fail fail;
	OWNED_FILE int fd = running_capture_open(COMMAND, pid, O_RDWR, path, &fail);
	uint64_t room_bytes = fd >= 0 ? room_of_all(fd, pid) : UINT64_MAX;
	uint64_t limit_bytes = leak_limit_bytes;
	bool has_room = leak_limit_bytes == 0 || room_bytes >= NEEDED_OF_ALL_BYTES; // of a guard it is said why not
	struct model *model = fd >= 0 && has_room ? model_load(&options, &fail) : NULL;

	if (model != NULL && leak_limit_bytes == 0) {
		now.volume_bytes = model->processes[0].guard.volume_bytes;
		limit_bytes = model->processes[0].guard.limit_bytes;
	}
	if (model != NULL && has_growth(model, limit_bytes / LEAK_PART)) {
		stop_ns = stop_ns != 0 ? stop_ns : STOP_GROWING_NS;
		if (leak_limit_bytes != 0)
			measure(model, &now);
	}
	if (now.volume_bytes != 0) {
		/* Symbols cost more than all else. */
		if (is_due(model->processes[0].holders, &now) && may_take_memory(model, &now, room_bytes, &fail)) {
			model_free(model);
			options.wants_symbols = true;
			model = model_load(&options, &fail);
		}
		if (model != NULL)
			look(fd, pid, model, &now, room_bytes, stop_ns != 0 ? stop_ns : PROCESS_LOOK_NS);
	}
	model_free(model);
}
