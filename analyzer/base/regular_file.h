/*
 * regular_file.h - opens a file of which others may have chosen the name, without waiting for anybody.
 *
 * A FIFO in a folder of captures would make open() wait for a writer that never comes; to open a device may be to use it, as a watchdog
 * is, which starts the machine anew. What is no regular file is not opened; without /proc, what has become such meanwhile.
 */
#ifndef REGULAR_FILE_H
#define REGULAR_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

/*
 * flags     of open(), such as O_RDONLY or O_RDWR | O_NOFOLLOW; O_CLOEXEC is added
 * status    out: of the file that was opened; NULL: not wanted
 * returns   a descriptor, or -1 and errno: EISDIR of a folder, EINVAL of anything else that is not a regular file
 */
int regular_file_open(const char *path, int flags, struct stat *status);

/*
 * Where does an opened file lie? Names may be changed at any time; so these ask the kernel for its path without links. False: also where
 * there is no /proc.
 */
bool regular_file_path(int file, char path[PATH_MAX]);
/* In the folder, or below it? "": the one where the reader stands. */
bool regular_file_is_below(int file, const char *folder);
/*
 * May every user read it? That needs search permission in each folder that leads there. Of the folders above the one where the reader stands
 * nothing is asked: a home that is closed says nothing of a project in it, and who stands in the home itself has not chosen it.
 */
bool regular_file_is_public(int file);

/* Before the declaration of a descriptor: it is closed where its block is left, by whatever way; below 0 = none. */
#define OWNED_FILE __attribute__((cleanup(regular_file_close)))
void regular_file_close(const int *file);
#define OWNED_STREAM __attribute__((cleanup(regular_file_close_stream)))
void regular_file_close_stream(FILE *const *stream);

/* What to say after a failure: "is not a regular file", or what errno means. */
const char *regular_file_why(int error);

#endif
