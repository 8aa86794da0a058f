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
#define HEADS_MAX 2u             // those of objects, and below them those of raw memory

/* The block's address; in its lowest bits, how far behind it the object begins, in units. 0 = free. relaxed: each word is the whole message. */
static _Alignas(64) _Atomic uint64_t lines[LINES][LINE];

static uint64_t
hash_of(uint64_t addr)
{
	return (addr >> 4) * UINT64_C(0x9e3779b97f4a7c15);
}

static _Atomic uint64_t *
line_of(uint64_t addr)
{
	return lines[hash_of(addr) >> 32 & (LINES - 1)];
}

/* Is the block that was noted still a sample, and the program's? */
static bool
is_alive(uint64_t addr, struct address_block *block)
{
	return pointer_map_find(addr, block) && block->site != 0 &&
	       site_table_at(block->site)->domain == KMEM_DOMAIN_PYTHON_OBJECT;
}

void
python_samples_note(const void *block, const void *object)
{
	uint64_t addr = (uint64_t)block;
	uint64_t offset = ((uint64_t)object - addr) / OFFSET_UNIT;
	_Atomic uint64_t *line = line_of(addr);
	unsigned place = hash_of(addr) >> 60 & (LINE - 1); // of an older one, when there is no other

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
		if (is_alive(addr, &block))
			visitor(addr + (seen & OFFSET_MASK) * OFFSET_UNIT, block.bytes, block.site);
		else
			(void)atomic_compare_exchange_strong_explicit(at, &seen, 0, memory_order_relaxed, memory_order_relaxed);
	}
}

bool
python_samples_find(uint64_t object, uint64_t *block)
{
	struct address_block seen;

	for (unsigned head = 0; head <= HEADS_MAX * PYTHON_SAMPLES_HEAD_BYTES; head += PYTHON_SAMPLES_HEAD_BYTES) {
		uint64_t addr = object - head;
		_Atomic uint64_t *line = line_of(addr);

		for (unsigned i = 0; i < LINE; i++) {
			if ((atomic_load_explicit(&line[i], memory_order_relaxed) & ~OFFSET_MASK) == addr) {
				*block = addr;
				return is_alive(addr, &seen);
			}
		}
	}
	return false;
}

void
python_samples_clear(void)
{
	memset((void *)lines, 0, sizeof(lines));
}
