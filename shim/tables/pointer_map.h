/*
 * pointer_map.h - which call site gave out this address, and how many bytes were asked for?
 *
 * Private memory, never in the capture. Covers the heap; mappings are in range_map.h, device addresses in a table of
 * their own. What nearly every event does is here, to be inlined: three loads that depend on each other (table, leaf, word)
 * and one store. pointer_map.c does the rest and says how the shadow is laid out.
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

#define POINTER_MAP_WINDOW_LOG2 KMEM_WINDOW_LOG2
#define POINTER_MAP_LEAF_LOG2 KMEM_LEAF_LOG2 // 64 MiB of addresses
#define POINTER_MAP_LEAF_WORDS ((size_t)1 << (POINTER_MAP_LEAF_LOG2 - POINTER_MAP_WINDOW_LOG2))

/*
 * A word: bit 63 present, 61-62 position in the window in units of 8, 60 object, 59 watched, 53-58 generation, 31-52 site, 26-30 owner of the
 * site's record, 0-25 bytes (all set: they stand in the address table). 0: nothing was there since the page came into being; 1: the
 * block that was there is gone.
 *
 * The owner is the thread's slot modulo 32, 0 = not said: who releases a block need not read the record of another thread, whose cache
 * line goes to and fro, to know that it is one. Only tracker_fast.c says it, and not of a watched block (sites/releases.h).
 */
#define POINTER_MAP_PRESENT KMEM_WORD_PRESENT
#define POINTER_MAP_POSITION_SHIFT KMEM_WORD_POSITION_SHIFT
#define POINTER_MAP_OBJECT 0x80u // in a put block's generation: it may be an object of the interpreter
#define POINTER_MAP_WATCH 0x40u  // the same: its release does not go the fast way
#define POINTER_MAP_GENERATION_SHIFT 53
#define POINTER_MAP_GENERATION_MASK 0x3fu
#define POINTER_MAP_WATCHED ((uint64_t)POINTER_MAP_WATCH << POINTER_MAP_GENERATION_SHIFT)
static_assert(KMEM_GENERATION_BUCKETS <= POINTER_MAP_GENERATION_MASK, "");
#define POINTER_MAP_SITE_SHIFT KMEM_WORD_SITE_SHIFT
#define POINTER_MAP_OWNER_SHIFT 26
#define POINTER_MAP_OWNER_MASK (UINT64_C(31) << POINTER_MAP_OWNER_SHIFT)
#define POINTER_MAP_BYTES_MASK KMEM_WORD_BYTES_MASK
static_assert(POINTER_MAP_BYTES_MASK == (UINT64_C(1) << POINTER_MAP_OWNER_SHIFT) - 1, "");
#define POINTER_MAP_START_MASK (UINT64_C(7) << POINTER_MAP_POSITION_SHIFT) // present and position
#define POINTER_MAP_GONE UINT64_C(1)

typedef _Atomic uint64_t pointer_map_word;
typedef pointer_map_word *_Atomic pointer_map_leaf;

enum pointer_map_put {
	POINTER_MAP_STORED,
	POINTER_MAP_REPLACED, // a block that was given back without our seeing it stood there: *old is that one
	POINTER_MAP_FULL,
};

/*
 * Before the first event: does no window ever hold two live blocks (M4)? That is glibc's own heap. Without this call, and for every other
 * allocator, the map has layers for small blocks.
 */
void pointer_map_start(bool windows_are_own);

/*
 * The leaves by address, for the fast path. One of the two where there is one layer, the other where there are several; NULL before the
 * first put, and the second one also where addresses are too short for layers.
 */
extern pointer_map_leaf *pointer_map_own_leaves;
extern pointer_map_leaf *pointer_map_dense_leaves;

enum pointer_map_put pointer_map_put_slow(uint64_t addr, struct address_block block, struct address_block *old);
bool pointer_map_take_slow(uint64_t addr, struct address_block *block);
/* It stays in the map. False also for one that is moved aside at this moment (M5). */
bool pointer_map_find(uint64_t addr, struct address_block *block);
void pointer_map_clear(void); // forked child: one thread

/*
 * Shows blocks that may be Python objects to the visitor. Goes on where the last call stopped, in pieces of 64 MiB of addresses, and
 * begins anew at the end. Stops when all were shown, or after `most_words` words of the map. Returns whether all were shown. Blocks come
 * and go meanwhile: the caller must know that those it reads stay.
 */
typedef void pointer_map_visitor(void *context, uint64_t addr, struct address_block block);
bool pointer_map_visit(size_t most_words, pointer_map_visitor *visitor, void *context);

/*
 * The lowest window of [start, end) in which a live block starts; UINT64_MAX = none. *was_used: blocks were there. Blocks come and go
 * meanwhile; while the shadow is trimmed it is `start`.
 */
uint64_t pointer_map_lowest(uint64_t start, uint64_t end, bool *was_used);

/*
 * Gives back pages in which no block lives: looks at the next `leaves` leaves (64 MiB of addresses each, round and round),
 * and stops when `most_bytes` went. Returns the bytes. A page that goes costs 4 us, nearly half of it the kernel's; a leaf full
 * of blocks that stay half a millisecond. Needs Linux 5.7; before, it does nothing.
 */
size_t pointer_map_trim(uint64_t leaves, size_t most_bytes);

/*
 * The same by itself, for a heap that became a quarter smaller and 32 MiB at least, and once a minute, for large blocks that come
 * and go leave a page each wherever they were: then the whole shadow is gone through, at most 4 MiB of it and 8 leaves a second
 * (under 1 % of the time).
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
	return (addr >> 3 & 3) << POINTER_MAP_POSITION_SHIFT;
}

/* Present, and at this position of its window. */
static inline uint64_t
pointer_map_start_of(uint64_t addr)
{
	return POINTER_MAP_PRESENT | pointer_map_position_of(addr);
}

/* But for what is in every word of its owner: see struct thread_slot. The size must be small. */
static inline uint64_t
pointer_map_pack_small(uint64_t addr, struct address_block block)
{
	return pointer_map_position_of(addr) | (uint64_t)block.generation << POINTER_MAP_GENERATION_SHIFT |
	       (uint64_t)block.site << POINTER_MAP_SITE_SHIFT | block.bytes;
}

static inline uint64_t
pointer_map_pack(uint64_t addr, struct address_block block)
{
	if (block.bytes > POINTER_MAP_BYTES_MASK)
		block.bytes = POINTER_MAP_BYTES_MASK;
	return POINTER_MAP_PRESENT | pointer_map_pack_small(addr, block);
}

static inline struct address_block
pointer_map_unpack(uint64_t word)
{
	return (struct address_block){
		.bytes = word & POINTER_MAP_BYTES_MASK,
		.site = (uint32_t)(word >> POINTER_MAP_SITE_SHIFT) & POINTER_MAP_SITES_MAX,
		.generation = (uint8_t)(word >> POINTER_MAP_GENERATION_SHIFT & POINTER_MAP_GENERATION_MASK),
	};
}

static inline __attribute__((always_inline)) pointer_map_word *
pointer_map_word_in(pointer_map_leaf *leaves, unsigned layer, uint64_t addr)
{
	uint64_t number = addr >> POINTER_MAP_LEAF_LOG2;

	if (__builtin_expect(leaves == NULL || number >= KMEM_TOP_ENTRIES, 0))
		return NULL;
	/* acquire: pairs with the installation of the leaf in pointer_map.c. */
	pointer_map_word *leaf = atomic_load_explicit(&leaves[layer * KMEM_TOP_ENTRIES + number], memory_order_acquire);

	if (__builtin_expect(leaf == NULL, 0))
		return NULL;
	return &leaf[addr >> POINTER_MAP_WINDOW_LOG2 & (POINTER_MAP_LEAF_WORDS - 1)];
}

/* The word of an address, where there is one layer; NULL where the fast path cannot be taken. */
static inline __attribute__((always_inline)) pointer_map_word *
pointer_map_own_word(uint64_t addr)
{
	/* acquire: pairs with the installation of the top table in pointer_map.c. */
	return pointer_map_word_in(__atomic_load_n(&pointer_map_own_leaves, __ATOMIC_ACQUIRE), 0, addr);
}

/* Where there are layers: their leaves. */
static inline pointer_map_leaf *
pointer_map_dense(void)
{
	return __atomic_load_n(&pointer_map_dense_leaves, __ATOMIC_ACQUIRE); // as above
}

/* That of a small block at this address. */
static inline unsigned
pointer_map_dense_layer(uint64_t addr)
{
	return 1 + (unsigned)(addr >> 3 & 3);
}

static inline bool
pointer_map_is_of(uint64_t word, uint64_t addr)
{
	return word >> POINTER_MAP_POSITION_SHIFT == (4 | (addr >> 3 & 3));
}
static_assert(POINTER_MAP_PRESENT == UINT64_C(4) << POINTER_MAP_POSITION_SHIFT, "");

/* The word for a block that is to be put, NULL as above; also where another block is said to be there (M6). */
static inline pointer_map_word *
pointer_map_dense_word_for(uint64_t addr, uint64_t bytes)
{
	pointer_map_leaf *leaves = pointer_map_dense();
	pointer_map_word *at = pointer_map_word_in(leaves, 0, addr);

	if (bytes > KMEM_DENSE_BYTES_MAX)
		return at;
	if (at != NULL && __builtin_expect(pointer_map_is_of(atomic_load_explicit(at, memory_order_relaxed), addr), 0))
		return NULL;
	return pointer_map_word_in(leaves, pointer_map_dense_layer(addr), addr);
}

/* The word of a block, or one of no block; NULL as above. */
static inline pointer_map_word *
pointer_map_dense_word_of(uint64_t addr)
{
	pointer_map_leaf *leaves = pointer_map_dense();
	pointer_map_word *at = pointer_map_word_in(leaves, 0, addr);

	/* relaxed: of another thread's block only the position matters, which is not this one's. */
	if (at != NULL && pointer_map_is_of(atomic_load_explicit(at, memory_order_relaxed), addr))
		return at;
	return pointer_map_word_in(leaves, pointer_map_dense_layer(addr), addr);
}

/* A block that is about to be released by this thread, and so stays. */
bool pointer_map_is_watched(const void *pointer);

/* relaxed, in both: the word is the whole message, and nobody else writes it (M2, M4). */
static inline enum pointer_map_put
pointer_map_put(const void *pointer, struct address_block block, struct address_block *old)
{
	uint64_t addr = (uint64_t)pointer;
	pointer_map_word *at = pointer_map_own_word(addr);

	if (__builtin_expect(at == NULL || block.bytes >= POINTER_MAP_BYTES_MASK ||
	                         atomic_load_explicit(at, memory_order_relaxed) > POINTER_MAP_GONE,
	                     0))
		return pointer_map_put_slow(addr, block, old);
	atomic_store_explicit(at, pointer_map_pack(addr, block), memory_order_relaxed);
	return POINTER_MAP_STORED;
}

static inline bool
pointer_map_take(const void *pointer, struct address_block *block)
{
	uint64_t addr = (uint64_t)pointer;
	pointer_map_word *at = pointer_map_own_word(addr);
	uint64_t seen = at != NULL ? atomic_load_explicit(at, memory_order_relaxed) : 0;

	if (__builtin_expect((seen & POINTER_MAP_START_MASK) != pointer_map_start_of(addr) ||
	                         (seen & POINTER_MAP_BYTES_MASK) == POINTER_MAP_BYTES_MASK,
	                     0))
		return pointer_map_take_slow(addr, block);
	atomic_store_explicit(at, POINTER_MAP_GONE, memory_order_relaxed);
	*block = pointer_map_unpack(seen);
	return true;
}

#endif
