/*
 * process_look.c - stops a process and reads what the recorder knows of it (see process_look.h).
 */
#include "holders/process_look.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "base/items.h"
#include "base/memory.h"
#include "base/regular_file.h"
#include "capture/capture_memory.h"
#include "holders/core_file.h"

/* The entry point, as the kernel told the program: AT_ENTRY. */
static uint64_t
program_addr(pid_t pid)
{
	unsigned long pair[2];
	uint64_t found = 0;
	OWNED_STREAM FILE *vector = fopen(TEXT(64, "/proc/%d/auxv", (int)pid), "re");

	while (vector != NULL && fread(pair, sizeof(pair), 1, vector) == 1) {
		if (pair[0] == AT_ENTRY)
			found = pair[1];
	}
	return found;
}

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

bool
process_look_refuse_other(const char *command, pid_t pid, struct fail *fail)
{
	return fail_set(fail, EXIT_USAGE, "%s: process %d became another program at this moment (exec): try again", command,
	                (int)pid);
}

static bool
has_mapped(const struct process_memory *memory, const char *path)
{
	char place[PATH_MAX];
	bool is_link = capture_memory_place(path, place);

	return ANY(region, memory->regions, memory->region_count, strcmp(region->path, is_link ? place : path) == 0);
}

static bool
open_stopped(const char *command, const struct stopped_process *process, const char *capture, uint64_t wait_ns,
             struct process_look *look, struct fail *fail)
{
	*look = (struct process_look){ .process = *process, .program_addr = program_addr(process->pid) };

	bool is_open = process_memory_open(command, process->pid, &look->memory, fail);

	if (is_open && capture != NULL && !has_mapped(&look->memory, capture))
		is_open = process_look_refuse_other(command, process->pid, fail);
	return read_blocks(command, is_open, wait_ns, look, fail);
}

bool
process_look_open_stopped(const char *command, const struct stopped_process *process, uint64_t wait_ns,
                          struct process_look *look, struct fail *fail)
{
	return open_stopped(command, process, NULL, wait_ns, look, fail);
}

bool
process_look_open_core(const char *command, const char *path, uint64_t wait_ns, struct process_look *look,
                       struct fail *fail)
{
	*look = (struct process_look){ 0 };
	return core_file_open(command, path, &look->memory, &look->process, &look->program_addr, fail) &&
	       read_blocks(command, true, wait_ns, look, fail);
}

bool
process_look_open(const char *command, pid_t pid, const char *capture, uint64_t wait_ns, struct process_look *look,
                  struct fail *fail)
{
	struct stopped_process process;

	return stopped_process_stop(command, pid, wait_ns, &process, fail) &&
	       open_stopped(command, &process, capture, wait_ns, look, fail);
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
