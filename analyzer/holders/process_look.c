/*
 * process_look.c - stops a process and reads what the recorder knows of it (see process_look.h).
 */
#include "holders/process_look.h"

#include <string.h>
#include <unistd.h>

#include "base/items.h"
#include "base/regular_file.h"
#include "capture/capture_memory.h"
#include "holders/core_file.h"

static void
resume(struct process_look *look)
{
	if (look->stopped_ns == 0)
		look->stopped_ns = stopped_process_resume(&look->process);
}

bool
process_look_resume(const char *command, struct process_look *look, struct fail *fail)
{
	resume(look);
	return !look->process.was_killed || fail_set(fail, EXIT_USAGE, "%s: process %d was killed while it stood still",
	                                             command, (int)look->process.pid);
}

/* is_open: the process's memory is open. */
static bool
read_blocks(const char *command, bool is_open, uint64_t wait_ns, struct process_look *look, struct fail *fail)
{
	if (is_open) {
		look->memory.deadline_ns = look->process.since_ns + wait_ns;
		look->blocks = live_blocks_read(command, &look->memory, fail);
	}
	if (look->blocks == NULL) {
		(void)process_look_resume(command, look, fail); // of who was killed nothing could be read
		process_look_close(look);
		return false;
	}
	root_ranges_find(&look->memory, &look->process, look->blocks, &look->ranges);
	return true;
}

static bool
refuse_other(const char *command, pid_t pid, struct fail *fail)
{
	return fail_set(fail, EXIT_USAGE, "%s: process %d became another program at this moment (exec): try again", command,
	                (int)pid);
}

struct model *
process_look_model(const char *command, pid_t pid, const char *capture, struct model_options *options,
                   struct fail *fail)
{
	options->capture = capture;
	options->wants_symbols = options->wants_records = true;

	struct model *model = model_load(options, fail);

	if (model == NULL && access(capture, F_OK) != 0)
		(void)refuse_other(command, pid, fail);
	return model;
}

static bool
has_mapped(const struct process_memory *memory, const char *path)
{
	char place[PATH_MAX];
	bool is_link = capture_memory_place(path, place);

	return ANY(region, memory->regions, memory->region_count, strcmp(region->path, is_link ? place : path) == 0);
}

bool
process_look_open_stopped(const char *command, const struct stopped_process *process, const char *capture,
                          uint64_t wait_ns, struct process_look *look, struct fail *fail)
{
	*look = (struct process_look){ .process = *process };

	bool is_open = process_memory_open(command, process->pid, &look->memory, fail);

	if (is_open && capture != NULL && !has_mapped(&look->memory, capture))
		is_open = refuse_other(command, process->pid, fail);
	return read_blocks(command, is_open, wait_ns, look, fail);
}

bool
process_look_open_core(const char *command, const char *path, uint64_t wait_ns, struct process_look *look,
                       struct fail *fail)
{
	*look = (struct process_look){ 0 };
	return core_file_open(command, path, &look->memory, &look->process, fail) &&
	       read_blocks(command, true, wait_ns, look, fail);
}

bool
process_look_open(const char *command, pid_t pid, const char *capture, uint64_t wait_ns, struct process_look *look,
                  struct fail *fail)
{
	struct stopped_process process;

	return stopped_process_stop(command, pid, wait_ns, &process, fail) &&
	       process_look_open_stopped(command, &process, capture, wait_ns, look, fail);
}

void
process_look_close(struct process_look *look)
{
	resume(look);
	live_blocks_free(look->blocks);
	root_ranges_free(&look->ranges);
	core_file_close(&look->memory);
	process_memory_close(&look->memory);
	stopped_process_free(&look->process);
}
