/*
 * holders_keep.c - looks at a process that has passed its guard, and writes what was found into its capture (see holders.h).
 *
 * When failing  why nobody looked is written instead, unless there is an earlier look; without a place to write, nothing.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text_start.h"
#include "base/units.h"
#include "capture/capture_holders.h"
#include "capture/running_capture.h"
#include "holders/holders.h"

#define COMMAND "holders"
#define NEEDED_BYTES (UINT64_C(32) << 20) // that a look takes, and more where a program has many symbols
#define DOUBLED 2                         // allocated since the last look

/* With so many ways a line at most; those of most samples. Returns bytes; *text is freed by the caller. */
static size_t
write_text(const struct holders *holders, size_t ways_max, char **text)
{
	struct holders cut = *holders;
	size_t bytes = 0;
	FILE *stream = open_memstream(text, &bytes);

	if (stream == NULL)
		memory_exhausted();
	cut.lines = memory_zeroed(cut.line_count, sizeof(*cut.lines));
	for (size_t i = 0; i < cut.line_count; i++) {
		cut.lines[i] = holders->lines[i];
		if (cut.lines[i].way_count > ways_max)
			cut.lines[i].way_count = ways_max;
	}
	holders_render_json(&cut, stream);
	if (fclose(stream) != 0)
		memory_exhausted();
	free(cut.lines);
	return bytes;
}

/* As much of it as there is room for. */
static void
keep(int fd, const struct holders *holders, uint64_t sequence, uint64_t volume_bytes)
{
	struct kmem_holders *look = memory_zeroed(1, sizeof(*look));
	size_t ways = HOLDERS_SAMPLES;
	struct timespec now;
	char *text;
	size_t bytes = write_text(holders, ways, &text);

	while (bytes > sizeof(look->text) && ways > 0) {
		free(text);
		bytes = write_text(holders, ways /= 2, &text);
	}
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	if (bytes <= sizeof(look->text)) {
		memcpy(look->text, text, bytes);
		look->text_bytes = (uint32_t)bytes;
		look->sequence = sequence;
		look->monotonic_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
		look->volume_bytes = volume_bytes;
		(void)capture_holders_write(fd, look);
	}
	free(text);
	free(look);
}

/* Of addresses a look takes nothing from the program. */
static bool
has_memory(const struct kmem_guard_passing *guard, struct fail *fail)
{
	uint64_t left = guard->limit_bytes > guard->used_bytes ? guard->limit_bytes - guard->used_bytes : 0;
	char text[UNITS_TEXT_BYTES];

	if (guard->number == 0 || guard->limit_kind == KMEM_LIMIT_ADDRESS_SPACE || left >= NEEDED_BYTES)
		return true;
	return fail_set(fail, EXIT_USAGE, "only %s were left below the limit, and a look needs 32 MiB: set the guard lower",
	                units_bytes(left, text));
}

/* As `kmemshim holders` says it, less what is its own. */
static char *
why_text(const char *said)
{
	static const char own[] = "--stop";
	const char *at = strstr(said, own);
	char *text;

	if (text_starts(said, COMMAND ": "))
		said += strlen(COMMAND ": ");
	if (at == NULL)
		return memory_text(said);
	if (asprintf(&text, "%.*s--holders-stop%s", (int)(at - said), said, at + strlen(own)) < 0)
		memory_exhausted();
	return text;
}

static void
look(int fd, const char *pid, const struct model *model, uint64_t stop_ns)
{
	const struct model_process *process = &model->processes[0];
	const struct holders *before = process->holders;
	struct holders holders = { 0 };
	struct fail fail;

	if (before != NULL && process->guard.volume_bytes / DOUBLED < before->volume_bytes)
		return;
	if (!has_memory(&process->guard, &fail) ||
	    !holders_find_in(pid, model, stop_ns, HOLDERS_LINES_MAX, &holders, &fail)) {
		if (before != NULL && before->why[0] == '\0')
			return;
		holders = (struct holders){ .pid = (uint32_t)strtoul(pid, NULL, 10), .python = memory_text("") };
		holders.why = why_text(fail.text);
	}
	keep(fd, &holders, before != NULL ? before->sequence + 1 : 1, process->guard.volume_bytes);
	model_holders_free(&holders);
}

void
holders_keep(const char *pid, uint64_t stop_ns)
{
	char path[RUNNING_CAPTURE_PATH_BYTES];
	const struct model_options options = { .capture = path, .wants_symbols = true, .wants_records = true };
	struct fail fail;
	int fd = running_capture_open(COMMAND, pid, O_RDWR, path, &fail);
	struct model *model = fd >= 0 ? model_load(&options, &fail) : NULL;

	if (model != NULL)
		look(fd, pid, model, stop_ns);
	model_free(model);
	if (fd >= 0)
		(void)close(fd);
}
