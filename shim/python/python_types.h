/*
 * python_types.h - what kind of object is in this block of memory?
 *
 * A guess that is checked, never trusted: the words of the block may be of an object that is not made yet, that is dying, or of
 * none. An object says its type by one word at an offset that the type itself names (what the collector and the interpreter put in
 * front); the type must have a type that descends from `type`, be ready, and have a readable name, and the block must have
 * room for an instance. What lies outside the block is read through checked_memory.h, so nothing that is found there can do harm.
 * An object without references is dying, or waits in a free list: it is none.
 *
 * Safe from   any hook; no allocation, no lock.
 * When failing  NULL.
 */
#ifndef PYTHON_TYPES_H
#define PYTHON_TYPES_H

#include <stdint.h>

#include "python/python_layout.h"

#define PYTHON_TYPES_WORDS 8 // of a block that are looked at
#define PYTHON_TYPES_NAME_BYTES 96

/* Types die, and their addresses come back: what is known of them holds as long as the lock is held. */
void python_types_forget(void);

/*
 * words   the first ones of the block, as far as it has `bytes`
 * returns "dict", "numpy.ndarray", "mymodule.MyClass"; good until python_types_forget()
 */
const char *python_types_name(const struct python_interpreter *python, const uint64_t words[PYTHON_TYPES_WORDS],
                              uint64_t bytes);

#endif
