/*
 * capture_seal.h - checksums over a whole capture, when nothing in it changes any more.
 *
 * Safe from   one thread.
 */
#ifndef CAPTURE_SEAL_H
#define CAPTURE_SEAL_H

#include <stdint.h>

/* Gives every chunk of the file its checksum, then the head (F5). `file` is all of it, mapped for that alone. */
void capture_seal(char *file, uint32_t chunk_count);

#endif
