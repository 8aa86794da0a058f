/*
 * resident_heap.h - how full are the pages of the heap, and which lines' few blocks keep the nearly empty ones?
 *
 * malloc can give back only pages in which no block lives. A sample of the resident pages is compared with the pointer map, and what it
 * says is taken for all pages.
 *
 * Context     under the flag of the look.
 * Safe from   the same places; no allocation. At most RESIDENT_HEAP_SAMPLES pages are looked into.
 */
#ifndef RESIDENT_HEAP_H
#define RESIDENT_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "kmem_format.h"

#define RESIDENT_HEAP_SAMPLES 2048u

void resident_heap_begin(void);

/*
 * malloc's pages, in order of address. Those of large blocks are left out. Returns how many words of the map were looked at.
 *
 * pages     as of page_look.h, from `start` to `end`
 * is_large  is there a large block at `addr`? *end: where it ends; else where the next one begins
 */
uint64_t resident_heap_pages(uint64_t start, uint64_t end, const unsigned char *pages,
                             bool is_large(uint64_t addr, uint64_t *end));

/* May resident_heap_held_at_most() be asked? False: none was looked into, or more records hold them than there is room for. */
bool resident_heap_knows_holders(void);

/* Of the blocks of 1 KiB to POINTER_MAP_LARGE_BYTES of these records: so much is in memory at most, by the sample and its error. */
uint64_t resident_heap_held_at_most(bool is_one(uint32_t site, const void *context), const void *context);

/* Fills in the figures of the heap, and calls `pin` for each record that has blocks in nearly empty pages. */
void resident_heap_tell(struct kmem_resident_lines *lines, void (*pin)(uint32_t site, uint64_t bytes));

#endif
