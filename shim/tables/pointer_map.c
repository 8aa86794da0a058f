/*
 * pointer_map.c - address to call site (see pointer_map.h).
 *
 * A shadow indexed by address: one 8-byte word for each 32-byte window, in leaves of 16 MiB (for 64 MiB of addresses)
 * below one top table; pages come into being when they are touched. Its locality follows the heap's own, it needs no
 * probing, and it costs a quarter of the densest heap glibc can make: its blocks start at multiples of 16 and are never
 * closer than 32 bytes, so no window holds two. Other allocators have denser classes. Their blocks of more than 24 bytes have words in the
 * same way; the smaller ones have further layers of leaves, one for each position in a window. Pages of those are touched only where
 * there are such blocks: for blocks of 16 or 8 bytes side by side the shadow costs 8 bytes each, for all others a quarter of the heap.
 *
 * What does not fit (a size of 64 MiB and more, an address above 47 bits) goes to an address table. So does what finds no leaf where the
 * address space is limited (ulimit -v): leaves take at most 3/16 of it, enough for 3/4, and the table is there from the start. Layers
 * for small blocks get no leaves when half of those are used, and there are none where the top table for them would be too large.
 *
 * Invariants, tested by number in tests/unit/shim/tables/test_pointer_map.c and, with threads, in tests/stress/pointer_map.c:
 *   M1  a window's word is 0, GONE or describes one live block that starts in the window.
 *   M2  only the thread that owns an address (it got it from the allocator, or is about to give it back) puts or takes it.
 *   M3  a leaf, once installed, stays for the life of the process, and stands in the list of leaves before it is installed: a
 *       child, forked at any moment, finds all of them there.
 *   M4  the owner of a block is the owner of its word: the word is written by plain stores, and one that stands where a block is put is of a
 *       block that was given back without our seeing it. What the program gives back twice at the same moment may then be booked twice.
 *       In glibc's own heap a chunk has at least 32 bytes, however it was asked for (memalign cuts chunks of that size at least off both
 *       ends). In any heap blocks begin at multiples of 8, so that two of more than 24 bytes do not begin in one window, and two of any
 *       size not at one position of it.
 *   M5  a page leaves the shadow only while no word in it is present, though any thread may put one there at any moment: it
 *       is moved aside, which is one step for all threads, and what was put meanwhile is put back. Until then a take that
 *       finds nothing waits. GONE tells a block that was taken meanwhile from one that was not.
 *   M6  where there are layers: if both words of an address name a block, that of layer 0 was put last. So it is asked first, and a small
 *       block that is put takes a word of layer 0 that names its address for M4's. The other way round the small block's word stays
 *       until another small block comes there: on the fast path nobody looks for it.
 */
#include "tables/pointer_map.h"

#include "base/effort.h"
#include "base/raw_sys.h"
#include "base/turn.h"
#include "kmem_tables.h"

#define TOP_ENTRIES ((size_t)KMEM_TOP_ENTRIES)
#define LEAF_BYTES (POINTER_MAP_LEAF_WORDS * 8)
#define LEAVES_SHARE 12u // times raw_reserve_max(): 3/16 of a limited address space
#define TOP_SHARE 5u     // the same: a thirteenth
#define PAGE_BYTES ((size_t)4096)
#define PAGE_WORDS (PAGE_BYTES / 8)
#define RUN_PAGES_MAX 64 // moved aside at once: for how long others may have to wait
#define TRIM_SHRUNK_BYTES ((uint64_t)32 << 20)
#define TRIM_LEAVES 8u
#define TRIM_BYTES ((size_t)4 << 20)
#define TRIM_PERIOD_NS UINT64_C(1000000000)
#define ROUND_PERIOD_NS UINT64_C(60000000000)
#define TRIM_WAIT_YIELDS 100000 // of a take, for a trimming thread that was interrupted; then the loss is counted

struct top {
	_Atomic uint64_t entries;      // constant, as the next; relaxed: top_table() orders both
	_Atomic uint64_t leaves_max;   // of all layers
	_Atomic uint64_t listed_count; // leaves that were asked for
	pointer_map_leaf leaf[];       // by layer, by address; behind them list_of()
};

pointer_map_leaf *pointer_map_own_leaves;
pointer_map_leaf *pointer_map_dense_leaves;

static struct top *top;
static bool windows_are_own;  // constant once there is a top table
static _Atomic bool is_stuck; // the address space is used up, or too small for a shadow: no further top or leaf
static struct address_table overflow;
static _Atomic uint32_t moves; // begun and ended: odd while pages are aside (M5)
static void complete_move(void);
static struct turn trimming_turn = { .complete = complete_move }; // of trimming, or looking at all
static unsigned char is_resident[LEAF_BYTES / PAGE_BYTES];        // under the turn

/* Who looks from outside reads what these say. */
KMEM_TABLE_SIGN(sign, KMEM_TABLE_BLOCKS, &top, &overflow.slots, &moves);
static_assert(offsetof(struct top, leaves_max) == offsetof(struct kmem_top, leaves_max) &&
                  offsetof(struct top, listed_count) == offsetof(struct kmem_top, listed_count) &&
                  offsetof(struct top, leaf) == offsetof(struct kmem_top, leaf),
              "");

/* [leaves_max] numbers of the leaves, some of them perhaps twice or not installed. */
static _Atomic uint32_t *
list_of(struct top *table)
{
	return (_Atomic uint32_t *)&table->leaf[atomic_load_explicit(&table->entries, memory_order_relaxed)];
}

static uint64_t
first_addr_of(uint64_t number)
{
	return number % TOP_ENTRIES << POINTER_MAP_LEAF_LOG2;
}

static void
open_short_way(struct top *table)
{
	bool has_layers = atomic_load_explicit(&table->entries, memory_order_relaxed) != TOP_ENTRIES;

	if (windows_are_own)
		__atomic_store_n(&pointer_map_own_leaves, table->leaf, __ATOMIC_RELEASE); // leaves_max first
	else if (has_layers)
		__atomic_store_n(&pointer_map_dense_leaves, table->leaf, __ATOMIC_RELEASE); // the same
}

static struct top *
reserve_top(uint64_t entries, uint64_t leaves_max, size_t most_bytes)
{
	size_t bytes = sizeof(struct top) + entries * sizeof(pointer_map_leaf) + leaves_max * sizeof(uint32_t);
	struct top *fresh = bytes <= most_bytes ? raw_reserve(KMEM_OWN_ADDRESSES, bytes, PROT_READ | PROT_WRITE) : NULL;

	if (fresh != NULL) {
		atomic_store_explicit(&fresh->entries, entries, memory_order_relaxed);
		atomic_store_explicit(&fresh->leaves_max, leaves_max, memory_order_relaxed);
	}
	return fresh;
}

static struct top *
top_table(bool creates)
{
	/* acquire: pairs with the installation below; leaves_max is seen. */
	struct top *found = __atomic_load_n(&top, __ATOMIC_ACQUIRE);

	/* relaxed, for is_stuck everywhere: guards nothing; who does not see it yet asks the kernel once more. */
	if (found != NULL || !creates || atomic_load_explicit(&is_stuck, memory_order_relaxed))
		return found;
	size_t most_bytes = raw_reserve_max();
	bool is_limited = most_bytes / LEAF_BYTES * LEAVES_SHARE < TOP_ENTRIES;
	size_t leaves_max = is_limited ? most_bytes * LEAVES_SHARE / LEAF_BYTES : TOP_ENTRIES;
	size_t most_top_bytes = is_limited ? most_bytes * TOP_SHARE : SIZE_MAX;
	struct top *fresh = windows_are_own ? NULL : reserve_top(TOP_ENTRIES * KMEM_LAYERS, leaves_max, most_top_bytes);

	if (fresh == NULL)
		fresh = reserve_top(TOP_ENTRIES, leaves_max, most_top_bytes);
	if (is_limited)
		address_table_reserve(&overflow); // later there may be no addresses left
	if (fresh == NULL) {
		atomic_store_explicit(&is_stuck, true, memory_order_relaxed);
		return NULL;
	}
	if (__atomic_compare_exchange_n(&top, &found, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		open_short_way(fresh);
		return fresh;
	}
	raw_unreserve(fresh, (size_t)((char *)(list_of(fresh) + leaves_max) - (char *)fresh));
	return found;
}

/* Entries of list_of() that may be read. */
static uint64_t
listed_in(struct top *table)
{
	uint64_t asked = atomic_load_explicit(&table->listed_count, memory_order_relaxed);
	uint64_t max = atomic_load_explicit(&table->leaves_max, memory_order_relaxed);

	return asked < max ? asked : max;
}

/* A leaf for the entry, this thread's or that of a faster one; NULL when there is no room for one. */
static pointer_map_word *
install_leaf(struct top *table, size_t number)
{
	pointer_map_word *leaf = NULL;
	pointer_map_word *fresh = NULL;
	uint64_t max = atomic_load_explicit(&table->leaves_max, memory_order_relaxed);

	/* relaxed: how many leaves the layers for small blocks get need not be exact. */
	if (atomic_load_explicit(&is_stuck, memory_order_relaxed) ||
	    (number >= TOP_ENTRIES && atomic_load_explicit(&table->listed_count, memory_order_relaxed) >= max / 2))
		return NULL;
	/* relaxed: it hands out places; a trim skips what is not installed yet, a child has no other thread (M3). */

	uint64_t listed = atomic_fetch_add_explicit(&table->listed_count, 1, memory_order_relaxed);

	if (listed < max)
		fresh = raw_reserve(KMEM_OWN_ADDRESSES, LEAF_BYTES, PROT_READ | PROT_WRITE);
	if (fresh == NULL) {
		atomic_store_explicit(&is_stuck, true, memory_order_relaxed);
		return NULL;
	}
	atomic_store_explicit(&list_of(table)[listed], (uint32_t)number, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst); // the list first, for whoever forks here (M3)
	if (atomic_compare_exchange_strong_explicit(&table->leaf[number], &leaf, fresh, memory_order_acq_rel,
	                                            memory_order_acquire))
		return fresh;
	raw_unreserve((void *)fresh, LEAF_BYTES);
	return leaf;
}

/* The word of an address in a layer; NULL when it cannot be had (or, if !creates, does not exist). */
static pointer_map_word *
find_in(unsigned layer, uint64_t addr, bool creates)
{
	uint64_t number = layer * TOP_ENTRIES + (addr >> POINTER_MAP_LEAF_LOG2);
	struct top *table;

	if (addr >> KMEM_ADDRESS_BITS != 0 || (table = top_table(creates)) == NULL ||
	    number >= atomic_load_explicit(&table->entries, memory_order_relaxed))
		return NULL;
	/* acquire: pairs with install_leaf(). */
	pointer_map_word *leaf = atomic_load_explicit(&table->leaf[number], memory_order_acquire);

	if (leaf == NULL && creates)
		leaf = install_leaf(table, number);
	if (leaf == NULL)
		return NULL;
	return &leaf[addr >> POINTER_MAP_WINDOW_LOG2 & (POINTER_MAP_LEAF_WORDS - 1)];
}

/* The word that names a block at this address, and what it says; NULL = none does. */
static pointer_map_word *
find(uint64_t addr, uint64_t *word)
{
	pointer_map_word *at = find_in(0, addr, false);

	*word = at != NULL ? atomic_load_explicit(at, memory_order_relaxed) : 0;
	if (!pointer_map_is_of(*word, addr) && !windows_are_own) { // M6
		at = find_in(pointer_map_dense_layer(addr), addr, false);
		*word = at != NULL ? atomic_load_explicit(at, memory_order_relaxed) : 0;
	}
	return pointer_map_is_of(*word, addr) ? at : NULL;
}

/* The block behind a present word of this address; a size that does not fit stands in the address table. */
static struct address_block
unpack(uint64_t word, uint64_t addr)
{
	struct address_block block = pointer_map_unpack(word);

	if (block.bytes == POINTER_MAP_BYTES_MASK)
		address_table_take(&overflow, addr, &block);
	return block;
}

/* ---- put ---- */

/* The marks are for words alone: what comes out of the address table goes to the books as it is. */
static struct address_block
unmarked(struct address_block block)
{
	block.generation &= POINTER_MAP_GENERATION_MASK;
	return block;
}

/* What the shadow has no room for. */
static enum pointer_map_put
put_overflow(uint64_t addr, struct address_block block, struct address_block *old)
{
	enum address_table_put put = address_table_put(&overflow, addr, unmarked(block), old);

	effort_count(KMEM_EFFORT_CROWDED);

	if (put == ADDRESS_TABLE_FULL)
		return POINTER_MAP_FULL;
	return put == ADDRESS_TABLE_REPLACED ? POINTER_MAP_REPLACED : POINTER_MAP_STORED;
}

/* A block whose size the word has no room for, and which is not in the table. */
static bool
put_large(uint64_t addr, struct address_block block)
{
	struct address_block none;

	effort_count(KMEM_EFFORT_CROWDED);
	return address_table_put(&overflow, addr, unmarked(block), &none) != ADDRESS_TABLE_FULL;
}

/* M4: what stands in the window is of a block that is gone, wherever in the window it began. */
static enum pointer_map_put
put_word(pointer_map_word *at, uint64_t addr, struct address_block block, struct address_block *old)
{
	uint64_t seen = atomic_load_explicit(at, memory_order_relaxed);
	uint64_t word = pointer_map_pack(addr, block);
	bool is_stale = seen > POINTER_MAP_GONE;

	if (is_stale) {
		uint64_t window_addr = addr & ~((UINT64_C(1) << POINTER_MAP_WINDOW_LOG2) - 1);

		*old = unpack(seen, window_addr | (seen >> POINTER_MAP_POSITION_SHIFT & 3) << 3);
	}
	if ((word & POINTER_MAP_BYTES_MASK) == POINTER_MAP_BYTES_MASK && !put_large(addr, block))
		return POINTER_MAP_FULL;
	atomic_store_explicit(at, word, memory_order_relaxed);
	return is_stale ? POINTER_MAP_REPLACED : POINTER_MAP_STORED;
}

/* M6: a block is to be put into this word. What the other word of its address says is of one that is gone. */
static bool
take_stale(const pointer_map_word *at, uint64_t addr, struct address_block *old)
{
	uint64_t seen;
	pointer_map_word *other = find(addr, &seen);

	if (other == NULL || other == at)
		return false;
	*old = unpack(seen, addr);
	atomic_store_explicit(other, POINTER_MAP_GONE, memory_order_relaxed);
	return true;
}

enum pointer_map_put
pointer_map_put_slow(uint64_t addr, struct address_block block, struct address_block *old)
{
	bool is_dense = !windows_are_own && block.bytes <= KMEM_DENSE_BYTES_MAX;
	pointer_map_word *at = find_in(is_dense ? pointer_map_dense_layer(addr) : 0, addr, true);
	struct address_block stale;
	bool was_stale = !windows_are_own && take_stale(at, addr, &stale);
	enum pointer_map_put put = at != NULL ? put_word(at, addr, block, old) : put_overflow(addr, block, old);

	if (!was_stale || put != POINTER_MAP_STORED)
		return put;
	*old = stale;
	return POINTER_MAP_REPLACED;
}

/* ---- take ---- */

/* Takes it at the first try. False also if it was moved aside at the same moment. */
static bool
take_once(uint64_t addr, struct address_block *block)
{
	uint64_t seen;
	pointer_map_word *at = find(addr, &seen);

	if (at == NULL)
		return address_table_take(&overflow, addr, block);
	atomic_store_explicit(at, POINTER_MAP_GONE, memory_order_relaxed);
	*block = unpack(seen, addr);
	return true;
}

bool
pointer_map_take_slow(uint64_t addr, struct address_block *block)
{
	for (unsigned wait = 0; wait < TRIM_WAIT_YIELDS; wait++) {
		/* acquire: pairs with move_aside(). A try that begins after its end sees what it put back. */
		uint32_t before = atomic_load_explicit(&moves, memory_order_acquire);

		if (take_once(addr, block))
			return true;
		/*
		 * Did pages move during the try? acquire keeps this load behind the try's loads. A try that saw a fresh page
		 * came after the move. In between, the kernel made every processor forget the old page, which is a full
		 * barrier: so this load also sees the count that was raised before the move.
		 */
		atomic_thread_fence(memory_order_acquire);
		if (before % 2 == 0 && atomic_load_explicit(&moves, memory_order_relaxed) == before)
			return false; // never put, or a double free by the program: the other one took it
		if (before % 2 != 0)
			raw_syscall(SYS_sched_yield);
	}
	return false;
}

bool
pointer_map_find(uint64_t addr, struct address_block *block)
{
	uint64_t seen;

	if (find(addr, &seen) == NULL || (seen & POINTER_MAP_BYTES_MASK) == POINTER_MAP_BYTES_MASK)
		return address_table_find(&overflow, addr, block);
	*block = pointer_map_unpack(seen);
	return true;
}

bool
pointer_map_is_watched(const void *pointer)
{
	uint64_t seen;

	return find((uint64_t)pointer, &seen) != NULL && (seen & POINTER_MAP_WATCHED) != 0;
}

/* ---- giving pages back (M5) ---- */

/* A block that was put into a page after we looked and before it was aside. */
static void
put_back(pointer_map_word *at, uint64_t word)
{
	uint64_t seen = 0;

	/* It stands in the address table: a take finds it there, and may have done so already. */
	if ((word & POINTER_MAP_BYTES_MASK) == POINTER_MAP_BYTES_MASK)
		return;
	/* Not 0: its owner took it, after it had read it in the old page; perhaps the next block is here. */
	(void)atomic_compare_exchange_strong_explicit(at, &seen, word, memory_order_relaxed, memory_order_relaxed);
}

/* The pages that are aside, or about to be; under the turn. */
static struct {
	pointer_map_word *words;
	pointer_map_word *aside; // NULL: not yet
	size_t bytes;
} moving;

static void
end_move(void)
{
	for (size_t i = 0; moving.aside != NULL && i < moving.bytes / 8; i++) {
		uint64_t word = atomic_load_explicit(&moving.aside[i], memory_order_relaxed);

		if (word <= POINTER_MAP_GONE)
			continue;
		put_back(&moving.words[i], word);
		atomic_store_explicit(&moving.aside[i], 0, memory_order_relaxed); // not put back twice: see complete_move()
	}
	/* release: what was put back, before the end. Pairs with pointer_map_take_slow(). */
	atomic_fetch_add_explicit(&moves, 1, memory_order_release);
	if (moving.aside != NULL)
		raw_munmap((void *)moving.aside, moving.bytes);
}

/* A hook was left in the middle. In one instruction, after the move and before its result is noted, it is as if nothing was in the pages. */
static void
complete_move(void)
{
	if (atomic_load_explicit(&moves, memory_order_relaxed) % 2 != 0)
		end_move();
}

/* False when the kernel cannot do it. */
static bool
move_aside(pointer_map_word *words, size_t bytes)
{
	moving = (typeof(moving)){ .words = words, .bytes = bytes };
	/* relaxed: odd before the move, and mremap is a full barrier. */
	atomic_fetch_add_explicit(&moves, 1, memory_order_relaxed);
	pointer_map_word *aside = (void *)raw_syscall(SYS_mremap, words, bytes, bytes, MREMAP_MAYMOVE | MREMAP_DONTUNMAP,
	                                              NULL);

	if ((void *)aside != MAP_FAILED)
		moving.aside = aside;
	end_move();
	return (void *)aside != MAP_FAILED;
}

/* A page of zeros was looked at and never written: the kernel shows its own there, and nothing is gained. */
static bool
is_emptied(const pointer_map_word *page)
{
	uint64_t any = 0;

	for (size_t i = 0; i < PAGE_WORDS; i++) {
		uint64_t word = atomic_load_explicit(&page[i], memory_order_relaxed);

		if (word > POINTER_MAP_GONE)
			return false;
		any |= word;
	}
	return any != 0;
}

/* Pages that are there and empty, run by run, until enough went. Returns their bytes. */
static size_t
trim_leaf(pointer_map_word *leaf, size_t most_bytes)
{
	size_t pages = sizeof(is_resident);
	size_t run = 0;
	size_t given = 0;

	if (!raw_sys_may_call() || raw_syscall(SYS_mincore, leaf, LEAF_BYTES, is_resident) != 0)
		return 0;
	for (size_t page = 0; page <= pages && given < most_bytes; page++) {
		if (page < pages && (is_resident[page] & 1) != 0 && run < RUN_PAGES_MAX &&
		    is_emptied(leaf + page * PAGE_WORDS)) {
			run++;
			continue;
		}
		if (run != 0 && !move_aside(leaf + (page - run) * PAGE_WORDS, run * PAGE_BYTES))
			return given;
		given += run * PAGE_BYTES;
		if (run == RUN_PAGES_MAX)
			page--; // it has not been looked at
		run = 0;
	}
	return given;
}

size_t
pointer_map_trim(uint64_t leaves, size_t most_bytes)
{
	static uint64_t next; // in the list; under the turn
	struct top *table = top_table(false);
	size_t given = 0;

	/* The last trimmer's buffer and position. Who comes second need not wait. */
	if (table == NULL || !turn_take(&trimming_turn))
		return 0;
	uint64_t listed = listed_in(table);

	for (uint64_t i = 0; i < leaves && i < listed && given < most_bytes; i++) {
		uint64_t number = atomic_load_explicit(&list_of(table)[next % listed], memory_order_relaxed);
		/* acquire: pairs with install_leaf(). A number that is not written yet is 0, mostly no leaf. */
		pointer_map_word *leaf = atomic_load_explicit(&table->leaf[number], memory_order_acquire);

		if (leaf != NULL)
			given += trim_leaf(leaf, most_bytes - given);
		if (given < most_bytes)
			next++; // nothing is left in this one
	}
	turn_give(&trimming_turn);
	return given;
}

/* ---- looking at all ---- */

/* Words looked at. */
static size_t
visit_leaf(pointer_map_word *leaf, uint64_t first_addr, pointer_map_visitor *visitor, void *context)
{
	const uint64_t object = POINTER_MAP_PRESENT | (uint64_t)POINTER_MAP_OBJECT << POINTER_MAP_GENERATION_SHIFT;
	size_t looked_at = 0;

	if (!raw_sys_may_call() || raw_syscall(SYS_mincore, leaf, LEAF_BYTES, is_resident) != 0)
		return 0;
	for (size_t i = 0; i < POINTER_MAP_LEAF_WORDS; i++) {
		if (i % PAGE_WORDS == 0 && (is_resident[i / PAGE_WORDS] & 1) == 0) {
			i += PAGE_WORDS - 1;
			continue;
		}
		uint64_t word = atomic_load_explicit(&leaf[i], memory_order_relaxed);

		looked_at++;
		if ((word & object) == object)
			visitor(context,
			        (first_addr + (i << POINTER_MAP_WINDOW_LOG2)) | (word >> POINTER_MAP_POSITION_SHIFT & 3) << 3,
			        pointer_map_unpack(word));
	}
	return looked_at;
}

bool
pointer_map_visit(size_t most_words, pointer_map_visitor *visitor, void *context)
{
	static uint64_t next; // in the list; under the turn
	struct top *table = top_table(false);
	size_t looked_at = 0;
	uint64_t shown = 0;

	if (table == NULL || !turn_take(&trimming_turn)) // as in trim
		return false;
	uint64_t listed = listed_in(table);

	for (; shown < listed && looked_at < most_words; shown++) {
		uint64_t number = atomic_load_explicit(&list_of(table)[next++ % listed], memory_order_relaxed);
		pointer_map_word *leaf = atomic_load_explicit(&table->leaf[number], memory_order_acquire); // install_leaf()

		if (leaf != NULL)
			looked_at += visit_leaf(leaf, first_addr_of(number), visitor, context);
	}
	turn_give(&trimming_turn);
	return shown == listed;
}

/* The lowest present word of [first, end) in a leaf; `end` = none. */
static size_t
lowest_in_leaf(pointer_map_word *leaf, size_t first, size_t end, bool *was_used)
{
	if (raw_syscall(SYS_mincore, leaf, LEAF_BYTES, is_resident) != 0)
		return end;
	for (size_t i = first; i < end; i++) {
		if ((is_resident[i / PAGE_WORDS] & 1) == 0) {
			i |= PAGE_WORDS - 1;
			continue;
		}
		uint64_t word = atomic_load_explicit(&leaf[i], memory_order_relaxed);

		if ((word & POINTER_MAP_PRESENT) != 0)
			return i;
		*was_used |= word != 0;
	}
	return end;
}

/* The same for [start, end), which is in one leaf of each layer; UINT64_MAX = none. */
static uint64_t
lowest_in_layers(struct top *table, uint64_t start, uint64_t end, bool *was_used)
{
	uint64_t entries = atomic_load_explicit(&table->entries, memory_order_relaxed);
	uint64_t number = start >> POINTER_MAP_LEAF_LOG2;
	size_t first = (start - first_addr_of(number)) >> POINTER_MAP_WINDOW_LOG2;
	size_t last = (end - first_addr_of(number)) >> POINTER_MAP_WINDOW_LOG2;
	size_t lowest = last;

	for (uint64_t i = number; i < entries; i += TOP_ENTRIES) {
		/* acquire: pairs with install_leaf(). */
		pointer_map_word *leaf = atomic_load_explicit(&table->leaf[i], memory_order_acquire);

		if (leaf != NULL)
			lowest = lowest_in_leaf(leaf, first, lowest, was_used);
	}
	return lowest < last ? first_addr_of(number) + (lowest << POINTER_MAP_WINDOW_LOG2) : UINT64_MAX;
}

uint64_t
pointer_map_lowest(uint64_t start, uint64_t end, bool *was_used)
{
	struct top *table = top_table(false);
	uint64_t lowest = UINT64_MAX;

	*was_used = false;
	if (table == NULL || end > UINT64_C(1) << KMEM_ADDRESS_BITS)
		return lowest;
	if (!turn_take(&trimming_turn)) // as in trim
		return start;
	for (uint64_t addr = start, next; addr < end && lowest == UINT64_MAX; addr = next) {
		next = (addr | ((UINT64_C(1) << POINTER_MAP_LEAF_LOG2) - 1)) + 1;
		lowest = lowest_in_layers(table, addr, next < end ? next : end, was_used);
	}
	turn_give(&trimming_turn);
	return lowest;
}

/* Relaxed, all: who sees one late trims a little more, or later. */
static struct {
	_Atomic uint64_t highest_bytes; // of the heap, since the shadow was last gone through
	_Atomic uint64_t leaves_left;
	_Atomic uint64_t next_ns;
	_Atomic uint64_t next_round_ns; // 0 = not set yet
} trimming;

static void
trim_all(void)
{
	struct top *table = top_table(false);

	if (table != NULL)
		atomic_store_explicit(&trimming.leaves_left, listed_in(table), memory_order_relaxed);
}

bool
pointer_map_is_trim_due(uint64_t live_bytes)
{
	uint64_t highest = atomic_load_explicit(&trimming.highest_bytes, memory_order_relaxed);

	if (live_bytes > highest)
		atomic_store_explicit(&trimming.highest_bytes, live_bytes, memory_order_relaxed);
	else if (highest - live_bytes >= TRIM_SHRUNK_BYTES && highest - live_bytes >= highest / 4) {
		atomic_store_explicit(&trimming.highest_bytes, live_bytes, memory_order_relaxed);
		trim_all();
	}
	return atomic_load_explicit(&trimming.leaves_left, memory_order_relaxed) != 0;
}

void
pointer_map_beat(uint64_t now_ns)
{
	uint64_t due_ns = atomic_load_explicit(&trimming.next_round_ns, memory_order_relaxed);

	if (now_ns >= due_ns) {
		atomic_store_explicit(&trimming.next_round_ns, now_ns + ROUND_PERIOD_NS, memory_order_relaxed);
		if (due_ns != 0)
			trim_all();
	}
}

void
pointer_map_trim_step(uint64_t now_ns)
{
	uint64_t due_ns = atomic_load_explicit(&trimming.next_ns, memory_order_relaxed);
	uint64_t left = atomic_load_explicit(&trimming.leaves_left, memory_order_relaxed);

	if (now_ns < due_ns || !atomic_compare_exchange_strong_explicit(&trimming.next_ns, &due_ns, now_ns + TRIM_PERIOD_NS,
	                                                                memory_order_relaxed, memory_order_relaxed))
		return;
	if (pointer_map_trim(TRIM_LEAVES, TRIM_BYTES) < TRIM_BYTES) // else there may be more in the leaf it stopped at
		atomic_store_explicit(&trimming.leaves_left, left > TRIM_LEAVES ? left - TRIM_LEAVES : 0, memory_order_relaxed);
}

/* ---- beginnings ---- */

void
pointer_map_start(bool are_own)
{
	windows_are_own = are_own;
	__atomic_store_n(&pointer_map_own_leaves, NULL, __ATOMIC_RELAXED);
	__atomic_store_n(&pointer_map_dense_leaves, NULL, __ATOMIC_RELAXED);
	if (top != NULL)
		open_short_way(top);
}

void
pointer_map_clear(void)
{
	uint64_t listed = top != NULL ? listed_in(top) : 0;

	for (uint64_t i = 0; i < listed; i++) {
		uint32_t number = atomic_load_explicit(&list_of(top)[i], memory_order_relaxed);
		pointer_map_word *leaf = atomic_load_explicit(&top->leaf[number], memory_order_relaxed);

		if (leaf != NULL)
			raw_madvise((void *)leaf, LEAF_BYTES, MADV_DONTNEED);
	}
	atomic_store_explicit(&is_stuck, false, memory_order_relaxed);
	atomic_store_explicit(&trimming.highest_bytes, 0, memory_order_relaxed);
	atomic_store_explicit(&trimming.leaves_left, 0, memory_order_relaxed);
	atomic_store_explicit(&moves, 0, memory_order_relaxed); // a thread that is not in this process may have trimmed
	turn_give(&trimming_turn);
	address_table_clear(&overflow);
}
