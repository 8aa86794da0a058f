/*
 * test_releases.c - who releases what: which blocks are watched, what is counted, which pairs stay?
 */
#include "record/tracker_books.h"

#include "sites/releases.h"

#define BLOCKS UINT64_C(0x20000000)
#define BLOCK_BYTES UINT64_C(70000) // more than a thread's tally: it looks at each

static uint64_t
address_of(uint64_t number)
{
	return BLOCKS + number * 131072;
}

static NOINLINE void
allocate(uint64_t number, uint64_t bytes)
{
	tracker_allocated(HERE, at(address_of(number)), bytes);
	KEEP_FRAME();
}

static NOINLINE void
release(uint64_t number)
{
	if (!tracker_freed_fast(at(address_of(number))))
		tracker_freed(HERE, at(address_of(number)));
	KEEP_FRAME();
}

static NOINLINE void
release_elsewhere(uint64_t number)
{
	if (!tracker_freed_fast(at(address_of(number))))
		tracker_freed(HERE, at(address_of(number)));
	KEEP_FRAME();
}

static const struct kmem_release *
entries(void)
{
	return capture_file_timeline()->releases;
}

/* Of all entries; each must be whole (L2). */
static uint32_t
counted(unsigned *pairs)
{
	uint32_t count = 0;

	*pairs = 0;
	for (unsigned i = 0; i < KMEM_RELEASES_MAX; i++) {
		if (entries()[i].checksum == 0)
			continue;
		assert_int_equal(entries()[i].checksum, kmem_release_checksum(&entries()[i]));
		count += entries()[i].count;
		(*pairs)++;
	}
	return count;
}

/* Temporary blocks of all sites. watched: out, of so many. */
static uint32_t
temporary(uint32_t *watched)
{
	uint32_t count = 0;

	*watched = 0;
	for (unsigned i = 0; i < KMEM_TEMPORARY_MAX; i++) {
		uint64_t word = capture_file_timeline()->temporary[i];

		*watched += (uint32_t)(word >> 32 & 0xffff);
		count += (uint32_t)(word >> 48);
	}
	return count;
}

static int
start(void **state)
{
	thread_slot_here()->looks = 0;
	return start_empty(state);
}

TEST(of_each_look_then_of_one_in_four_then_of_one_in_sixty_four_a_block_is_watched)
{
	struct thread_slot *slot = thread_slot_here();
	unsigned watched = 0;

	for (unsigned i = 0; i < RELEASES_EACH; i++)
		watched += releases_watch(slot);
	assert_int_equal(watched, RELEASES_EACH);
	for (unsigned i = RELEASES_EACH; i < RELEASES_FOURTH; i++)
		watched += releases_watch(slot);
	assert_in_range(watched - RELEASES_EACH, (RELEASES_FOURTH - RELEASES_EACH) / 4 - 2,
	                (RELEASES_FOURTH - RELEASES_EACH) / 4 + 2);
	watched = 0;
	for (unsigned i = 0; i < RELEASES_SELDOM * 100; i++)
		watched += releases_watch(slot);
	assert_in_range(watched, 98, 102);
	releases_watch_no_more(slot);
	assert_int_equal(slot->map_bits & POINTER_MAP_WATCHED, 0);
}

/* A loop of two or of four looks is not in step with what is watched. */
TEST(what_is_watched_is_in_step_with_no_loop)
{
	struct thread_slot *slot = thread_slot_here();
	unsigned watched[4] = { 0 };

	slot->looks = RELEASES_FOURTH;
	for (unsigned i = 0; i < RELEASES_SELDOM * 400; i++)
		watched[i % 4] += releases_watch(slot);
	for (unsigned i = 0; i < 4; i++)
		assert_in_range(watched[i], 90, 110);
	releases_watch_no_more(slot);
}

TEST(a_watched_block_is_counted_with_the_stack_that_releases_it)
{
	unsigned pairs;

	allocate(20, BLOCK_BYTES); // the first one finds no table
	for (uint64_t i = 0; i < 20; i++)
		allocate(i, BLOCK_BYTES);
	for (uint64_t i = 0; i < 10; i++)
		release(i);
	assert_int_equal(counted(&pairs), 10);
	assert_int_equal(pairs, 1);
	for (uint64_t i = 10; i < 15; i++)
		release_elsewhere(i);
	assert_int_equal(counted(&pairs), 15);
	assert_int_equal(pairs, 2);
	assert_row(KMEM_DOMAIN_HEAP, (struct totals){ 21 * BLOCK_BYTES, 15 * BLOCK_BYTES, 21, 15, 21 * BLOCK_BYTES });
}

TEST(what_is_released_before_its_thread_allocates_again_is_temporary)
{
	unsigned pairs;
	uint32_t watched;

	allocate(20, BLOCK_BYTES); // the first one finds no table
	for (uint64_t i = 0; i < 5; i++) {
		allocate(i, BLOCK_BYTES);
		release(i);
	}
	assert_int_equal(temporary(&watched), 5);
	assert_int_equal(watched, 5);
	for (uint64_t i = 0; i < 5; i++) {
		allocate(2 * i, BLOCK_BYTES);
		allocate(2 * i + 1, 16);
		release(2 * i);
		release(2 * i + 1);
	}
	assert_int_equal(temporary(&watched), 5);
	assert_int_equal(watched, 10);
	assert_int_equal(counted(&pairs), 10);
}

/* Its word says that it is watched, not whose it is: the fast path leaves it alone while the next one is to come, too. */
TEST(a_watched_block_that_is_released_at_once_is_counted)
{
	unsigned pairs;
	uint32_t watched;

	allocate(0, 16);
	for (uint64_t i = 1; i <= 20; i++) {
		allocate(i, 60000); // less than a tally, two are more
		allocate(i + 100, 16);
		release(i + 100);
		release(i);
	}
	assert_in_range(counted(&pairs), 9, 13);
	assert_int_equal(temporary(&watched), 0);
	for (uint64_t i = 1; i <= 2000; i++) {
		allocate(i % 8, 1000);
		release(i % 8);
	}
	assert_in_range(temporary(&watched), 25, 40);
}

TEST(small_blocks_between_two_looks_are_not)
{
	unsigned pairs;

	for (uint64_t i = 0; i < 1000; i++)
		allocate(i, 16);
	for (uint64_t i = 0; i < 1000; i++)
		release(i);
	assert_in_range(counted(&pairs), 1, 2); // of a thread's first look, and of 1024 events
}

TEST(large_blocks_are_counted_without_being_watched)
{
	unsigned pairs;

	thread_slot_here()->looks = RELEASES_FOURTH + 1;
	allocate(0, POINTER_MAP_LARGE_BYTES);
	allocate(100, POINTER_MAP_LARGE_BYTES);
	release(0);
	release(100);
	assert_int_equal(counted(&pairs), 2);
}

TEST(what_is_swept_at_the_end_is_not_counted)
{
	unsigned pairs;

	allocate(0, BLOCK_BYTES);
	atomic_store(&capture_file_header()->at_exit, kmem_twice(1));
	release(0);
	assert_int_equal(counted(&pairs), 0);
	atomic_store(&capture_file_header()->at_exit, 0);
}

/* A stack of its own for each path. Not one function that calls itself: of that, few frames are kept. */
static void allocate_even(uint64_t number, unsigned path);

#define ALLOCATE_DEEP(name, next)                                 \
	static NOINLINE void name(uint64_t number, unsigned path)     \
	{                                                             \
		if (path == 0) {                                          \
			allocate(number, BLOCK_BYTES);                        \
		} else if (path % 2 != 0) {                               \
			next(number, path / 2);                               \
			__asm__ volatile("nop"); /* another return address */ \
		} else {                                                  \
			next(number, path / 2);                               \
		}                                                         \
		KEEP_FRAME();                                             \
	}
ALLOCATE_DEEP(allocate_odd, allocate_even)
ALLOCATE_DEEP(allocate_even, allocate_odd)

/* L1. */
TEST(L1_call_sites_that_hold_much_push_out_those_that_do_not)
{
	struct thread_slot *slot = thread_slot_here();
	uint32_t holding = 0;

	/* 600 stacks whose blocks are all released. */
	for (unsigned path = 1; path <= 600; path++) {
		slot->looks = 0;
		allocate_even(0, path);
		release(0);
	}
	/* One that keeps most of what it gets. */
	for (uint64_t i = 1; i <= 40; i++) {
		slot->looks = 0;
		allocate(i, BLOCK_BYTES);
		if (i % 4 == 0)
			release(i);
	}
	for (unsigned path = 1; path <= 600; path++) {
		slot->looks = 0;
		allocate_even(0, path);
		release(0);
	}
	for (unsigned i = 0; i < KMEM_RELEASES_MAX; i++) {
		if (entries()[i].checksum != 0 && site_table_live(site_table_at(entries()[i].site)) != 0)
			holding += entries()[i].count;
	}
	assert_int_equal(holding, 10);
}

/* More sites than there is room for: each is told whole, or not at all. And what was counted for a long time keeps its part. */
TEST(both_counts_of_a_site_stay_and_go_together)
{
	unsigned known = 0;
	uint32_t index;

	for (unsigned i = 0; i < 120; i++)
		assert_non_null(capture_file_append(KMEM_SECTION_SITES, sizeof(struct kmem_site), &index));
	for (unsigned round = 0; round < 20; round++) {
		for (uint32_t site = index - 118; site <= index + 1; site++)
			releases_count(site, site, 0, site % 2 != 0 ? RELEASES_TEMPORARY : RELEASES_LATE);
	}
	for (unsigned i = 0; i < KMEM_TEMPORARY_MAX; i++) {
		uint64_t word = capture_file_timeline()->temporary[i];

		known += word != 0;
		assert_int_equal(word >> 48, (uint32_t)word % 2 != 0 ? word >> 32 & 0xffff : 0);
	}
	assert_int_equal(known, KMEM_TEMPORARY_MAX);

	memset(capture_file_timeline()->temporary, 0, sizeof(capture_file_timeline()->temporary));
	for (unsigned i = 0; i < 200000; i++)
		releases_count(index + 1, index + 1, 0, i % 4 == 0 ? RELEASES_TEMPORARY : RELEASES_LATE);
	for (unsigned i = 0; i < KMEM_TEMPORARY_MAX; i++) {
		uint64_t word = capture_file_timeline()->temporary[i];
		uint32_t watched = word >> 32 & 0xffff;

		assert_true(word == 0 || ((uint32_t)word == index + 1 && watched > 30000));
		assert_in_range(word >> 48, watched / 4 - (watched != 0), watched / 4 + 1);
	}
}

int
main(void)
{
	native_stack_start();
	thread_slot_start();
	pointer_map_start(true);
	return test_run(NULL, NULL, start, NULL);
}
