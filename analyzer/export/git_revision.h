/*
 * git_revision.h - which commit was checked out where a program started?
 *
 * The capture does not say it: the folder's .git does, as long as nothing was checked out or committed since. git itself is not run.
 *
 * When failing  "": no repository, another commit since, or a repository of another kind.
 */
#ifndef GIT_REVISION_H
#define GIT_REVISION_H

#include <stdint.h>

#define GIT_REVISION_BYTES 65

/* folder: where the program started. started_ns: when, CLOCK_REALTIME. */
const char *git_revision_find(const char *folder, uint64_t started_ns, char revision[GIT_REVISION_BYTES]);

#endif
