/*
 * unwind_copies.h - where can the unwind tables of a large object be read without making its pages resident for good?
 *
 * A walk over new code reads a word here and a word there of .eh_frame, and the kernel maps sixteen pages around each: 10 MiB of JAX's
 * stay with the program, which reads none of them. So the file is mapped once more, and that mapping's pages are let go of now and then.
 *
 * Safe from   any hook on any thread. A few system calls once for an object; a table of 8, nothing is ever unmapped.
 * When failing  0: the tables are read where they are. So it is for objects with less than a mebibyte of them, and where the file
 *             of that name is not the one that is mapped any more.
 */
#ifndef UNWIND_COPIES_H
#define UNWIND_COPIES_H

#include <stdint.h>

#include "base/loaded_object.h"
#include "unwind/unwind_tables.h"

/*
 * Changes *tables to those of the same object in the second mapping: all addresses in them are so much more than those of the code. 0:
 * they are to be read where they are. version: of the unwind rules, all of it.
 */
uint64_t unwind_copies_find(const struct loaded_object *object, uint64_t frames_addr, uint64_t version,
                            struct unwind_tables *tables);

extern uint64_t unwind_copies_least_bytes; // of tables; a mebibyte, fewer in tests: a page

void unwind_copies_rest(void); // lets go of the pages that were read since it was last called

#endif
