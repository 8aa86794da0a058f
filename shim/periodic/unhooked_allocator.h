/*
 * unhooked_allocator.h - whose blocks will never come to our hooks?
 *
 * An allocator that stands before us (LD_PRELOAD), or is part of the program, is what the program calls: of its heap we see the
 * mappings at most. That is said in the report.
 *
 * Context     once, when the library is loaded.
 * Safe from   there alone: it asks the loader, and gets a block from the other heap.
 * When failing  nothing is said.
 */
#ifndef UNHOOKED_ALLOCATOR_H
#define UNHOOKED_ALLOCATOR_H

void unhooked_allocator_tell(void);

#endif
