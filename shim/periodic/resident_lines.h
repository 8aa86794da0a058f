/*
 * resident_lines.h - of the large blocks of each record, how much is in memory?
 *
 * A block that was never touched takes no memory. Blocks and mappings of 1 MiB and more are looked at one by one: there are few of them,
 * and smaller ones are touched soon. The answer is a struct kmem_resident_lines.
 *
 * Context     while resident.c takes a sample: begin, pages in order of address, store. Blocks are those of the beginning.
 * Safe from   the same places as resident_take(); no allocation.
 * When full   large blocks beyond RESIDENT_LINES_BLOCKS_MAX count as resident; records beyond the room in the capture are summed up.
 */
#ifndef RESIDENT_LINES_H
#define RESIDENT_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "kmem_format.h"

#define RESIDENT_LINES_BLOCKS_MAX 16384u

void resident_lines_begin(void);
/* pages: as of page_look.h, from `start` to `end`. */
void resident_lines_pages(uint64_t start, uint64_t end, const unsigned char *pages);
/* Is there a large block at `addr`? *end: where it ends; else where the next one begins, UINT64_MAX = nowhere. Both at edges of pages. */
bool resident_lines_are_large(uint64_t addr, uint64_t *end);

/*
 * elsewhere_bytes: of what is in memory where nobody looked for blocks, so much may be blocks of the heap all the same.
 * scaled: so many of bytes that were not counted by the kernel's own word are resident.
 */
void resident_lines_store(struct kmem_resident_lines *to, uint64_t sequence, uint64_t elsewhere_bytes,
                          uint64_t scaled(uint64_t bytes));

#endif
