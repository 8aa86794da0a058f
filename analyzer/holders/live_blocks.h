/*
 * live_blocks.h - which live block is at this address, of which call site?
 *
 * Read from the recorder's own tables (kmem_tables.h) in the memory of a process that stands still. A block is one bit here, at its
 * place in a map of 16 bytes (8 over another allocator than glibc's). A second bit is a mark for callers. Both together take 1.6 % of
 * the heap. Size and site of a block stay where they are, and are read when they are asked for.
 *
 * Limits  what the recorder has no word for (large blocks, addresses above 47 bits, or a limited address space) is listed apart.
 */
#ifndef LIVE_BLOCKS_H
#define LIVE_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"
#include "holders/process_memory.h"

struct live_blocks;

struct live_block {
	uint64_t addr;
	uint64_t bytes; // requested; at least 1 counts
	uint32_t site;  // index + 1 of its struct kmem_site
	uint32_t extra; // of those listed apart: its number + 1; else 0
};

/* A range of addresses, sorted and disjoint where there are several. */
struct address_range {
	uint64_t start;
	uint64_t end;
};

/* NULL and *fail: the process has no tables of this version. */
struct live_blocks *live_blocks_read(const char *command, struct process_memory *memory, struct fail *fail);
void live_blocks_free(struct live_blocks *blocks);

struct word_range live_blocks_range(const struct live_blocks *blocks); // of addresses in blocks, about

/* The block that this address lies in. */
bool live_blocks_find(struct live_blocks *blocks, uint64_t addr, struct live_block *block);

/* The block with the highest address in [start, end). False: none begins there. */
bool live_blocks_last_in(struct live_blocks *blocks, uint64_t start, uint64_t end, struct live_block *block);

/* Visits blocks by address, those listed apart last. False when the visitor ended it. A block that it unlists is not shown any more. */
typedef bool live_blocks_visitor(void *context, const struct live_block *block);
bool live_blocks_visit(struct live_blocks *blocks, live_blocks_visitor *visitor, void *context);

/* Sets the mark of a block. False when it was set already. */
bool live_blocks_mark(struct live_blocks *blocks, const struct live_block *block);
bool live_blocks_is_marked(const struct live_blocks *blocks, const struct live_block *block);
void live_blocks_unmark_all(struct live_blocks *blocks);

/* The block is not found any more, nor visited. */
void live_blocks_unlist(struct live_blocks *blocks, const struct live_block *block);

/* Live mappings of the program, and what the recorder reserved for itself. */
size_t live_blocks_mapped(const struct live_blocks *blocks, const struct address_range **ranges);
size_t live_blocks_own(const struct live_blocks *blocks, const struct address_range **ranges);

#endif
