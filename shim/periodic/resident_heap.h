/*
 * resident_heap.h - how full are the pages of the heap, and whose few blocks keep those that are nearly empty?
 *
 * malloc can give pages back at which no block lives, and no others. A sample of the resident pages is held against the pointer map; what
 * it says is taken for all of them.
 *
 * Context     under the flag of the look; after resident_lines_begin().
 * Safe from   as that is; no allocation. At most RESIDENT_HEAP_SAMPLES pages are looked into.
 * When failing  (another allocator than glibc's, whose blocks share words of the map) nothing is told: sampled_pages is 0.
 */
#ifndef RESIDENT_HEAP_H
#define RESIDENT_HEAP_H

#include <stdint.h>

#include "kmem_format.h"

#define RESIDENT_HEAP_SAMPLES 2048u

void resident_heap_begin(void);
// of malloc's, in order of address; those of large blocks are left out here
void resident_heap_pages(uint64_t start, uint64_t end);

/* Fills in the figures of the heap, and calls `pin` for each record that has blocks in nearly empty pages. */
void resident_heap_tell(struct kmem_resident_lines *lines, void (*pin)(uint32_t site, uint64_t bytes));

#endif
