/*
 * core_file.h - the memory of a process as a core file has it, its mappings, and its threads' registers.
 *
 * A core leaves out code and constants of libraries, because their files have them. They are read from these files, which must be the
 * same as they were then.
 *
 * When failing  false, and one line in `fail`.
 */
#ifndef CORE_FILE_H
#define CORE_FILE_H

#include "holders/process_memory.h"
#include "holders/stopped_process.h"

/* program_addr: out, the entry point, in the program's own file; 0 = not known. */
bool core_file_open(const char *command, const char *path, struct process_memory *memory,
                    struct stopped_process *process, uint64_t *program_addr, struct fail *fail);
void core_file_close(struct process_memory *memory); // of no core: nothing is done

#endif
