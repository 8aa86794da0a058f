/*
 * output.h - did what we wrote arrive?
 *
 * When failing  a reader that went away (`| head`) is no failure and is not mentioned; everything else is one line and
 *               exit 2: the invocation is at fault (a full disk, a path), not the capture.
 */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/fail.h"

/* Flushes standard output and tells whether all of it was taken. */
bool output_finish(struct fail *fail);

/* May a file be written there? A file that is there already has to be meant; a folder never is. */
bool output_may_write(const char *path, bool is_forced, struct fail *fail);

/*
 * A file that appears whole or not at all: written beside its place and renamed by output_close(); Ctrl-C takes it away. "-" is standard
 * output; what is there and no plain file (a pipe, /dev/stdout) is written directly. It is the user's own, also where another user's file was
 * there before; a link that another user has made is replaced, and not followed.
 */
struct output_file;

#define OUTPUT_OF_ALL 0666                 // as far as the umask lets
#define OUTPUT_OWN 0600                    // it tells what a capture tells: source, arguments, cells
#define OUTPUT_OVER (S_IFLNK | OUTPUT_OWN) // whatever has that name is replaced: a link itself

/* mode: of a file that was not there */
struct output_file *output_open(const char *path, mode_t mode, struct fail *fail);
FILE *output_stream(struct output_file *file);
/* Frees `file` in any case; on failure what was there before is still there. */
bool output_close(struct output_file *file, struct fail *fail);
/* What was written is not wanted: frees `file`, and what was there before is still there. */
void output_drop(struct output_file *file);

#endif
