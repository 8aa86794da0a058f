/*
 * large_blocks.c - where do blocks of 1 MiB and more live (see large_blocks.h)?
 *
 * In a MiB of addresses at most one of them begins, so the place of an address follows from its MiB: neighbours in memory are neighbours
 * in the table, of which only the part in use becomes memory.
 *
 * Invariant, tested by number in tests/unit/shim/tables/test_large_blocks.c:
 *   Z1  a word is 0 or an address at which a large block was; one at which none is any more gives its place to the next that wants it.
 */
#include "tables/large_blocks.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "tables/pointer_map.h"

#define PLACES 65536u // a power of two
#define PROBES 8u
#define MIB_LOG2 20

static _Atomic uint64_t places[PLACES]; // relaxed, all: an address says only where to ask
// since the start, or the fork; relaxed: who misses one finds it at the next look
static _Atomic bool is_any;

static bool
is_alive(uint64_t addr, struct address_block *block)
{
	return addr != 0 && pointer_map_find(addr, block) && block->bytes >= LARGE_BLOCKS_BYTES;
}

void
large_blocks_note(uint64_t addr)
{
	atomic_store_explicit(&is_any, true, memory_order_relaxed);
	for (uint64_t i = 0; i < PROBES; i++) {
		_Atomic uint64_t *place = &places[((addr >> MIB_LOG2) + i) & (PLACES - 1)];
		uint64_t seen = atomic_load_explicit(place, memory_order_relaxed);
		struct address_block block;

		if (seen == addr)
			return;
		/* Of two that see the same old one, the second goes on. */
		if (!is_alive(seen, &block) &&
		    atomic_compare_exchange_strong_explicit(place, &seen, addr, memory_order_relaxed, memory_order_relaxed))
			return;
	}
}

uint32_t
large_blocks_gather(struct large_block *found, uint32_t most)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < PLACES && count < most && atomic_load_explicit(&is_any, memory_order_relaxed); i++) {
		uint64_t addr = atomic_load_explicit(&places[i], memory_order_relaxed);
		struct address_block block;

		if (is_alive(addr, &block))
			found[count++] = (struct large_block){ .start = addr, .bytes = block.bytes, .site = block.site };
	}
	return count;
}

void
large_blocks_clear(void)
{
	if (!atomic_exchange_explicit(&is_any, false, memory_order_relaxed))
		return;
	for (uint32_t i = 0; i < PLACES; i++) {
		if (atomic_load_explicit(&places[i], memory_order_relaxed) != 0)
			atomic_store_explicit(&places[i], 0, memory_order_relaxed);
	}
}
