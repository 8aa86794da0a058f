/*
 * kmem_tables.h - where does a running recorder keep what it knows of addresses?
 *
 * The map of live blocks lies in the private memory of the program and never in its capture. Who looks from outside (analyzer/holders/)
 * finds it without symbols: each table has a sign in the recorder's data, 64 bytes that begin with KMEM_TABLE_MAGIC and their own
 * address. What a sign leads to is described here; the recorder's files check by static_assert that they are laid out so.
 *
 * A sign of another version is not read. Nothing here is in a file: there is no older one to be read.
 */
#ifndef KMEM_TABLES_H
#define KMEM_TABLES_H

#include <assert.h>
#include <stdint.h>

#include "kmem_format.h"

#define KMEM_TABLE_MAGIC "kmemshim table\n" // 16 bytes with its terminator
#define KMEM_TABLE_VERSION 3u
#define KMEM_TABLE_PLACES 4u

enum kmem_table_kind {
	KMEM_TABLE_BLOCKS = 1, // places: struct kmem_top *, struct kmem_slots *, uint32_t moves
	KMEM_TABLE_RANGES = 2, // live mappings of the program; places: struct kmem_range_node *, uint32_t root
	KMEM_TABLE_OWN = 3,    // what the recorder reserved; places: struct kmem_own_range[], uint32_t count
	KMEM_TABLE_KINDS
};

struct kmem_table_sign {
	_Alignas(64) char magic[16];
	const struct kmem_table_sign *self;
	uint32_t version;
	uint32_t kind; // enum kmem_table_kind
	const volatile void *place[KMEM_TABLE_PLACES];
};
static_assert(sizeof(struct kmem_table_sign) == 64, "");

/* A sign is a constant that nobody refers to. */
#define KMEM_TABLE_SIGN(name, kind_, ...)                                                             \
	__attribute__((used)) static const struct kmem_table_sign name = { .magic = KMEM_TABLE_MAGIC,     \
		                                                               .self = &name,                 \
		                                                               .version = KMEM_TABLE_VERSION, \
		                                                               .kind = (kind_),               \
		                                                               .place = { __VA_ARGS__ } }

/*
 * KMEM_TABLE_BLOCKS. place[0] holds the address of this, 0 before the first block. A leaf is for 64 MiB of addresses:
 *
 *   at 0                      a state for each region of 256 KiB, of 4 bytes; its lowest 16 bits: the region's scale
 *   at KMEM_LEAF_LARGE_AT     for each 16 KiB of addresses the large block that begins there: a word whose bytes are 0, and its bytes
 *   at KMEM_LEAF_WORDS_AT     the words of the other blocks, room for 1 << words_log2 in each region
 *
 * A block's word is in one of KMEM_PROBES places, of which the first one is its position times the scale over all positions.
 *
 * What else a word says is in shim/tables/pointer_map.h. While place[2] is odd the words of a region are elsewhere for a moment.
 */
#define KMEM_LEAF_LOG2 26u
#define KMEM_REGION_LOG2 18u
#define KMEM_LEAF_REGIONS (1u << (KMEM_LEAF_LOG2 - KMEM_REGION_LOG2))
#define KMEM_LARGE_LOG2 14u // and larger: at most one begins in so many bytes
#define KMEM_LEAF_LARGE_AT 4096u
#define KMEM_LEAF_WORDS_AT (KMEM_LEAF_LARGE_AT + (16u << (KMEM_LEAF_LOG2 - KMEM_LARGE_LOG2)))
#define KMEM_STATE_SCALE_MASK UINT32_C(0xffff)
#define KMEM_PROBES 8u
#define KMEM_TOP_ENTRIES (UINT64_C(1) << (KMEM_ADDRESS_BITS - KMEM_LEAF_LOG2))
#define KMEM_WORD_PRESENT (UINT64_C(1) << 63)
#define KMEM_WORD_POSITION_SHIFT 48 // 15 bits: where in its region the block begins, in units of 8
#define KMEM_WORD_POSITION_MASK ((UINT64_C(1) << (KMEM_REGION_LOG2 - 3)) - 1)
#define KMEM_WORD_SITE_SHIFT 19 // 21 bits: index + 1 of its struct kmem_site; 0 = counts as released
#define KMEM_WORD_SITE_MASK ((1u << 21) - 1)
#define KMEM_WORD_BYTES_MASK ((UINT64_C(1) << KMEM_LARGE_LOG2) - 1)
struct kmem_top {
	uint64_t words_log2;
	uint64_t leaves_max;
	uint64_t
		listed_count; // at most leaves_max numbers of leaves, of 4 bytes each, behind leaf[]; some perhaps twice, or not there yet
	uint64_t leaf[KMEM_TOP_ENTRIES];
};

/* place[1] holds the address of this; 0 = none. Blocks that have no word. */
struct kmem_slot {
	uint64_t key; // 0 free, 1 being written, else the address
	uint64_t bytes;
	uint32_t site;
	uint8_t generation;
	uint16_t reach;
};
struct kmem_slots {
	uint32_t log2; // of the number of slots
	_Alignas(64) struct kmem_slot slot[];
};
static_assert(sizeof(struct kmem_slot) == 24, "");

/* KMEM_TABLE_RANGES: a tree by address; place[0] holds the address of its nodes, place[1] the number of its root. Number 0 is no node. */
struct kmem_range_node {
	uint64_t start;
	uint64_t end;
	uint32_t site;
	uint32_t mapping;
	uint32_t left;
	uint32_t right;
	uint8_t generation;
};

/* KMEM_TABLE_OWN: place[0] is the array itself. start 0: no entry. */
struct kmem_own_range {
	uint64_t start;
	uint64_t end;
	uint32_t what; // enum kmem_own_part
};
#define KMEM_OWN_RANGES_MAX 4096u

#endif
