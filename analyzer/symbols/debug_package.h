/*
 * debug_package.h - one unit of a package of split debug information (.dwp), as a file of its own.
 *
 * Safe from   one thread.
 * When failing  -1.
 */
#ifndef DEBUG_PACKAGE_H
#define DEBUG_PACKAGE_H

#include <stdint.h>

/* A descriptor of the caller's: a file in memory as the compiler made it (.dwo). package: an open descriptor; stays open. */
int debug_package_unit(int package, uint64_t unit);

#endif
