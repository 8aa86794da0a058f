/*
 * pointer_map.c - address to call site (see pointer_map.h).
 *
 * A word of 8 bytes for each live block, in arrays that follow the order of addresses: each region of 256 KiB has one, of as many pages as
 * its blocks need. A block's word belongs where its address lies in the region, to scale, or in one of the next places. Where there is
 * none free the region gets more words, and all are put anew; where few blocks are left it gets fewer. So the map takes 8 to 12 bytes for
 * each block that lives, and a page for each 256 KiB at least. Neighbours in memory are neighbours in the map.
 *
 * A block of 16 KiB and more has no word. At most one of them begins in 16 KiB, so its place follows from its address alone.
 *
 * What is not covered (an address above 47 bits, no leaf where the address space is limited (ulimit -v), what waited in vain for a thread that
 * arranges words) goes to an address table. Leaves take at most a fifth of a limited address space,
 * enough for 3/4 of it over glibc, and the table is there from the start.
 *
 * Invariants, tested by number in tests/unit/shim/tables/test_pointer_map.c and, with threads, in tests/stress/pointer_map.c:
 *   M1  a word is free, or describes one live block that begins in the region, at the position that it says.
 *   M2  only the thread that owns an address (it got it from the allocator, or is about to give it back) puts or takes it.
 *   M3  a leaf, once installed, stays for the life of the process, and stands in the list of leaves before it is installed: a
 *       child, forked at any moment, finds all of them there.
 *   M4  a word is in one of POINTER_MAP_PROBES places from where it belongs by the scale of the region's state.
 *   M5  while a region's words are arranged its state is not open, and has another number before and after. A put that ends in another state
 *       than it began in looks whether its word was taken along. A take that finds nothing looks again where the state is another one, and
 *       waits where it is not open.
 *   M6  of a block that was given back without our seeing it the word stays. The next put at its address replaces it, where it meets it on
 *       its way to a free place. What such a put does not meet stays a live block.
 */
#include "tables/pointer_map.h"

#include "base/effort.h"
#include "base/raw_sys.h"
#include "base/wait_lock.h"
#include "kmem_tables.h"

#define TOP_ENTRIES ((size_t)KMEM_TOP_ENTRIES)
#define LEAF_BYTES (sizeof(struct pointer_map_leaf) + ((size_t)KMEM_LEAF_REGIONS * 8 << pointer_map_words_log2))
#define REGION_BYTES (UINT64_C(1) << POINTER_MAP_REGION_LOG2)
#define WORDS_LOG2_GLIBC 13 // of a region: a word for each 32 bytes
#define WORDS_LOG2_ANY 15   // for each 8 bytes
#define LEAVES_SHARE 13u    // times raw_reserve_max(): a fifth of a limited address space
#define TOP_SHARE 5u        // the same: a thirteenth
#define PAGE_WORDS 512u     // a region's words are whole pages
#define TRIM_SHRUNK_BYTES ((uint64_t)32 << 20)
#define TRIM_LEAVES 8u
#define TRIM_BYTES ((size_t)4 << 20)
#define TRIM_PERIOD_NS UINT64_C(1000000000)
#define ROUND_PERIOD_NS UINT64_C(60000000000)
#define LOOKS_MAX 100u // of a put or a take, while words are arranged; a take's loss is counted

struct top {
	_Atomic uint64_t words_log2; // constant, as the next; relaxed: top_table() orders both
	_Atomic uint64_t leaves_max;
	_Atomic uint64_t listed_count; // leaves that were asked for
	pointer_map_entry leaf[TOP_ENTRIES];
	_Atomic uint32_t list[]; // [leaves_max] numbers of leaves, some of them perhaps twice or not installed
};

pointer_map_entry *pointer_map_leaves;
unsigned pointer_map_words_log2 = WORDS_LOG2_ANY; // constant once there is a top table

static struct top *top;
static _Atomic bool is_stuck; // the address space is used up, or too small for a map: no further top or leaf
#define FEW_ASIDE_LOG2 16u
static struct address_table overflow;
static _Atomic uint32_t moves; // begun and ended: odd while words are elsewhere (M5)
static void complete_move(void);
static struct wait_lock moving_lock = WAIT_LOCK_COMPLETED_BY(complete_move);
static struct turn visiting_turn;

/* Who looks from outside reads what these say. */
KMEM_TABLE_SIGN(sign, KMEM_TABLE_BLOCKS, &top, &overflow.slots, &moves);
static_assert(offsetof(struct top, leaves_max) == offsetof(struct kmem_top, leaves_max) &&
                  offsetof(struct top, listed_count) == offsetof(struct kmem_top, listed_count) &&
                  offsetof(struct top, leaf) == offsetof(struct kmem_top, leaf) &&
                  offsetof(struct top, list) == sizeof(struct kmem_top),
              "");

static struct top *
reserve_top(void)
{
	size_t most_bytes = raw_reserve_max();
	bool is_limited = most_bytes / LEAF_BYTES * LEAVES_SHARE < TOP_ENTRIES;

	if (is_limited) {
		pointer_map_words_log2 = WORDS_LOG2_GLIBC;
		address_table_reserve(&overflow); // later there may be no addresses left
	}
	size_t leaves_max = is_limited ? most_bytes * LEAVES_SHARE / LEAF_BYTES : TOP_ENTRIES;
	size_t bytes = sizeof(struct top) + leaves_max * sizeof(uint32_t);
	struct top *fresh = is_limited && bytes > most_bytes * TOP_SHARE
	                        ? NULL
	                        : raw_reserve(KMEM_OWN_ADDRESSES, bytes, PROT_READ | PROT_WRITE);

	if (fresh != NULL) {
		atomic_store_explicit(&fresh->words_log2, pointer_map_words_log2, memory_order_relaxed);
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

	struct top *fresh = reserve_top();

	if (fresh == NULL) {
		atomic_store_explicit(&is_stuck, true, memory_order_relaxed);
		return NULL;
	}
	if (__atomic_compare_exchange_n(&top, &found, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		__atomic_store_n(&pointer_map_leaves, fresh->leaf, __ATOMIC_RELEASE); // leaves_max first
		return fresh;
	}
	raw_unreserve(fresh,
	              (size_t)((char *)(fresh->list + atomic_load_explicit(&fresh->leaves_max, memory_order_relaxed)) -
	                       (char *)fresh));
	return found;
}

/* Entries of the list that may be read. */
static uint64_t
listed_in(struct top *table)
{
	uint64_t asked = atomic_load_explicit(&table->listed_count, memory_order_relaxed);
	uint64_t max = atomic_load_explicit(&table->leaves_max, memory_order_relaxed);

	return asked < max ? asked : max;
}

/* A leaf for the entry, this thread's or that of a faster one; NULL when there is no room for one. */
static struct pointer_map_leaf *
install_leaf(struct top *table, size_t number)
{
	struct pointer_map_leaf *leaf = NULL;
	struct pointer_map_leaf *fresh = NULL;

	if (atomic_load_explicit(&is_stuck, memory_order_relaxed))
		return NULL;
	/* relaxed: it hands out places; a trim skips what is not installed yet, a child has no other thread (M3). */

	uint64_t listed = atomic_fetch_add_explicit(&table->listed_count, 1, memory_order_relaxed);

	if (listed < atomic_load_explicit(&table->leaves_max, memory_order_relaxed))
		fresh = raw_reserve(KMEM_OWN_ADDRESSES, LEAF_BYTES, PROT_READ | PROT_WRITE);
	if (fresh == NULL) {
		atomic_store_explicit(&is_stuck, true, memory_order_relaxed);
		return NULL;
	}
	atomic_store_explicit(&table->list[listed], (uint32_t)number, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst); // the list first, for whoever forks here (M3)
	if (atomic_compare_exchange_strong_explicit(&table->leaf[number], &leaf, fresh, memory_order_acq_rel,
	                                            memory_order_acquire))
		return fresh;
	raw_unreserve((void *)fresh, LEAF_BYTES);
	return leaf;
}

/* NULL when it cannot be had (or, if !creates, does not exist). */
static struct pointer_map_leaf *
leaf_of(uint64_t addr, bool creates)
{
	uint64_t number = addr >> POINTER_MAP_LEAF_LOG2;
	struct top *table = addr >> KMEM_ADDRESS_BITS == 0 ? top_table(creates) : NULL;

	if (table == NULL)
		return NULL;
	/* acquire: pairs with install_leaf(). */
	struct pointer_map_leaf *leaf = atomic_load_explicit(&table->leaf[number], memory_order_acquire);

	return leaf == NULL && creates ? install_leaf(table, number) : leaf;
}

static uint32_t
region_of(uint64_t addr)
{
	return addr >> POINTER_MAP_REGION_LOG2 & (KMEM_LEAF_REGIONS - 1);
}

static pointer_map_word *
words_of(struct pointer_map_leaf *leaf, uint32_t region)
{
	return leaf->words + ((size_t)region << pointer_map_words_log2);
}

static struct pointer_map_large *
large_of(struct pointer_map_leaf *leaf, uint64_t addr)
{
	return pointer_map_large_at((struct pointer_map_place){ .state = leaf->state }, addr);
}

static uint64_t
addr_of(uint64_t region_addr, uint64_t word)
{
	return (region_addr & ~(REGION_BYTES - 1)) | (word & POINTER_MAP_POSITION_MASK) >> (KMEM_WORD_POSITION_SHIFT - 3);
}

/* Of the words of a region, whole pages. */
static uint32_t
count_of(uint32_t state)
{
	uint32_t scale = state & POINTER_MAP_SCALE_MASK;

	return scale != 0 ? scale + POINTER_MAP_PROBES - 1 : 0;
}

static uint32_t
scale_of(uint32_t count)
{
	return count != 0 ? count - (POINTER_MAP_PROBES - 1) : 0;
}

/* Its words are where they belong, or it has none. */
static bool
is_settled(uint32_t state)
{
	return (state & POINTER_MAP_OPEN) != 0 || count_of(state) == 0;
}

/* The next number, with this count. */
static uint32_t
state_after(uint32_t state, uint32_t count)
{
	return (((state >> 16) + 1) << 16 & ~POINTER_MAP_OPEN) | scale_of(count);
}

/* ---- arranging the words of a region (M5) ---- */

/* So many words had the region that grew last, or half for each that was opened since: relaxed, a hint for the next one. */
static _Atomic uint32_t usual_count = PAGE_WORDS;

static struct {
	struct pointer_map_leaf *leaf; // NULL: none is being arranged
	uint64_t addr;                 // of the region
	uint32_t count;                // the words will be
	uint32_t used_count;           // so many may not be 0
	uint32_t pending_count;
	uint64_t pending[(1u << WORDS_LOG2_ANY) + PAGE_WORDS]; // that are not put yet
} moving;

static enum pointer_map_put put_overflow(uint64_t addr, struct address_block block, struct address_block *old);

static uint32_t
whole_pages(uint32_t count)
{
	return (count + PAGE_WORDS - 1) / PAGE_WORDS * PAGE_WORDS;
}

/*
 * A word is noted before it is removed: where a hook was left in between it may be put twice, which put_anew() sees, or put again after it was
 * taken. From the last one: what is pending is put from its end, and in order of addresses words fit best.
 */
static void
gather(pointer_map_word *words)
{
	for (uint32_t i = moving.used_count; i-- > 0;) {
		uint64_t word = atomic_load_explicit(&words[i], memory_order_seq_cst); // see pointer_map_put_word()

		while (word != 0 && moving.pending_count < sizeof(moving.pending) / sizeof(moving.pending[0])) {
			moving.pending[moving.pending_count] = word;
			atomic_signal_fence(memory_order_seq_cst);
			moving.pending_count += (word & POINTER_MAP_PRESENT) != 0;
			atomic_signal_fence(memory_order_seq_cst);
			if (atomic_compare_exchange_strong_explicit(&words[i], &(uint64_t){ word }, 0, memory_order_relaxed,
			                                            memory_order_relaxed))
				break;
			moving.pending_count -= (word & POINTER_MAP_PRESENT) != 0; // its block was taken
			word = atomic_load_explicit(&words[i], memory_order_relaxed);
		}
	}
}

/* False: there is no room. */
static bool
put_anew(pointer_map_word *words, uint32_t count, uint64_t word)
{
	uint32_t position = (uint32_t)(word >> KMEM_WORD_POSITION_SHIFT) & (uint32_t)KMEM_WORD_POSITION_MASK;

	words += position * scale_of(count) >> (POINTER_MAP_REGION_LOG2 - 3);
	for (uint32_t i = 0; i < POINTER_MAP_PROBES; i++) {
		uint64_t seen = atomic_load_explicit(&words[i], memory_order_relaxed);

		if (((seen ^ word) & POINTER_MAP_START_MASK) == 0)
			return true;
		if ((seen & POINTER_MAP_PRESENT) == 0 &&
		    atomic_compare_exchange_strong_explicit(&words[i], &seen, word, memory_order_relaxed, memory_order_relaxed))
			return true;
	}
	return false;
}

/* So many words, or all that a region can have. */
static uint32_t
as_many_as_can_be(uint32_t count)
{
	uint32_t most = 1u << pointer_map_words_log2;

	return count < most ? count : most;
}

/* Puts what is pending. False: more words are needed. */
static bool
put_pending(pointer_map_word *words)
{
	while (moving.pending_count != 0) {
		uint64_t word = moving.pending[moving.pending_count - 1];

		if (moving.count == 0 || !put_anew(words, moving.count, word)) {
			struct address_block old;

			if (moving.count != 1u << pointer_map_words_log2)
				return false;
			(void)put_overflow(addr_of(moving.addr, word), pointer_map_unpack(word), &old);
		}
		atomic_signal_fence(memory_order_seq_cst);
		moving.pending_count--;
	}
	return true;
}

/* Begun anew at any point, it ends as if it had not been left. */
static void
end_move(void)
{
	uint32_t region = region_of(moving.addr);
	pointer_map_word *words = words_of(moving.leaf, region);
	pointer_map_state *state = &moving.leaf->state[region];
	uint32_t now = atomic_load_explicit(state, memory_order_relaxed);

	/* relaxed, for moves: who looks from outside does so while the process stands still. */
	if (atomic_load_explicit(&moves, memory_order_relaxed) % 2 == 0)
		atomic_fetch_add_explicit(&moves, 1, memory_order_relaxed);
	if ((now & POINTER_MAP_OPEN) != 0) {
		now = state_after(now, count_of(now));
		atomic_store_explicit(state, now, memory_order_seq_cst); // with gather(): see pointer_map_put_word()
	}
	/* A hook was left when all was done but for the last step: then the region may have grown since. */
	if (moving.used_count < count_of(now))
		moving.used_count = count_of(now);
	gather(words);
	while (!put_pending(words)) {
		gather(words);
		moving.count = moving.count != 0 ? as_many_as_can_be(2 * moving.count) : PAGE_WORDS;
		if (moving.used_count < moving.count)
			moving.used_count = moving.count;
	}
	/* A put that began before may have its word here: it looks for it, and puts it again. */
	if (moving.count < count_of(now))
		(void)raw_madvise((void *)(words + moving.count), (count_of(now) - moving.count) * sizeof(*words),
		                  MADV_DONTNEED);
	/* release: the words first. Pairs with pointer_map_place_in(). */
	atomic_store_explicit(state, state_after(now, moving.count) | (moving.count != 0 ? POINTER_MAP_OPEN : 0),
	                      memory_order_release);
	moving.leaf = NULL;
	atomic_fetch_add_explicit(&moves, 1, memory_order_relaxed);
}

static void
complete_move(void)
{
	if (moving.leaf != NULL)
		end_move();
}

/* Until no words are being arranged. False: in vain. */
static bool
wait_for_move(void)
{
	bool is_over = wait_lock_take(&moving_lock);

	if (is_over)
		wait_lock_give(&moving_lock);
	return is_over;
}

/* A region that is open gets `count` words, or as many more as its blocks need. False: another one is being arranged. */
static bool
arrange(struct pointer_map_leaf *leaf, uint64_t addr, uint32_t seen, uint32_t count, bool waits)
{
	if (!(waits ? wait_lock_take(&moving_lock) : turn_take(&moving_lock.turn)))
		return false;
	if (atomic_load_explicit(&leaf->state[region_of(addr)], memory_order_relaxed) == seen) {
		moving.addr = addr & ~(REGION_BYTES - 1);
		moving.count = count;
		moving.used_count = count > count_of(seen) ? count : count_of(seen);
		moving.pending_count = 0;
		atomic_signal_fence(memory_order_seq_cst);
		moving.leaf = leaf;
		atomic_signal_fence(memory_order_seq_cst);
		end_move();
	}
	turn_give(&moving_lock.turn);
	return true;
}

/* Its first words: half as many as the region has that grew last. */
static void
open_region(pointer_map_state *state, uint32_t seen)
{
	uint32_t count = whole_pages(atomic_load_explicit(&usual_count, memory_order_relaxed) / 2);

	/* release: who sees it open sees the zeros that arrange() left. Pairs with pointer_map_place_in(). */
	if (atomic_compare_exchange_strong_explicit(state, &seen, state_after(seen, count) | POINTER_MAP_OPEN,
	                                            memory_order_release, memory_order_relaxed))
		atomic_store_explicit(&usual_count, count, memory_order_relaxed); // fewer each time, until one grows
}

/* The place of an address, whose region is opened for it; none where it is being arranged, or no leaf can be had. */
static struct pointer_map_place
place_for(uint64_t addr)
{
	struct pointer_map_leaf *leaf = leaf_of(addr, true);
	struct pointer_map_place place = { .first = NULL };

	if (leaf == NULL)
		return place;
	place = pointer_map_place_in(leaf, addr);
	if (place.first == NULL && count_of(place.seen) == 0) {
		open_region(place.state, place.seen);
		place = pointer_map_place_in(leaf, addr);
	}
	return place;
}

/* ---- put ---- */

/* The marks are for words alone: what comes out of the address table goes to the books as it is. */
enum pointer_map_put
pointer_map_put_aside(uint64_t addr, struct address_block block, struct address_block *old)
{
	block.generation &= POINTER_MAP_GENERATION_MASK;
	switch (address_table_put(&overflow, addr, block, old)) {
	case ADDRESS_TABLE_FULL:
		return POINTER_MAP_FULL;
	case ADDRESS_TABLE_REPLACED:
		return POINTER_MAP_REPLACED;
	default:
		return POINTER_MAP_STORED;
	}
}

static enum pointer_map_put
put_overflow(uint64_t addr, struct address_block block, struct address_block *old)
{
	effort_count(KMEM_EFFORT_CROWDED);
	return pointer_map_put_aside(addr, block, old);
}

/* The block of a large one's word. */
static struct address_block
unpack_large(const struct pointer_map_large *large, uint64_t seen)
{
	struct address_block block = pointer_map_unpack(seen);

	block.bytes = atomic_load_explicit(&large->bytes, memory_order_relaxed);
	return block;
}

static bool
take_large(struct pointer_map_large *large, struct address_block *block)
{
	uint64_t seen = atomic_load_explicit(&large->word, memory_order_relaxed);

	if ((seen & POINTER_MAP_PRESENT) == 0)
		return false;
	*block = unpack_large(large, seen);
	atomic_store_explicit(&large->word, pointer_map_gone(seen), memory_order_relaxed);
	return true;
}

/* The word of a block that is where it belongs; NULL = there is none. */
static pointer_map_word *
word_at(struct pointer_map_place place, uint64_t addr, uint64_t *seen)
{
	pointer_map_word *at = place.first != NULL
	                           ? pointer_map_search(place.first, POINTER_MAP_PRESENT | pointer_map_position_of(addr))
	                           : NULL;

	*seen = at != NULL ? atomic_load_explicit(at, memory_order_relaxed) : 0;
	return pointer_map_is_of(*seen, addr) ? at : NULL; // it may have been moved in between
}

static bool
take_word(struct pointer_map_place place, uint64_t addr, struct address_block *block)
{
	uint64_t seen = 0;
	pointer_map_word *at = word_at(place, addr, &seen);

	if (at == NULL || !pointer_map_take_word(at, seen))
		return false;
	*block = pointer_map_unpack(seen);
	return true;
}

/* M6: what stands in the 16 KiB, or has a word at the address, is of a block that is gone. */
static enum pointer_map_put
put_large(uint64_t addr, struct address_block block, struct address_block *old)
{
	struct pointer_map_leaf *leaf = leaf_of(addr, true);

	if (leaf == NULL)
		return put_overflow(addr, block, old);

	struct pointer_map_large *large = large_of(leaf, addr);
	bool was_stale = take_large(large, old) || take_word(pointer_map_place_in(leaf, addr), addr, old);

	if (block.bytes >= POINTER_MAP_LARGE_BYTES)
		atomic_store_explicit(&leaf->has_large, true, memory_order_relaxed);
	atomic_store_explicit(&large->bytes, block.bytes, memory_order_relaxed);
	block.bytes = 0;
	atomic_store_explicit(&large->word, POINTER_MAP_PRESENT | pointer_map_pack_small(addr, block),
	                      memory_order_relaxed);
	return was_stale ? POINTER_MAP_REPLACED : POINTER_MAP_STORED;
}

/* More words for the region. False: it cannot have more, or was waited for in vain. */
static bool
grow(struct pointer_map_leaf *leaf, uint64_t addr, uint32_t seen)
{
	uint32_t count = as_many_as_can_be(whole_pages(count_of(seen) + count_of(seen) / 8 + 1)); // an eighth more

	if (count == count_of(seen) || !arrange(leaf, addr, seen, count, true))
		return false;
	atomic_store_explicit(&usual_count, count, memory_order_relaxed);
	return true;
}

static bool
has_room(const pointer_map_word *first)
{
	for (uint32_t i = 0; i < POINTER_MAP_PROBES; i++) {
		if ((atomic_load_explicit(&first[i], memory_order_relaxed) & POINTER_MAP_PRESENT) == 0)
			return true;
	}
	return false;
}

enum pointer_map_put
pointer_map_put_slow(uint64_t addr, struct address_block block, struct address_block *old)
{
	uint64_t word = POINTER_MAP_PRESENT | pointer_map_pack_small(addr, block);
	bool was_stale = false;

	if (block.bytes > POINTER_MAP_BYTES_MAX)
		return put_large(addr, block, old);
	for (unsigned look = 0; look < LOOKS_MAX; look++) {
		struct pointer_map_place place = place_for(addr);

		if (place.state == NULL || (place.first == NULL && !wait_for_move()))
			break;
		if (place.first == NULL)
			continue;
		was_stale |= take_word(place, addr, old);
		if (pointer_map_put_word(place, addr, word))
			return was_stale ? POINTER_MAP_REPLACED : POINTER_MAP_STORED;
		if (!has_room(place.first) && !grow(leaf_of(addr, false), addr, place.seen))
			break;
	}

	struct address_block beside;
	enum pointer_map_put put = put_overflow(addr, block, was_stale ? &beside : old);

	return was_stale && put == POINTER_MAP_STORED ? POINTER_MAP_REPLACED : put;
}

/* ---- take ---- */

static uint32_t
state_of(struct pointer_map_leaf *leaf, uint64_t addr)
{
	/* relaxed: what is looked at next comes behind pointer_map_place_in()'s load of it. */
	return leaf != NULL ? atomic_load_explicit(&leaf->state[region_of(addr)], memory_order_relaxed) : 0;
}

/* After a look that began when the state was `before`: is nothing of this address elsewhere (M5)? Waits for who arranges the words. */
static bool
was_settled(struct pointer_map_leaf *leaf, uint64_t addr, uint32_t before)
{
	atomic_thread_fence(memory_order_acquire); // the look first
	if (is_settled(before))
		return state_of(leaf, addr) == before;
	(void)wait_for_move();
	return false;
}

bool
pointer_map_was_taken_along(pointer_map_word *at, uint64_t addr, uint64_t word)
{
	struct pointer_map_leaf *leaf = leaf_of(addr, false);
	uint64_t seen = word;
	struct address_block block;

	if (atomic_compare_exchange_strong_explicit(at, &seen, pointer_map_gone(word), memory_order_relaxed,
	                                            memory_order_relaxed))
		return false;
	for (unsigned look = 0; look < LOOKS_MAX; look++) {
		uint32_t before = state_of(leaf, addr);

		if (word_at(pointer_map_place_in(leaf, addr), addr, &seen) != NULL ||
		    address_table_find(&overflow, addr, &block))
			return true;
		if (was_settled(leaf, addr, before))
			return false;
	}
	return true; // who arranges has it, and was waited for in vain
}

static bool
take_once(struct pointer_map_leaf *leaf, uint64_t addr, struct address_block *block)
{
	if (leaf != NULL && take_word(pointer_map_place_in(leaf, addr), addr, block))
		return true;
	if (leaf != NULL &&
	    pointer_map_is_of(atomic_load_explicit(&large_of(leaf, addr)->word, memory_order_relaxed), addr))
		return take_large(large_of(leaf, addr), block);
	return address_table_take(&overflow, addr, block);
}

bool
pointer_map_take_slow(uint64_t addr, struct address_block *block)
{
	struct pointer_map_leaf *leaf = leaf_of(addr, false);

	for (unsigned look = 0; look < LOOKS_MAX; look++) {
		uint32_t before = state_of(leaf, addr);

		if (take_once(leaf, addr, block))
			return true;
		if (was_settled(leaf, addr, before))
			return false; // never put, or a double free by the program: the other one took it
	}
	return false;
}

/* What the map says of the block at this address; 0 = nothing. */
static uint64_t
find(uint64_t addr, struct address_block *block)
{
	struct pointer_map_leaf *leaf = leaf_of(addr, false);
	uint64_t seen = 0;

	if (leaf == NULL)
		return 0;
	*block = (struct address_block){ 0 };
	if (word_at(pointer_map_place_in(leaf, addr), addr, &seen) != NULL) {
		*block = pointer_map_unpack(seen);
		return seen;
	}
	seen = atomic_load_explicit(&large_of(leaf, addr)->word, memory_order_relaxed);
	*block = unpack_large(large_of(leaf, addr), seen);
	return pointer_map_is_of(seen, addr) ? seen : 0;
}

bool
pointer_map_find(uint64_t addr, struct address_block *block)
{
	return find(addr, block) != 0 || address_table_find(&overflow, addr, block);
}

bool
pointer_map_is_watched(const void *pointer)
{
	struct address_block block;

	return (find((uint64_t)pointer, &block) & POINTER_MAP_WATCHED) != 0;
}

bool
pointer_map_covers(uint64_t addr)
{
	return leaf_of(addr, false) != NULL;
}

/* ---- looking at all ---- */

/* A part of a region, and where its words are. */
struct stretch {
	struct pointer_map_leaf *leaf;
	uint64_t start;
	uint64_t end; // at most that of the region
	pointer_map_word *words;
	uint32_t first;
	uint32_t until;
};

/* False: there is no leaf. Where words are being arranged there is none. */
static bool
stretch_at(uint64_t start, uint64_t end, struct stretch *stretch)
{
	uint64_t region_end = (start | (REGION_BYTES - 1)) + 1;
	struct pointer_map_place place;

	*stretch = (struct stretch){ .leaf = leaf_of(start, false),
		                         .start = start,
		                         .end = end < region_end ? end : region_end };
	if (stretch->leaf == NULL)
		return false;
	place = pointer_map_place_in(stretch->leaf, start);
	if (place.first == NULL)
		return true;
	stretch->words = words_of(stretch->leaf, region_of(start));
	stretch->first = (uint32_t)(place.first - stretch->words);
	place = pointer_map_place_in(stretch->leaf, stretch->end - 1);
	if (place.first == NULL)
		stretch->first = 0;
	else
		stretch->until = (uint32_t)(place.first - stretch->words) + POINTER_MAP_PROBES;
	if (stretch->until < stretch->first) // it was arranged meanwhile
		stretch->until = stretch->first;
	return true;
}

/* Shows a word that has all bits of `required`, if its block began in the stretch. False: the visitor wants no more. */
static bool
show(const struct stretch *stretch, uint64_t word, const struct pointer_map_large *large, uint64_t required,
     pointer_map_visitor *visitor, void *context)
{
	uint64_t addr = addr_of(stretch->start, word);
	struct address_block block = { 0 };

	if (word == 0 || (word & required) != required || addr < stretch->start || addr >= stretch->end)
		return true;
	if ((word & POINTER_MAP_PRESENT) != 0)
		block = large != NULL ? unpack_large(large, word) : pointer_map_unpack(word);
	return visitor(context, addr, block);
}

static bool
visit_stretch(const struct stretch *stretch, uint64_t required, pointer_map_visitor *visitor, void *context)
{
	for (uint32_t i = stretch->first; i < stretch->until; i++) {
		uint64_t word = atomic_load_explicit(&stretch->words[i], memory_order_relaxed);

		if (!show(stretch, word, NULL, required, visitor, context))
			return false;
	}
	for (uint64_t at = stretch->start; at < stretch->end; at = (at | ((UINT64_C(1) << KMEM_LARGE_LOG2) - 1)) + 1) {
		const struct pointer_map_large *large = large_of(stretch->leaf, at);
		uint64_t word = atomic_load_explicit(&large->word, memory_order_relaxed);

		if (!show(stretch, word, large, required, visitor, context))
			return false;
	}
	return true;
}

size_t
pointer_map_visit(uint64_t start, uint64_t end, bool is_large_only, pointer_map_visitor *visitor, void *context)
{
	size_t looked_at = 0;
	struct stretch stretch;

	for (uint64_t addr = start; addr < end; addr = stretch.end) {
		if (!stretch_at(addr, end, &stretch)) {
			stretch.end = (addr | ((UINT64_C(1) << POINTER_MAP_LEAF_LOG2) - 1)) + 1;
			continue;
		}
		if (is_large_only)
			stretch.until = stretch.first;
		looked_at += stretch.until - stretch.first + 1;
		if (!visit_stretch(&stretch, 0, visitor, context))
			break;
	}
	return looked_at;
}

void
pointer_map_visit_large(pointer_map_visitor *visitor, void *context)
{
	struct top *table = top_table(false);
	uint64_t listed = table != NULL ? listed_in(table) : 0;

	for (uint64_t i = 0; i < listed; i++) {
		uint64_t number = atomic_load_explicit(&table->list[i], memory_order_relaxed);
		struct pointer_map_leaf *leaf = leaf_of(number << POINTER_MAP_LEAF_LOG2, false);

		if (leaf == NULL || !atomic_load_explicit(&leaf->has_large, memory_order_relaxed))
			continue;
		(void)pointer_map_visit(number << POINTER_MAP_LEAF_LOG2, (number + 1) << POINTER_MAP_LEAF_LOG2, true, visitor,
		                        context);
	}
}

bool
pointer_map_visit_objects(size_t most_words, pointer_map_visitor *visitor, void *context)
{
	const uint64_t object = POINTER_MAP_PRESENT | (uint64_t)POINTER_MAP_OBJECT << POINTER_MAP_GENERATION_SHIFT;
	static uint64_t next; // in the list; under the turn
	struct top *table = top_table(false);
	size_t looked_at = 0;
	uint64_t shown = 0;

	/* The last visitor's position. Who comes second need not wait. */
	if (table == NULL || !turn_take(&visiting_turn))
		return false;
	uint64_t listed = listed_in(table);

	for (; shown < listed && looked_at < most_words; shown++) {
		/* A number that is not written yet is 0, mostly no leaf. */
		uint64_t number = atomic_load_explicit(&table->list[next++ % listed], memory_order_relaxed);
		uint64_t end = (number + 1) << POINTER_MAP_LEAF_LOG2;
		struct stretch stretch;

		for (uint64_t addr = number << POINTER_MAP_LEAF_LOG2; addr < end && stretch_at(addr, end, &stretch);
		     addr = stretch.end) {
			(void)visit_stretch(&stretch, object, visitor, context);
			looked_at += stretch.until - stretch.first;
		}
	}
	turn_give(&visiting_turn);
	return shown == listed;
}

struct lowest {
	uint64_t addr;
	bool was_used;
};

/* Words of a region are not quite in order. */
static bool
see_lowest(void *context, uint64_t addr, struct address_block block)
{
	struct lowest *lowest = context;

	if (lowest->addr != UINT64_MAX && (addr ^ lowest->addr) >= REGION_BYTES)
		return false;
	if (block.site == 0)
		lowest->was_used = true;
	else if (addr < lowest->addr)
		lowest->addr = addr;
	return true;
}

uint64_t
pointer_map_lowest(uint64_t start, uint64_t end, bool *was_used)
{
	struct lowest lowest = { .addr = UINT64_MAX };

	(void)pointer_map_visit(start, end, false, see_lowest, &lowest);
	*was_used = lowest.was_used;
	return lowest.addr;
}

/* ---- giving memory back ---- */

static uint32_t
present_in(const pointer_map_word *words, uint32_t count)
{
	uint32_t present = 0;

	for (uint32_t i = 0; i < count; i++)
		present += (atomic_load_explicit(&words[i], memory_order_relaxed) & POINTER_MAP_PRESENT) != 0;
	return present;
}

/* Of regions that need half of their words at most, from `*next` on. Returns the bytes; of one that could not shrink all that it has. */
static size_t
trim_leaf(struct pointer_map_leaf *leaf, uint64_t addr, uint32_t *next, size_t most_bytes)
{
	size_t given = 0;

	for (; *next < KMEM_LEAF_REGIONS && given < most_bytes; (*next)++) {
		uint32_t region = *next;
		/* relaxed: a guess is enough, arrange() looks again. */
		uint32_t state = atomic_load_explicit(&leaf->state[region], memory_order_relaxed);
		uint32_t count = (state & POINTER_MAP_OPEN) != 0 ? count_of(state) : 0;
		uint32_t present = present_in(words_of(leaf, region), count);
		uint32_t wanted = present != 0 ? whole_pages(present + present / 3 + POINTER_MAP_PROBES) : 0;

		if (count == 0 || wanted > count / 2 || !arrange(leaf, addr + region * REGION_BYTES, state, wanted, false))
			continue;
		state = atomic_load_explicit(&leaf->state[region], memory_order_relaxed);
		given += (count > count_of(state) ? count - count_of(state) : count) * sizeof(pointer_map_word);
	}
	return given;
}

size_t
pointer_map_trim(uint64_t leaves, size_t most_bytes)
{
	static uint64_t next;        // in the list; under the turn
	static uint32_t next_region; // of that leaf
	struct top *table = top_table(false);
	size_t given = 0;

	/* The last trimmer's position. Who comes second need not wait. */
	if (table == NULL || !raw_sys_may_call() || !turn_take(&visiting_turn))
		return 0;
	uint64_t listed = listed_in(table);

	for (uint64_t i = 0; i < leaves && i < listed && given < most_bytes; i++) {
		uint64_t number = atomic_load_explicit(&table->list[next % listed], memory_order_relaxed);
		/* acquire: pairs with install_leaf(). */
		struct pointer_map_leaf *leaf = atomic_load_explicit(&table->leaf[number], memory_order_acquire);

		if (leaf != NULL)
			given += trim_leaf(leaf, number << POINTER_MAP_LEAF_LOG2, &next_region, most_bytes - given);
		if (leaf == NULL || next_region == KMEM_LEAF_REGIONS) {
			next_region = 0;
			next++;
		}
	}
	turn_give(&visiting_turn);
	return given;
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
pointer_map_expect_few_aside(void)
{
	overflow.slots_log2_max = FEW_ASIDE_LOG2;
}

void
pointer_map_start(bool is_glibc)
{
	if (top == NULL || listed_in(top) == 0)
		pointer_map_words_log2 = is_glibc ? WORDS_LOG2_GLIBC : WORDS_LOG2_ANY;
}

void
pointer_map_clear(void)
{
	uint64_t listed = top != NULL ? listed_in(top) : 0;

	for (uint64_t i = 0; i < listed; i++) {
		uint32_t number = atomic_load_explicit(&top->list[i], memory_order_relaxed);
		struct pointer_map_leaf *leaf = atomic_exchange_explicit(&top->leaf[number], NULL, memory_order_relaxed);

		if (leaf != NULL)
			raw_unreserve(leaf, LEAF_BYTES);
	}
	if (top != NULL)
		atomic_store_explicit(&top->listed_count, 0, memory_order_relaxed);
	atomic_store_explicit(&is_stuck, false, memory_order_relaxed);
	atomic_store_explicit(&trimming.highest_bytes, 0, memory_order_relaxed);
	atomic_store_explicit(&trimming.leaves_left, 0, memory_order_relaxed);
	atomic_store_explicit(&moves, 0, memory_order_relaxed); // a thread that is not in this process may have arranged
	moving.leaf = NULL;
	atomic_store_explicit(&usual_count, PAGE_WORDS, memory_order_relaxed);
	turn_give(&moving_lock.turn);
	turn_give(&visiting_turn);
	address_table_clear(&overflow);
}
