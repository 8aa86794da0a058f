/*
 * capture_room.h - address ranges that the sections of a capture may fill.
 *
 * Context     with the growth lock held.
 * Safe from   any hook: system calls only.
 * When failing  NULL: there are no addresses left.
 */
#ifndef CAPTURE_ROOM_H
#define CAPTURE_ROOM_H

#include <stddef.h>

#include "kmem_format.h"

/* Address space that a section may fill; less of it where the program's address space is limited. */
size_t capture_room_bytes(enum kmem_section kind);

/* With a page in front of the first item, see capture_file_record(). */
char *capture_room_reserve(size_t bytes);

#endif
