/*
 * test_resident.c - is what lies in memory found, does it add up, and is a block of the heap found by where it may be?
 */
#include "unit.h"

#include <sys/prctl.h>

#include "base/capture_life.h"
#include "base/clock.h"
#include "base/memory_limits.h"
#include "base/raw_sys.h"
#include "capture/capture_file.h"
#include "periodic/rate_limit.h"
#include "periodic/resident.h"
#include "sites/site_table.h"
#include "tables/pointer_map.h"
#include "tables/peak.h"
#include "tables/range_map.h"
#include "vast.h"

#define MIB ((uint64_t)1 << 20)
#define SLACK (MIB / 2) // of what the process does on its own between two looks
#define RW (PROT_READ | PROT_WRITE)

SETUP(start_empty)
{
	capture_file_forked();
	pointer_map_clear();
	range_map_clear();
	capture_file_header()->identity.page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
}

static uint64_t
sequence(void)
{
	const struct kmem_resident *two = capture_file_header()->resident;

	return two[0].sequence > two[1].sequence ? two[0].sequence : two[1].sequence;
}

static struct kmem_resident
look(void)
{
	const struct kmem_resident *two = capture_file_header()->resident;
	uint64_t before = sequence();
	uint64_t sum = 0;

	resident_take(NULL, 0);
	const struct kmem_resident *found = two[0].sequence > two[1].sequence ? &two[0] : &two[1];
	assert_true(found->sequence > before);
	for (unsigned i = 0; i < KMEM_RESIDENT_PARTS; i++)
		sum += found->part_bytes[i];
	assert_int_equal(sum, found->resident_bytes);
	return *found;
}

static char *
map(uint64_t bytes, int flags)
{
	char *at = raw_mmap(NULL, bytes, RW, flags | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	return at;
}

/* A record of the domain, as site_table.c would make it. */
static uint32_t
site_of(unsigned domain)
{
	uint32_t index;
	struct kmem_site *site = capture_file_append(KMEM_SECTION_SITES, sizeof(*site), &index);

	assert_non_null(site);
	site->domain = (uint8_t)domain;
	return index + 1;
}

static void
assert_grew(const struct kmem_resident *before, const struct kmem_resident *after, enum kmem_resident_part part,
            uint64_t bytes)
{
	int64_t off = (int64_t)(after->part_bytes[part] - before->part_bytes[part] - bytes);

	if (off < -(int64_t)SLACK || off > (int64_t)SLACK)
		fail_msg("part %u: off by %ld KiB", part, (long)(off / 1024));
}

/* Else what is left after Python has gone would stand beside what was live before. */
TEST_WITH(the_look_before_a_teardown_stays_the_last, start_empty, NULL)
{
	const struct kmem_resident *two = capture_file_header()->resident;

	capture_file_header()->is_finalizing = KMEM_YES;
	resident_take(&(struct memory_limits_now){ .limit_bytes = UINT64_MAX }, 0);
	assert_int_equal(two[0].sequence + two[1].sequence, 0);
	capture_file_header()->is_finalizing = 0;
	resident_take(&(struct memory_limits_now){ .limit_bytes = UINT64_MAX }, 0);
	assert_int_equal(two[0].sequence + two[1].sequence, 1);
}

TEST_WITH(each_part_is_found_and_all_add_up, start_empty, NULL)
{
	const struct address_block block = { 100, site_of(KMEM_DOMAIN_HEAP), 1 };
	struct address_block old;
	struct kmem_resident before = look();

	memset(raw_reserve(KMEM_OWN_THREADS, 5 * MIB, RW), 1, 3 * MIB);
	char *mapped = map(8 * MIB, MAP_PRIVATE);
	memset(mapped, 1, 8 * MIB);
	assert_true(range_map_put((uint64_t)mapped + 4 * MIB, (uint64_t)mapped + 5 * MIB, site_of(KMEM_DOMAIN_MMAP), 1));
	assert_true(
		range_map_put((uint64_t)mapped + 6 * MIB, (uint64_t)mapped + 8 * MIB, site_of(KMEM_DOMAIN_PYTHON_ARENA), 1));
	char *blocks = raw_mmap(NULL, 64 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(mprotect(blocks + 8 * MIB, 6 * MIB, RW), 0); // a heap in the middle of nothing
	memset(blocks + 8 * MIB, 1, 6 * MIB);
	assert_int_equal(pointer_map_put(blocks + 13 * MIB, block, &old), POINTER_MAP_STORED);
	assert_int_equal(mprotect(blocks + 32 * MIB, 4 * MIB, RW), 0); // behind a guard
	memset(blocks + 32 * MIB, 1, 4 * MIB);
	assert_int_equal(munmap(blocks + 14 * MIB, 18 * MIB - 65536), 0);
	memset(map(2 * MIB, MAP_SHARED), 1, 2 * MIB);
	struct kmem_resident after = look();

	assert_grew(&before, &after, KMEM_RESIDENT_OWN, 3 * MIB);
	assert_true(capture_file_header()->own_bytes[after.sequence % 2][KMEM_OWN_THREADS] >= 3 * MIB);
	assert_grew(&before, &after, KMEM_RESIDENT_MMAP, 1 * MIB);
	assert_grew(&before, &after, KMEM_RESIDENT_PYTHON_ARENA, 2 * MIB);
	assert_grew(&before, &after, KMEM_RESIDENT_OTHER, 5 * MIB);
	assert_grew(&before, &after, KMEM_RESIDENT_HEAP, 6 * MIB);
	assert_grew(&before, &after, KMEM_RESIDENT_STACKS, 4 * MIB);
	assert_grew(&before, &after, KMEM_RESIDENT_SHARED, 2 * MIB);
}

TEST_WITH(of_a_range_the_lowest_block_is_found_and_that_there_was_one, start_empty, NULL)
{
	const struct address_block block = { 100, 1, 1 };
	const uint64_t base = UINT64_C(0x600000000000) - 4096; // over the edge of a leaf
	const struct {
		uint64_t from;
		uint64_t to;
		uint64_t lowest; // 0 = none
		bool was_used;
	} cases[] = {
		{ 0, 4096, 0, false },
		{ 0, 4096 * 2, 4096 + 64, false },
		{ 4096 + 64, 4096 + 128, 4096 + 64, false },
		{ 4096 + 96, 20000, 0, true },
		{ 0, 20000, 4096 + 64, true },
		{ 4096 + 96, MIB * 200, MIB * 100, true },
		{ MIB * 50, MIB * 60, 0, false },
		{ 4096 + 96, 4096 + 96, 0, false },
	};
	struct address_block taken;
	bool was_used;

	assert_int_equal(pointer_map_lowest(base, base + MIB, &was_used), UINT64_MAX);
	pointer_map_put((void *)(base + 4096 + 64), block, &taken);
	pointer_map_put((void *)(base + 8192), block, &taken);
	pointer_map_put((void *)(base + 100 * MIB), block, &taken);
	assert_true(pointer_map_take((void *)(base + 8192), &taken));
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint64_t lowest = pointer_map_lowest(base + cases[i].from, base + cases[i].to, &was_used);

		assert_int_equal(lowest, cases[i].lowest != 0 ? base + cases[i].lowest : UINT64_MAX);
		assert_int_equal(was_used, cases[i].was_used);
	}
}

static const struct kmem_resident_lines *
lines_of(const struct kmem_resident *look)
{
	const struct kmem_resident_lines *lines = &capture_file_resident_lines()[look->sequence % 2];

	assert_int_equal(lines->sequence, look->sequence);
	assert_int_equal(lines->checksum, kmem_checksum(KMEM_CHECKSUM_START, (const char *)lines + 4, sizeof(*lines) - 4));
	return lines;
}

static struct kmem_resident_line
line_of(const struct kmem_resident_lines *lines, uint32_t site)
{
	for (unsigned i = 0; i < KMEM_RESIDENT_LINES_MAX; i++) {
		if (lines->lines[i].site == site)
			return lines->lines[i];
	}
	return (struct kmem_resident_line){ 0 };
}

static void
put_block(char *at, uint64_t bytes, uint32_t site)
{
	struct address_block old;

	assert_int_equal(pointer_map_put(at, (struct address_block){ bytes, site, 1 }, &old), POINTER_MAP_STORED);
}

/* In an urgent case, so that it begins soon. Was it halfway at any time? */
static bool
look_in_pieces(uint64_t work)
{
	const struct memory_limits_now now = { .resident_bytes = UINT64_C(1) << 40, .limit_bytes = UINT64_MAX };
	uint64_t before = sequence();
	bool was_halfway = false;

	resident_piece_work = work;
	resident_pages.most_work = 0;
	while (sequence() == before) {
		resident_take(&now, 0);
		was_halfway = was_halfway || page_look_is_halfway(&resident_pages);
	}
	resident_piece_work = PAGE_LOOK_PIECE_WORK;
	return was_halfway;
}

static struct kmem_resident
newest(void)
{
	const struct kmem_resident *two = capture_file_header()->resident;

	return two[two[1].sequence > two[0].sequence];
}

TEST_WITH(in_pieces_it_finds_what_a_whole_look_does, start_empty, NULL)
{
	const uint64_t work = resident_cheap_bytes == 0 ? 30000 : 100000;
	const struct address_block block = { 100, site_of(KMEM_DOMAIN_HEAP), 1 };
	struct address_block old;
	char *heap = map(200 * MIB, MAP_PRIVATE);

	memset(heap, 1, 150 * MIB);
	assert_int_equal(pointer_map_put(heap + 16, block, &old), POINTER_MAP_STORED); // in the first piece alone
	assert_true(range_map_put((uint64_t)heap + 100 * MIB, (uint64_t)heap + 140 * MIB, site_of(KMEM_DOMAIN_MMAP), 1));
	put_block(heap + 20 * MIB, 60 * MIB, site_of(KMEM_DOMAIN_HEAP));
	struct kmem_resident whole = look();
	uint64_t whole_heap = lines_of(&whole)->heap_bytes;

	assert_true(look_in_pieces(work));
	/*
	 * What is asked for at once comes on top: a scan, and each word of the pointer map (128 of a page); and a hole, which is little but
	 * where a sanitizer has one of terabytes.
	 */
	assert_in_range(resident_pages.most_work, work,
	                is_vast() ? UINT64_MAX : work + PAGE_LOOK_AT_ONCE * (4 + 128 / 8) + PAGE_LOOK_AT_ONCE / 8 + 2);
	struct kmem_resident pieces = newest();

	for (unsigned part = 0; part < KMEM_RESIDENT_PARTS; part++)
		assert_in_range(pieces.part_bytes[part] + 2 * MIB, whole.part_bytes[part], whole.part_bytes[part] + 4 * MIB);
	assert_in_range(lines_of(&pieces)->heap_bytes, whole_heap - SLACK, whole_heap + SLACK);
	assert_int_equal(line_of(lines_of(&pieces), capture_file_count(KMEM_SECTION_SITES)).large_resident_bytes, 60 * MIB);
	assert_int_equal(munmap(heap, 200 * MIB), 0);
}

TEST_WITH(so_does_a_cheap_look, start_empty, NULL)
{
	resident_cheap_bytes = 0;
	in_pieces_it_finds_what_a_whole_look_does(test_state);
	resident_cheap_bytes = RESIDENT_CHEAP_BYTES;
}

TEST_WITH(a_small_process_is_looked_at_in_one_piece, start_empty, NULL)
{
	if (is_vast())
		skip();
	char *at = map(100 * MIB, MAP_PRIVATE);

	memset(at, 1, 100 * MIB);
	assert_false(look_in_pieces(PAGE_LOOK_PIECE_WORK));
	assert_int_equal(munmap(at, 100 * MIB), 0);
}

TEST_WITH(a_child_does_not_go_on_with_its_parents_look, start_empty, NULL)
{
	const struct memory_limits_now now = { .resident_bytes = UINT64_C(1) << 40, .limit_bytes = UINT64_MAX };
	int status;

	resident_piece_work = 1;
	while (!page_look_is_halfway(&resident_pages))
		resident_take(&now, 0);
	if (fork() == 0) {
		resident_forked();
		_exit(page_look_is_halfway(&resident_pages) ? 1 : 0);
	}
	assert_true(wait(&status) > 0);
	assert_int_equal(status, 0);
	assert_true(page_look_is_halfway(&resident_pages));
	look(); // the end of the process begins anew, too, and does all
	assert_false(page_look_is_halfway(&resident_pages));
	resident_piece_work = PAGE_LOOK_PIECE_WORK;
}

TEST_WITH(many_zero_pages_make_it_look_once_more, start_empty, NULL)
{
	if (is_vast())
		skip(); // it has many anyway
	char *at = map(40 * MIB, MAP_PRIVATE);

	resident_cheap_bytes = 0;
	uint64_t before = look().resident_bytes;

	assert_int_equal(resident_pages.depth, PAGE_LOOK_CHEAP);
	for (uint64_t i = 0; i < 40 * MIB; i += 4096)
		(void)*(volatile char *)(at + i);
	assert_true(look().resident_bytes < before + 2 * MIB);
	assert_int_equal(resident_pages.depth, PAGE_LOOK_EXACT);
	resident_pages.cannot_scan = true; // a kernel that has no scan
	assert_true(look().resident_bytes < before + 2 * MIB);
	look_in_pieces(10000);
	assert_true(newest().resident_bytes < before + 2 * MIB);
	assert_int_equal(munmap(at, 40 * MIB), 0);
	assert_true(look().resident_bytes < before + 2 * MIB);
	assert_int_equal(resident_pages.depth, PAGE_LOOK_CHEAP);
	resident_cheap_bytes = RESIDENT_CHEAP_BYTES;
	resident_pages.cannot_scan = false;
}

/* Also where the kernel made one mapping of several, and where a block lies in two of its mappings. */
TEST_WITH(of_large_blocks_what_was_touched_is_counted, start_empty, NULL)
{
	uint32_t untouched = site_of(KMEM_DOMAIN_HEAP), part = site_of(KMEM_DOMAIN_HEAP), read = site_of(KMEM_DOMAIN_HEAP);
	uint32_t mapped = site_of(KMEM_DOMAIN_MMAP), cut = site_of(KMEM_DOMAIN_HEAP), small = site_of(KMEM_DOMAIN_HEAP);
	char *at = map(600 * MIB, MAP_PRIVATE);

	put_block(at + 16, 500 * MIB, untouched);
	put_block(at + 500 * MIB + 16, 20 * MIB, part);
	memset(at + 505 * MIB, 1, 6 * MIB);
	put_block(at + 520 * MIB + 16, 10 * MIB, read);
	for (uint64_t i = 0; i < 10 * MIB; i += 4096)
		(void)*(volatile char *)(at + 520 * MIB + i);
	assert_true(range_map_put((uint64_t)at + 540 * MIB, (uint64_t)at + 550 * MIB, mapped, 1));
	memset(at + 540 * MIB, 1, 3 * MIB);
	put_block(at + 560 * MIB + 16, 20 * MIB, cut);
	memset(at + 560 * MIB, 1, 20 * MIB);
	assert_int_equal(madvise(at + 570 * MIB, 4 * MIB, MADV_NOHUGEPAGE), 0);
	put_block(at + 590 * MIB, MIB / 2, small);
	struct kmem_resident found = look();
	const struct kmem_resident_lines *lines = lines_of(&found);

	assert_int_equal(line_of(lines, untouched).large_bytes, 500 * MIB);
	assert_true(line_of(lines, untouched).large_resident_bytes < SLACK);
	assert_int_equal(line_of(lines, part).large_count, 1);
	assert_in_range(line_of(lines, part).large_resident_bytes, 6 * MIB - SLACK, 6 * MIB + SLACK);
	assert_true(line_of(lines, read).large_resident_bytes < SLACK);
	assert_in_range(line_of(lines, mapped).large_resident_bytes, 3 * MIB - SLACK, 3 * MIB + SLACK);
	assert_int_equal(line_of(lines, mapped).large_bytes, 10 * MIB);
	assert_in_range(line_of(lines, cut).large_resident_bytes, 20 * MIB - SLACK, 20 * MIB);
	assert_int_equal(line_of(lines, small).site, 0);
	assert_int_equal(munmap(at, 600 * MIB), 0);
}

TEST_WITH(of_more_records_than_there_is_room_for_those_with_most_are_kept, start_empty, NULL)
{
	const uint32_t count = KMEM_RESIDENT_LINES_MAX + 50;
	char *at = map((count + 1) * 2 * MIB, MAP_PRIVATE);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < count; i++)
		put_block(at + i * 2 * MIB, MIB + i, i + 1);
	struct kmem_resident found = look();
	const struct kmem_resident_lines *lines = lines_of(&found);

	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(line_of(lines, i + 1).site, i < 50 ? 0 : i + 1);
		sum += i < 50 ? MIB + i : 0;
	}
	assert_int_equal(lines->left_out_bytes, sum);
	assert_int_equal(munmap(at, (count + 1) * 2 * MIB), 0);
}

static void
put_small(char *at, uint64_t bytes, uint32_t site)
{
	struct address_block old;

	assert_int_equal(pointer_map_put(at, (struct address_block){ bytes, site, 1 }, &old), POINTER_MAP_STORED);
}

/* As tracker.c would book it, on a stack that is this record's alone. */
static void
held(uint32_t index_plus_one, uint64_t bytes)
{
	struct kmem_site *site = site_table_at(index_plus_one);

	site->stack = index_plus_one;
	site->allocated_bytes += bytes;
	site->allocated_count++;
	peak_apply_own(&site->peak, (int64_t)bytes, 1);
}

/* Blocks that are not large, of which one page each is touched, beside some that are touched; and mappings of 256 KiB. */
TEST_WITH(many_untouched_blocks_and_mappings_are_told_though_none_is_large, start_empty, NULL)
{
	uint32_t empty = site_of(KMEM_DOMAIN_HEAP), full = site_of(KMEM_DOMAIN_HEAP), mapped = site_of(KMEM_DOMAIN_MMAP);
	const uint64_t each = 200 * 4096, count = 200;
	char *at = map(3 * count * each, MAP_PRIVATE);

	for (uint64_t i = 0; i < count; i++) {
		char *block = at + i * each;

		put_small(block, each - 16, empty);
		*block = 1;
		put_small(at + (count + i) * each, each - 16, full);
		memset(at + (count + i) * each, 1, each);
		assert_true(range_map_put((uint64_t)at + (2 * count + i) * each,
		                          (uint64_t)at + (2 * count + i) * each + 256 * 1024, mapped, 1));
		at[(2 * count + i) * each] = 1;
		held(empty, each - 16);
		held(full, each - 16);
	}
	(void)look(); // how many pages there are
	struct kmem_resident found = look();
	const struct kmem_resident_lines *lines = lines_of(&found);

	assert_int_equal(line_of(lines, empty).large_bytes, count * (each - 16));
	assert_in_range(line_of(lines, empty).large_resident_bytes, count * 4096, count * each / 4);
	assert_int_equal(line_of(lines, full).large_bytes, 0);
	assert_int_equal(line_of(lines, mapped).large_bytes, count * 256 * 1024);
	assert_in_range(line_of(lines, mapped).large_resident_bytes, count * 4096, count * 3 * 4096);
	assert_int_equal(munmap(at, 3 * count * each), 0);
}

/* Pages that are full, that are empty, that one small block keeps, and in the middle of blocks that began before them. */
TEST_WITH(of_the_heap_empty_and_sparse_pages_are_told_and_whose_blocks_keep_these, start_empty, NULL)
{
	uint32_t full = site_of(KMEM_DOMAIN_HEAP), few = site_of(KMEM_DOMAIN_HEAP), long_ones = site_of(KMEM_DOMAIN_HEAP);
	const uint64_t part = 8 * MIB, page = 4096;
	char *at = map(4 * part + 2 * MIB, MAP_PRIVATE);

	memset(at, 1, 4 * part + 2 * MIB);
	for (uint64_t i = 0; i < part / page; i++) {
		put_small(at + i * page + 16, 2000, full);
		put_small(at + i * page + 2032, 2000, full);
		put_small(at + 2 * part + i * page + 512, 200, few);
	}
	for (uint64_t i = 0; i + 3 * page <= part / 2; i += 3 * page)
		put_small(at + 3 * part + i, 3 * page, long_ones);
	for (uint64_t i = part / 2; i + 100 * page <= part; i += 100 * page) // several of its pages are looked into
		put_small(at + 3 * part + i, 100 * page, long_ones);
	put_block(at + 4 * part, 2 * MIB, full); // large blocks are no part of it
	struct kmem_resident found = look();
	const struct kmem_resident_lines *lines = lines_of(&found);

	assert_true(lines->sampled_pages > 100);
	assert_in_range(lines->heap_bytes, 4 * part, 4 * part + MIB);
	assert_in_range(lines->heap_empty_bytes, part - MIB, part + MIB);
	assert_in_range(lines->heap_sparse_bytes, part - MIB, part + MIB);
	assert_in_range(lines->heap_sparse_live_bytes, part / page * 180, part / page * 220);
	assert_in_range(line_of(lines, few).pinned_bytes, part - MIB, part + MIB);
	assert_true(line_of(lines, full).pinned_bytes < MIB);
	assert_true(line_of(lines, long_ones).pinned_bytes < MIB);
	assert_int_equal(munmap(at, 4 * part + 2 * MIB), 0);
}

/* The larger its parent, the longer it would take: not at its start, nor at its end, if that comes soon. */
TEST_WITH(a_child_looks_only_if_it_lives, start_empty, NULL)
{
	const struct kmem_resident *two = capture_file_header()->resident;
	const struct memory_limits_now now = { .limit_bytes = UINT64_MAX };
	int status;

	look();
	if (fork() == 0) {
		uint64_t sum = two[0].sequence + two[1].sequence;

		resident_forked();
		resident_take(&now, 0);
		resident_take(NULL, 0);
		if (two[0].sequence + two[1].sequence != sum)
			_exit(1);
		while (two[0].sequence + two[1].sequence == sum)
			resident_take(NULL, 0);
		_exit(0);
	}
	assert_true(wait(&status) > 0);
	assert_int_equal(status, 0);
}

/* resident_bytes: beside what the last look found */
static enum rate_limit_reason
reason_for(uint64_t resident_bytes, uint64_t cgroup_bytes, uint64_t limit_bytes)
{
	const struct memory_limits_now now = { .resident_bytes = resident_bytes,
		                                   .cgroup_bytes = cgroup_bytes,
		                                   .limit_bytes = limit_bytes };

	return resident_reason(&now, 0);
}

/* Since the last look, not since the largest there was: what shrank and grew again is made of other things. */
TEST_WITH(a_process_that_grew_by_a_quarter_is_worth_a_look, start_empty, NULL)
{
	uint64_t first = look().resident_bytes;
	uint64_t more = first + 64 * MIB;

	assert_int_equal(reason_for(0, 0, UINT64_MAX), PACED_USUAL); // not known
	assert_int_equal(reason_for(first + first / 5, 0, UINT64_MAX), PACED_USUAL);
	assert_int_equal(reason_for(first + first / 3, 0, UINT64_MAX), PACED_URGENT);
	char *mapped = map(more, MAP_PRIVATE);
	memset(mapped, 1, more);
	uint64_t most = look().resident_bytes;
	assert_int_equal(reason_for(most, 0, UINT64_MAX), PACED_USUAL);
	assert_int_equal(munmap(mapped, more), 0);
	assert_true(look().resident_bytes < most / 4 * 3);
	assert_int_equal(reason_for(most, 0, UINT64_MAX), PACED_URGENT);
}

TEST_WITH(what_is_charged_to_the_group_is_worth_a_look_when_it_grew_by_a_quarter, start_empty, NULL)
{
	struct memory_limits_now now = { .cgroup_bytes = 100 * MIB, .limit_bytes = UINT64_MAX };

	now.resident_bytes = 4 * look().resident_bytes; // so that it looks, soon
	for (uint64_t before = sequence(); sequence() == before;)
		resident_take(&now, 0);
	assert_int_equal(reason_for(0, 120 * MIB, UINT64_MAX), PACED_USUAL);
	assert_int_equal(reason_for(0, 130 * MIB, UINT64_MAX), PACED_URGENT);
}

TEST_WITH(in_the_last_eighth_before_the_limit_each_64th_of_it_is_worth_a_look, start_empty, NULL)
{
	uint64_t found = look().resident_bytes;
	uint64_t limit = found + found / 8; // what was found is 8/9 of it

	assert_int_equal(reason_for(found + limit / 64 - 1, 0, limit), PACED_USUAL);
	assert_int_equal(reason_for(found + limit / 64, 0, limit), PACED_PRESSING);
	assert_int_equal(reason_for(found + limit / 64, 0, limit + limit / 8), PACED_USUAL);
	// with others in the group
	assert_int_equal(reason_for(found + limit / 32, limit, limit + limit / 8), PACED_PRESSING);
	assert_int_equal(reason_for(found, limit, limit), PACED_USUAL); // the others grew
}

TEST(what_was_freed_and_not_given_back_is_worth_a_look)
{
	const struct memory_limits_now none = { .limit_bytes = UINT64_MAX };
	struct memory_limits_now now = { .resident_bytes = 4 * look().resident_bytes, .limit_bytes = UINT64_MAX };
	uint64_t found;

	for (uint64_t before = sequence(); sequence() == before;)
		resident_take(&now, 200 * MIB); // it grew: it looks, soon
	const struct kmem_resident *two = capture_file_header()->resident;

	now.resident_bytes = found = two[two[1].sequence > two[0].sequence].resident_bytes;
	assert_int_equal(resident_reason(&now, 200 * MIB), PACED_USUAL);
	assert_int_equal(resident_reason(&now, 151 * MIB), PACED_USUAL);
	assert_int_equal(resident_reason(&now, 150 * MIB), PACED_URGENT);
	assert_int_equal(resident_reason(&now, 100 * MIB), PACED_FALLEN);
	now.resident_bytes = found > 100 * MIB ? found - 100 * MIB : 0; // it was given back
	assert_int_equal(resident_reason(&now, 190 * MIB), PACED_USUAL);
	assert_int_equal(resident_reason(&none, 200 * MIB), PACED_USUAL);
}

TEST(an_urgent_look_comes_sooner_than_a_usual_one)
{
	struct rate_limit paced = { .period_ns = 1, .parts = { UINT64_C(1) << 34, 0, 0, 0 } };

	assert_true(rate_limit_begin(&paced, PACED_USUAL));
	assert_false(rate_limit_begin(&paced, PACED_DUE)); // one at a time
	rate_limit_end(&paced);
	for (unsigned reason = PACED_URGENT; reason < PACED_DUE; reason++) {
		assert_false(rate_limit_begin(&paced, reason - 1));
		assert_true(rate_limit_begin(&paced, reason));
		paced.parts[reason] = UINT64_C(1) << 34;
		rate_limit_end(&paced);
	}
	assert_false(rate_limit_begin(&paced, PACED_PRESSING));
	assert_true(rate_limit_begin(&paced, PACED_DUE));
	rate_limit_end(&paced);
}

#define SECOND_NS UINT64_C(1000000000)

/* Looks of 10 ms, at once one after the other: so many until one has to wait, and from then on one in each 320 ms. */
TEST(quiet_time_may_be_used_up_at_once)
{
	static const struct {
		enum rate_limit_reason reason;
		unsigned count;
	} cases[] = { { PACED_URGENT, 1 }, { PACED_FALLEN, 2 }, { PACED_PRESSING, 7 } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct rate_limit paced = { .parts = { 1024, 32, 32, 32 } };
		uint64_t now_ns = SECOND_NS / 10; // a young process may use it too
		unsigned count = 0;

		while (rate_limit_is_time(&paced.wall, cases[i].reason, now_ns)) {
			now_ns += SECOND_NS / 100;
			rate_limit_charge(&paced, &paced.wall, now_ns, SECOND_NS / 100);
			count++;
		}
		assert_int_equal(count, cases[i].count);
		for (count = 0; count < 10; count++) {
			for (now_ns += SECOND_NS / 1000 * 319; !rate_limit_is_time(&paced.wall, cases[i].reason, now_ns);)
				now_ns += SECOND_NS / 1000;
			rate_limit_charge(&paced, &paced.wall, now_ns, SECOND_NS / 100);
			assert_false(rate_limit_is_time(&paced.wall, cases[i].reason, now_ns));
		}
	}
}

/* A look that took a second by the wall's time and 10 ms by the processor's. */
TEST(on_a_busy_machine_the_processors_time_decides)
{
	struct rate_limit paced = { .parts = { 1024, 32, 32, 32 } };
	uint64_t processor_ns = rate_limit_processor_ns();
	uint64_t now_ns = clock_now_ns();

	assert_int_not_equal(processor_ns, 0);
	rate_limit_charge(&paced, &paced.wall, now_ns, SECOND_NS);
	rate_limit_charge(&paced, &paced.processor, processor_ns - SECOND_NS / 2, SECOND_NS / 100); // half a second ago
	rate_limit_charge(&paced, &paced.bound, now_ns, SECOND_NS / 100);
	assert_false(rate_limit_begin(&paced, PACED_URGENT)); // not so much of the wall's time is over
	rate_limit_charge(&paced, &paced.bound, now_ns - SECOND_NS / 2, SECOND_NS / 100);
	assert_true(rate_limit_begin(&paced, PACED_URGENT));
	rate_limit_end(&paced);
	rate_limit_charge(&paced, &paced.wall, now_ns, SECOND_NS);
	rate_limit_charge(&paced, &paced.processor, rate_limit_processor_ns() + SECOND_NS, 0);
	assert_false(rate_limit_begin(&paced, PACED_URGENT));
}

/* Where the system gives huge pages to all, a word of a table would be 2 MiB of memory. */
TEST(our_tables_have_no_huge_pages)
{
	uint64_t table = (uint64_t)raw_reserve(KMEM_OWN_OTHER, 8 * MIB, RW);
	FILE *smaps = fopen("/proc/self/smaps", "r");
	uint64_t start, end;
	bool is_there = false, is_found = false;
	char line[512];

	if (access("/sys/kernel/mm/transparent_hugepage", F_OK) != 0 || smaps == NULL)
		skip();
	while (fgets(line, sizeof(line), smaps) != NULL) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &start, &end) == 2)
			is_there = start <= table && table < end;
		else if (is_there && strncmp(line, "VmFlags:", 8) == 0)
			is_found = strstr(line, " nh") != NULL;
	}
	fclose(smaps);
	assert_true(is_found);
}

int
main(void)
{
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); // what is touched is resident, and nothing beside it
	pointer_map_start(true);
	return test_run(NULL, NULL, NULL, NULL);
}
