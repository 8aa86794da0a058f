/*
 * test_library_map.c - is each page of a reservation booked once while it is in memory, whatever becomes of the reservation?
 */
#include "unit.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/prctl.h>

#include "base/raw_sys.h"
#include "base/turn.h"
#include "left_at.h"
#include "tables/library_map.h"

#define PAGE LIBRARY_MAP_PAGE_BYTES
#define MIB ((uint64_t)1 << 20)

static struct {
	uint32_t site;  // to which pages are booked now; 0 = to none
	uint64_t fresh; // pages, of all looks
	uint64_t gone;  // the same
	uint64_t whole; // bookings of which nothing is left
	uint64_t last_pc;
	uint32_t booking;
	uint64_t gone_of[8]; // by site
} books;

static _Atomic bool has_left;

static uint32_t
book(uint64_t pc, uint64_t pages)
{
	bool is_joined;

	books.last_pc = pc;
	books.booking = books.site != 0 ? library_map_booking(books.site, 1, &is_joined) : 0;
	return books.booking;
}

static void
gone(struct address_block block, bool is_whole)
{
	books.gone += block.bytes / PAGE;
	books.gone_of[block.site] += block.bytes / PAGE;
	books.whole += is_whole;
}

static void
booked(void)
{
	if (books.booking != 0)
		books.fresh += library_map_fresh(books.booking);
	books.booking = 0;
}

/* Looks for the site; returns pages that are in memory. */
static uint64_t
look(uint32_t site)
{
	uint64_t resident_bytes;

	books.site = site;
	books.booking = 0;
	assert_true(library_map_sample(book, booked, gone, &resident_bytes));
	return resident_bytes / PAGE;
}

SETUP(start_empty)
{
	library_map_clear();
	memset(&books, 0, sizeof(books));
}

static char *
reserve(uint64_t bytes, uint64_t pc)
{
	char *at = raw_mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	library_map_add((uint64_t)at, (uint64_t)at + bytes, pc);
	return at;
}

TEST(Y2_pages_are_booked_when_they_are_touched_and_released_when_they_are_gone)
{
	char *at = reserve(1024 * MIB, 77);

	assert_int_equal(look(1), 0);
	memset(at + 100 * MIB + PAGE, 1, 1000 * PAGE);
	assert_int_equal(look(1), 1000);
	assert_int_equal(books.fresh, 1000);
	assert_int_equal(books.last_pc, 77);
	memset(at + 100 * MIB, 1, 2000 * PAGE); // more of it, at another line
	assert_int_equal(look(2), 2000);
	assert_int_equal(books.fresh, 2000);
	assert_int_equal(madvise(at + 100 * MIB, 500 * PAGE, MADV_DONTNEED), 0); // without our seeing it
	assert_int_equal(look(2), 1500);
	assert_int_equal(books.gone_of[1], 499);
	assert_int_equal(books.gone_of[2], 1);
	assert_int_equal(look(2), 1500); // nothing more
	assert_int_equal(books.gone, 500);
	library_map_returned((uint64_t)at + 100 * MIB, (uint64_t)at + 101 * MIB, gone); // and again, seen
	assert_int_equal(books.gone, 500);
	library_map_cut((uint64_t)at, (uint64_t)at + 1024 * MIB, gone);
	assert_int_equal(books.gone, 2000);
	assert_int_equal(look(2), 0);
	assert_int_equal(munmap(at, 1024 * MIB), 0);
}

TEST(Y1_a_booking_is_over_with_its_last_page)
{
	char *at = reserve(64 * MIB, 1);

	for (uint32_t i = 0; i < 3 * LIBRARY_MAP_BOOKINGS_MAX; i += 3000) { // those that are over are used again
		memset(at, 1, 10 * PAGE);
		look(1);
		memset(at + 10 * PAGE, 1, 10 * PAGE);
		look(2);
		assert_int_equal(madvise(at, 20 * PAGE, MADV_DONTNEED), 0);
		look(3);
	}
	assert_int_equal(books.fresh, books.gone);
	assert_int_equal(books.whole, books.gone / 10);
	library_map_cut((uint64_t)at, (uint64_t)at + 64 * MIB, gone);
	assert_int_equal(munmap(at, 64 * MIB), 0);
}

TEST(growth_of_the_same_line_and_age_is_one_booking)
{
	char *at = reserve(4 * MIB, 1);
	bool is_joined;

	memset(at, 1, PAGE);
	look(5);
	memset(at, 1, 3 * PAGE);
	look(5);
	assert_int_not_equal(library_map_booking(5, 1, &is_joined), 0);
	assert_true(is_joined);
	assert_int_not_equal(library_map_booking(5, 2, &is_joined), 0);
	assert_false(is_joined);
	library_map_cut((uint64_t)at, (uint64_t)at + 4 * MIB, gone);
	assert_int_equal(books.whole, 1);
	assert_int_equal(munmap(at, 4 * MIB), 0);
}

/* What is cut out of the middle is somebody else's; the rest goes on. */
TEST(reservations_are_cut_and_joined)
{
	char *at = reserve(8 * MIB, 1);

	memset(at, 1, 8 * MIB);
	assert_int_equal(look(1), 2048);
	library_map_cut((uint64_t)at + 2 * MIB, (uint64_t)at + 5 * MIB, gone);
	assert_int_equal(books.gone, 3 * 256);
	assert_true(library_map_covers((uint64_t)at));
	assert_false(library_map_covers((uint64_t)at + 2 * MIB));
	assert_true(library_map_covers((uint64_t)at + 5 * MIB));
	assert_int_equal(look(1), 5 * 256);
	library_map_add((uint64_t)at + 2 * MIB, (uint64_t)at + 5 * MIB, 1);
	assert_int_equal(look(2), 2048);
	library_map_cut((uint64_t)at, (uint64_t)at + 8 * MIB, gone);
	assert_false(library_map_covers((uint64_t)at));
	assert_int_equal(munmap(at, 8 * MIB), 0);
}

TEST(what_was_unmapped_behind_our_back_is_gone)
{
	char *at = reserve(8 * MIB, 1);

	memset(at, 1, 8 * MIB);
	look(1);
	assert_int_equal(raw_munmap(at + 4 * MIB, 4 * MIB), 0);
	look(1);
	assert_int_equal(books.gone, 1024);
	library_map_cut((uint64_t)at, (uint64_t)at + 8 * MIB, gone);
	assert_int_equal(munmap(at, 4 * MIB), 0);
}

TEST(pages_without_a_booking_are_found_again)
{
	char *at = reserve(4 * MIB, 1);

	memset(at, 1, 4 * MIB);
	assert_int_equal(look(0), 1024);
	assert_int_equal(books.fresh, 0);
	assert_int_equal(look(1), 1024);
	assert_int_equal(books.fresh, 1024);
	library_map_cut((uint64_t)at, (uint64_t)at + 4 * MIB, gone);
	assert_int_equal(munmap(at, 4 * MIB), 0);
}

static void *
comes_and_goes(void *place)
{
	for (unsigned i = 0; i < 300; i++) {
		char *at = raw_mmap(place, 16 * MIB, PROT_READ | PROT_WRITE,
		                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);

		library_map_add((uint64_t)at, (uint64_t)at + 16 * MIB, 1);
		memset(at, 1, 2 * MIB);
		sched_yield();
		library_map_cut((uint64_t)at, (uint64_t)at + 16 * MIB, gone);
		raw_munmap(at, 16 * MIB);
	}
	atomic_store(&has_left, true);
	return NULL;
}

TEST(Y4_what_goes_while_a_look_asks_for_it_is_not_booked)
{
	char *place = raw_mmap(NULL, 16 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;

	atomic_store(&has_left, false);
	assert_int_equal(pthread_create(&thread, NULL, comes_and_goes, place), 0);
	while (!atomic_load(&has_left))
		(void)look(1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(look(1), 0);
	assert_int_equal(books.gone, books.fresh);
}

static char *left_part;

static void
change(void)
{
	uint64_t resident_bytes;

	books.site = 2;
	(void)library_map_sample(book, booked, gone, &resident_bytes);
	library_map_returned((uint64_t)left_part + 3 * PAGE, (uint64_t)left_part + 9 * PAGE, gone);
	library_map_cut((uint64_t)left_part + 20 * PAGE, (uint64_t)left_part + 40 * PAGE, gone);
	library_map_cut((uint64_t)left_part, (uint64_t)left_part + 4 * PAGE, gone);
}

/* Wherever a change was left: what is in memory is booked once by the next look. */
TEST(Y1_a_change_that_was_left_is_completed)
{
	unsigned instruction = 0;

	for (bool is_left = true; is_left; instruction = left_at_next_but(29, instruction)) {
		start_empty(NULL);
		left_part = reserve(40 * PAGE, 77);
		memset(left_part, 1, 30 * PAGE);
		assert_int_equal(look(1), 30);
		assert_int_equal(madvise(left_part + 10 * PAGE, 5 * PAGE, MADV_DONTNEED), 0);
		memset(left_part + 30 * PAGE, 1, 5 * PAGE);
		is_left = left_at(instruction, change);
		turn_left();
		uint64_t resident = look(3);
		assert_in_range(resident, 0, 30);
		books.gone = 0;
		library_map_returned((uint64_t)left_part, (uint64_t)left_part + 40 * PAGE, gone);
		assert_in_range(books.gone, resident, 35); // more: what the cut that was left has not released
		library_map_cut((uint64_t)left_part, (uint64_t)left_part + 40 * PAGE, gone);
		library_map_add((uint64_t)left_part, (uint64_t)left_part + 40 * PAGE, 77);
		books.gone = 0;
		resident = look(3);
		assert_in_range(resident, 30, 35);
		library_map_cut((uint64_t)left_part, (uint64_t)left_part + 40 * PAGE, gone);
		assert_int_equal(books.gone, resident);
		assert_int_equal(look(3), 0);
		munmap(left_part, 40 * PAGE);
	}
	assert_true(instruction > 500);
}

int
main(void)
{
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); // what is touched is in memory, and nothing beside it
	return test_run(NULL, NULL, start_empty, NULL);
}
