/*
 * capture_life.h - how the capture file comes and goes. Only lifecycle.c calls these.
 *
 * Safe from   open, identified, close, remove, forked: one thread, tracking off. The growth lock: around fork.
 */
#ifndef CAPTURE_LIFE_H
#define CAPTURE_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "kmem_format.h"

/*
 * Creates FOLDER/NAME.kmem (FOLDER too, NAME with -2, -3, ... when taken; mode 0600). False, after one message, when
 * that cannot be had; recording then goes on in private memory.
 */
bool capture_file_open(const char *folder, const char *name);

/* header->identity is complete: checksums it (F4). */
void capture_file_identified(void);

/* The end: late writers are cut off, everything is sealed by checksums (F5), the state is stored. */
void capture_file_close(enum kmem_state state, int exit_code, uint64_t now_ns);

/* Deletes the file of this process; the mappings stay usable. */
void capture_file_remove(void);

/* Held around fork, so that the child does not inherit a growth that nobody finishes. */
void capture_file_growth_lock(void);
void capture_file_growth_unlock(void);

/* In a forked child: lets go of the parent's file; an empty private stand-in until capture_file_open(). */
void capture_file_forked(void);

#endif
