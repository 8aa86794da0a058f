/*
 * core_file.h - the memory of a process as a core file has it, its mappings, and its threads' registers.
 *
 * A core leaves out code and constants of libraries, because their files have them. They are read from these files. Who sends a core
 * chooses their names: a file is read only where it begins with the page that the core has of it, which has its build-id.
 *
 * When failing  false, and one line in `fail`.
 */
#ifndef CORE_FILE_H
#define CORE_FILE_H

#include "holders/process_memory.h"
#include "holders/stopped_process.h"

bool core_file_open(const char *command, const char *path, struct process_memory *memory,
                    struct stopped_process *process, struct fail *fail);
/* Is the file the ELF image that begins so in memory? Its build-id is there. fd: out, open for reading; -1 = it is not. */
bool core_file_is_image(const unsigned char head[PROCESS_MEMORY_PAGE], const char *path, int *fd);
void core_file_close(struct process_memory *memory); // of no core: nothing is done

#endif
