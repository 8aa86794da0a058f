/*
 * address_table.c - a lock-free hash from address to block (see address_table.h).
 */
#include "tables/address_table.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/raw_sys.h"
#include "kmem_tables.h"

#define SLOTS_LOG2_MAX 19
#define SLOTS_LOG2_MIN 12
#define PROBES_MAX 256

enum { KEY_FREE = 0, KEY_BUSY = 1 };

/*
 * relaxed, all but the key: A2. A sweep may read a slot that is just being written; so it reads the key a second time. `reach` is not about
 * the block in this slot. It is about all addresses whose first place is this slot: they are within so many slots from here. A thread
 * that asks for an address got it from the thread that put it, so it sees that thread's reach.
 */
struct address_slot {
	_Atomic uint64_t key;
	_Atomic uint64_t bytes;
	_Atomic uint32_t site;
	_Atomic uint8_t generation;
	_Atomic uint16_t reach;
};

struct address_slots {
	/*
	 * Of the number of slots; constant. relaxed: slots_of() orders it. Atomic only because the sanitizer does not see that
	 * the kernel may give a racing thread the place that another one's attempt has just left.
	 */
	_Atomic unsigned log2;
	_Alignas(64) struct address_slot slot[];
};

/* The sign of a table stands where the table is (pointer_map.c). */
#define IS_AS_SIGNED(field) (offsetof(struct address_slot, field) == offsetof(struct kmem_slot, field))
static_assert(IS_AS_SIGNED(key) && IS_AS_SIGNED(bytes) && IS_AS_SIGNED(site), "");
static_assert(sizeof(struct address_slot) == sizeof(struct kmem_slot) &&
                  offsetof(struct address_slots, slot) == offsetof(struct kmem_slots, slot),
              "");

static size_t
bytes_of(unsigned log2)
{
	return sizeof(struct address_slots) + ((size_t)1 << log2) * sizeof(struct address_slot);
}

static unsigned
log2_of(const struct address_slots *slots)
{
	return atomic_load_explicit(&slots->log2, memory_order_relaxed);
}

static struct address_slots *
reserve(const struct address_table *table)
{
	size_t most_bytes = raw_reserve_max();

	for (unsigned log2 = table->slots_log2_max ?: SLOTS_LOG2_MAX; log2 >= SLOTS_LOG2_MIN; log2--) {
		struct address_slots *fresh = NULL;

		if (bytes_of(log2) / 2 <= most_bytes || log2 == SLOTS_LOG2_MIN)
			fresh = raw_reserve(KMEM_OWN_ADDRESSES, bytes_of(log2), PROT_READ | PROT_WRITE);
		if (fresh != NULL) {
			atomic_store_explicit(&fresh->log2, log2, memory_order_relaxed);
			return fresh;
		}
	}
	return NULL;
}

static struct address_slots *
slots_of(struct address_table *table, bool creates)
{
	/* acquire: pairs with the release below; the size in the fresh table is seen. */
	struct address_slots *slots = __atomic_load_n(&table->slots, __ATOMIC_ACQUIRE);

	/* relaxed: guards nothing; who does not see it yet asks the kernel once more. */
	if (slots != NULL || !creates || atomic_load_explicit(&table->is_stuck, memory_order_relaxed))
		return slots;
	struct address_slots *fresh = reserve(table);

	if (fresh == NULL) {
		atomic_store_explicit(&table->is_stuck, true, memory_order_relaxed);
		return NULL;
	}
	if (__atomic_compare_exchange_n(&table->slots, &slots, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return fresh;
	raw_unreserve(fresh, bytes_of(log2_of(fresh)));
	return slots;
}

void
address_table_reserve(struct address_table *table)
{
	(void)slots_of(table, true);
}

/* The slot that is `probe` steps from where an address belongs. */
static struct address_slot *
slot_at(struct address_slots *slots, uint64_t addr, unsigned probe)
{
	unsigned log2 = log2_of(slots);
	uint64_t start = (addr >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - log2);

	return &slots->slot[(start + probe) & (((uint64_t)1 << log2) - 1)];
}

/* The slot of an address; NULL when it is not there. What the slot says may be read. */
static inline struct address_slot *
search(struct address_slots *slots, uint64_t addr)
{
	unsigned reach = atomic_load_explicit(&slot_at(slots, addr, 0)->reach, memory_order_relaxed); // A1

	for (unsigned probe = 0; probe < reach; probe++) {
		struct address_slot *slot = slot_at(slots, addr, probe);

		/* acquire: A2. Pairs with write_slot(). */
		if (atomic_load_explicit(&slot->key, memory_order_acquire) == addr)
			return slot;
	}
	return NULL;
}

static struct address_slot *
find(struct address_table *table, uint64_t addr)
{
	struct address_slots *slots = addr > KEY_BUSY ? slots_of(table, false) : NULL; // A1

	return slots != NULL ? search(slots, addr) : NULL;
}

/* It never becomes less. relaxed: see there. */
static void
extend_reach(struct address_slot *home, unsigned reach)
{
	uint16_t known = atomic_load_explicit(&home->reach, memory_order_relaxed);

	while (known < reach && !atomic_compare_exchange_weak_explicit(&home->reach, &known, (uint16_t)reach,
	                                                               memory_order_relaxed, memory_order_relaxed))
		continue;
}

static struct address_block
read_slot(const struct address_slot *slot)
{
	return (struct address_block){
		.bytes = atomic_load_explicit(&slot->bytes, memory_order_relaxed),
		.site = atomic_load_explicit(&slot->site, memory_order_relaxed),
		.generation = atomic_load_explicit(&slot->generation, memory_order_relaxed),
	};
}

/* Into a slot that is KEY_BUSY. */
static void
write_slot(struct address_slot *slot, uint64_t addr, struct address_block block)
{
	atomic_store_explicit(&slot->bytes, block.bytes, memory_order_relaxed);
	atomic_store_explicit(&slot->site, block.site, memory_order_relaxed);
	atomic_store_explicit(&slot->generation, block.generation, memory_order_relaxed);
	/* release: A2. Pairs with find(). */
	atomic_store_explicit(&slot->key, addr, memory_order_release);
}

/* The slot is KEY_BUSY, and the caller's. False: the address is gone, or another thread's. acquire: A2. Pairs with write_slot(). */
static bool
claim(struct address_slot *slot, uint64_t addr)
{
	return atomic_compare_exchange_strong_explicit(&slot->key, &addr, KEY_BUSY, memory_order_acquire,
	                                               memory_order_relaxed);
}

static bool
replace(struct address_slot *slot, uint64_t addr, struct address_block block, struct address_block *old)
{
	if (!claim(slot, addr))
		return false;
	*old = read_slot(slot);
	write_slot(slot, addr, block);
	return true;
}

enum address_table_put
address_table_put(struct address_table *table, uint64_t addr, struct address_block block, struct address_block *old)
{
	struct address_slots *slots = addr > KEY_BUSY ? slots_of(table, true) : NULL; // A1
	struct address_slot *slot = slots != NULL ? search(slots, addr) : NULL;

	if (slot != NULL && replace(slot, addr, block, old))
		return ADDRESS_TABLE_REPLACED;
	for (unsigned probe = 0; slots != NULL && probe < PROBES_MAX; probe++) {
		slot = slot_at(slots, addr, probe);
		uint64_t key = atomic_load_explicit(&slot->key, memory_order_relaxed);

		/* acquire: pairs with address_table_take_of(): the last owner has read the slot before we write it. */
		if (key == KEY_FREE && atomic_compare_exchange_strong_explicit(&slot->key, &key, KEY_BUSY, memory_order_acquire,
		                                                               memory_order_relaxed)) {
			extend_reach(slot_at(slots, addr, 0), probe + 1);
			write_slot(slot, addr, block);
			return ADDRESS_TABLE_STORED;
		}
	}
	return ADDRESS_TABLE_FULL;
}

bool
address_table_find(struct address_table *table, uint64_t addr, struct address_block *block)
{
	struct address_slot *slot = find(table, addr);

	if (slot == NULL)
		return false;
	*block = read_slot(slot);
	return true;
}

bool
address_table_sweep(struct address_table *table, uint64_t *cursor,
                    bool (*is_meant)(uint64_t addr, struct address_block, void *), void *context,
                    struct address_block *block)
{
	struct address_slots *slots = slots_of(table, false);

	for (; slots != NULL && *cursor >> log2_of(slots) == 0; ++*cursor) {
		struct address_slot *slot = &slots->slot[*cursor];
		uint64_t key = atomic_load_explicit(&slot->key, memory_order_acquire); // A2

		if (key <= KEY_BUSY)
			continue;
		*block = read_slot(slot);
		atomic_thread_fence(memory_order_acquire); // the block is read before the key is read a second time
		if (atomic_load_explicit(&slot->key, memory_order_relaxed) == key && is_meant(key, *block, context) &&
		    address_table_take(table, key, block))
			return true;
	}
	return false;
}

bool
address_table_take_of(struct address_table *table, uint64_t addr, uint32_t site, struct address_block *block)
{
	struct address_slot *slot = find(table, addr);

	/* Another one's block is hidden from it for as short as can be. */
	if (slot == NULL || (site != 0 && read_slot(slot).site != site) || !claim(slot, addr))
		return false; // a double free by the program: the other one took it

	struct address_block found = read_slot(slot);

	if (site != 0 && found.site != site) {
		write_slot(slot, addr, found);
		return false;
	}
	/* release: our reads of the block come before the slot is used again. Pairs with the claim in put. */
	atomic_store_explicit(&slot->key, KEY_FREE, memory_order_release);
	*block = found;
	return true;
}

bool
address_table_take(struct address_table *table, uint64_t addr, struct address_block *block)
{
	return address_table_take_of(table, addr, 0, block);
}

void
address_table_clear(struct address_table *table)
{
	unsigned log2;

	if (table->slots != NULL) {
		log2 = log2_of(table->slots);
		raw_madvise(table->slots, bytes_of(log2), MADV_DONTNEED);
		atomic_store_explicit(&table->slots->log2, log2, memory_order_relaxed);
	}
	atomic_store_explicit(&table->is_stuck, false, memory_order_relaxed); // one thread
}
