/*
 * unhooked_allocator.h - whose blocks will never come to our hooks?
 *
 * The program calls an allocator that comes before ours (LD_PRELOAD), or that is part of the program: of its heap we see the mappings at
 * most. The report says so.
 *
 * Context     once, when the library is loaded.
 * Safe from   there alone: it asks the loader, and gets a block from the other heap.
 * When failing  nothing is said.
 */
#ifndef UNHOOKED_ALLOCATOR_H
#define UNHOOKED_ALLOCATOR_H

void unhooked_allocator_tell(void);

#endif
