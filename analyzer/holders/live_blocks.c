/*
 * live_blocks.c - the recorder's map of addresses, read from outside (see live_blocks.h).
 *
 * Invariants, tested by number in tests/unit/analyzer/holders/test_live_blocks.c:
 *   B1  a block is found by each address in it, and by none outside of it.
 *   B2  a block that has no word, or is a large one, is found as any other, once.
 *   B3  an unlisted block is not found, and what stands before it does not become larger.
 *   B4  tables of another version, or none, are refused.
 *   B5  blocks of a dense heap, 8 bytes side by side, are found, marked and unlisted as others are.
 *   B6  a word is found in whichever of the places it is in that the recorder may choose.
 */
#include "holders/live_blocks.h"

#include <stdlib.h>
#include <string.h>

#include "base/amount.h"
#include "base/items.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/sorted.h"
#include "kmem_tables.h"

#define LEAF_BYTES (UINT64_C(1) << KMEM_LEAF_LOG2)
#define LEAF_BITS(blocks) (LEAF_BYTES >> (blocks)->grain_log2)
#define REGION_BYTES (UINT64_C(1) << KMEM_REGION_LOG2)
#define RANGE_NODES_MAX (1u << 20)

/* Bits by address, one for each place where a block can begin. calloc() of so much takes fresh pages: what is not touched costs nothing. */
struct leaf {
	uint64_t number;
	uint64_t addr; // in the process
	uint64_t *starts;
	uint64_t *marks;
	uint64_t *summary; // which words of `starts` are, or were, not 0
	uint32_t states[KMEM_LEAF_REGIONS];
};

struct extra {
	uint64_t addr;
	uint64_t bytes;
	uint32_t site;
	bool is_marked;
	bool is_gone;
};

struct ranges {
	size_t count;
	struct address_range *at;
};

struct live_blocks {
	struct process_memory *memory;
	size_t leaf_count;
	struct leaf **leaves; // by address
	uint64_t words_log2;  // of a region, in the process
	unsigned grain_log2;  // blocks begin at multiples of this
	size_t extra_count;
	struct extra *extras; // by address
	uint64_t count;
	struct word_range range;
	struct ranges mapped;
	struct ranges own;
};

/* ---- finding the tables ---- */

struct signs {
	struct kmem_table_sign of[KMEM_TABLE_KINDS];
};

struct sign_search {
	struct process_memory *memory;
	struct signs *signs;
	unsigned found;
	bool is_other_version;
};

static bool
see_sign(void *context, uint64_t at, uint64_t word)
{
	struct sign_search *search = context;
	struct kmem_table_sign sign;

	(void)word;
	if (at % sizeof(sign) != 0 || !process_memory_read(search->memory, at, &sign, sizeof(sign)) ||
	    memcmp(sign.magic, KMEM_TABLE_MAGIC, sizeof(sign.magic)) != 0 || (uint64_t)(uintptr_t)sign.self != at)
		return true;
	if (sign.version != KMEM_TABLE_VERSION) {
		search->is_other_version = true;
	} else if (sign.kind < KMEM_TABLE_KINDS && search->signs->of[sign.kind].kind == 0) {
		search->signs->of[sign.kind] = sign;
		search->found++;
	}
	return search->found != KMEM_TABLE_KINDS - 1;
}

static bool
had_no_time(const char *command, struct fail *fail)
{
	(void)fail_set(fail, EXIT_USAGE,
	               "%s: the program stood still for as long as it may and the list of its blocks was not read yet",
	               command);
	return fail_late(fail);
}

static bool
find_signs(const char *command, struct process_memory *memory, struct signs *signs, struct fail *fail)
{
	struct sign_search search = { .memory = memory, .signs = signs };
	struct word_range magic;

	memset(signs, 0, sizeof(*signs));
	memcpy(&magic.lowest, KMEM_TABLE_MAGIC, sizeof(magic.lowest));
	magic.end = magic.lowest + 1;
	EACH (region, memory->regions, memory->region_count) {
		if (search.found != KMEM_TABLE_KINDS - 1 && region->is_readable && !region->is_executable &&
		    strstr(region->path, "/libkmemshim.so") != NULL)
			(void)process_memory_scan(memory, region->start, region->end, magic, see_sign, &search);
	}
	if (search.found == KMEM_TABLE_KINDS - 1)
		return true;
	if (process_memory_is_late(memory))
		return had_no_time(command, fail);
	return fail_set(fail, EXIT_USAGE,
	                search.is_other_version
	                    ? "%s: the program is recorded by another version of kmemshim: use the command of that one"
	                    : "%s: the recorder in the program has no tables that can be read: it is of another version",
	                command);
}

static uint64_t
place_of(const struct signs *signs, enum kmem_table_kind kind, unsigned place)
{
	return (uint64_t)(uintptr_t)signs->of[kind].place[place];
}

/* ---- reading them ---- */

static void
add_range(struct ranges *ranges, uint64_t start, uint64_t end)
{
	if (start >= end)
		return;
	*MEMORY_NEXT(ranges->at, ranges->count) = (struct address_range){ start, end };
}

ORDER_OF(compare_ranges, struct address_range, order_numbers(a->start, b->start))

static void
sort_ranges(struct ranges *ranges)
{
	SORT(ranges->at, ranges->count, compare_ranges);
}

static void
read_own(struct live_blocks *blocks, const struct signs *signs)
{
	uint32_t count = process_memory_half(blocks->memory, place_of(signs, KMEM_TABLE_OWN, 1));

	for (uint32_t i = 0; i < count && i < KMEM_OWN_RANGES_MAX; i++) {
		struct kmem_own_range range;

		(void)process_memory_read(blocks->memory, place_of(signs, KMEM_TABLE_OWN, 0) + i * sizeof(range), &range,
		                          sizeof(range));
		if (range.start != 0)
			add_range(&blocks->own, range.start, range.end);
	}
	sort_ranges(&blocks->own);
}

/* Every node is seen at most once: nodes that lead back to themselves are of a tree that was just being changed. */
static void
read_mapped(struct live_blocks *blocks, const struct signs *signs)
{
	uint64_t nodes = process_memory_word(blocks->memory, place_of(signs, KMEM_TABLE_RANGES, 0));
	uint32_t root = process_memory_half(blocks->memory, place_of(signs, KMEM_TABLE_RANGES, 1));
	OWNED bool *is_seen = memory_zeroed(RANGE_NODES_MAX, sizeof(*is_seen));
	OWNED uint32_t *stack = NULL;
	size_t depth = 0;

	if (nodes != 0 && root != 0)
		*MEMORY_NEXT(stack, depth) = root;
	while (depth != 0) {
		struct kmem_range_node node;
		uint32_t number = stack[--depth];

		if (number >= RANGE_NODES_MAX || is_seen[number])
			continue;
		is_seen[number] = true;
		if (!process_memory_read(blocks->memory, nodes + number * sizeof(node), &node, sizeof(node)))
			continue;
		add_range(&blocks->mapped, node.start, node.end);
		if (node.left != 0)
			*MEMORY_NEXT(stack, depth) = node.left;
		if (node.right != 0)
			*MEMORY_NEXT(stack, depth) = node.right;
	}
	sort_ranges(&blocks->mapped);
}

ORDER_OF(compare_extras, struct extra, order_numbers(a->addr, b->addr))

struct slot_reading {
	struct live_blocks *blocks;
	uint64_t first; // address of slot 0
};

/* A word of the table that may be a key: slots are 24 bytes, their keys stand at multiples of that. */
static bool
see_slot(void *context, uint64_t at, uint64_t word)
{
	const struct slot_reading *reading = context;
	struct live_blocks *blocks = reading->blocks;
	struct kmem_slot slot;

	if ((at - reading->first) % sizeof(slot) != 0 || !process_memory_read(blocks->memory, at, &slot, sizeof(slot)))
		return true;
	*MEMORY_NEXT(blocks->extras, blocks->extra_count) = (struct extra){
		.addr = word, .bytes = slot.bytes, .site = slot.site <= KMEM_WORD_SITE_MASK ? slot.site : 0
	};
	return true;
}

static void
read_extras(struct live_blocks *blocks, const struct signs *signs)
{
	uint64_t table = process_memory_word(blocks->memory, place_of(signs, KMEM_TABLE_BLOCKS, 1));
	uint32_t log2 = table != 0 ? process_memory_half(blocks->memory, table) : 0;
	struct slot_reading reading = { blocks, table + offsetof(struct kmem_slots, slot) };

	if (table == 0 || log2 > 24)
		return;
	(void)process_memory_scan(blocks->memory, reading.first, reading.first + (sizeof(struct kmem_slot) << log2),
	                          (struct word_range){ PROCESS_MEMORY_PAGE, UINT64_C(1) << 57 }, see_slot, &reading);
}

struct leaf_reading {
	struct live_blocks *blocks;
	struct leaf *leaf;
};

static void
count_block(struct live_blocks *blocks, uint64_t addr, uint64_t bytes)
{
	blocks->count++;
	blocks->range.lowest = amount_lesser(blocks->range.lowest, addr);
	blocks->range.end = amount_greater(blocks->range.end, addr + bytes + 1);
}

static bool
see_word(void *context, uint64_t at, uint64_t word)
{
	const struct leaf_reading *reading = context;
	struct live_blocks *blocks = reading->blocks;
	uint64_t region = (at - reading->leaf->addr - KMEM_LEAF_WORDS_AT) / 8 >> blocks->words_log2;
	uint64_t in_leaf = region * REGION_BYTES | (word >> KMEM_WORD_POSITION_SHIFT & KMEM_WORD_POSITION_MASK) << 3;
	uint64_t bit = in_leaf >> blocks->grain_log2;

	reading->leaf->starts[bit / 64] |= UINT64_C(1) << bit % 64;
	reading->leaf->summary[bit / 64 / 64] |= UINT64_C(1) << bit / 64 % 64;
	count_block(blocks, (reading->leaf->number << KMEM_LEAF_LOG2) + in_leaf, word & KMEM_WORD_BYTES_MASK);
	return true;
}

/* Of a large block; its bytes are in the next word. */
static bool
see_large(void *context, uint64_t at, uint64_t word)
{
	const struct leaf_reading *reading = context;
	struct live_blocks *blocks = reading->blocks;
	uint64_t in_leaf = ((at - reading->leaf->addr - KMEM_LEAF_LARGE_AT) / 16 << KMEM_LARGE_LOG2) & ~(REGION_BYTES - 1);

	if ((at - reading->leaf->addr) % 16 != 0)
		return true;
	in_leaf |= (word >> KMEM_WORD_POSITION_SHIFT & KMEM_WORD_POSITION_MASK) << 3;
	*MEMORY_NEXT(blocks->extras, blocks->extra_count) = (struct extra){
		.addr = (reading->leaf->number << KMEM_LEAF_LOG2) + in_leaf,
		.bytes = process_memory_word(blocks->memory, at + 8),
		.site = (uint32_t)(word >> KMEM_WORD_SITE_SHIFT) & KMEM_WORD_SITE_MASK,
	};
	return true;
}

ORDER_OF_POINTERS(compare_leaves, struct leaf, order_numbers(a->number, b->number))

static bool
has_leaf(const struct live_blocks *blocks, uint64_t number)
{
	return ANY(leaf, blocks->leaves, blocks->leaf_count, (*leaf)->number == number);
}

/* False: there is no time for more. */
static bool
read_leaves(struct live_blocks *blocks, const struct signs *signs)
{
	struct process_memory *memory = blocks->memory;
	uint64_t top = process_memory_word(memory, place_of(signs, KMEM_TABLE_BLOCKS, 0));
	uint64_t listed = top != 0 ? process_memory_word(memory, top + offsetof(struct kmem_top, listed_count)) : 0;
	uint64_t max = top != 0 ? process_memory_word(memory, top + offsetof(struct kmem_top, leaves_max)) : 0;

	blocks->words_log2 = top != 0 ? process_memory_word(memory, top + offsetof(struct kmem_top, words_log2)) : 0;
	if (blocks->words_log2 > KMEM_REGION_LOG2 - 3)
		return true; // no table of ours
	blocks->grain_log2 = blocks->words_log2 == KMEM_REGION_LOG2 - 3 ? 3 : 4;
	for (uint64_t i = 0; i < listed && i < max && i < KMEM_TOP_ENTRIES; i++) {
		const struct word_range present = { KMEM_WORD_PRESENT, 0 };
		uint64_t number = process_memory_half(memory, top + sizeof(struct kmem_top) + i * 4);
		uint64_t addr = number < KMEM_TOP_ENTRIES
		                    ? process_memory_word(memory, top + offsetof(struct kmem_top, leaf) + number * 8)
		                    : 0;

		if (process_memory_is_late(memory))
			return false;
		if (addr == 0 || has_leaf(blocks, number))
			continue;
		struct leaf *leaf = memory_zeroed(1, sizeof(*leaf));
		struct leaf_reading reading = { blocks, leaf };

		leaf->number = number;
		leaf->addr = addr;
		leaf->starts = memory_zeroed(LEAF_BITS(blocks) / 64, sizeof(uint64_t));
		leaf->marks = memory_zeroed(LEAF_BITS(blocks) / 64, sizeof(uint64_t));
		leaf->summary = memory_zeroed(LEAF_BITS(blocks) / 64 / 64, sizeof(uint64_t));
		*MEMORY_NEXT(blocks->leaves, blocks->leaf_count) = leaf;
		(void)process_memory_read(memory, addr, leaf->states, sizeof(leaf->states));
		(void)process_memory_scan(memory, addr + KMEM_LEAF_LARGE_AT, addr + KMEM_LEAF_WORDS_AT, present, see_large,
		                          &reading);
		(void)process_memory_scan(memory, addr + KMEM_LEAF_WORDS_AT,
		                          addr + KMEM_LEAF_WORDS_AT + (KMEM_LEAF_REGIONS * UINT64_C(8) << blocks->words_log2),
		                          present, see_word, &reading);
	}
	SORT(blocks->leaves, blocks->leaf_count, compare_leaves);
	return true;
}

static void
count_extras(struct live_blocks *blocks)
{
	SORT(blocks->extras, blocks->extra_count, compare_extras);
	EACH (extra, blocks->extras, blocks->extra_count)
		count_block(blocks, extra->addr, extra->bytes);
}

struct live_blocks *
live_blocks_read(const char *command, struct process_memory *memory, struct fail *fail)
{
	struct live_blocks *blocks;
	struct signs signs;

	if (!find_signs(command, memory, &signs, fail))
		return NULL;
	if (process_memory_half(memory, place_of(&signs, KMEM_TABLE_BLOCKS, 2)) % 2 != 0)
		return fail_set(fail, EXIT_USAGE, "%s: the recorder was just arranging its map: try again", command), NULL;
	blocks = memory_zeroed(1, sizeof(*blocks));
	blocks->memory = memory;
	blocks->range.lowest = UINT64_MAX;
	read_own(blocks, &signs);
	read_mapped(blocks, &signs);
	read_extras(blocks, &signs);
	if (!read_leaves(blocks, &signs)) {
		live_blocks_free(blocks);
		return had_no_time(command, fail), NULL;
	}
	count_extras(blocks);
	if (blocks->count == 0)
		blocks->range = (struct word_range){ 0, 0 };
	return blocks;
}

void
live_blocks_free(struct live_blocks *blocks)
{
	for (size_t i = 0; blocks != NULL && i < blocks->leaf_count; i++) {
		free(blocks->leaves[i]->starts);
		free(blocks->leaves[i]->marks);
		free(blocks->leaves[i]->summary);
		free(blocks->leaves[i]);
	}
	if (blocks == NULL)
		return;
	free(blocks->leaves);
	free(blocks->extras);
	free(blocks->mapped.at);
	free(blocks->own.at);
	free(blocks);
}

struct word_range
live_blocks_range(const struct live_blocks *blocks)
{
	return blocks->range;
}

size_t
live_blocks_mapped(const struct live_blocks *blocks, const struct address_range **ranges)
{
	*ranges = blocks->mapped.at;
	return blocks->mapped.count;
}

size_t
live_blocks_own(const struct live_blocks *blocks, const struct address_range **ranges)
{
	*ranges = blocks->own.at;
	return blocks->own.count;
}

/* ---- finding ---- */

/* How many leaves have at most this number; the last of them is the one that is looked at first. */
static size_t
leaves_up_to(const struct live_blocks *blocks, uint64_t number)
{
	return SORTED_BEFORE(at, blocks->leaf_count, blocks->leaves[at]->number <= number);
}

/* The highest bit below `end` that is set. False: there is none. */
static bool
last_start(const struct leaf *leaf, uint64_t end, uint64_t *bit)
{
	uint64_t index = end / 64;
	uint64_t bits = end % 64 != 0 ? leaf->starts[index] & ((UINT64_C(1) << end % 64) - 1) : 0;

	while (bits == 0) {
		/* The nearest word below `index` that may not be 0. */
		uint64_t row = index / 64;
		uint64_t words = index % 64 != 0 ? leaf->summary[row] & ((UINT64_C(1) << index % 64) - 1) : 0;

		while (words == 0 && row != 0)
			words = leaf->summary[--row];
		if (words == 0)
			return false;
		index = row * 64 + 63 - (uint64_t)__builtin_clzll(words);
		bits = leaf->starts[index];
	}
	*bit = index * 64 + 63 - (uint64_t)__builtin_clzll(bits);
	return true;
}

/* The word of a block: in one of the places from where it belongs by its address. 0: it is not there. */
static uint64_t
word_of(const struct live_blocks *blocks, const struct leaf *leaf, uint64_t in_leaf)
{
	uint64_t region = in_leaf >> KMEM_REGION_LOG2;
	uint64_t position = in_leaf >> 3 & KMEM_WORD_POSITION_MASK;
	uint64_t scale = leaf->states[region] & KMEM_STATE_SCALE_MASK;
	uint64_t at = leaf->addr + KMEM_LEAF_WORDS_AT + (region * 8 << blocks->words_log2) +
	              (position * scale >> (KMEM_REGION_LOG2 - 3)) * 8;

	for (unsigned i = 0; i < KMEM_PROBES; i++) {
		uint64_t word = process_memory_word(blocks->memory, at + i * 8);

		if (word >> KMEM_WORD_POSITION_SHIFT == (KMEM_WORD_PRESENT >> KMEM_WORD_POSITION_SHIFT | position))
			return word;
	}
	return 0;
}

static uint64_t
addr_of(const struct live_blocks *blocks, const struct leaf *leaf, uint64_t bit)
{
	return (leaf->number << KMEM_LEAF_LOG2) + (bit << blocks->grain_log2);
}

/* What the recorder says of a block. */
static struct live_block
block_of(const struct live_blocks *blocks, const struct leaf *leaf, uint64_t bit)
{
	uint64_t word = word_of(blocks, leaf, bit << blocks->grain_log2);

	return (struct live_block){ .addr = addr_of(blocks, leaf, bit),
		                        .bytes = word & KMEM_WORD_BYTES_MASK,
		                        .site = (uint32_t)(word >> KMEM_WORD_SITE_SHIFT) & KMEM_WORD_SITE_MASK };
}

static bool
is_in(const struct live_block *block, uint64_t addr)
{
	return addr - block->addr < (block->bytes != 0 ? block->bytes : 1);
}

/* Among blocks that have a bit: the last one that starts at the address or before, and not below `lowest`. */
static bool
find_by_bit(const struct live_blocks *blocks, uint64_t lowest, uint64_t addr, struct live_block *block)
{
	size_t i = leaves_up_to(blocks, addr >> KMEM_LEAF_LOG2);

	while (i-- > 0) {
		const struct leaf *leaf = blocks->leaves[i];
		uint64_t end = leaf->number == addr >> KMEM_LEAF_LOG2 ? ((addr & (LEAF_BYTES - 1)) >> blocks->grain_log2) + 1
		                                                      : LEAF_BITS(blocks);
		uint64_t bit;

		if (last_start(leaf, end, &bit)) {
			if (addr_of(blocks, leaf, bit) < lowest)
				return false;
			*block = block_of(blocks, leaf, bit);
			return true;
		}
		if (leaf->number << KMEM_LEAF_LOG2 <= lowest)
			return false;
	}
	return false;
}

/* Among blocks that have no bit: the last one that starts at the address or before. */
static bool
find_extra(const struct live_blocks *blocks, uint64_t addr, struct live_block *block)
{
	size_t until = SORTED_UP_TO(blocks->extras, blocks->extra_count, addr, addr);

	while (until != 0 && blocks->extras[until - 1].is_gone)
		until--;
	if (until == 0)
		return false;
	const struct extra *extra = &blocks->extras[until - 1];

	*block = (struct live_block){ extra->addr, extra->bytes, extra->site, (uint32_t)until };
	return true;
}

bool
live_blocks_find(struct live_blocks *blocks, uint64_t addr, struct live_block *block)
{
	if (addr - blocks->range.lowest >= blocks->range.end - blocks->range.lowest)
		return false;
	/* No two overlap. */
	return (find_extra(blocks, addr, block) && is_in(block, addr)) ||
	       (find_by_bit(blocks, addr > KMEM_WORD_BYTES_MASK ? addr - KMEM_WORD_BYTES_MASK : 0, addr, block) &&
	        is_in(block, addr));
}

bool
live_blocks_last_in(struct live_blocks *blocks, uint64_t start, uint64_t end, struct live_block *block)
{
	struct live_block extra;
	bool has_extra = end > start && find_extra(blocks, end - 1, &extra) && extra.addr >= start;
	bool has_bit = end > start && find_by_bit(blocks, start, end - 1, block);

	if (has_extra && (!has_bit || extra.addr > block->addr))
		*block = extra;
	return has_extra || has_bit;
}

/* Reads the words of a region ahead. */
static void
read_ahead(struct live_blocks *blocks, const struct leaf *leaf, uint64_t region)
{
	uint64_t at = leaf->addr + KMEM_LEAF_WORDS_AT + (region * 8 << blocks->words_log2);
	uint64_t end = at + ((leaf->states[region] & KMEM_STATE_SCALE_MASK) + KMEM_PROBES) * 8;
	uint64_t pages[PROCESS_MEMORY_AHEAD];
	size_t count = 0;

	for (; at < end && count < PROCESS_MEMORY_AHEAD; at += PROCESS_MEMORY_PAGE)
		pages[count++] = at;
	process_memory_ahead(blocks->memory, pages, count);
}

static bool
visit_leaf(struct live_blocks *blocks, const struct leaf *leaf, live_blocks_visitor *visitor, void *context)
{
	const uint64_t region_bits = REGION_BYTES >> blocks->grain_log2;

	for (uint64_t index = 0; index < LEAF_BITS(blocks) / 64; index++) {
		if (index % 64 == 0 && leaf->summary[index / 64] == 0) {
			index += 63;
			continue;
		}
		if (index * 64 % region_bits == 0)
			read_ahead(blocks, leaf, index * 64 / region_bits);
		for (uint64_t bits = leaf->starts[index]; bits != 0; bits &= (bits - 1) & leaf->starts[index]) {
			struct live_block block = block_of(blocks, leaf, index * 64 + (uint64_t)__builtin_ctzll(bits));

			if (!visitor(context, &block))
				return false;
		}
	}
	return true;
}

bool
live_blocks_visit(struct live_blocks *blocks, live_blocks_visitor *visitor, void *context)
{
	for (size_t i = 0; i < blocks->leaf_count; i++) {
		if (!visit_leaf(blocks, blocks->leaves[i], visitor, context))
			return false;
	}
	for (size_t i = 0; i < blocks->extra_count; i++) {
		const struct extra *extra = &blocks->extras[i];
		struct live_block block = { extra->addr, extra->bytes, extra->site, (uint32_t)i + 1 };

		if (!extra->is_gone && !visitor(context, &block))
			return false;
	}
	return true;
}

/* ---- bits ---- */

/* The word that has the bit of the block among `marks`, else among `starts`. A block that was found has a leaf. */
static uint64_t *
bits_of(const struct live_blocks *blocks, const struct live_block *block, bool is_mark, uint64_t *bit)
{
	size_t i = leaves_up_to(blocks, block->addr >> KMEM_LEAF_LOG2);
	struct leaf *leaf = blocks->leaves[i != 0 ? i - 1 : 0];
	uint64_t number = (block->addr & (LEAF_BYTES - 1)) >> blocks->grain_log2;

	*bit = UINT64_C(1) << number % 64;
	return &(is_mark ? leaf->marks : leaf->starts)[number / 64];
}

bool
live_blocks_is_marked(const struct live_blocks *blocks, const struct live_block *block)
{
	uint64_t bit;

	if (block->extra != 0)
		return blocks->extras[block->extra - 1].is_marked;

	const uint64_t *bits = bits_of(blocks, block, true, &bit);

	return (*bits & bit) != 0;
}

bool
live_blocks_mark(struct live_blocks *blocks, const struct live_block *block)
{
	if (live_blocks_is_marked(blocks, block))
		return false;
	if (block->extra != 0) {
		blocks->extras[block->extra - 1].is_marked = true;
	} else {
		uint64_t bit;
		uint64_t *bits = bits_of(blocks, block, true, &bit);

		*bits |= bit;
	}
	return true;
}

void
live_blocks_unmark_all(struct live_blocks *blocks)
{
	for (size_t i = 0; i < blocks->leaf_count; i++) {
		for (uint64_t index = 0; index < LEAF_BITS(blocks) / 64; index++) {
			if (blocks->leaves[i]->marks[index] != 0) // what was never touched stays so
				blocks->leaves[i]->marks[index] = 0;
		}
	}
	for (size_t i = 0; i < blocks->extra_count; i++)
		blocks->extras[i].is_marked = false;
}

void
live_blocks_unlist(struct live_blocks *blocks, const struct live_block *block)
{
	uint64_t bit;

	if (block->extra != 0) {
		blocks->extras[block->extra - 1].is_gone = true;
		return;
	}

	uint64_t *bits = bits_of(blocks, block, false, &bit);

	*bits &= ~bit;
}
