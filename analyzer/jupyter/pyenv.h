/*
 * pyenv.h - which environment stands behind a shim of pyenv?
 *
 * Its python3 in PATH is ROOT/shims/python3, a script that looks for the version each time and runs ROOT/versions/VERSION/bin/python3. The
 * version is named by PYENV_VERSION, by the file .python-version here or in a folder above, or by ROOT/version.
 *
 * When failing  there is none: for pyenv, too, "system" is the Python behind it in PATH.
 */
#ifndef PYENV_H
#define PYENV_H

#include <limits.h>
#include <stdbool.h>

/* root: ROOT, `length` bytes of it. prefix: out, ROOT/versions/VERSION, which is there. */
bool pyenv_prefix(const char *root, int length, char prefix[PATH_MAX]);

#endif
