/*
 * test_pointer_map.c - does every address lead to its own block, whatever the allocator's classes?
 */
#include "unit.h"

#include <sys/resource.h>

#include "random.h"
#include "tables/pointer_map.h"

#define GIB ((uint64_t)1 << 30)

SETUP(start_empty)
{
	pointer_map_clear();
	pointer_map_start(false);
}

/* As over glibc's heap. */
SETUP(start_empty_own)
{
	pointer_map_clear();
	pointer_map_start(true);
}

static const void *
at(uint64_t addr)
{
	return (const void *)addr; // never followed: the map knows numbers only
}

static void
put(uint64_t addr, struct address_block block, enum pointer_map_put wanted)
{
	struct address_block old = { 0 };

	assert_int_equal(pointer_map_put(at(addr), block, &old), wanted);
}

static void
assert_takes(uint64_t addr, struct address_block wanted)
{
	struct address_block block = { 0 };

	assert_true(pointer_map_take(at(addr), &block));
	assert_int_equal(block.bytes, wanted.bytes);
	assert_int_equal(block.site, wanted.site);
	assert_int_equal(block.generation, wanted.generation);
	assert_false(pointer_map_take(at(addr), &block));
}

TEST_WITH(sizes_and_addresses_at_the_limits_come_back, start_empty, NULL)
{
	static const struct {
		uint64_t addr;
		struct address_block block;
		const char *why;
	} cases[] = {
		{ 0x10, { 0, 1, 0 }, "malloc(0) is a live block of 0 bytes" },
		{ 0x1000, { 1, POINTER_MAP_SITES_MAX, POINTER_MAP_GENERATION_MASK }, "the largest site and generation" },
		{ 0x2000, { POINTER_MAP_BYTES_MAX, 7, 1 }, "the largest size in a word" },
		{ 0x6000, { POINTER_MAP_BYTES_MAX + 1, 7, 2 }, "the first size that does not fit a word" },
		{ 0xa000, { 2 * GIB, 7, 3 }, "2 GiB" },
		{ 0xe000, { UINT64_C(1) << 46, 7, 4 }, "64 TiB" },
		{ 0x7ffffffffff0, { 64, 9, 5 }, "the last addresses below 47 bits" },
		{ UINT64_C(1) << 47, { 64, 9, 6 }, "the first address above 47 bits" },
		{ UINT64_C(0xfffffffffff0), { 3 * GIB, 9, 7 }, "48 bits" },
		{ UINT64_C(0x1ffffffffffff8), { 64, 9, 8 }, "53 bits: five-level page tables" },
		{ 0x7f0012345678, { 8, 9, 9 }, "an 8-byte class" },
		{ 0x7f0012345600, { 24, 9, 10 }, "another one" },
		{ 0x7f001233fff8, { 1, 9, 11 }, "the last 8 bytes of a region" },
		{ 0x7f0012340000, { 1, 9, 12 }, "the first ones of the next" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		put(cases[i].addr, cases[i].block, POINTER_MAP_STORED);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_takes(cases[i].addr, cases[i].block);
}

/* More than the address table has room for: of each of the smallest classes, and with larger blocks in the same windows. */
TEST_WITH(M4_no_dense_block_is_lost, start_empty, NULL)
{
	static const struct {
		unsigned step;
		unsigned larger_every; // of so many one is larger, and the next one begins where it ends
		uint64_t larger_bytes;
	} cases[] = { { 8, 1 << 20, 8 }, { 16, 1 << 20, 16 }, { 8, 3, 25 }, { 24, 2, 48 } };
	const uint64_t count = 1 << 20;

	for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
		const uint64_t base = 0x7f2000000000 + c * 0x100000000;

		for (unsigned round = 0; round < 2; round++) {
			for (uint64_t i = 0, addr = base; i < count; i++) {
				bool is_larger = i % cases[c].larger_every == 1;
				struct address_block block = { is_larger ? cases[c].larger_bytes : cases[c].step, (uint32_t)i + 1,
					                           (uint8_t)(i & POINTER_MAP_GENERATION_MASK) };

				if (round == 0)
					put(addr, block, POINTER_MAP_STORED);
				else
					assert_takes(addr, block);
				addr += (block.bytes + 7) & ~UINT64_C(7);
			}
		}
	}
}

TEST_WITH(unknown_addresses_are_unknown, start_empty, NULL)
{
	struct address_block block = { 4, 5, 6 };

	assert_false(pointer_map_take(at(0x7f3000000000), &block)); // no leaf
	put(0x7f3000000000, (struct address_block){ 64, 1, 1 }, POINTER_MAP_STORED);
	assert_false(pointer_map_take(at(0x7f3000000010), &block)); // in the middle of a block
	assert_false(pointer_map_take(at(0x7f3000000008), &block));
	assert_false(pointer_map_take(at(UINT64_C(1) << 50), &block));
	assert_false(pointer_map_take(NULL, &block));
	assert_int_equal(block.bytes, 4);
	assert_takes(0x7f3000000000, (struct address_block){ 64, 1, 1 });
}

/* Given out again without a release that we saw: the map says which block that was. */
TEST_WITH(M6_replaced_blocks_are_told, start_empty, NULL)
{
	static const struct {
		uint64_t addr;
		uint64_t neighbour; // lives near, 0 = none
		uint64_t old_bytes;
		uint64_t new_bytes;
	} cases[] = {
		{ 0x7f4000000000, 0, 10, 20 },
		{ 0x7f4000010000, 0, 10, 3 * GIB },
		{ 0x7f4000020000, 0, 3 * GIB, 4 * GIB },
		{ 0x7f4000030010, 0x7f4000030000, 10, 20 },
		{ 0x7f4000040010, 0x7f4000040000, 3 * GIB, 4 * GIB },
		{ UINT64_C(1) << 48, 0, 10, 20 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct address_block first = { cases[i].old_bytes, 1, 11 };
		struct address_block second = { cases[i].new_bytes, 2, 22 };
		struct address_block old = { 0 };

		if (cases[i].neighbour != 0)
			put(cases[i].neighbour, (struct address_block){ 1, 1, 1 }, POINTER_MAP_STORED);
		put(cases[i].addr, first, POINTER_MAP_STORED);
		assert_int_equal(pointer_map_put(at(cases[i].addr), second, &old), POINTER_MAP_REPLACED);
		assert_int_equal(old.bytes, first.bytes);
		assert_int_equal(old.site, first.site);
		assert_int_equal(old.generation, first.generation);
		assert_takes(cases[i].addr, second);
		if (cases[i].neighbour != 0)
			assert_takes(cases[i].neighbour, (struct address_block){ 1, 1, 1 });
	}
}

/* At most one large block begins in 16 KiB: what stands there is of one that is gone, at its own place. */
TEST_WITH(M6_a_large_neighbour_is_a_missed_free, start_empty, NULL)
{
	struct address_block old = { 0 };
	struct address_block block;

	put(0x7f4000000010, (struct address_block){ 3 * GIB, 1, 11 }, POINTER_MAP_STORED);
	assert_int_equal(pointer_map_put(at(0x7f4000002000), (struct address_block){ 20000, 2, 22 }, &old),
	                 POINTER_MAP_REPLACED);
	assert_int_equal(old.bytes, 3 * GIB);
	assert_int_equal(old.site, 1);
	assert_int_equal(old.generation, 11);
	assert_false(pointer_map_take(at(0x7f4000000010), &block));
	assert_takes(0x7f4000002000, (struct address_block){ 20000, 2, 22 });
}

/* The least and the most that a region's words take: 8 to 12 bytes a block, a page for a region; and nothing once they are gone. */
TEST_WITH(M5_the_map_follows_the_blocks, start_empty_own, NULL)
{
	static const struct {
		uint64_t step;       // from block to block
		uint64_t most_bytes; // of map, for a block
	} cases[] = { { 32, 9 }, { 48, 10 }, { 80, 10 }, { 208, 14 }, { 1008, 18 }, { 10000, 170 } };
	const uint64_t heap_bytes = UINT64_C(64) << 20;

	for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
		const uint64_t base = 0x200000000010 + c * heap_bytes * 2;
		const uint64_t count = heap_bytes / cases[c].step;
		const struct address_block block = { cases[c].step - 8, 1, 1 };
		size_t before;

		(void)pointer_map_trim(UINT64_MAX, SIZE_MAX);
		before = resident_bytes();
		for (uint64_t i = 0; i < count; i++)
			put(base + i * cases[c].step / 16 * 16, block, POINTER_MAP_STORED);
		assert_in_range(resident_bytes() - before, 0, count * cases[c].most_bytes + (2 << 20));
		for (uint64_t i = 0; i < count; i++) {
			if (i % (count / 4) != 0)
				assert_takes(base + i * cases[c].step / 16 * 16, block);
		}
		assert_true(pointer_map_trim(UINT64_MAX, SIZE_MAX) > count * 2);
		assert_true(resident_bytes() < before + (3 << 20)); // four blocks, the leaf, and what a move needs
		assert_int_equal(pointer_map_trim(UINT64_MAX, SIZE_MAX), 0);
		for (uint64_t i = 0; i < count; i += count / 4)
			assert_takes(base + i * cases[c].step / 16 * 16, block);
		for (uint64_t i = 0; i < count; i += 5)
			put(base + i * cases[c].step / 16 * 16, block, POINTER_MAP_STORED); // it comes back
		for (uint64_t i = 0; i < count; i += 5)
			assert_takes(base + i * cases[c].step / 16 * 16, block);
	}
}

TEST_WITH(M5_a_dense_region_is_no_measure_for_those_after_it, start_empty_own, NULL)
{
	const struct address_block block = { 5, 5, 5 };
	const uint64_t regions = 200;
	size_t before;

	for (uint64_t i = 0; i < 8192; i++)
		put(0x340000000010 + i * 32, block, POINTER_MAP_STORED);
	before = resident_bytes();
	for (uint64_t region = 1; region <= regions; region++) {
		for (uint64_t i = 0; i < 26; i++)
			put(0x340000000010 + (region << POINTER_MAP_REGION_LOG2) + i * 10000, block, POINTER_MAP_STORED);
	}
	assert_in_range(resident_bytes() - before, 0, regions * 2 * 4096 + (64 << 10));
}

/* One call looks at as many leaves as it was told to, the next call goes on behind them. */
TEST_WITH(M5_trim_goes_round, start_empty_own, NULL)
{
	size_t given = 0;

	for (uint64_t leaf = 0; leaf < 3; leaf++) {
		put(0x300000000000 + (leaf << 26), (struct address_block){ 5, 5, 5 }, POINTER_MAP_STORED);
		assert_takes(0x300000000000 + (leaf << 26), (struct address_block){ 5, 5, 5 });
	}
	for (unsigned i = 0; i < 2; i++)
		given += pointer_map_trim(1, SIZE_MAX);
	assert_true(given > 0 && pointer_map_trim(1, SIZE_MAX) > 0);
	assert_int_equal(pointer_map_trim(UINT64_MAX, SIZE_MAX), 0);
}

/* Work for one event: what is left over is found by the next call. */
TEST_WITH(M5_trim_stops_when_enough_went, start_empty_own, NULL)
{
	const uint64_t regions = 300;
	size_t given = 0;
	size_t all = 0;

	for (unsigned round = 0; round < 2; round++) {
		for (uint64_t region = 0; region < regions; region++) {
			put(0x310000000010 + (region << 18), (struct address_block){ 5, 5, 5 }, POINTER_MAP_STORED);
			assert_takes(0x310000000010 + (region << 18), (struct address_block){ 5, 5, 5 });
		}
		if (round == 0)
			all = pointer_map_trim(UINT64_MAX, SIZE_MAX);
	}
	for (size_t now; (now = pointer_map_trim(UINT64_MAX, 65536)) != 0;) {
		assert_true(now <= 65536 + (1u << 16)); // the last region may have as much
		given += now;
	}
	assert_int_equal(given, all);
}

TEST_WITH(M1_random_work_agrees_with_an_array, start_empty, NULL)
{
	enum { SLOTS = 6000 };
	static struct address_block model[SLOTS];
	static bool is_live[SLOTS];
	uint64_t random = random_seed();

	memset(is_live, 0, sizeof(is_live));
	for (unsigned i = 0; i < 400000; i++) {
		unsigned slot = (unsigned)random_below(&random, SLOTS);
		bool is_large = slot % 2048 == 0; // every address of a dense heap; a large block in each 16 KiB
		uint64_t addr = 0x600000000000 + slot * 8;
		struct address_block block;

		if (is_live[slot]) {
			assert_takes(addr, model[slot]);
		} else {
			assert_false(pointer_map_take(at(addr), &block));
			model[slot] = (struct address_block){
				random_below(&random, is_large ? 4 * GIB : POINTER_MAP_BYTES_MAX + 1),
				(uint32_t)random_below(&random, POINTER_MAP_SITES_MAX) + 1,
				(uint8_t)random_next(&random) & POINTER_MAP_GENERATION_MASK,
			};
			put(addr, model[slot], POINTER_MAP_STORED);
		}
		is_live[slot] = !is_live[slot];
		if (i % 20000 == 0)
			(void)pointer_map_trim(UINT64_MAX, SIZE_MAX);
	}
}

/* M3: what was installed is found again by clear, in however many leaves it lies. */
TEST_WITH(M3_clear_empties_every_leaf, start_empty, NULL)
{
	struct address_block block;

	for (uint64_t leaf = 0; leaf < 40; leaf++) {
		put(0x100000000000 + (leaf << 26), (struct address_block){ 5, 5, 5 }, POINTER_MAP_STORED);
		put(0x100000000010 + (leaf << 26), (struct address_block){ 5, 5, 5 }, POINTER_MAP_STORED);
	}
	pointer_map_clear();
	for (uint64_t leaf = 0; leaf < 40; leaf++) {
		assert_false(pointer_map_take(at(0x100000000000 + (leaf << 26)), &block));
		assert_false(pointer_map_take(at(0x100000000010 + (leaf << 26)), &block));
		put(0x100000000000 + (leaf << 26), (struct address_block){ 6, 6, 6 }, POINTER_MAP_STORED);
	}
}

static int
clear_is_cheap(void *unused)
{
	struct rusage before;
	struct rusage after;

	getrusage(RUSAGE_SELF, &before);
	pointer_map_clear();
	getrusage(RUSAGE_SELF, &after);
	/* Reading the whole top table would touch 4096 pages. */
	CHECK_IN_CHILD(after.ru_minflt - before.ru_minflt < 500);
	return 0;
}

TEST_WITH(a_forked_child_pays_for_the_leaves_that_exist, start_empty, NULL)
{
	put(0x100000000000, (struct address_block){ 5, 5, 5 }, POINTER_MAP_STORED);
	assert_int_equal(in_child(clear_is_cheap, NULL), 0);
}

/* A fresh image: what other tests installed would hide the limit. */
static int
limited(uint64_t limit_bytes)
{
	struct rlimit limit = { limit_bytes, limit_bytes };
	const uint64_t count = 50000;
	uint64_t before = address_space_bytes();
	struct address_block old;
	struct address_block block;
	uint64_t stored = 0;

	CHECK_IN_CHILD(setrlimit(RLIMIT_AS, &limit) == 0);
	for (uint64_t i = 0; i < count; i++) { // over 3 GiB of addresses
		if (pointer_map_put(at(0x7f0000000000 + i * 65536), (struct address_block){ i, 1, 1 }, &old) !=
		    POINTER_MAP_STORED)
			break;
		stored++;
	}
	CHECK_IN_CHILD(stored == count);
	for (uint64_t i = 0; i < count; i++)
		CHECK_IN_CHILD(pointer_map_take(at(0x7f0000000000 + i * 65536), &block) && block.bytes == i);
	CHECK_IN_CHILD(address_space_bytes() - before <= limit_bytes / 10 * 3);
	return 0;
}

/* As dense as a heap of 100 bytes each, for as much of the limit as the program can have. */
static int
limited_dense(uint64_t limit_bytes)
{
	struct rlimit limit = { limit_bytes, limit_bytes };
	struct address_block old;

	CHECK_IN_CHILD(setrlimit(RLIMIT_AS, &limit) == 0);
	for (uint64_t addr = 0x555555559010; addr < 0x555555559010 + limit_bytes / 3 * 2; addr += 112)
		CHECK_IN_CHILD(pointer_map_put(at(addr), (struct address_block){ 100, 1, 1 }, &old) == POINTER_MAP_STORED);
	return 0;
}

static void
in_fresh_images(const char *const limits[], size_t count, const char *how)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	print_message("the sanitizer reserves terabytes: address space cannot be limited under it\n");
	skip();
#else
	for (size_t i = 0; i < count; i++) {
		int status = -1;
		pid_t pid = fork();

		if (pid == 0) {
			execl("/proc/self/exe", "test_pointer_map", limits[i], how, (char *)NULL);
			_exit(127);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
#endif
}

TEST_WITH(a_limited_address_space_keeps_room_for_the_program, start_empty, NULL)
{
	static const char *const limits[] = { "134217728", "536870912", "1073741824", "2147483648", "8589934592" };

	in_fresh_images(limits, ARRAY_LEN(limits), "sparse");
}

TEST_WITH(a_limited_address_space_is_covered_as_far_as_the_program_can_use_it, start_empty, NULL)
{
	static const char *const limits[] = { "268435456", "536870912", "1073741824" };

	in_fresh_images(limits, ARRAY_LEN(limits), "dense");
}

struct visited {
	unsigned count;
	unsigned most_count; // 0 = all
	unsigned gone_count;
	uint64_t addr_sum;
	uint64_t bytes_sum;
};

static bool
visit(void *context, uint64_t addr, struct address_block block)
{
	struct visited *visited = context;

	if (block.site == 0) {
		assert_int_equal(block.bytes, 0);
		visited->gone_count++;
		return true;
	}
	visited->count++;
	visited->addr_sum += addr;
	visited->bytes_sum += block.bytes;
	assert_int_equal(block.generation, 3);
	assert_int_equal(block.site, 7);
	return visited->count != visited->most_count;
}

TEST_WITH(large_blocks_are_shown_while_they_are_alive, start_empty, NULL)
{
	struct visited visited = { 0 };
	uint64_t bytes_sum = 0;

	for (uint64_t i = 0; i < 300; i++) { // in 75 leaves
		uint64_t bytes = i % 2 == 0 ? 100 : i << 20;

		put(0x330000000010 + (i << 24), (struct address_block){ bytes, 7, 3 }, POINTER_MAP_STORED);
		bytes_sum += i % 2 == 0 ? 0 : bytes;
	}
	pointer_map_visit_large(visit, &visited);
	assert_int_equal(visited.count, 150);
	assert_int_equal(visited.bytes_sum, bytes_sum);
	assert_takes(0x330000000010 + (UINT64_C(299) << 24), (struct address_block){ 299 << 20, 7, 3 });
	put(0x330000000010 + (UINT64_C(297) << 24), (struct address_block){ 1 << 20, 7, 3 }, POINTER_MAP_REPLACED);
	visited = (struct visited){ 0 };
	pointer_map_visit_large(visit, &visited);
	assert_int_equal(visited.count, 149);
	assert_int_equal(visited.bytes_sum, bytes_sum - UINT64_C(595) * (1 << 20));
}

/* Only blocks that may be objects are shown, each once, in however many calls; the mark is in nothing that is taken. */
TEST_WITH(objects_are_shown_and_others_are_not, start_empty, NULL)
{
	struct visited visited = { 0 };
	uint64_t addr_sum = 0;
	unsigned calls = 0;

	for (unsigned i = 0; i < 1000; i++) {
		uint64_t addr = 0x330000000000 + (uint64_t)i * 0x100000 + i % 4 * 8;

		put(addr, (struct address_block){ i, 7, (uint8_t)(3 | (i % 2 == 0 ? POINTER_MAP_OBJECT : 0)) },
		    POINTER_MAP_STORED);
		addr_sum += i % 2 == 0 ? addr : 0;
	}
	while (visited.count < 500 && calls++ < 100000)
		(void)pointer_map_visit_objects(1, visit, &visited);
	assert_int_equal(visited.count, 500);
	assert_int_equal(visited.addr_sum, addr_sum);
	assert_int_equal(visited.bytes_sum, 500 * 499);
	for (unsigned i = 0; i < 1000; i++)
		assert_takes(0x330000000000 + (uint64_t)i * 0x100000 + i % 4 * 8, (struct address_block){ i, 7, 3 });
	visited.count = 0;
	assert_true(pointer_map_visit_objects(SIZE_MAX, visit, &visited));
	assert_int_equal(visited.count, 0);
}

/* Also of large blocks, and of what stands in the address table: the generation that is taken is an index. */
TEST_WITH(the_marks_are_never_taken_for_a_generation, start_empty, NULL)
{
	static const struct address_block wanted[] = { { 3 * GIB, 7, 3 }, { 100, 8, 0 } };
	static const uint64_t addrs[] = { 0x330000000000, UINT64_C(1) << 47 };
	struct address_block old = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		struct address_block marked = wanted[i];

		marked.generation |= POINTER_MAP_OBJECT | POINTER_MAP_WATCH;
		put(addrs[i], marked, POINTER_MAP_STORED);
		assert_takes(addrs[i], wanted[i]);
		put(addrs[i], marked, POINTER_MAP_STORED);
		assert_int_equal(pointer_map_put(at(addrs[i]), marked, &old), POINTER_MAP_REPLACED);
		assert_int_equal(old.generation, wanted[i].generation);
		assert_takes(addrs[i], wanted[i]);
	}
}

/* What begins in a stretch of addresses: of what is gone it is said that something was there. */
TEST_WITH(blocks_are_shown_by_address, start_empty_own, NULL)
{
	const uint64_t base = 0x340000000000;
	struct address_block block = { 48, 7, 3 };
	struct visited visited = { 0 };

	for (uint64_t i = 0; i < 20000; i++) { // three regions and a half
		if (i % 7 != 0)
			put(base + i * 48, block, POINTER_MAP_STORED);
	}
	put(base + 5124 * 48, (struct address_block){ 100000, 7, 3 }, POINTER_MAP_STORED);
	assert_in_range(pointer_map_visit(base + 48, base + 48 * 71, false, visit, &visited), 60, 300);
	assert_int_equal(visited.count, 60);
	assert_int_equal(visited.bytes_sum, 60 * 48);
	assert_int_equal(visited.gone_count, 0);
	for (uint64_t i = 8; i < 14; i++)
		assert_takes(base + i * 48, block);
	visited = (struct visited){ 0 };
	(void)pointer_map_visit(base + 48, base + 48 * 71, false, visit, &visited);
	assert_int_equal(visited.count, 54);
	assert_in_range(visited.gone_count, 1, 6);
	visited = (struct visited){ 0 };
	assert_in_range(pointer_map_visit(base, base + 20000 * 48, true, visit, &visited), 1, 4);
	assert_int_equal(visited.count, 1);
	assert_int_equal(visited.bytes_sum, 100000);
	visited = (struct visited){ 0 };
	(void)pointer_map_visit(base - (1 << 20), base + 48, false, visit, &visited);
	assert_int_equal(visited.count, 0);
	visited.most_count = 5;
	(void)pointer_map_visit(base, base + (1 << 20), false, visit, &visited);
	assert_int_equal(visited.count, 5);
}

/* The release of one is noted. */
TEST_WITH(a_watched_block_is_one_from_its_put_on, start_empty, NULL)
{
	const struct address_block block = { 100, 8, 3 };
	const struct address_block watched = { 100, 8, 3 | POINTER_MAP_WATCH };

	put(0x330000000010, block, POINTER_MAP_STORED);
	put(0x330000000050, watched, POINTER_MAP_STORED);
	assert_false(pointer_map_is_watched(at(0x330000000010)));
	assert_true(pointer_map_is_watched(at(0x330000000050)));
	assert_takes(0x330000000050, block);
	put(0x330000000050, block, POINTER_MAP_STORED);
	assert_false(pointer_map_is_watched(at(0x330000000050)));
}

TEST_AGAIN(sizes_and_addresses_at_the_limits_come_back_start_empty_own, sizes_and_addresses_at_the_limits_come_back,
           start_empty_own, NULL)
TEST_AGAIN(unknown_addresses_are_unknown_start_empty_own, unknown_addresses_are_unknown, start_empty_own, NULL)
TEST_AGAIN(the_marks_are_never_taken_for_a_generation_start_empty_own, the_marks_are_never_taken_for_a_generation,
           start_empty_own, NULL)
TEST_AGAIN(objects_are_shown_and_others_are_not_start_empty_own, objects_are_shown_and_others_are_not, start_empty_own,
           NULL)
TEST_AGAIN(a_watched_block_is_one_from_its_put_on_start_empty_own, a_watched_block_is_one_from_its_put_on,
           start_empty_own, NULL)

int
main(int argc, char **argv)
{
	if (argc > 2)
		return (strcmp(argv[2], "dense") == 0 ? limited_dense : limited)(strtoull(argv[1], NULL, 10));
	return test_run(NULL, NULL, NULL, NULL);
}
