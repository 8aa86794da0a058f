/*
 * capture_memory.h - captures that lie in memory while their programs run.
 *
 * A program must not wait for the disk of the folder of captures. So kmemshim run gives it a folder in memory (/dev/shm, a tmpfs):
 * the capture lies there, exact also after SIGKILL, and what has its name in the folder of captures is a link to it. When the process
 * has ended, the launcher puts a copy in the place of the link; or a command that reads the folder does, when the launcher was killed.
 *
 * When failing  the link stays, and the capture is read through it.
 */
#ifndef CAPTURE_MEMORY_H
#define CAPTURE_MEMORY_H

#include <limits.h>
#include <stdbool.h>

#include "kmem_format.h"

/* Folders of launchers begin so; behind it are digits, and "." and the pid of the launcher. */
#define CAPTURE_MEMORY_FOLDERS "/dev/shm/kmemshim."

/* In it: a link to the folder of captures. */
#define CAPTURE_MEMORY_OWNER ".folder"

/* Where does the file lie to which this link in a folder of captures leads? False: it is no link, or leads elsewhere. */
bool capture_memory_place(const char *path, char place[PATH_MAX]);

/*
 * Puts a copy in the place of the link.
 *
 * path      of the link, or of the copy that was put there before
 * file      an open file: what the link leads to; it may have lost its name
 * returns   false when that cannot be had
 */
bool capture_memory_copy(const char *path, int file);

/* Whose capture is this? False: it was just begun, or is not one. */
bool capture_memory_identity(int file, struct kmem_identity *identity);

/* When this is a link of this user's, and its process and the launcher have ended: copies, and takes away what lies in memory. */
void capture_memory_settle(const char *path);

/* The same for all that launchers left behind which were killed. A capture is removed of which the folder has no link any more. */
void capture_memory_sweep(void);

/* Removes a launcher's folder in memory if no capture is in it. */
void capture_memory_leave(const char *folder);

#endif
