/*
 * make_folders.h - a folder, and those above it that are missing.
 *
 * Context     No state.
 */
#ifndef MAKE_FOLDERS_H
#define MAKE_FOLDERS_H

#include <stdbool.h>
#include <sys/types.h>

/* False and errno when there is no such folder afterwards. mode: of those that are made. */
bool make_folders(const char *path, mode_t mode);

#endif
