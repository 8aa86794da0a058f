/*
 * large_blocks.h - where do blocks of 1 MiB and more live?
 *
 * Here are the addresses at which such a block once was. The pointer map knows whether it is still there, and to which site it belongs. So
 * a release needs no work here, and the fast path of an event (tracker_fast.c), which such a block never takes, does not see this.
 *
 * Safe from   any thread and signal handler; lock-free; no allocation.
 * When full   (64 GiB of addresses with a block in each MiB) the block is not noted: it counts as resident.
 */
#ifndef LARGE_BLOCKS_H
#define LARGE_BLOCKS_H

#include <stdint.h>

#define LARGE_BLOCKS_BYTES ((uint64_t)1 << 20)

struct large_block {
	uint64_t start;
	uint64_t bytes; // requested
	uint32_t site;  // index + 1
};

/* A block of LARGE_BLOCKS_BYTES and more was put into the pointer map. */
void large_blocks_note(uint64_t addr);

/* Those of the heap that are alive, in any order, `most` at most. Returns how many. Blocks come and go meanwhile. */
uint32_t large_blocks_gather(struct large_block *found, uint32_t most);

void large_blocks_clear(void); // forked child: one thread

#endif
