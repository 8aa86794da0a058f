/*
 * branch_file.h - a file as a branch or commit has it: "origin/main:ci/base.json", as `git show` takes it.
 *
 * When failing  git is not there, or does not know the file: one line of git's own.
 */
#ifndef BRANCH_FILE_H
#define BRANCH_FILE_H

#include <stdbool.h>

#include "base/fail.h"

/* Is it a revision and a path, and no file here? */
bool branch_file_is(const char *name);

/* A descriptor of the file's content; -1 and *fail (EXIT_USAGE). */
int branch_file_open(const char *name, struct fail *fail);

#endif
