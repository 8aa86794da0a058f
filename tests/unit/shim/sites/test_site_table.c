/*
 * test_site_table.c - does the same stack always lead to the same site, and another stack never?
 */
#include "unit.h"

#include <sys/resource.h>

#include "base/settings.h"
#include "capture_fixture.h"
#include "random.h"
#include "sites/site_table.h"

#define PYTHON(number) (KMEM_FRAME_PYTHON | (number)) // no module is looked up for these

static struct site_owner owner;

SETUP(start_empty)
{
	capture_file_forked();
	site_table_clear();
	memset(&owner, 0, sizeof(owner));
	owner.slot = 1;
	settings.sites_max = 1u << 20;
	settings.capture_max = 0;
}

static int
start_in_folder(void **state)
{
	return make_folder(state) != 0 || start_empty(state) != 0;
}

/* A stack of two frames. */
static const struct call_stack *
stack_of(uint64_t inner, uint64_t outer, uint64_t hash)
{
	static struct call_stack stack;

	memset(&stack, 0, sizeof(stack));
	stack.hash = hash;
	stack.frame_count = 2;
	stack.frames[0] = PYTHON(inner);
	stack.frames[1] = PYTHON(outer);
	return &stack;
}

static const struct kmem_stack *
stored(uint32_t site)
{
	return capture_file_item(KMEM_SECTION_RECORDS, site_table_at(site)->stack);
}

static uint64_t
site_count(void)
{
	return capture_file_header()->used_bytes[KMEM_SECTION_SITES] / sizeof(struct kmem_site);
}

TEST_WITH(T1_S1_S2_a_found_site_is_complete_and_stays_the_same, start_empty, NULL)
{
	const uint32_t site = site_table_find(&owner, stack_of(1, 2, 3), KMEM_DOMAIN_MMAP, 9);
	struct kmem_site before;

	assert_int_not_equal(site, 0);
	assert_int_not_equal(site_table_at(site)->stack, 0);
	assert_int_equal(site_table_at(site)->domain, KMEM_DOMAIN_MMAP);
	assert_int_equal(site_table_at(site)->first_generation, 9);
	assert_int_equal(site_table_at(site)->allocated_count, 0);
	assert_int_equal(stored(site)->record.type, KMEM_RECORD_STACK);
	assert_int_equal(stored(site)->frame_count, 2);
	assert_int_equal(stored(site)->frames[0], PYTHON(1));
	assert_int_equal(stored(site)->frames[1], PYTHON(2));
	assert_int_equal(stored(site)->record.checksum, kmem_checksum(KMEM_CHECKSUM_START, (const char *)stored(site) + 4,
	                                                              stored(site)->record.bytes - 4));
	memcpy(&before, site_table_at(site), sizeof(before));
	for (uint8_t clock = 10; clock < 20; clock++)
		assert_int_equal(site_table_find(&owner, stack_of(1, 2, 3), KMEM_DOMAIN_MMAP, clock), site);
	assert_memory_equal(&before, site_table_at(site), sizeof(before));
	assert_int_equal(site_count(), 1);
}

TEST_WITH(whatever_differs_makes_another_site, start_empty, NULL)
{
	struct call_stack stack = *stack_of(1, 2, 3);
	uint32_t sites[8];
	size_t count = 0;

	sites[count++] = site_table_find(&owner, &stack, 0, 1);
	sites[count++] = site_table_find(&owner, &stack, 1, 1); // domain
	stack.frames[1]++;                                      // a frame, and the hash collides
	sites[count++] = site_table_find(&owner, &stack, 0, 1);
	stack.frames[1]--;
	stack.frame_count = 1;
	sites[count++] = site_table_find(&owner, &stack, 0, 1);
	stack.frame_count = 0;
	sites[count++] = site_table_find(&owner, &stack, 0, 1);
	stack.frame_count = 2;
	stack.flags = KMEM_STACK_TRUNCATED;
	sites[count++] = site_table_find(&owner, &stack, 0, 1);
	stack.omitted = 7;
	sites[count++] = site_table_find(&owner, &stack, 0, 1);
	for (size_t i = 0; i < count; i++) {
		assert_int_not_equal(sites[i], 0);
		for (size_t k = 0; k < i; k++)
			assert_int_not_equal(sites[i], sites[k]);
	}
	assert_int_equal(site_count(), count);
}

TEST_WITH(a_hundred_thousand_sites_are_all_found_again, start_empty, NULL)
{
	enum { COUNT = 100000 };
	static uint32_t sites[COUNT];

	for (uint32_t i = 0; i < COUNT; i++) // hashes that differ little: 64 sites each share one
		sites[i] = site_table_find(&owner, stack_of(i, i, i / 64 + 1), i % 5, 1);
	assert_int_equal(site_count(), COUNT);
	for (uint32_t i = 0; i < COUNT; i++) {
		assert_int_equal(sites[i], i + 1);
		assert_int_equal(site_table_find(&owner, stack_of(i, i, i / 64 + 1), i % 5, 1), sites[i]);
	}
	assert_int_equal(capture_file_header()->losses[KMEM_LOST_SITES], 0);
}

/* Room for a quarter of the budget more, for outermost callers; the rest is one site for each domain. */
TEST_WITH(beyond_the_budget_a_stack_folds_into_its_callers, start_empty, NULL)
{
	uint32_t parents[16];
	uint32_t rest[2];

	settings.sites_max = 64;
	for (uint32_t i = 0; i < 64; i++)
		assert_int_equal(site_table_find(&owner, stack_of(i, i, i + 10), 0, 1), i + 1);
	for (uint32_t i = 0; i < 16; i++) {
		parents[i] = site_table_find(&owner, stack_of(1000, i, 5000 + i), i % 2, 1);
		assert_int_equal(stored(parents[i])->record.flags, KMEM_STACK_MERGED);
		assert_int_equal(stored(parents[i])->frame_count, 1);
		assert_int_equal(stored(parents[i])->frames[0], PYTHON(i));
	}
	for (uint32_t domain = 0; domain < 2; domain++) {
		rest[domain] = site_table_find(&owner, stack_of(1000, 100, 6000), domain, 1);
		assert_int_equal(stored(rest[domain])->record.flags, KMEM_STACK_MERGED);
		assert_int_equal(stored(rest[domain])->frame_count, 0);
		assert_int_equal(site_table_at(rest[domain])->domain, domain);
	}
	for (uint32_t i = 0; i < 500; i++) {
		assert_int_equal(site_table_find(&owner, stack_of(2000 + i, i % 16, 7000 + i), i % 2, 1), parents[i % 16]);
		assert_int_equal(site_table_find(&owner, stack_of(2000 + i, 200 + i, 8000 + i), i % 2, 1), rest[i % 2]);
	}
	assert_int_equal(capture_file_header()->losses[KMEM_LOST_SITES], 1018); // events, not sites
	for (uint32_t i = 0; i < 64; i++)                                       // those that have a place keep it
		assert_int_equal(site_table_find(&owner, stack_of(i, i, i + 10), 0, 1), i + 1);
	assert_int_equal(site_count(), 82);
}

/* A stack of `count` frames; the innermost is of its own, the rest is the same for stacks with the same `rest`. */
static const struct call_stack *
deep_stack(uint64_t own, uint64_t rest, uint32_t count)
{
	static struct call_stack stack;

	memset(&stack, 0, sizeof(stack));
	stack.hash = (own << 20 ^ rest) * UINT64_C(0x9e3779b97f4a7c15);
	stack.frame_count = count;
	for (uint32_t i = 0; i < count; i++)
		stack.frames[i] = PYTHON(rest << 8 | i);
	stack.frames[0] = PYTHON(own);
	return &stack;
}

/* A line at the module's top level has no callers: what is kept for them is its. */
TEST_WITH(beyond_the_budget_a_stack_of_one_frame_keeps_it, start_empty, NULL)
{
	struct call_stack stack = *stack_of(1000, 0, 5000);

	settings.sites_max = 64;
	for (uint32_t i = 0; i < 64; i++)
		assert_int_equal(site_table_find(&owner, stack_of(i, i, i + 10), 0, 1), i + 1);
	for (uint32_t i = 0; i < 12; i++) // more than an eighth, of closer callers
		(void)site_table_find(&owner, deep_stack(2000 + i, 3000 + i, 8), 0, 1);
	stack.frame_count = 1;
	uint32_t site = site_table_find(&owner, &stack, 0, 1);
	assert_int_equal(stored(site)->frame_count, 1);
	assert_int_equal(stored(site)->frames[0], PYTHON(1000));
}

/* The first chunk of each section is there; then no more. */
static int
finds_every_stack_a_place_on_a_full_disk(void *limited_chunks)
{
	rlim_t bytes = KMEM_HEAD_BYTES + *(unsigned *)limited_chunks * KMEM_CHUNK_BYTES;
	struct rlimit limit = { bytes, bytes };
	static struct site_owner other = { .slot = 2 };
	uint64_t whole = 0;
	uint64_t callers = 0;

	CHECK_IN_CHILD(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	CHECK_IN_CHILD(capture_file_open(folder, "name"));
	for (uint64_t i = 0; i < 20000; i++) {
		uint32_t site = site_table_find(&owner, deep_stack(i, i / 8, 20), i % 4, 1);

		CHECK_IN_CHILD(site != 0 && site_table_at(site)->domain == i % 4);
		CHECK_IN_CHILD(site_table_own(&other, site, 1) != 0); // and a thread that releases it
		whole += (stored(site)->record.flags & KMEM_STACK_MERGED) == 0;
		callers += (stored(site)->record.flags & KMEM_STACK_MERGED) != 0 && stored(site)->frame_count != 0;
	}
	CHECK_IN_CHILD(whole > 200 && callers > 100);
	CHECK_IN_CHILD(capture_file_header()->losses[KMEM_LOST_SITES] >= 20000 - whole);
	return 0;
}

TEST_WITH(a_full_disk_folds_new_stacks_and_loses_none, start_in_folder, remove_folder)
{
	static unsigned chunks[] = { 2, 3, 9 };
	char text[4096];

	for (size_t i = 0; i < ARRAY_LEN(chunks); i++) {
		assert_int_equal(in_child_telling(finds_every_stack_a_place_on_a_full_disk, &chunks[i], text, sizeof(text)), 0);
		assert_non_null(strstr(text, "EFBIG"));
		unlink(path);
	}
}

TEST_WITH(a_large_capture_folds_new_stacks, start_empty, NULL)
{
	uint32_t first = site_table_find(&owner, stack_of(1, 2, 3), 0, 1);

	// one of sites and one of stacks are there; a quarter is left for outermost callers
	settings.capture_max = 2 * KMEM_CHUNK_BYTES;
	assert_int_equal(site_table_find(&owner, stack_of(1, 2, 3), 0, 1), first);
	assert_int_equal(stored(site_table_find(&owner, stack_of(7, 2, 4), 0, 1))->frame_count, 1);
	settings.capture_max = KMEM_CHUNK_BYTES; // and that is used up: only what is there already
	assert_int_equal(stored(site_table_find(&owner, stack_of(8, 2, 5), 0, 1))->frame_count, 1);
	assert_int_equal(stored(site_table_find(&owner, stack_of(8, 9, 6), 0, 1))->frame_count, 0);
	assert_int_equal(capture_file_header()->losses[KMEM_LOST_SITES], 3);
}

TEST_WITH(clear_forgets_everything, start_empty, NULL)
{
	for (uint32_t i = 0; i < 100; i++)
		site_table_find(&owner, stack_of(i, i, i + 10), 0, 1);
	start_empty(test_state);
	assert_int_equal(site_table_find(&owner, stack_of(50, 50, 60), 0, 1), 1);
	assert_int_equal(stored(1)->frames[0], PYTHON(50));
}

/* ---- records of several threads ---- */

TEST_WITH(S4_every_slot_has_a_record_of_its_own_with_the_same_stack, start_empty, NULL)
{
	static struct site_owner other;

	memset(&other, 0, sizeof(other));
	other.slot = 7;
	uint32_t mine = site_table_find(&owner, stack_of(1, 2, 3), 4, 1);
	uint32_t theirs = site_table_find(&other, stack_of(1, 2, 3), 4, 2);
	uint32_t shared = site_table_find(NULL, stack_of(1, 2, 3), 4, 3);
	assert_int_equal(site_count(), 3);
	assert_int_equal(site_table_at(mine)->slot, 1);
	assert_int_equal(site_table_at(theirs)->slot, 7);
	assert_int_equal(site_table_at(shared)->slot, 0);
	assert_int_equal(site_table_at(theirs)->stack, site_table_at(mine)->stack);
	assert_int_equal(site_table_at(theirs)->domain, 4);
	assert_int_equal(site_table_at(theirs)->first_generation, 2);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(site_table_find(&owner, stack_of(1, 2, 3), 4, 9), mine);
		assert_int_equal(site_table_find(&other, stack_of(1, 2, 3), 4, 9), theirs);
		assert_int_equal(site_table_find(NULL, stack_of(1, 2, 3), 4, 9), shared);
	}
	assert_int_equal(site_count(), 3);
}

TEST_WITH(T3_from_every_record_a_thread_finds_its_own, start_empty, NULL)
{
	enum { THREADS = 40 };
	static struct site_owner owners[THREADS];
	uint32_t records[THREADS];

	memset(owners, 0, sizeof(owners));
	for (uint16_t i = 0; i < THREADS; i++) {
		owners[i].slot = (uint16_t)(i + 1);
		/* by the stack, or because it frees a block of the one before */
		records[i] = i % 3 == 0 ? site_table_find(&owners[i], stack_of(5, 6, 7), 0, 1)
		                        : site_table_own(&owners[i], records[i - 1], 1);
		assert_int_equal(site_table_at(records[i])->slot, i + 1);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		memset(&owners[i].own, 0, sizeof(owners[i].own));
		memset(&owners[i].joined, 0, sizeof(owners[i].joined));
		for (unsigned k = 0; k < THREADS; k++) {
			assert_int_equal(site_table_own(&owners[i], records[k], 1), records[i]);
			assert_int_equal(site_table_own(&owners[i], records[k], 1), records[i]); // remembered
		}
		assert_int_equal(site_table_find(&owners[i], stack_of(5, 6, 7), 0, 1), records[i]);
	}
	assert_int_equal(site_count(), THREADS);
}

/* A ring of a thousand records is a thousand cache lines. */
TEST_WITH(with_many_threads_a_record_is_found_without_going_through_theirs, start_empty, NULL)
{
	enum { THREADS = 300 };
	static struct site_owner others[THREADS];
	uint32_t theirs[THREADS];

	memset(others, 0, sizeof(others));
	for (uint16_t i = 0; i < THREADS; i++) {
		others[i].slot = (uint16_t)(i + 2);
		theirs[i] = site_table_find(&others[i], stack_of(5, 6, 7), 0, 1);
	}
	uint32_t mine = site_table_own(&owner, theirs[0], 1);
	uint32_t shared = site_table_find(NULL, stack_of(5, 6, 7), 0, 1);
	for (uint32_t site = 1; site <= site_count(); site++)
		site_table_at(site)
			->next_same_stack &= ~KMEM_TWIN_MASK; // who goes there finds nobody, and makes another record
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(site_table_own(&owner, theirs[i], 1), mine);
		assert_int_equal(site_table_own(NULL, theirs[i], 1), shared);
		assert_int_equal(site_table_find(NULL, stack_of(5, 6, 7), 0, 1), shared);
	}
	assert_int_equal(site_count(), THREADS + 2);
	memset(others, 0, sizeof(others));
	start_empty(NULL); // in a child the number is another thread's
	for (uint16_t i = 0; i < THREADS; i++) {
		others[i].slot = (uint16_t)(i + 2);
		(void)site_table_find(&others[i], stack_of(5, 6, 7), 0, 1);
	}
	others[0] = (struct site_owner){ .slot = THREADS + 2 };
	others[1] = (struct site_owner){ .slot = THREADS + 3 };
	assert_int_not_equal(site_table_own(&others[0], 1, 1), shared);
	assert_int_equal(site_table_own(&others[1], 1, 1), shared);
	assert_int_equal(site_table_at(site_table_find(NULL, stack_of(5, 6, 7), 0, 1))->slot, 0);
}

/* Else the site of the allocation seems to keep it. */
TEST_WITH(without_budget_a_release_is_booked_at_its_own_site, start_empty, NULL)
{
	static struct site_owner other;
	uint32_t mine[64];

	memset(&other, 0, sizeof(other));
	other.slot = 2;
	settings.sites_max = 64;
	for (uint32_t i = 0; i < 64; i++)
		mine[i] = site_table_find(&owner, stack_of(i, i, i + 10), 3, 1);
	for (uint32_t i = 0; i < 64; i++) {
		uint32_t theirs = site_table_own(&other, mine[i], 1);

		assert_ptr_equal(stored(theirs), stored(mine[i]));
		assert_int_equal(site_table_at(theirs)->slot, 2);
	}
	assert_int_equal(capture_file_header()->losses[KMEM_LOST_SITES], 0);
	other = (struct site_owner){ .slot = 3 }; // and when that room is used up as well
	assert_int_equal(stored(site_table_own(&other, mine[0], 1))->record.flags, KMEM_STACK_MERGED);
	assert_int_equal(capture_file_header()->losses[KMEM_LOST_SITES], 1);
}

TEST_WITH(totals_are_the_sums_over_all_records, start_empty, NULL)
{
	struct site_totals totals[KMEM_DOMAINS_MAX];

	for (uint32_t i = 0; i < 100; i++) {
		struct kmem_site *site = site_table_at(site_table_find(&owner, stack_of(i, i, i + 10), i % 5, 1));

		site->allocated_bytes = i * 1000;
		site->freed_bytes = i * 10;
		site->allocated_count = i * 3;
		site->freed_count = i;
	}
	site_table_totals(totals);
	assert_int_equal(totals[2].live_bytes, (100 / 5) * (2 + 97) / 2 * 990);
	assert_int_equal(totals[2].allocated_count, (100 / 5) * (2 + 97) / 2 * 3);
	assert_int_equal(totals[2].live_count, (100 / 5) * (2 + 97) / 2 * 2);
	assert_int_equal(totals[7].allocated_count, 0);
	/* Domains 0 and 1 are private, 2 to 4 are not. */
	assert_int_equal(site_table_given(owner.slot), 1000 * (20 * (0 + 95) / 2 + 20 * (1 + 96) / 2));
	assert_int_equal(site_table_given((uint16_t)(owner.slot + 1)), 0);
}

/* ---- shared outer frames ---- */

/* The whole stack that a record stands for, by the rule at struct kmem_stack. */
static uint32_t
expand(uint32_t stack_index, uint64_t *frames)
{
	const struct kmem_stack *at = capture_file_item(KMEM_SECTION_RECORDS, stack_index);
	uint32_t total = at->frame_count;
	uint32_t count = 0;
	uint32_t wanted = total; // outermost ones of the record at hand

	for (;;) {
		uint32_t shared = at->frame_count - at->own_count;
		uint32_t here = wanted > shared ? wanted - shared : 0;

		memcpy(frames + count, at->frames + at->own_count - here, here * sizeof(*frames));
		count += here;
		if (count == total)
			return total;
		wanted -= here;
		assert_in_range(at->record.previous, 1, stack_index - 1);
		stack_index = at->record.previous;
		at = capture_file_item(KMEM_SECTION_RECORDS, stack_index);
	}
}

TEST_WITH(outer_frames_are_stored_once_and_found_again, start_empty, NULL)
{
	enum { STACKS = 3000 };
	static struct call_stack stacks[STACKS];
	static uint32_t sites[STACKS];
	uint64_t frames[KMEM_STACK_FRAMES_MAX];
	uint64_t random = random_seed();
	uint64_t words = 0;

	stacks[0].frame_count = 200;
	for (uint32_t i = 0; i < 200; i++)
		stacks[0].frames[i] = PYTHON(i);
	for (uint32_t i = 0; i < STACKS; i++) {
		struct call_stack *stack = &stacks[i];

		if (i != 0) { // the one before, with some inner frames exchanged
			uint32_t gone = (uint32_t)random_below(&random, 12) + (random_below(&random, 50) == 0 ? 150 : 0);
			uint32_t fresh = (uint32_t)random_below(&random, 12) + (stacks[i - 1].frame_count < 60 ? 200 : 0);

			gone = gone < stacks[i - 1].frame_count ? gone : stacks[i - 1].frame_count;
			stack->frame_count = stacks[i - 1].frame_count - gone + fresh;
			stack->frame_count = stack->frame_count < KMEM_STACK_FRAMES_MAX ? stack->frame_count
			                                                                : KMEM_STACK_FRAMES_MAX;
			for (uint32_t k = 0; k < stack->frame_count; k++)
				stack->frames[k] = k < fresh ? PYTHON(1000000 + i * 1000 + k) : stacks[i - 1].frames[k - fresh + gone];
		}
		stack->hash = i / 2 + 1;
		sites[i] = site_table_find(&owner, stack, 0, 1);
		assert_int_not_equal(sites[i], 0);
		words += stored(sites[i])->own_count;
		assert_in_range(stored(sites[i])->chain, 0, KMEM_STACK_CHAIN_MAX);
	}
	for (uint32_t i = 0; i < STACKS; i++) {
		assert_int_equal(expand(site_table_at(sites[i])->stack, frames), stacks[i].frame_count);
		assert_memory_equal(frames, stacks[i].frames, stacks[i].frame_count * sizeof(frames[0]));
		assert_int_equal(site_table_find(&owner, &stacks[i], 0, 1), sites[i]);
	}
	assert_in_range(words, 0, STACKS * 30); // of about 200 a stack
}

/* What a cut capture may be for a moment, for threads that are about to record. */
TEST_WITH(walks_end_in_records_that_lead_in_circles, start_empty, NULL)
{
	struct call_stack stack = *stack_of(1, 2, 3);
	uint32_t sites[3];
	uint32_t records;

	for (uint16_t i = 0; i < 3; i++) {
		owner.slot = i + 1;
		sites[i] = site_table_own(&owner, site_table_find(&owner, &stack, 0, 1), 1);
		assert_int_not_equal(sites[i], 0);
	}
	site_table_at(sites[0])->next_same_stack = sites[1]; // from here to two that know each other alone
	site_table_at(sites[1])->next_same_stack = sites[2];
	site_table_at(sites[2])->next_same_stack = sites[1];
	(void)site_table_held(sites[0], &records);
	owner = (struct site_owner){ .slot = 4 };
	assert_int_not_equal(site_table_own(&owner, sites[0], 1), 0);

	struct kmem_stack *record = capture_file_item(KMEM_SECTION_RECORDS, site_table_at(sites[0])->stack);

	record->own_count = 0;
	record->record.previous = site_table_at(sites[0])->stack;
	owner = (struct site_owner){ .slot = 5 };
	(void)site_table_find(&owner, &stack, 0, 1);
}

RUN_TESTS(NULL, NULL)
