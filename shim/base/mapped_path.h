/*
 * mapped_path.h - what does the kernel call the file that is mapped there?
 *
 * Safe from   any thread, any signal handler; reads /proc/self/maps to the line.
 * When failing  0: it cannot be read, or the path does not fit.
 */
#ifndef MAPPED_PATH_H
#define MAPPED_PATH_H

#include <stddef.h>
#include <stdint.h>

/* The path from the root on of the mapping that begins at start_addr, terminated. Returns its length; 0 = not known. */
size_t mapped_path(uint64_t start_addr, char *path, size_t room);

#endif
