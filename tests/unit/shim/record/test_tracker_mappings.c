/*
 * test_tracker_mappings.c - do the books agree with what is left of mappings, however they are cut, moved, or not to be followed?
 */
#include "record/tracker_books.h"

static NOINLINE void
hook_mmap(enum kmem_domain domain, uint64_t addr, size_t bytes)
{
	tracker_mapped(HERE, domain, at(addr), bytes);
	KEEP_FRAME();
}

static NOINLINE void
hook_mremap(const struct range_pieces *old, uint64_t addr, size_t bytes)
{
	tracker_remapped(HERE, old, at(addr), bytes);
	KEEP_FRAME();
}

static NOINLINE void
hook_writable(uint64_t addr, size_t bytes)
{
	tracker_writable(HERE, at(addr), bytes);
	KEEP_FRAME();
}

enum step_kind { END, MAP, UNMAP, UNMAP_FAILS, REMAP };

struct step {
	enum step_kind kind;
	uint64_t page;
	uint64_t pages;
	uint64_t new_page; // of REMAP
	uint64_t new_pages;
};

static const struct {
	const char *what;
	struct step steps[6];
	struct totals wanted; // bytes in pages
} mapping_cases[] = {
	{ "mapped", { { MAP, 16, 10, 0, 0 } }, { 10, 0, 1, 0, 10 } },
	{ "and unmapped", { { MAP, 16, 10, 0, 0 }, { UNMAP, 16, 10, 0, 0 } }, { 10, 10, 1, 1, 10 } },
	{ "its head unmapped", { { MAP, 16, 10, 0, 0 }, { UNMAP, 10, 9, 0, 0 } }, { 10, 3, 1, 0, 10 } },
	{ "its tail unmapped", { { MAP, 16, 10, 0, 0 }, { UNMAP, 24, 100, 0, 0 } }, { 10, 2, 1, 0, 10 } },
	{ "a hole", { { MAP, 16, 10, 0, 0 }, { UNMAP, 18, 3, 0, 0 } }, { 10, 3, 1, 0, 10 } },
	{ "a hole, then the rest",
	  { { MAP, 16, 10, 0, 0 }, { UNMAP, 18, 3, 0, 0 }, { UNMAP, 0, 100, 0, 0 } },
	  { 10, 10, 1, 1, 10 } },
	{ "piece by piece",
	  { { MAP, 16, 3, 0, 0 }, { UNMAP, 16, 1, 0, 0 }, { UNMAP, 18, 1, 0, 0 }, { UNMAP, 17, 1, 0, 0 } },
	  { 3, 3, 1, 1, 3 } },
	{ "two at once", { { MAP, 16, 3, 0, 0 }, { MAP, 30, 4, 0, 0 }, { UNMAP, 0, 100, 0, 0 } }, { 7, 7, 2, 2, 7 } },
	{ "parts of two", { { MAP, 16, 4, 0, 0 }, { MAP, 20, 4, 0, 0 }, { UNMAP, 18, 4, 0, 0 } }, { 8, 4, 2, 0, 8 } },
	{ "unmap fails", { { MAP, 16, 10, 0, 0 }, { UNMAP_FAILS, 18, 3, 0, 0 } }, { 10, 0, 1, 0, 10 } },
	{ "unmap fails, then works",
	  { { MAP, 16, 10, 0, 0 }, { UNMAP_FAILS, 18, 3, 0, 0 }, { UNMAP, 0, 100, 0, 0 } },
	  { 10, 10, 1, 1, 10 } },
	{ "unknown", { { UNMAP, 16, 10, 0, 0 } }, { 0 } },
	{ "grown by remap", { { MAP, 16, 10, 0, 0 }, { REMAP, 16, 10, 16, 15 } }, { 25, 10, 2, 1, 15 } },
	{ "moved by remap",
	  { { MAP, 16, 10, 0, 0 }, { REMAP, 16, 10, 50, 10 }, { UNMAP, 50, 10, 0, 0 } },
	  { 20, 20, 2, 2, 10 } },
	{ "shrunk by remap", { { MAP, 16, 10, 0, 0 }, { REMAP, 16, 10, 16, 4 } }, { 14, 10, 2, 1, 10 } },
	{ "unknown remap", { { REMAP, 16, 10, 50, 10 } }, { 0 } },
};

static void
run_step(const struct step *step)
{
	struct range_pieces taken;

	switch (step->kind) {
	case MAP:
		hook_mmap(KMEM_DOMAIN_MMAP, step->page * PAGE, step->pages * PAGE);
		break;
	case UNMAP:
	case UNMAP_FAILS:
		tracker_unmap_begin(at(step->page * PAGE), step->pages * PAGE, &taken);
		tracker_unmap_end(&taken, step->kind == UNMAP);
		break;
	case REMAP:
		tracker_unmap_begin(at(step->page * PAGE), step->pages * PAGE, &taken);
		hook_mremap(&taken, step->new_page * PAGE, step->new_pages * PAGE);
		break;
	case END:
		break;
	}
}

static void
mappings_are_counted_by_what_is_left_of_them(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(mapping_cases); i++) {
		struct totals wanted = mapping_cases[i].wanted;

		start_empty(state);
		for (size_t s = 0; mapping_cases[i].steps[s].kind != END; s++)
			run_step(&mapping_cases[i].steps[s]);
		print_message("%s\n", mapping_cases[i].what);
		wanted.allocated_bytes *= PAGE;
		wanted.freed_bytes *= PAGE;
		wanted.peak_bytes *= PAGE;
		assert_row(KMEM_DOMAIN_MMAP, wanted);
	}
}

static void
a_mapping_counts_the_bytes_that_were_asked_for(void **state)
{
	struct range_pieces taken;

	hook_mmap(KMEM_DOMAIN_MMAP, 0x10000000, PAGE + 904);
	assert_row(KMEM_DOMAIN_MMAP, (struct totals){ PAGE + 904, 0, 1, 0, PAGE + 904 });
	tracker_unmap_begin(at(0x10000000 + PAGE), PAGE, &taken);
	tracker_unmap_end(&taken, true);
	assert_row(KMEM_DOMAIN_MMAP, (struct totals){ PAGE + 904, 904, 1, 0, PAGE + 904 });
	tracker_unmap_begin(at(0x10000000), PAGE, &taken);
	tracker_unmap_end(&taken, true);
	assert_row(KMEM_DOMAIN_MMAP, (struct totals){ PAGE + 904, PAGE + 904, 1, 1, PAGE + 904 });
}

static void
one_release_may_take_away_hundreds_of_mappings(void **state)
{
	struct range_pieces taken;

	for (uint64_t i = 0; i < 333; i++)
		hook_mmap(KMEM_DOMAIN_MMAP, (1000 + 2 * i) * PAGE, PAGE);
	tracker_unmap_begin(at(0), 10000 * PAGE, &taken);
	tracker_unmap_end(&taken, true);
	assert_row(KMEM_DOMAIN_MMAP, (struct totals){ 333 * PAGE, 333 * PAGE, 333, 333, 333 * PAGE });
}

static void
domains_of_mappings_are_kept_apart(void **state)
{
	static const enum kmem_domain domains[] = { KMEM_DOMAIN_MMAP, KMEM_DOMAIN_RESERVED, KMEM_DOMAIN_FILE,
		                                        KMEM_DOMAIN_SHARED };
	struct range_pieces taken;

	for (size_t i = 0; i < ARRAY_LEN(domains); i++)
		hook_mmap(domains[i], (100 + i) * PAGE, PAGE);
	tracker_unmap_begin(at(100 * PAGE), 2 * PAGE, &taken);
	tracker_unmap_end(&taken, true);
	for (size_t i = 0; i < ARRAY_LEN(domains); i++)
		assert_row(domains[i], (struct totals){ PAGE, i < 2 ? PAGE : 0, 1, i < 2, PAGE });
}

/* As shmdt() does. */
static void
one_detaching_may_take_away_hundreds_of_pieces(void **state)
{
	enum { PIECES = 3 * RANGE_PIECES_MAX + 1 };
	struct range_pieces taken;

	hook_mmap(KMEM_DOMAIN_SHARED, 1000 * PAGE, 2 * PIECES * PAGE);
	for (uint64_t i = 1; i < 2 * PIECES; i += 2) {
		tracker_unmap_begin(at((1000 + i) * PAGE), PAGE, &taken);
		tracker_unmap_end(&taken, true);
	}
	tracker_detach_begin(at(1000 * PAGE), &taken);
	tracker_unmap_end(&taken, true);
	assert_row(KMEM_DOMAIN_SHARED, (struct totals){ 2 * PIECES * PAGE, 2 * PIECES * PAGE, 1, 1, 2 * PIECES * PAGE });
}

/* Else what stays reserved in the map is counted as memory too, and again for every other part of it. */
static void
what_cannot_be_cut_for_want_of_room_is_lost_not_counted_twice(void **state)
{
	const uint64_t base = 1u << 30;
	struct range_pieces taken;
	uint64_t filled = 0, before;

	hook_mmap(KMEM_DOMAIN_RESERVED, base, 100 * PAGE);
	while (range_map_put(2 * base + 2 * filled, 2 * base + 2 * filled + 1, 1, 1))
		filled++;
	hook_writable(base + 10 * PAGE, PAGE);
	hook_writable(base + 11 * PAGE, PAGE);
	assert_row(KMEM_DOMAIN_RESERVED, (struct totals){ 100 * PAGE, 0, 1, 0, 100 * PAGE });
	assert_row(KMEM_DOMAIN_MMAP, (struct totals){ 0 });
	assert_int_equal(lost(KMEM_LOST_EVENTS), 2);
	hook_mmap(KMEM_DOMAIN_MMAP, base + 10 * PAGE, PAGE); // over it: as good as never made
	assert_row(KMEM_DOMAIN_MMAP, (struct totals){ PAGE, PAGE, 1, 1, PAGE });
	before = lost(KMEM_LOST_EVENTS);
	assert_true(before > 2);
	tracker_unmap_begin(at(base), 100 * PAGE, &taken);
	assert_true(range_map_put(1, 2, 1, 1)); // another thread's
	tracker_unmap_end(&taken, false);
	assert_row(KMEM_DOMAIN_RESERVED, (struct totals){ 100 * PAGE, 100 * PAGE, 1, 1, 100 * PAGE });
	assert_int_equal(lost(KMEM_LOST_EVENTS), before + 1);
}

/* As an allocator's own system call may have done with what lay there. */
static void
what_a_mapping_grows_over_was_released_unseen(void **state)
{
	struct range_pieces taken;

	hook_mmap(KMEM_DOMAIN_MMAP, 1000 * PAGE, 10 * PAGE);
	hook_mmap(KMEM_DOMAIN_MMAP, 1012 * PAGE, 10 * PAGE);
	tracker_unmap_begin(at(1000 * PAGE), 10 * PAGE, &taken);
	hook_mremap(&taken, 1000 * PAGE, 20 * PAGE);
	assert_row(KMEM_DOMAIN_MMAP, (struct totals){ 40 * PAGE, 18 * PAGE, 3, 1, 22 * PAGE });
	assert_int_equal(lost(KMEM_LOST_MISSED_FREES), 1);
	assert_int_equal(lost(KMEM_LOST_EVENTS), 0);
	tracker_unmap_begin(at(0), 2000 * PAGE, &taken);
	assert_int_equal(taken.count, 2);
	tracker_unmap_end(&taken, true);
	assert_row(KMEM_DOMAIN_MMAP, (struct totals){ 40 * PAGE, 40 * PAGE, 3, 3, 22 * PAGE });
}

static void *
looks_at_what_another_holds(void *unused)
{
	tracker_returned(at(1u << 30), PAGE);
	hook_writable(1u << 30, PAGE);
	return unused;
}

static void
what_cannot_be_looked_up_is_counted(void **state)
{
	pthread_t thread;

	hook_mmap(KMEM_DOMAIN_RESERVED, 1u << 30, PAGE);
	range_map_lock();
	assert_int_equal(pthread_create(&thread, NULL, looks_at_what_another_holds, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	range_map_unlock();
	assert_int_equal(lost(KMEM_LOST_EVENTS), 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(mappings_are_counted_by_what_is_left_of_them, start_empty),
		cmocka_unit_test_setup(one_release_may_take_away_hundreds_of_mappings, start_empty),
		cmocka_unit_test_setup(domains_of_mappings_are_kept_apart, start_empty),
		cmocka_unit_test_setup(a_mapping_counts_the_bytes_that_were_asked_for, start_empty),
		cmocka_unit_test_setup(one_detaching_may_take_away_hundreds_of_pieces, start_empty),
		cmocka_unit_test_setup(what_cannot_be_cut_for_want_of_room_is_lost_not_counted_twice, start_empty),
		cmocka_unit_test_setup(what_a_mapping_grows_over_was_released_unseen, start_empty),
	};
	// it waits
	const struct CMUnitTest once[] = { cmocka_unit_test_setup(what_cannot_be_looked_up_is_counted, start_empty) };

	native_stack_start();
	if (cmocka_run_group_tests_name("mappings, threads without slots", tests, NULL, NULL) != 0)
		return 1;
	thread_slot_start();
	if (cmocka_run_group_tests_name("mappings", tests, NULL, NULL) != 0)
		return 1;
	return cmocka_run_group_tests_name("mappings, once", once, NULL, NULL);
}
