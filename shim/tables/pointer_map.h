/*
 * pointer_map.h - which call site gave out this address, and how many bytes were asked for?
 *
 * Private memory, never in the capture. Covers the heap; mappings are in range_map.h, device addresses in a table of
 * their own. What nearly every event does is here, to be inlined: four loads that depend on each other (table, leaf, state of the
 * region, word) and one locked instruction. pointer_map.c does the rest and says how the map is laid out.
 *
 * Safe from   any thread and signal handler; frees may come from any thread.
 * When full   put fails; the caller counts the loss.
 */
#ifndef POINTER_MAP_H
#define POINTER_MAP_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kmem_format.h"
#include "kmem_tables.h"
#include "tables/address_table.h"

/* What is KMEM_ is read from outside too. */
#define POINTER_MAP_SITES_MAX KMEM_WORD_SITE_MASK

#define POINTER_MAP_LEAF_LOG2 KMEM_LEAF_LOG2     // 64 MiB of addresses
#define POINTER_MAP_REGION_LOG2 KMEM_REGION_LOG2 // 256 KiB
#define POINTER_MAP_BYTES_MAX KMEM_WORD_BYTES_MASK
#define POINTER_MAP_LARGE_BYTES \
	((uint64_t)1 << 20) // such a block never goes the fast way: its pages are looked at, its releases counted
#define POINTER_MAP_PROBES KMEM_PROBES // places from where a word belongs, in one of which it is

/*
 * A word: bit 63 present, 48-62 position in the region in units of 8, 47 object, 46 watched, 40-45 generation, 19-39 site, 14-18 owner of
 * the site's record, 0-13 bytes. Not present: free; then 0, or what it said of the last block that was there.
 *
 * The owner is the thread's slot modulo 32, 0 = not said: who releases a block need not read the record of another thread, whose cache
 * line goes to and fro, to know that it is one. Only tracker_fast.c says it, and not of a watched block (sites/releases.h).
 */
#define POINTER_MAP_PRESENT KMEM_WORD_PRESENT
#define POINTER_MAP_OBJECT 0x80u // in a put block's generation: it may be an object of the interpreter
#define POINTER_MAP_WATCH 0x40u  // the same: its release does not go the fast way
#define POINTER_MAP_GENERATION_SHIFT 40
#define POINTER_MAP_GENERATION_MASK 0x3fu
#define POINTER_MAP_WATCHED ((uint64_t)POINTER_MAP_WATCH << POINTER_MAP_GENERATION_SHIFT)
static_assert(KMEM_GENERATION_BUCKETS <= POINTER_MAP_GENERATION_MASK, "");
#define POINTER_MAP_OWNER_SHIFT KMEM_LARGE_LOG2
#define POINTER_MAP_OWNER_MASK (UINT64_C(31) << POINTER_MAP_OWNER_SHIFT)
#define POINTER_MAP_POSITION_MASK (KMEM_WORD_POSITION_MASK << KMEM_WORD_POSITION_SHIFT)
#define POINTER_MAP_START_MASK (POINTER_MAP_PRESENT | POINTER_MAP_POSITION_MASK)
static_assert(POINTER_MAP_OWNER_SHIFT + 5 == KMEM_WORD_SITE_SHIFT &&
                  KMEM_WORD_SITE_SHIFT + 21 == POINTER_MAP_GENERATION_SHIFT,
              "");

typedef _Atomic uint64_t pointer_map_word;

/*
 * A region's state: its scale, which is one more than the last place where a word may belong, and how often its words were arranged. Not
 * open: it has none yet (scale 0), or they are being arranged (M5).
 */
#define POINTER_MAP_OPEN (UINT32_C(1) << 31)
#define POINTER_MAP_SCALE_MASK KMEM_STATE_SCALE_MASK
typedef _Atomic uint32_t pointer_map_state;

struct pointer_map_large {
	pointer_map_word word; // its bytes are 0
	_Atomic uint64_t bytes;
};

struct pointer_map_leaf {
	pointer_map_state state[KMEM_LEAF_REGIONS];
	_Atomic bool has_large; // one of POINTER_MAP_LARGE_BYTES began here; relaxed
	_Alignas(KMEM_LEAF_LARGE_AT) struct pointer_map_large large[1u << (KMEM_LEAF_LOG2 - KMEM_LARGE_LOG2)];
	pointer_map_word words[];
};
static_assert(offsetof(struct pointer_map_leaf, large) == KMEM_LEAF_LARGE_AT &&
                  offsetof(struct pointer_map_leaf, words) == KMEM_LEAF_WORDS_AT,
              "");
typedef struct pointer_map_leaf *_Atomic pointer_map_entry;

enum pointer_map_put {
	POINTER_MAP_STORED,
	POINTER_MAP_REPLACED, // a block that was given back without our seeing it stood there: *old is that one
	POINTER_MAP_FULL,
};

/* Before the first event: is this glibc's own heap, whose blocks are never closer than 32 bytes? Without this call addresses take more. */
void pointer_map_start(bool is_glibc);

/* The leaves by address, for the fast path; NULL before the first put. And log2 of the words that a region can have. */
extern pointer_map_entry *pointer_map_leaves __attribute__((visibility("hidden")));
extern unsigned pointer_map_words_log2 __attribute__((visibility("hidden")));

/* Out of line: what they need would take registers of the common case. */
__attribute__((noinline)) enum pointer_map_put pointer_map_put_slow(uint64_t addr, struct address_block block,
                                                                    struct address_block *old);
/*
 * Where no region is opened for it: for blocks of which there are few. It is taken and found as others are, and not visited.
 * expect_few_aside: before the first event; then the room for these is for 65,536.
 */
enum pointer_map_put pointer_map_put_aside(uint64_t addr, struct address_block block, struct address_block *old);
void pointer_map_expect_few_aside(void);
__attribute__((noinline)) bool pointer_map_take_slow(uint64_t addr, struct address_block *block);
/* It stays in the map. False also for one that is elsewhere at this moment (M5). */
bool pointer_map_find(uint64_t addr, struct address_block *block);
void pointer_map_clear(void); // forked child: one thread

/* Are blocks of this address in the map, if there are any? Else they are where only pointer_map_find() finds them. */
bool pointer_map_covers(uint64_t addr);

/*
 * Shows the blocks that begin in [start, end), in the order of their regions, or those of 16 KiB and more alone. Of a block that was there
 * and is gone, of which a word still tells, all is 0. False of the visitor: no more. Blocks come and go meanwhile. Returns how many words
 * were looked at.
 */
typedef bool pointer_map_visitor(void *context, uint64_t addr, struct address_block block);
size_t pointer_map_visit(uint64_t start, uint64_t end, bool is_large_only, pointer_map_visitor *visitor, void *context);

/* The same for those of 16 KiB and more in leaves that had one of POINTER_MAP_LARGE_BYTES. Some may be shown twice. */
void pointer_map_visit_large(pointer_map_visitor *visitor, void *context);

/*
 * The same for blocks that may be Python objects, wherever. Goes on where the last call stopped, in pieces of 64 MiB of addresses, and
 * begins anew at the end. Stops when all were shown, or after `most_words` words of the map. Returns whether all were shown. The
 * caller must know that the blocks it reads stay.
 */
bool pointer_map_visit_objects(size_t most_words, pointer_map_visitor *visitor, void *context);

/* Where the first block of [start, end) begins; UINT64_MAX = none. *was_used: blocks were there, perhaps behind it. */
uint64_t pointer_map_lowest(uint64_t start, uint64_t end, bool *was_used);

/*
 * Gives back memory of regions in which fewer blocks live than did: looks at the next `leaves` leaves (64 MiB of addresses each, round and
 * round), and stops when `most_bytes` went, or were gone through in vain. Returns the bytes of both.
 */
size_t pointer_map_trim(uint64_t leaves, size_t most_bytes);

/*
 * The same by itself, for a heap that became a quarter smaller and 32 MiB at least, and once a minute: then the whole map is gone
 * through, at most 4 MiB of it and 8 leaves a second (under 1 % of the time).
 *
 * beat         called now and then
 * is_trim_due  live_bytes: of the heap, now
 * now_ns       of any clock that does not go back
 */
void pointer_map_beat(uint64_t now_ns);
bool pointer_map_is_trim_due(uint64_t live_bytes);
void pointer_map_trim_step(uint64_t now_ns);

static inline uint64_t
pointer_map_position_of(uint64_t addr)
{
	return (addr & KMEM_WORD_POSITION_MASK << 3) << (KMEM_WORD_POSITION_SHIFT - 3);
}

/* Does this word say that a block is at this position? */
static inline bool
pointer_map_is_of(uint64_t word, uint64_t addr)
{
	return (word & POINTER_MAP_START_MASK) == (POINTER_MAP_PRESENT | pointer_map_position_of(addr));
}

/* But for what is in every word of its owner: see struct thread_slot. The size must fit. */
static inline uint64_t
pointer_map_pack_small(uint64_t addr, struct address_block block)
{
	return pointer_map_position_of(addr) | (uint64_t)block.generation << POINTER_MAP_GENERATION_SHIFT |
	       (uint64_t)block.site << KMEM_WORD_SITE_SHIFT | block.bytes;
}

static inline struct address_block
pointer_map_unpack(uint64_t word)
{
	return (struct address_block){
		.bytes = word & KMEM_WORD_BYTES_MASK,
		.site = (uint32_t)(word >> KMEM_WORD_SITE_SHIFT) & POINTER_MAP_SITES_MAX,
		.generation = (uint8_t)(word >> POINTER_MAP_GENERATION_SHIFT & POINTER_MAP_GENERATION_MASK),
	};
}

/* Where the word of an address is: in one of POINTER_MAP_PROBES from here. */
struct pointer_map_place {
	pointer_map_word *first;  // NULL: the region is not open
	pointer_map_state *state; // NULL: there is no leaf
	uint32_t seen;            // of the state, before the words are looked at
};

static inline __attribute__((always_inline)) struct pointer_map_place
pointer_map_place_in(struct pointer_map_leaf *leaf, uint64_t addr)
{
	uint32_t region = addr >> POINTER_MAP_REGION_LOG2 & (KMEM_LEAF_REGIONS - 1);
	struct pointer_map_place place = { .state = &leaf->state[region] };

	/* acquire: pairs with end_move() and open_region() in pointer_map.c. */
	place.seen = atomic_load_explicit(place.state, memory_order_acquire);
	if (__builtin_expect((place.seen & POINTER_MAP_OPEN) == 0, 0))
		return place;

	uint64_t bytes = addr & KMEM_WORD_POSITION_MASK << 3;

	place.first = leaf->words + ((size_t)region << pointer_map_words_log2) +
	              (bytes * (place.seen & POINTER_MAP_SCALE_MASK) >> POINTER_MAP_REGION_LOG2);
	return place;
}

static inline __attribute__((always_inline)) struct pointer_map_place
pointer_map_place_of(uint64_t addr)
{
	/* acquire: pairs with the installation of the top table in pointer_map.c. */
	pointer_map_entry *leaves = __atomic_load_n(&pointer_map_leaves, __ATOMIC_ACQUIRE);
	uint64_t number = addr >> POINTER_MAP_LEAF_LOG2;

	if (__builtin_expect(leaves == NULL || number >= KMEM_TOP_ENTRIES, 0))
		return (struct pointer_map_place){ .first = NULL };
	/* acquire: pairs with the installation of the leaf. */
	struct pointer_map_leaf *leaf = atomic_load_explicit(&leaves[number], memory_order_acquire);

	if (__builtin_expect(leaf == NULL, 0))
		return (struct pointer_map_place){ .first = NULL };
	return pointer_map_place_in(leaf, addr);
}

/* Where the large block is that begins in the same 16 KiB; the place must have a state. */
static inline struct pointer_map_large *
pointer_map_large_at(struct pointer_map_place place, uint64_t addr)
{
	struct pointer_map_leaf *leaf = (struct pointer_map_leaf *)((uintptr_t)place.state &
	                                                            ~((uintptr_t)KMEM_LEAF_LARGE_AT - 1));

	return &leaf->large[addr >> KMEM_LARGE_LOG2 & (sizeof(leaf->large) / sizeof(leaf->large[0]) - 1)];
}

/* Its 16 highest bits: present, and position. Relaxed: who asks for its block knows that it was put. */
static inline uint16_t
pointer_map_start_in(const pointer_map_word *at)
{
	return __atomic_load_n((const uint16_t *)at + 3, __ATOMIC_RELAXED);
}
static_assert(KMEM_WORD_POSITION_SHIFT == 48 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "they are the last of four");

/* The word that begins like `wanted`, which is present; NULL = none. */
static inline __attribute__((always_inline)) pointer_map_word *
pointer_map_search(pointer_map_word *first, uint64_t wanted)
{
	uint16_t start = (uint16_t)(wanted >> KMEM_WORD_POSITION_SHIFT);

#pragma GCC unroll 8
	for (unsigned i = 0; i < POINTER_MAP_PROBES; i++) {
		if (pointer_map_start_in(&first[i]) == start)
			return &first[i];
	}
	return NULL;
}

/* What a word says when its block is gone. */
static inline uint64_t
pointer_map_gone(uint64_t word)
{
	return word & ~POINTER_MAP_PRESENT;
}

/* Takes a word that was found. False: it was moved meanwhile. */
static inline bool
pointer_map_take_word(pointer_map_word *at, uint64_t seen)
{
	return atomic_compare_exchange_strong_explicit(at, &seen, pointer_map_gone(seen), memory_order_relaxed,
	                                               memory_order_relaxed);
}

/* The words of the region were arranged while this one was written. True: it was taken along; false: it is not in the map. */
__attribute__((noinline)) bool pointer_map_was_taken_along(pointer_map_word *at, uint64_t addr, uint64_t word);

/*
 * Puts a word, in the common case: where it belongs there is room, and no block is said to be at its address before the room. False:
 * nothing was done, and pointer_map_put_slow() is to do it.
 */
static inline __attribute__((always_inline)) bool
pointer_map_put_word(struct pointer_map_place place, uint64_t addr, uint64_t word)
{
	uint16_t start = (uint16_t)(word >> KMEM_WORD_POSITION_SHIFT);
	pointer_map_word *at = place.first;

#pragma GCC unroll 1
	for (uint16_t seen; ((seen = pointer_map_start_in(at)) & 0x8000) != 0; at++) {
		if (__builtin_expect(seen == start || at == place.first + POINTER_MAP_PROBES - 1, 0))
			return false;
	}

	uint64_t free = atomic_load_explicit(at, memory_order_relaxed);

	/* seq_cst, with the load of the state: who arranges the words sees this one, or this sees that they are arranged (M5). */
	if (__builtin_expect(
			(free & POINTER_MAP_PRESENT) != 0 ||
				!atomic_compare_exchange_strong_explicit(at, &free, word, memory_order_seq_cst, memory_order_relaxed),
			0))
		return false;
	return __builtin_expect(atomic_load_explicit(place.state, memory_order_seq_cst) == place.seen, 1) ||
	       pointer_map_was_taken_along(at, addr, word);
}

/* A block that is about to be released by this thread, and so stays. */
bool pointer_map_is_watched(const void *pointer);

static inline enum pointer_map_put
pointer_map_put(const void *pointer, struct address_block block, struct address_block *old)
{
	uint64_t addr = (uint64_t)pointer;
	struct pointer_map_place place = pointer_map_place_of(addr);

	if (__builtin_expect(
			place.first == NULL || block.bytes > POINTER_MAP_BYTES_MAX ||
				!pointer_map_put_word(place, addr, POINTER_MAP_PRESENT | pointer_map_pack_small(addr, block)),
			0))
		return pointer_map_put_slow(addr, block, old);
	return POINTER_MAP_STORED;
}

static inline bool
pointer_map_take(const void *pointer, struct address_block *block)
{
	uint64_t addr = (uint64_t)pointer;
	struct pointer_map_place place = pointer_map_place_of(addr);
	uint64_t seen = 0;
	pointer_map_word *at = NULL;

	if (__builtin_expect(place.first != NULL, 1))
		at = pointer_map_search(place.first, POINTER_MAP_PRESENT | pointer_map_position_of(addr));
	if (__builtin_expect(at != NULL, 1))
		seen = atomic_load_explicit(at, memory_order_relaxed);
	if (__builtin_expect(!pointer_map_is_of(seen, addr) || !pointer_map_take_word(at, seen), 0))
		return pointer_map_take_slow(addr, block);
	*block = pointer_map_unpack(seen);
	return true;
}

#endif
