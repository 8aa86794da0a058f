/*
 * python_samples.c - which small objects of Python are in the sample (see python_samples.h)?
 *
 * A hash table of cache lines. An address belongs to one line, in which it takes its own place, a free one, or that of an older address:
 * so no address is there twice, and nothing is ever moved. Words are changed without locks: two threads at one place lose one of two
 * samples for the census.
 */
#include "record/python_samples.h"

#include <stdatomic.h>
#include <string.h>

#include "sites/site_table.h"
#include "tables/pointer_map.h"

#define LINE 8u
#define LINES (PYTHON_SAMPLES_MAX / LINE)
#define OFFSET_UNIT 16u
#define OFFSET_MASK UINT64_C(15) // blocks begin at multiples of 16

/* The block's address; in its lowest bits, how far behind it the object begins, in units. 0 = free. relaxed: each word is the whole message. */
static _Alignas(64) _Atomic uint64_t lines[LINES][LINE];

void
python_samples_note(const void *block, const void *object)
{
	uint64_t addr = (uint64_t)block;
	uint64_t offset = ((uint64_t)object - addr) / OFFSET_UNIT;
	uint64_t hash = (addr >> 4) * UINT64_C(0x9e3779b97f4a7c15);
	_Atomic uint64_t *line = lines[hash >> 32 & (LINES - 1)];
	unsigned place = hash >> 60 & (LINE - 1); // of an older one, when there is no other

	for (unsigned i = 0; i < LINE; i++) {
		uint64_t seen = atomic_load_explicit(&line[i], memory_order_relaxed);

		if (seen == 0)
			place = i; // it may stand behind: all are looked at
		else if ((seen & ~OFFSET_MASK) == addr) {
			place = i;
			break;
		}
	}
	atomic_store_explicit(&line[place], addr | (offset & OFFSET_MASK), memory_order_relaxed);
}

void
python_samples_visit(python_samples_visitor *visitor)
{
	for (unsigned i = 0; i < LINES * LINE; i++) {
		_Atomic uint64_t *at = &lines[i / LINE][i % LINE];
		uint64_t seen = atomic_load_explicit(at, memory_order_relaxed);
		uint64_t addr = seen & ~OFFSET_MASK;
		struct address_block block;

		if (seen == 0)
			continue;
		if (pointer_map_find(addr, &block) && site_table_at(block.site)->domain == KMEM_DOMAIN_PYTHON_OBJECT)
			visitor(addr + (seen & OFFSET_MASK) * OFFSET_UNIT, block.bytes, block.site);
		else
			(void)atomic_compare_exchange_strong_explicit(at, &seen, 0, memory_order_relaxed, memory_order_relaxed);
	}
}

void
python_samples_clear(void)
{
	memset((void *)lines, 0, sizeof(lines));
}
