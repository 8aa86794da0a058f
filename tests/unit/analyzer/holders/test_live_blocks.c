/*
 * test_live_blocks.c - which live block is at an address? Over tables that are made here, as the recorder lays them out.
 *
 * That the recorder's own tables are read rightly is tested by tests/preload/test_holders.py and test_lost.py.
 */
#include "test.h"

#include <string.h>
#include <sys/mman.h>

#include "base/fail.h"
#include "holders/live_blocks.h"
#include "kmem_tables.h"
#include "memory_moved.h"

#define BASE UINT64_C(0x7f0000000000)
#define WORDS_LOG2 15u // so that a block may begin at each multiple of 8
#define LEAF_BYTES (KMEM_LEAF_WORDS_AT + (KMEM_LEAF_REGIONS * UINT64_C(8) << WORDS_LOG2))
#define LEAVES 3u
#define SCALE 1017u // 1,024 words in each region

/* Where things lie in the image. Signs stand first, 64 bytes each. */
#define MOVES_AT 0x408u
#define TOP_PLACE_AT 0x410u
#define SLOTS_PLACE_AT 0x418u
#define NODES_PLACE_AT 0x420u
#define ROOT_AT 0x428u
#define OWN_COUNT_AT 0x430u
#define OWN_AT 0x800u
#define NODES_AT 0x1000u
#define SLOTS_AT 0x2000u
#define DATA_BYTES 0x8000u
#define TOP_AT UINT64_C(0x10000)
#define LEAVES_AT (TOP_AT + UINT64_C(0x1100000))
#define IMAGE_BYTES (LEAVES_AT + LEAVES * LEAF_BYTES)

/* The numbers of two leaves that are neighbours, and of one far above. */
#define LEAF UINT64_C(100)
static const uint64_t numbers[LEAVES] = { LEAF + 1, LEAF, LEAF + 5000 };
#define HEAP (LEAF << KMEM_LEAF_LOG2)
#define LEAF_SPAN (UINT64_C(1) << KMEM_LEAF_LOG2)
#define FAR ((LEAF + 5000) << KMEM_LEAF_LOG2)

static unsigned char *image;
static struct memory_region region;
static struct process_memory memory;
static unsigned slots_used;
static struct fail fail;

static size_t
fetch(void *context, uint64_t addr, void *to, size_t bytes)
{
	(void)context;
	if (addr < BASE || addr - BASE >= IMAGE_BYTES)
		return 0;
	bytes = bytes < BASE + IMAGE_BYTES - addr ? bytes : BASE + IMAGE_BYTES - addr;
	memcpy(to, image + (addr - BASE), bytes);
	return bytes;
}

static void
put(uint64_t at, const void *from, size_t bytes)
{
	assert_true(at + bytes <= IMAGE_BYTES);
	memcpy(image + at, from, bytes);
}

static void
put_word(uint64_t at, uint64_t word)
{
	put(at, &word, sizeof(word));
}

static void
put_sign(enum kmem_table_kind kind, uint32_t version, uint64_t first, uint64_t second, uint64_t third)
{
	const uint64_t at = (kind - 1) * sizeof(struct kmem_table_sign);
	struct kmem_table_sign sign = { .magic = KMEM_TABLE_MAGIC, .version = version, .kind = kind };

	sign.self = (const struct kmem_table_sign *)(uintptr_t)(BASE + at);
	sign.place[0] = (const volatile void *)(uintptr_t)(BASE + first);
	sign.place[1] = (const volatile void *)(uintptr_t)(BASE + second);
	sign.place[2] = (const volatile void *)(uintptr_t)(BASE + third);
	put(at, &sign, sizeof(sign));
}

static void
put_signs(uint32_t version)
{
	put_sign(KMEM_TABLE_BLOCKS, version, TOP_PLACE_AT, SLOTS_PLACE_AT, MOVES_AT);
	put_sign(KMEM_TABLE_RANGES, version, NODES_PLACE_AT, ROOT_AT, 0);
	put_sign(KMEM_TABLE_OWN, version, OWN_AT, OWN_COUNT_AT, 0);
}

/* Its leaf's place in the image. */
static uint64_t
leaf_at(uint64_t addr)
{
	unsigned leaf = 0;

	while (numbers[leaf] != addr >> KMEM_LEAF_LOG2)
		leaf++;
	return LEAVES_AT + leaf * LEAF_BYTES;
}

static uint64_t
word_of(uint64_t addr, uint64_t bytes, uint32_t site)
{
	return KMEM_WORD_PRESENT | (addr >> 3 & KMEM_WORD_POSITION_MASK) << KMEM_WORD_POSITION_SHIFT |
	       (uint64_t)site << KMEM_WORD_SITE_SHIFT | bytes;
}

/* In the first free place from where it belongs, `further` ones left out. */
static void
put_further(uint64_t addr, uint64_t bytes, uint32_t site, unsigned further)
{
	const uint64_t region = addr >> KMEM_REGION_LOG2 & (KMEM_LEAF_REGIONS - 1);
	const uint64_t index = (addr >> 3 & KMEM_WORD_POSITION_MASK) * SCALE >> (KMEM_REGION_LOG2 - 3);
	uint64_t at = leaf_at(addr) + KMEM_LEAF_WORDS_AT + (region * 8 << WORDS_LOG2) + index * 8;
	const uint32_t state = UINT32_C(0x80010000) | SCALE;

	put(leaf_at(addr) + region * sizeof(state), &state, sizeof(state));
	for (uint64_t seen = 1; seen != 0; at += 8) {
		memcpy(&seen, image + at, sizeof(seen));
		if (seen == 0 && further-- == 0)
			break;
		seen = 1;
	}
	put_word(at, word_of(addr, bytes, site));
}

static void
put_block(uint64_t addr, uint64_t bytes, uint32_t site)
{
	put_further(addr, bytes, site, 0);
}

static void
put_large(uint64_t addr, uint64_t bytes, uint32_t site)
{
	const uint64_t at = leaf_at(addr) + KMEM_LEAF_LARGE_AT + (addr % LEAF_SPAN >> KMEM_LARGE_LOG2) * 16;

	put_word(at, word_of(addr, 0, site));
	put_word(at + 8, bytes);
}

static void
put_slot(uint64_t addr, uint64_t bytes, uint32_t site)
{
	const struct kmem_slot slot = { .key = addr, .bytes = bytes, .site = site };

	put(SLOTS_AT + offsetof(struct kmem_slots, slot) + slots_used++ * sizeof(slot), &slot, sizeof(slot));
}

/* The first leaf is listed twice. */
static void
put_top(void)
{
	put_word(TOP_AT + offsetof(struct kmem_top, words_log2), WORDS_LOG2);
	put_word(TOP_AT + offsetof(struct kmem_top, leaves_max), 64);
	put_word(TOP_AT + offsetof(struct kmem_top, listed_count), LEAVES + 1);
	for (unsigned i = 0; i < LEAVES + 1; i++) {
		const uint32_t number = (uint32_t)numbers[i % LEAVES];

		put_word(TOP_AT + offsetof(struct kmem_top, leaf) + number * UINT64_C(8),
		         BASE + LEAVES_AT + i % LEAVES * LEAF_BYTES);
		put(TOP_AT + sizeof(struct kmem_top) + i * 4, &number, sizeof(number));
	}
}

static int
set_up(void **state)
{
	(void)state;
	image = mmap(NULL, IMAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(image, MAP_FAILED);
	region = (struct memory_region){ .start = BASE, .end = BASE + DATA_BYTES, .is_readable = true };
	region.path = "/usr/lib/libkmemshim.so";
	memory = (struct process_memory){ .fetch = fetch, .region_count = 1, .regions = &region };
	slots_used = 0;
	put_signs(KMEM_TABLE_VERSION);
	put_word(TOP_PLACE_AT, BASE + TOP_AT);
	put_word(SLOTS_PLACE_AT, BASE + SLOTS_AT);
	put_word(SLOTS_AT, 4);
	put_top();
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	process_memory_close(&memory);
	return munmap(image, IMAGE_BYTES);
}

static struct live_blocks *
read_blocks(void)
{
	struct live_blocks *blocks = live_blocks_read("test", &memory, &fail);

	assert_non_null(blocks);
	return blocks;
}

static void
assert_found(struct live_blocks *blocks, uint64_t at, uint64_t addr, uint64_t bytes, uint32_t site)
{
	struct live_block block;

	assert_true(live_blocks_find(blocks, at, &block));
	assert_int_equal(block.addr, addr);
	assert_int_equal(block.bytes, bytes);
	assert_int_equal(block.site, site);
}

static void
assert_none(struct live_blocks *blocks, uint64_t at)
{
	struct live_block block;

	assert_false(live_blocks_find(blocks, at, &block));
}

struct visit {
	size_t count;
	size_t most;
	uint64_t bytes;
};

static bool
see(void *context, const struct live_block *block)
{
	struct visit *visit = context;

	visit->count++;
	visit->bytes += block->bytes;
	return visit->count != visit->most;
}

TEST(B1_a_block_is_found_by_each_address_in_it_and_by_none_outside)
{
	static const struct {
		uint64_t addr;
		uint64_t bytes;
		const char *why;
	} cases[] = {
		{ HEAP + 0x1010, 100, "a block" },
		{ HEAP + 0x2018, 8, "a small one" },
		{ HEAP + 0x3000, 3, "an odd size" },
		{ HEAP + 0x3020, 32, "its neighbour" },
		{ HEAP + LEAF_SPAN - 32, 5000, "it reaches into the next leaf" },
		{ HEAP + LEAF_SPAN + 0x80000, 40, "of the next leaf" },
		{ FAR, 16, "the first one of its leaf" },
		{ FAR + LEAF_SPAN - 64, 5000, "it reaches to where no leaf is" },
	};
	struct live_blocks *blocks;

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		put_block(cases[i].addr, cases[i].bytes, i + 1);
	put_block(HEAP + 0x9000, 0, 99);
	blocks = read_blocks();
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct live_block block;

		for (uint64_t at = cases[i].addr; at < cases[i].addr + cases[i].bytes; at++)
			assert_found(blocks, at, cases[i].addr, cases[i].bytes, i + 1);
		if (live_blocks_find(blocks, cases[i].addr - 1, &block) ||
		    live_blocks_find(blocks, cases[i].addr + cases[i].bytes, &block))
			fail_msg("%s: found outside of it", cases[i].why);
	}
	assert_found(blocks, HEAP + 0x9000, HEAP + 0x9000, 0, 99); // nothing was asked for: it has one address
	assert_none(blocks, HEAP + 0x9001);
	assert_none(blocks, 0);
	assert_none(blocks, UINT64_MAX);
	live_blocks_free(blocks);
}

TEST(B2_a_block_without_a_word_is_found_once)
{
	const uint64_t large = UINT64_C(1) << 30;
	struct visit visit = { 0 };
	struct live_blocks *blocks;
	struct live_block block;

	put_large(FAR + 0x1000, large, 1);
	put_block(FAR + 0x20, 24, 2);
	put_block(HEAP + LEAF_SPAN + 0x40, 7, 5); // of the leaf that is listed twice
	put_slot(HEAP + 0x48, 16, 3);
	put_block(HEAP + 0x40, 8, 4);
	blocks = read_blocks();
	assert_found(blocks, FAR + 0x1000 + large - 1, FAR + 0x1000, large, 1);
	assert_none(blocks, FAR + 0x1000 + large);
	assert_found(blocks, HEAP + 0x47, HEAP + 0x40, 8, 4);
	assert_found(blocks, HEAP + 0x48, HEAP + 0x48, 16, 3);
	assert_found(blocks, HEAP + 0x57, HEAP + 0x48, 16, 3);
	assert_none(blocks, HEAP + 0x58);
	assert_true(live_blocks_visit(blocks, see, &visit));
	assert_int_equal(visit.count, 5);
	assert_int_equal(visit.bytes, large + 24 + 8 + 16 + 7);
	visit = (struct visit){ .most = 2 };
	assert_false(live_blocks_visit(blocks, see, &visit));
	assert_int_equal(visit.count, 2);
	assert_true(live_blocks_last_in(blocks, FAR, FAR + LEAF_SPAN, &block));
	assert_int_equal(block.addr, FAR + 0x1000);
	assert_false(live_blocks_last_in(blocks, FAR + 0x21, FAR + 0x1000, &block));
	live_blocks_free(blocks);
}

/* Any two may stand side by side, and words of neighbours in any order. */
TEST(B5_B6_blocks_of_a_dense_heap_are_told_apart)
{
	static const struct {
		uint64_t addr;
		uint64_t bytes;
		unsigned further;
	} cases[] = {
		{ HEAP + 0x1010, 16, 2 }, { HEAP + 0x1000, 16, 3 }, { HEAP + 0x1020, 8, 0 },
		{ HEAP + 0x1028, 48, 3 }, { HEAP + 0x1070, 3, 1 },  { HEAP + LEAF_SPAN + 0x20, 100, KMEM_PROBES - 1 },
		{ HEAP + 0x3fff8, 8, 0 }, { HEAP + 0x3fff0, 8, 6 },
	};
	const uint32_t count = sizeof(cases) / sizeof(cases[0]);
	struct live_blocks *blocks;
	struct live_block block;
	struct visit visit = { 0 };

	for (uint32_t i = 0; i < count; i++)
		put_further(cases[i].addr, cases[i].bytes, i + 1, cases[i].further);
	blocks = read_blocks();
	for (uint32_t i = 0; i < count; i++) {
		for (uint64_t at = cases[i].addr; at < cases[i].addr + cases[i].bytes; at++)
			assert_found(blocks, at, cases[i].addr, cases[i].bytes, i + 1);
		assert_true(live_blocks_find(blocks, cases[i].addr, &block));
		assert_true(live_blocks_mark(blocks, &block)); // nobody else's
	}
	assert_none(blocks, HEAP + 0x1058);
	assert_none(blocks, HEAP + 0x1073);
	assert_true(live_blocks_visit(blocks, see, &visit));
	assert_int_equal(visit.count, count);
	assert_true(live_blocks_last_in(blocks, HEAP, HEAP + 0x1070, &block));
	assert_int_equal(block.addr, HEAP + 0x1028);
	assert_true(live_blocks_last_in(blocks, HEAP, HEAP + 0x1028, &block));
	assert_int_equal(block.addr, HEAP + 0x1020);
	live_blocks_unlist(blocks, &block);
	assert_none(blocks, HEAP + 0x1020);
	assert_found(blocks, HEAP + 0x101f, HEAP + 0x1010, 16, 1);
	live_blocks_free(blocks);
}

/* Who looks counts by site: a damaged table must not ask for 16 GiB. */
TEST(a_site_that_cannot_be_is_none)
{
	struct live_blocks *blocks;

	put_slot(HEAP + 0x48, 16, KMEM_WORD_SITE_MASK);
	put_slot(HEAP + 0x88, 16, KMEM_WORD_SITE_MASK + 1);
	put_slot(HEAP + 0xc8, 16, UINT32_MAX);
	blocks = read_blocks();
	assert_found(blocks, HEAP + 0x48, HEAP + 0x48, 16, KMEM_WORD_SITE_MASK);
	assert_found(blocks, HEAP + 0x88, HEAP + 0x88, 16, 0);
	assert_found(blocks, HEAP + 0xc8, HEAP + 0xc8, 16, 0);
	live_blocks_free(blocks);
}

TEST(B3_an_unlisted_block_is_not_found_and_those_before_it_do_not_grow)
{
	struct live_blocks *blocks;
	struct live_block block;
	struct visit visit = { 0 };

	put_block(HEAP + 0x1000, 32, 1);
	put_block(HEAP + 0x1020, 32, 2);
	put_slot(HEAP + 0x1028, 8, 3);
	blocks = read_blocks();
	assert_true(live_blocks_find(blocks, HEAP + 0x1028, &block));
	live_blocks_unlist(blocks, &block);
	assert_true(live_blocks_find(blocks, HEAP + 0x1020, &block));
	assert_int_equal(block.site, 2);
	live_blocks_unlist(blocks, &block);
	assert_none(blocks, HEAP + 0x1020);
	assert_none(blocks, HEAP + 0x1028);
	assert_found(blocks, HEAP + 0x101f, HEAP + 0x1000, 32, 1);
	assert_true(live_blocks_visit(blocks, see, &visit));
	assert_int_equal(visit.count, 1);
	live_blocks_free(blocks);
}

TEST(a_block_is_marked_once)
{
	static const uint64_t addresses[] = { HEAP + 0x1000, HEAP + 0x1020, HEAP + 0x1028 };
	struct live_blocks *blocks;

	put_block(addresses[0], 32, 1);
	put_block(addresses[1], 8, 2);
	put_slot(addresses[2], 8, 3);
	blocks = read_blocks();
	for (size_t i = 0; i < 3; i++) {
		struct live_block block;

		assert_true(live_blocks_find(blocks, addresses[i], &block));
		assert_false(live_blocks_is_marked(blocks, &block)); // nor by the marks of the others
		assert_true(live_blocks_mark(blocks, &block));
		assert_false(live_blocks_mark(blocks, &block));
		assert_true(live_blocks_is_marked(blocks, &block));
	}
	live_blocks_unmark_all(blocks);
	for (size_t i = 0; i < 3; i++) {
		struct live_block block;

		assert_true(live_blocks_find(blocks, addresses[i], &block));
		assert_false(live_blocks_is_marked(blocks, &block));
	}
	live_blocks_free(blocks);
}

TEST(mappings_are_sorted_whatever_their_tree)
{
	static const struct kmem_range_node nodes[] = {
		[1] = { .start = 0x5000, .end = 0x6000, .left = 2, .right = 3 },
		[2] = { .start = 0x1000, .end = 0x3000 },
		[3] = { .start = 0x9000, .end = 0xa000, .right = 1 }, // a circle: the tree was just being changed
	};
	const struct kmem_own_range own[] = { { 0x20000, 0x30000, 0 }, { 0, 0, 0 }, { 0x10000, 0x18000, 0 } };
	const struct address_range *ranges;
	struct live_blocks *blocks;

	put(NODES_AT, nodes, sizeof(nodes));
	put_word(NODES_PLACE_AT, BASE + NODES_AT);
	put_word(ROOT_AT, 1);
	put(OWN_AT, own, sizeof(own));
	put_word(OWN_COUNT_AT, 3);
	blocks = read_blocks();
	assert_int_equal(live_blocks_mapped(blocks, &ranges), 3);
	assert_int_equal(ranges[0].start, 0x1000);
	assert_int_equal(ranges[0].end, 0x3000);
	assert_int_equal(live_blocks_own(blocks, &ranges), 2);
	assert_int_equal(ranges[0].start, 0x10000);
	assert_int_equal(ranges[1].end, 0x30000);
	assert_none(blocks, 0x5000); // a mapping is no block
	live_blocks_free(blocks);
}

TEST(B4_tables_of_another_version_or_none_are_refused)
{
	put_signs(KMEM_TABLE_VERSION + 1);
	assert_null(live_blocks_read("test", &memory, &fail));
	assert_non_null(strstr(fail.text, "by another version of kmemshim"));
	memset(image, 0, 3 * sizeof(struct kmem_table_sign));
	memory_moved(&memory);
	assert_null(live_blocks_read("test", &memory, &fail));
	assert_non_null(strstr(fail.text, "no tables that can be read"));
	put_signs(KMEM_TABLE_VERSION);
	put_word(MOVES_AT, 1);
	memory_moved(&memory);
	assert_null(live_blocks_read("test", &memory, &fail));
	assert_non_null(strstr(fail.text, "try again"));
}

TEST(the_search_for_the_tables_ends_when_time_is_over)
{
	memory.deadline_ns = 1;
	assert_null(live_blocks_read("test", &memory, &fail));
	assert_true(fail.needs_time);
	assert_int_equal(memory.scanned_bytes, 0);
}

RUN_TESTS(set_up, tear_down)
