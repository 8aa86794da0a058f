/*
 * capture_seal.h - checksums over a whole capture, when nothing in it changes any more.
 *
 * Called by   capture_file.c, at the end.
 * Safe from   one thread.
 * When failing  no address space, no memory: the capture stays as readable as that of a killed program.
 */
#ifndef CAPTURE_SEAL_H
#define CAPTURE_SEAL_H

#include <stdint.h>

/* Gives every chunk of the file its checksum, then the head (F5). `fd` is open for reading and writing. */
void capture_seal(int fd, uint32_t chunk_count);

#endif
