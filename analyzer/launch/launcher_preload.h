/*
 * launcher_preload.h - what is to be preloaded into the program?
 */
#ifndef LAUNCHER_PRELOAD_H
#define LAUNCHER_PRELOAD_H

#include <stdbool.h>

/*
 * The value of LD_PRELOAD for the program: the shim, then the libraries that the environment names. Another installation's shim is left
 * out, and one line on stderr says so, once.
 *
 * shim      absolute path
 * is_told   false: without the line
 * returns   to be freed
 */
char *launcher_preload(const char *shim, bool is_told);

#endif
