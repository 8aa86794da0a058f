/*
 * running_capture.h - which capture does a running process write?
 *
 * It is found in /proc/PID/maps: wherever its folder is, that is the file that it has mapped; or the name of that in the folder, when it lies
 * in memory (capture_memory.h). A program that begins is waited for, 0.2 s at most.
 *
 * When failing  -1, and one line in `fail`: the process is gone, is not recorded, or its capture may not be opened.
 */
#ifndef RUNNING_CAPTURE_H
#define RUNNING_CAPTURE_H

#include <stdbool.h>

#include "base/fail.h"

#define RUNNING_CAPTURE_PATH_BYTES 8192

/* A number is a process, unless there is such a file. NULL is none. */
bool running_capture_is_process(const char *argument);

/* path: out, of RUNNING_CAPTURE_PATH_BYTES: not opened. */
bool running_capture_path(const char *command, const char *pid, char *path, struct fail *fail);

/*
 * command  for the message
 * pid      as it was typed
 * flags    O_RDONLY or O_RDWR
 * path     out, of RUNNING_CAPTURE_PATH_BYTES
 * returns  an open file, the caller's
 */
int running_capture_open(const char *command, const char *pid, int flags, char *path, struct fail *fail);

#endif
