/*
 * address_table.c - a lock-free hash from address to block (see address_table.h).
 */
#include "address_table.h"

#include <stdatomic.h>

#include "raw_sys.h"

#define SLOTS_LOG2 19
#define SLOTS ((uint64_t)1 << SLOTS_LOG2)
#define PROBES_MAX 256

enum { KEY_FREE = 0, KEY_GIVEN_UP = 1, KEY_BUSY = 2 };

struct address_slot {
	_Atomic uint64_t key;
	uint64_t bytes;
	uint32_t site;
	uint8_t generation;
};

static struct address_slot *
slots_of(struct address_table *table, bool creates)
{
	/* acquire: pairs with the release below; the memory behind the pointer is there. */
	struct address_slot *slots = __atomic_load_n(&table->slots, __ATOMIC_ACQUIRE);

	if (slots != NULL || !creates)
		return slots;
	struct address_slot *fresh = raw_reserve(SLOTS * sizeof(*fresh), PROT_READ | PROT_WRITE);

	if (fresh == NULL)
		return NULL;
	if (__atomic_compare_exchange_n(&table->slots, &slots, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return fresh;
	raw_munmap(fresh, SLOTS * sizeof(*fresh));
	return slots;
}

static uint64_t
start_of(uint64_t addr)
{
	return (addr >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - SLOTS_LOG2);
}

bool
address_table_put(struct address_table *table, uint64_t addr, struct address_block block)
{
	struct address_slot *slots = slots_of(table, true);
	uint64_t at = start_of(addr);

	for (unsigned probe = 0; slots != NULL && probe < PROBES_MAX; probe++, at++) {
		struct address_slot *slot = &slots[at & (SLOTS - 1)];
		uint64_t key = atomic_load_explicit(&slot->key, memory_order_relaxed);

		if (key > KEY_GIVEN_UP ||
		    !atomic_compare_exchange_strong_explicit(&slot->key, &key, KEY_BUSY, memory_order_acquire,
		                                             memory_order_relaxed))
			continue;
		slot->bytes = block.bytes;
		slot->site = block.site;
		slot->generation = block.generation;
		/* relaxed: only asked whether it is worth looking at all, by the thread that put. */
		atomic_fetch_add_explicit(&table->live_count, 1, memory_order_relaxed);
		/* release: A2. Pairs with address_table_take(). */
		atomic_store_explicit(&slot->key, addr, memory_order_release);
		return true;
	}
	return false;
}

bool
address_table_take(struct address_table *table, uint64_t addr, struct address_block *block)
{
	struct address_slot *slots = slots_of(table, false);
	uint64_t at = start_of(addr);

	if (slots == NULL || atomic_load_explicit(&table->live_count, memory_order_relaxed) == 0)
		return false;
	for (unsigned probe = 0; probe < PROBES_MAX; probe++, at++) {
		struct address_slot *slot = &slots[at & (SLOTS - 1)];
		/* acquire: A2. Pairs with address_table_put(). */
		uint64_t key = atomic_load_explicit(&slot->key, memory_order_acquire);

		if (key == KEY_FREE)
			return false;
		if (key != addr)
			continue;
		block->bytes = slot->bytes;
		block->site = slot->site;
		block->generation = slot->generation;
		/* release: our reads of the block come before the slot is used again. Pairs with the claim in put. */
		if (!atomic_compare_exchange_strong_explicit(&slot->key, &key, KEY_GIVEN_UP, memory_order_release,
		                                             memory_order_relaxed))
			return false; // a double free by the program: the other one took it
		atomic_fetch_sub_explicit(&table->live_count, 1, memory_order_relaxed);
		return true;
	}
	return false;
}

void
address_table_clear(struct address_table *table)
{
	if (table->slots != NULL)
		madvise(table->slots, SLOTS * sizeof(*table->slots), MADV_DONTNEED);
	table->live_count = 0;
}
