/*
 * test_range_map.c - after any sequence of mappings and cuts, does the map say what an array of pages says?
 */
#include "unit.h"

#include <time.h>

#include "random.h"
#include "base/turn.h"
#include "left_at.h"
#include "tables/range_map.h"

#define PAGE 4096
#define PAGES 400
#define BASE UINT64_C(0x7f0000000000)
#define ROUNDS 60000

/* The model: which mapping every page belongs to. */
struct model {
	uint32_t mapping[PAGES];   // 0 = none
	uint32_t left[ROUNDS + 1]; // pages left, by mapping
	uint32_t next;
};

static struct model model;

SETUP(start_empty)
{
	memset(&model, 0, sizeof(model));
	range_map_clear();
}

static uint64_t
page_addr(unsigned page)
{
	return BASE + (uint64_t)page * PAGE;
}

static void
model_put(unsigned from, unsigned to)
{
	uint32_t mapping = ++model.next;

	for (unsigned page = from; page < to; page++)
		model.mapping[page] = mapping;
	model.left[mapping] = to - from;
	assert_true(range_map_put(page_addr(from), page_addr(to), mapping, (uint8_t)mapping));
}

/* Takes [from, to) from both; every piece must be what the model has there, in order, and nothing may be missing. */
static uint32_t
model_take(unsigned from, unsigned to, struct range_pieces *first)
{
	struct range_pieces taken;
	unsigned page = from;
	uint32_t calls = 0;

	do {
		assert_true(range_map_take(page_addr(from), page_addr(to), &taken));
		assert_true(taken.count <= RANGE_PIECES_MAX);
		assert_true(!taken.is_more || taken.count == RANGE_PIECES_MAX);
		if (calls++ == 0)
			*first = taken;
		for (uint32_t i = 0; i < taken.count; i++) {
			const struct range *piece = &taken.piece[i];

			assert_true(piece->start < piece->end && piece->end <= page_addr(to)); // G1
			for (; page_addr(page) < piece->start; page++)
				assert_int_equal(model.mapping[page], 0);
			for (; page_addr(page) < piece->end; page++) {
				uint32_t mapping = model.mapping[page];

				assert_int_equal(mapping, piece->site);
				assert_int_equal((uint8_t)mapping, piece->generation);
				model.mapping[page] = 0;
				model.left[mapping]--;
			}
			assert_int_equal(model.left[piece->site] == 0, piece->is_last_piece); // G2
		}
	} while (taken.is_more);
	for (; page < to; page++)
		assert_int_equal(model.mapping[page], 0);
	return calls;
}

static void
model_put_back(const struct range_pieces *taken)
{
	assert_true(range_map_put_back(taken));
	for (uint32_t i = 0; i < taken->count; i++) {
		for (uint64_t addr = taken->piece[i].start; addr < taken->piece[i].end; addr += PAGE) {
			model.mapping[(addr - BASE) / PAGE] = taken->piece[i].site;
			model.left[taken->piece[i].site]++;
		}
	}
}

TEST(G1_G2_random_work_agrees_with_an_array_of_pages)
{
	uint64_t random = random_seed();
	struct range_pieces taken;

	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned span = random_below(&random, 20) == 0 ? PAGES : 24;
		unsigned from = (unsigned)random_below(&random, PAGES);
		unsigned to = from + 1 + (unsigned)random_below(&random, span);

		to = to < PAGES ? to : PAGES;
		switch (random_below(&random, 8)) {
		case 0: // released
		case 1:
			model_take(from, to, &taken);
			break;
		case 2: // the real release failed
			if (model_take(from, to, &taken) == 1)
				model_put_back(&taken);
			break;
		case 3: // laid over what is there
			model_take(from, to, &taken);
			model_put(from, to);
			break;
		default: { // into a hole
			unsigned end = from;

			while (end < to && end - from < 4 && model.mapping[end] == 0)
				end++;
			if (end > from)
				model_put(from, end);
		}
		}
	}
	model_take(0, PAGES, &taken);
	assert_true(range_map_take(0, UINT64_MAX, &taken));
	assert_int_equal(taken.count, 0);
}

TEST(a_hole_in_the_middle_leaves_two_pieces_of_one_mapping)
{
	struct range_pieces taken;

	model_put(0, 10);
	model_take(4, 6, &taken);
	assert_int_equal(taken.count, 1);
	assert_false(taken.piece[0].is_last_piece);
	model_take(0, 4, &taken);
	assert_false(taken.piece[0].is_last_piece);
	model_take(0, 10, &taken);
	assert_int_equal(taken.count, 1);
	assert_true(taken.piece[0].is_last_piece);
	assert_int_equal(taken.piece[0].start, page_addr(6));
}

TEST(more_than_32_pieces_come_in_several_calls)
{
	static const struct {
		unsigned mappings;
		uint32_t calls;
	} cases[] = { { 1, 1 }, { 31, 1 }, { 32, 1 }, { 33, 2 }, { 64, 2 }, { 65, 3 }, { 200, 7 } };
	struct range_pieces taken;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		for (unsigned n = 0; n < cases[i].mappings; n++)
			model_put(n, n + 1);
		assert_int_equal(model_take(0, PAGES, &taken), cases[i].calls);
	}
}

TEST(empty_and_unknown_ranges_change_nothing)
{
	struct range_pieces taken;

	assert_true(range_map_put(page_addr(3), page_addr(3), 1, 1));
	assert_true(range_map_take(0, UINT64_MAX, &taken));
	assert_int_equal(taken.count, 0);
	model_put(5, 7);
	assert_true(range_map_take(page_addr(6), page_addr(6), &taken));
	assert_int_equal(taken.count, 0);
	assert_true(range_map_take(page_addr(7), page_addr(9), &taken));
	assert_int_equal(taken.count, 0);
	assert_true(range_map_take(page_addr(0), page_addr(5), &taken));
	assert_int_equal(taken.count, 0);
	model_take(0, PAGES, &taken);
	assert_int_equal(taken.count, 1);
}

/* G2: while the pieces were out, another mapping got the number; it must not inherit ours. */
TEST(G2_what_is_put_back_is_not_counted_with_a_stranger)
{
	struct range_pieces ours;
	struct range_pieces taken;

	model_put(0, 10);
	model_take(3, 5, &taken); // two pieces
	model_take(0, 10, &ours);
	assert_int_equal(ours.count, 2);
	model_put(20, 30); // may get the free number
	model_put(40, 50);
	model_put(60, 70);
	model_put_back(&ours);
	model_take(20, 30, &taken);
	assert_true(taken.piece[0].is_last_piece);
	model_take(40, 50, &taken);
	assert_true(taken.piece[0].is_last_piece);
	model_take(60, 70, &taken);
	assert_true(taken.piece[0].is_last_piece);
	model_take(0, 10, &taken);
	assert_false(taken.piece[0].is_last_piece);
	assert_true(taken.piece[1].is_last_piece);
}

/* In order, backwards and shuffled: no order of addresses makes the tree a list (a list would take minutes). */
TEST(a_hundred_thousand_mappings_are_no_problem)
{
	enum { COUNT = 100000 };
	static uint32_t order[COUNT];
	uint64_t random = random_seed();
	struct range_pieces taken;

	for (unsigned way = 0; way < 3; way++) {
		for (uint32_t i = 0; i < COUNT; i++)
			order[i] = way == 1 ? COUNT - 1 - i : i;
		for (uint32_t i = COUNT - 1; way == 2 && i > 0; i--) {
			uint32_t with = (uint32_t)random_below(&random, i + 1);
			uint32_t swapped = order[i];

			order[i] = order[with];
			order[with] = swapped;
		}
		for (uint32_t i = 0; i < COUNT; i++)
			assert_true(range_map_put(BASE + order[i] * UINT64_C(65536), BASE + order[i] * UINT64_C(65536) + 8192,
			                          order[i] + 1, 1));
		for (uint32_t i = 0; i < COUNT; i++) { // the middle out, then the rest
			uint64_t start = BASE + order[i] * UINT64_C(65536);

			assert_true(range_map_take(start + 4096, start + 65536, &taken));
			assert_int_equal(taken.count, 1);
			assert_int_equal(taken.piece[0].site, order[i] + 1);
			assert_false(taken.piece[0].is_last_piece);
		}
		for (uint32_t i = 0; i < COUNT; i++) {
			uint64_t start = BASE + order[i] * UINT64_C(65536);

			assert_true(range_map_take(start, start + 65536, &taken));
			assert_int_equal(taken.count, 1);
			assert_true(taken.piece[0].is_last_piece);
		}
	}
}

/* Else a mapping that is made writable page by page, or whose cuts are put back, takes a node for each page for good. */
TEST(what_is_one_mapping_again_is_one_range)
{
	static const struct {
		unsigned page;
		uint32_t site;
		uint8_t generation;
		bool is_joined;
	} cases[] = {
		{ 11, 1, 1, true },  // behind
		{ 12, 2, 1, false }, // of another site
		{ 12, 1, 2, false }, // of another generation
		{ 9, 1, 1, true },   // in front
		{ 13, 1, 1, false }, // next to nothing
		{ 19, 1, 1, true },  // in front of another mapping of that site
		{ 12, 1, 1, true },
	};
	struct range_pieces taken;
	struct range found;

	assert_true(range_map_put(page_addr(10), page_addr(11), 1, 1));
	assert_true(range_map_put(page_addr(20), page_addr(21), 1, 1));
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(range_map_extend(page_addr(cases[i].page), page_addr(cases[i].page + 1), cases[i].site,
		                                  cases[i].generation),
		                 cases[i].is_joined);
	for (unsigned page = 13; page < 19; page++)
		assert_true(range_map_extend(page_addr(page), page_addr(page + 1), 1, 1));
	assert_true(range_map_next(page_addr(9), &found));
	assert_true(found.start == page_addr(9) && found.end == page_addr(19));

	assert_true(range_map_take(page_addr(14), page_addr(15), &taken)); // and a release that fails
	assert_false(taken.piece[0].is_last_piece);
	assert_true(range_map_put_back(&taken));
	assert_true(range_map_next(page_addr(9), &found) && found.end == page_addr(19));

	assert_true(range_map_take(0, UINT64_MAX, &taken)); // two mappings, as were put
	assert_int_equal(taken.count, 2);
	assert_true(taken.piece[0].is_last_piece && taken.piece[1].is_last_piece);
	assert_true(taken.piece[1].start == page_addr(19) && taken.piece[1].end == page_addr(21));
}

/* As shmdt() does: pieces of others in between stay. */
TEST(all_pieces_of_a_mapping_are_taken_by_its_beginning)
{
	struct range_pieces taken;
	struct range found;

	model_put(0, 10);
	model_take(3, 5, &taken);
	model_put(3, 4);
	model_take(7, 8, &taken);
	assert_true(range_map_take_mapping(page_addr(1), &taken) && taken.count == 0);
	assert_true(range_map_take_mapping(page_addr(0), &taken));
	assert_int_equal(taken.count, 3); // [0, 3), [5, 7), [8, 10)
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(taken.piece[i].site, 1);
		assert_int_equal(taken.piece[i].is_last_piece, i == 2);
	}
	assert_true(taken.piece[1].start == page_addr(5) && taken.piece[2].end == page_addr(10));
	assert_true(range_map_next(0, &found) && found.site == 2 && found.start == page_addr(3));
	assert_true(range_map_next(page_addr(4), &found) && found.site == 0);
	assert_true(range_map_put_back(&taken)); // it failed
	assert_true(range_map_take_mapping(page_addr(0), &taken) && taken.count == 3);
	assert_true(range_map_take_mapping(page_addr(0), &taken) && taken.count == 0);
}

TEST(all_pieces_of_a_mapping_are_taken_however_many)
{
	enum { PIECES = 2 * RANGE_PIECES_MAX + 3 };
	struct range_pieces taken;
	struct range found;
	uint32_t count = 0;

	model_put(1, 2 * PIECES);
	for (unsigned page = 2; page < 2 * PIECES; page += 2)
		model_take(page, page + 1, &taken);
	model_put(2, 3);
	assert_true(range_map_take_mapping(page_addr(1), &taken));
	for (bool is_more = true; is_more; is_more = taken.is_more && range_map_take_slow(&taken)) {
		for (uint32_t i = 0; i < taken.count; i++, count++) {
			assert_true(taken.piece[i].site == 1 && taken.piece[i].start == page_addr(1 + 2 * count));
			assert_int_equal(taken.piece[i].is_last_piece, count == PIECES - 1);
		}
	}
	assert_int_equal(count, PIECES);
	assert_true(range_map_next(0, &found) && found.start == page_addr(2) && found.site == 2); // another's
}

/* G1: what the map still has of a range whose release it could not follow. */
TEST(G1_what_lies_over_another_range_is_refused)
{
	static const struct {
		unsigned from;
		unsigned to;
	} cases[] = { { 10, 20 }, { 9, 11 }, { 12, 13 }, { 19, 30 }, { 5, 25 }, { 10, 11 }, { 19, 20 } };
	struct range_pieces ours = { .count = 2, .piece = { { page_addr(30), page_addr(31), 3, 9, 1, true } } };
	struct range_pieces taken;

	model_put(10, 20);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint64_t start = page_addr(cases[i].from);
		uint64_t end = page_addr(cases[i].to);

		assert_false(range_map_put(start, end, 2, 2));
		assert_false(range_map_extend(start, end, 1, 1));
		ours.piece[1] = (struct range){ start, end, 3, 10, 1, true };
		assert_false(range_map_put_back(&ours)); // nor the first of them, else it is booked twice
	}
	model_put(9, 10);
	model_put(20, 21);
	assert_true(range_map_take(0, UINT64_MAX, &taken));
	assert_int_equal(taken.count, 3);
	assert_true(taken.piece[1].start == page_addr(10) && taken.piece[1].end == page_addr(20));
}

TEST(when_full_it_refuses_and_goes_on)
{
	struct range_pieces taken;
	uint64_t stored = 0;

	while (stored < (1u << 21) && range_map_put(BASE + stored * 8192, BASE + stored * 8192 + 4096, 1, 1))
		stored++;
	assert_true(stored > 1000000 && stored < 1u << 21);
	assert_true(range_map_take(BASE, BASE + 4096, &taken));
	assert_int_equal(taken.count, 1);
	assert_true(range_map_put(BASE, BASE + 4096, 2, 2)); // there is one place again
	assert_false(range_map_put(BASE + 4096, BASE + 8192, 2, 2));
	assert_true(range_map_take(BASE, BASE + 8192 + 4096, &taken));
	assert_int_equal(taken.count, 2);
	assert_true(range_map_put(BASE, BASE + 4096, 3, 3)); // another thread was faster: one place for two
	taken.piece[0].start = BASE + 4096;
	taken.piece[0].end = BASE + 4096 + 100;
	assert_false(range_map_put_back(&taken));
	assert_true(range_map_take(BASE, BASE + 2 * 8192, &taken));
	assert_int_equal(taken.count, 1); // neither of them
}

/* G3: the lock is free again after every call, also after those that refuse; taken around fork, nobody gets in. */
static uint64_t
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void *
waits_in_vain(void *unused)
{
	struct range_pieces taken;
	struct range found;
	uint64_t start_ms = now_ms();

	assert_false(range_map_take(0, UINT64_MAX, &taken)); // waits, in vain
	assert_true(now_ms() - start_ms >= 100);
	start_ms = now_ms();
	for (unsigned i = 0; i < 1000; i++) { // not again for the same hold: a thousand would take a quarter of an hour
		assert_false(range_map_put(page_addr(0), page_addr(1), 1, 1));
		assert_false(range_map_next(0, &found));
	}
	assert_true(now_ms() - start_ms < 60000);
	return NULL;
}

static int
goes_on_in_a_child(void *unused)
{
	struct range_pieces taken;

	// other handlers of fork, in the thread that holds it
	CHECK_IN_CHILD(range_map_take(0, UINT64_MAX, &taken) && taken.count == 1);
	CHECK_IN_CHILD(range_map_put(page_addr(0), page_addr(1), 1, 1));
	range_map_unlock();
	range_map_lock();
	range_map_clear(); // frees it, whoever held it
	range_map_unlock();
	CHECK_IN_CHILD(range_map_take(0, UINT64_MAX, &taken) && taken.count == 0);
	CHECK_IN_CHILD(range_map_put(page_addr(0), page_addr(1), 1, 1));
	return 0;
}

TEST(G3_the_lock_around_fork_keeps_others_out_for_a_bounded_time)
{
	struct range found;
	pthread_t thread;

	model_put(0, 2);
	range_map_lock();
	int status = in_child(goes_on_in_a_child, NULL);
	assert_int_equal(pthread_create(&thread, NULL, waits_in_vain, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	range_map_unlock();
	assert_int_equal(status, 0);
	assert_true(range_map_put(page_addr(2), page_addr(3), 1, 1));
	assert_true(range_map_next(page_addr(2), &found) && found.start == page_addr(2));
}

TEST(G3_a_fork_of_a_signal_handler_in_the_middle_of_a_fork_leaves_the_lock_free)
{
	range_map_lock();
	range_map_lock();
	range_map_unlock();
	range_map_unlock();
	assert_true(range_map_put(page_addr(0), page_addr(1), 1, 1));
}

TEST(the_next_range_is_the_one_that_holds_an_address_or_the_first_behind_it)
{
	static const struct {
		unsigned page;
		unsigned start; // of what is found; 0 = nothing
	} cases[] = { { 1, 3 }, { 2, 3 }, { 3, 3 }, { 5, 3 }, { 6, 6 }, { 7, 9 }, { 9, 9 }, { 10, 0 } };
	struct range_pieces taken;
	struct range found;

	assert_true(range_map_next(0, &found) && found.site == 0);
	model_put(3, 6);
	model_put(6, 7);
	model_put(9, 10);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_true(range_map_next(page_addr(cases[i].page), &found));
		assert_int_equal(found.site != 0 ? (found.start - BASE) / PAGE : 0, cases[i].start);
	}
	model_take(4, 5, &taken);
	assert_true(range_map_next(page_addr(4), &found));
	assert_int_equal(found.start, page_addr(5));
	assert_int_equal(found.site, 1);
}

static void
change_the_middle(void)
{
	struct range_pieces taken;

	if (range_map_take(page_addr(101), page_addr(103), &taken) && !range_map_put_back(&taken))
		return;
	if (range_map_take(page_addr(98), page_addr(104), &taken))
		(void)range_map_put(page_addr(99), page_addr(104), 7, 7);
	(void)range_map_extend(page_addr(104), page_addr(105), 7, 7);
}

/* Wherever the change was left: what lies beside it stays, in pieces that do not overlap, and the map goes on. */
TEST(G4_a_change_that_was_left_is_completed)
{
	unsigned instruction = 0;
	bool is_left = true;

	for (; is_left; instruction = left_at_next(instruction)) {
		struct range_pieces taken;
		uint64_t end = 0;

		range_map_clear();
		for (unsigned page = 0; page < 40; page += 2)
			assert_true(range_map_put(page_addr(page), page_addr(page + 1), page + 1, 1));
		assert_true(range_map_put(page_addr(98), page_addr(104), 5, 5));
		is_left = left_at(instruction, change_the_middle);
		turn_left();
		assert_true(range_map_take(0, page_addr(90), &taken));
		assert_int_equal(taken.count, 20);
		for (unsigned i = 0; i < 20; i++) {
			assert_int_equal(taken.piece[i].start, page_addr(2 * i));
			assert_int_equal(taken.piece[i].end, page_addr(2 * i + 1));
			assert_true(taken.piece[i].is_last_piece); // G2
		}
		assert_true(range_map_take(page_addr(90), UINT64_MAX, &taken));
		for (unsigned i = 0; i < taken.count; i++) {
			assert_true(taken.piece[i].start >= end && taken.piece[i].end > taken.piece[i].start); // G1
			end = taken.piece[i].end;
		}
		for (unsigned round = 0; round < 50; round++)
			assert_true(range_map_put(page_addr(2 * round), page_addr(2 * round + 1), 3, 3));
		for (unsigned round = 0; round < 50; round++) {
			assert_true(range_map_take(page_addr(2 * round), page_addr(2 * round + 1), &taken));
			assert_int_equal(taken.count, 1);
		}
	}
	assert_true(instruction > 300);
}

RUN_TESTS(start_empty, NULL)
