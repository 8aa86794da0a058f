/*
 * pointer_map.c - address to call site (see pointer_map.h).
 *
 * A shadow indexed by address: one 8-byte word for each 32-byte window, in leaves of 16 MiB (for 64 MiB of addresses)
 * below one top table; pages come into being when they are touched. Its locality follows the heap's own, it needs no
 * probing, and it costs a quarter of the densest heap glibc can make: its blocks start at multiples of 16 and are never
 * closer than 32 bytes, so no window holds two. Other allocators have denser classes: what does not fit (a second block in
 * a window, a size of 2 GiB and more, an address above 47 bits) goes to an address table. So does what finds no leaf where
 * the address space is limited (ulimit -v): leaves take at most an eighth of it.
 *
 * Invariants, tested by number in tests/unit/test_pointer_map.c:
 *   M1  a window's word is 0 or describes one live block that starts in the window.
 *   M2  only the thread that owns an address (it got it from the allocator, or is about to give it back) puts or takes
 *       it; two owners may race for one window, so a word leaves and enters 0 by compare-and-swap only.
 *   M3  a leaf, once installed, stays for the life of the process, and stands in the list of leaves before it is installed: a
 *       child, forked at any moment, finds all of them there.
 */
#include "pointer_map.h"

#include <stdatomic.h>
#include <stddef.h>

#include "kmem_format.h"
#include "raw_sys.h"

#define WINDOW_LOG2 5
#define LEAF_LOG2 26 // 64 MiB of addresses
#define TOP_ENTRIES ((size_t)1 << (KMEM_ADDRESS_BITS - LEAF_LOG2))
#define LEAF_BYTES (((size_t)1 << (LEAF_LOG2 - WINDOW_LOG2)) * 8)

/* A word: bit 63 present, 61-62 position in the window in units of 8, 53-60 generation, 31-52 site, 0-30 bytes. */
#define WORD_PRESENT (UINT64_C(1) << 63)
#define WORD_POSITION_SHIFT 61
#define WORD_GENERATION_SHIFT 53
#define WORD_SITE_SHIFT 31
#define WORD_BYTES_MASK ((UINT64_C(1) << 31) - 1)
#define WORD_OWNER_MASK (UINT64_C(7) << WORD_POSITION_SHIFT) // present and position

typedef _Atomic uint64_t window;

struct top {
	_Atomic uint64_t leaves_max;          // constant; relaxed: top_table() orders it
	_Atomic uint64_t listed_count;        // entries of list[] that were handed out
	window *_Atomic leaf[TOP_ENTRIES];    // by address
	_Atomic uint32_t list[TOP_ENTRIES];   // numbers of the leaves, some of them perhaps twice or not installed
};

static struct top *top;
static _Atomic bool is_stuck; // the address space is used up, or too small for a shadow: no further top or leaf
static struct address_table overflow;

static struct top *
top_table(bool creates)
{
	/* acquire: pairs with the installation below; leaves_max is seen. */
	struct top *found = __atomic_load_n(&top, __ATOMIC_ACQUIRE);

	/* relaxed, for is_stuck everywhere: guards nothing; who does not see it yet asks the kernel once more. */
	if (found != NULL || !creates || atomic_load_explicit(&is_stuck, memory_order_relaxed))
		return found;
	size_t most_bytes = raw_reserve_max();
	struct top *fresh = NULL;

	if (sizeof(*fresh) <= most_bytes)
		fresh = raw_reserve(sizeof(*fresh), PROT_READ | PROT_WRITE);
	if (fresh == NULL) {
		atomic_store_explicit(&is_stuck, true, memory_order_relaxed);
		return NULL;
	}
	atomic_store_explicit(&fresh->leaves_max, most_bytes == SIZE_MAX ? TOP_ENTRIES : most_bytes * 8 / LEAF_BYTES,
	                      memory_order_relaxed);
	if (__atomic_compare_exchange_n(&top, &found, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return fresh;
	raw_munmap(fresh, sizeof(*fresh));
	return found;
}

/* A leaf for the entry, this thread's or that of a faster one; NULL when there is no room for one. */
static window *
install_leaf(struct top *table, size_t number)
{
	window *leaf = NULL;
	window *fresh = NULL;
	uint64_t listed;

	if (atomic_load_explicit(&is_stuck, memory_order_relaxed))
		return NULL;
	/* relaxed: it hands out places; only a child that has no other thread reads the list (M3). */
	listed = atomic_fetch_add_explicit(&table->listed_count, 1, memory_order_relaxed);
	if (listed < atomic_load_explicit(&table->leaves_max, memory_order_relaxed))
		fresh = raw_reserve(LEAF_BYTES, PROT_READ | PROT_WRITE);
	if (fresh == NULL) {
		atomic_store_explicit(&is_stuck, true, memory_order_relaxed);
		return NULL;
	}
	atomic_store_explicit(&table->list[listed], (uint32_t)number, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst); // the list first, for whoever forks here (M3)
	if (atomic_compare_exchange_strong_explicit(&table->leaf[number], &leaf, fresh, memory_order_acq_rel,
	                                            memory_order_acquire))
		return fresh;
	raw_munmap((void *)fresh, LEAF_BYTES);
	return leaf;
}

/* The window of an address; NULL when it cannot be had (or, if !creates, does not exist). */
static window *
find(uint64_t addr, bool creates)
{
	struct top *table;

	if (addr >> KMEM_ADDRESS_BITS != 0 || (table = top_table(creates)) == NULL)
		return NULL;
	/* acquire: pairs with install_leaf(). */
	window *leaf = atomic_load_explicit(&table->leaf[addr >> LEAF_LOG2], memory_order_acquire);

	if (leaf == NULL && creates)
		leaf = install_leaf(table, addr >> LEAF_LOG2);
	if (leaf == NULL)
		return NULL;
	return &leaf[addr >> WINDOW_LOG2 & (LEAF_BYTES / 8 - 1)];
}

static uint64_t
owner_of(uint64_t addr)
{
	return WORD_PRESENT | (addr >> 3 & 3) << WORD_POSITION_SHIFT;
}

/* The block behind a word; a size that does not fit stands in the address table. */
static struct address_block
unpack(uint64_t word, uint64_t addr)
{
	struct address_block block = {
		.bytes = word & WORD_BYTES_MASK,
		.site = (uint32_t)(word >> WORD_SITE_SHIFT) & POINTER_MAP_SITES_MAX,
		.generation = (uint8_t)(word >> WORD_GENERATION_SHIFT),
	};

	if (block.bytes == WORD_BYTES_MASK)
		address_table_take(&overflow, addr, &block);
	return block;
}

/* What the shadow has no room for. */
static enum pointer_map_put
put_overflow(uint64_t addr, struct address_block block, struct address_block *old)
{
	if (address_table_replace(&overflow, addr, block, old))
		return POINTER_MAP_REPLACED;
	return address_table_put(&overflow, addr, block) ? POINTER_MAP_STORED : POINTER_MAP_FULL;
}

enum pointer_map_put
pointer_map_put(const void *pointer, struct address_block block, struct address_block *old)
{
	uint64_t addr = (uint64_t)pointer;
	window *at = find(addr, true);
	uint64_t bytes = block.bytes < WORD_BYTES_MASK ? block.bytes : WORD_BYTES_MASK;
	uint64_t word = owner_of(addr) | (uint64_t)block.generation << WORD_GENERATION_SHIFT |
	                (uint64_t)block.site << WORD_SITE_SHIFT | bytes;

	if (at == NULL)
		return put_overflow(addr, block, old);

	uint64_t seen = atomic_load_explicit(at, memory_order_relaxed);
	for (;;) {
		bool is_same = (seen & WORD_OWNER_MASK) == owner_of(addr);

		if (seen != 0 && !is_same) // M1: another block lives in this window
			return put_overflow(addr, block, old);
		if (is_same)
			*old = unpack(seen, addr);
		if (bytes == WORD_BYTES_MASK && !address_table_put(&overflow, addr, block))
			return POINTER_MAP_FULL;
		/*
		 * relaxed: the word is the whole message. Who frees the block got its address through the program, which
		 * orders that after our return.
		 */
		if (atomic_compare_exchange_strong_explicit(at, &seen, word, memory_order_relaxed,
		                                            memory_order_relaxed))
			return is_same ? POINTER_MAP_REPLACED : POINTER_MAP_STORED;
		if (bytes == WORD_BYTES_MASK)
			address_table_take(&overflow, addr, &block);
	}
}

bool
pointer_map_take(const void *pointer, struct address_block *block)
{
	uint64_t addr = (uint64_t)pointer;
	window *at = find(addr, false);
	uint64_t seen = at != NULL ? atomic_load_explicit(at, memory_order_relaxed) : 0;

	if ((seen & WORD_OWNER_MASK) != owner_of(addr))
		return address_table_take(&overflow, addr, block);
	/* relaxed: as in put. A lost race is a double free by the program: the other one took it. */
	if (!atomic_compare_exchange_strong_explicit(at, &seen, 0, memory_order_relaxed, memory_order_relaxed))
		return false;
	*block = unpack(seen, addr);
	return true;
}

void
pointer_map_clear(void)
{
	uint64_t listed = top != NULL ? atomic_load_explicit(&top->listed_count, memory_order_relaxed) : 0;

	for (uint64_t i = 0; i < listed && i < TOP_ENTRIES; i++) {
		uint32_t number = atomic_load_explicit(&top->list[i], memory_order_relaxed);
		window *leaf = atomic_load_explicit(&top->leaf[number], memory_order_relaxed);

		if (leaf != NULL)
			madvise((void *)leaf, LEAF_BYTES, MADV_DONTNEED);
	}
	atomic_store_explicit(&is_stuck, false, memory_order_relaxed);
	address_table_clear(&overflow);
}
