/*
 * test_resident.c - is what lies in memory found, does it add up, and is a block of the heap found by where it may be?
 */
#include "unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "capture_file.h"
#include "capture_life.h"
#include "heartbeat.h"
#include "paced_look.h"
#include "pointer_map.h"
#include "range_map.h"
#include "raw_sys.h"
#include "resident.h"

#define MIB ((uint64_t)1 << 20)
#define SLACK (MIB / 2) // of what the process does on its own between two looks
#define RW (PROT_READ | PROT_WRITE)

static int
start_empty(void **state)
{
	(void)state;
	capture_file_forked();
	pointer_map_clear();
	range_map_clear();
	return 0;
}

static struct kmem_resident
look(void)
{
	const struct kmem_resident *two = capture_file_header()->resident;
	uint64_t before = two[0].sequence > two[1].sequence ? two[0].sequence : two[1].sequence;
	const struct kmem_resident *found;
	uint64_t sum = 0;

	resident_take(true, 0);
	found = two[0].sequence > two[1].sequence ? &two[0] : &two[1];
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
assert_grew(const struct kmem_resident *before, const struct kmem_resident *after, enum kmem_resident_part part, uint64_t bytes)
{
	int64_t off = (int64_t)(after->part_bytes[part] - before->part_bytes[part] - bytes);

	if (off < -(int64_t)SLACK || off > (int64_t)SLACK)
		fail_msg("part %u: off by %ld KiB", part, (long)(off / 1024));
}

static void
each_part_is_found_and_all_add_up(void **state)
{
	const struct address_block block = { 100, site_of(KMEM_DOMAIN_HEAP), 1 };
	struct address_block old;
	struct kmem_resident before = look();

	(void)state;
	memset(raw_reserve(KMEM_OWN_THREADS, 5 * MIB, RW), 1, 3 * MIB);
	char *mapped = map(8 * MIB, MAP_PRIVATE);
	memset(mapped, 1, 8 * MIB);
	assert_true(range_map_put((uint64_t)mapped + 4 * MIB, (uint64_t)mapped + 5 * MIB, site_of(KMEM_DOMAIN_MMAP), 1));
	assert_true(range_map_put((uint64_t)mapped + 6 * MIB, (uint64_t)mapped + 8 * MIB, site_of(KMEM_DOMAIN_PYTHON_ARENA), 1));
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

static void
of_a_range_the_lowest_block_is_found_and_that_there_was_one(void **state)
{
	const struct address_block block = { 100, 1, 1 };
	const uint64_t base = UINT64_C(0x600000000000) - 4096; // over the edge of a leaf
	const struct {
		uint64_t from;
		uint64_t to;
		uint64_t lowest; // 0 = none
		bool was_used;
	} cases[] = {
		{ 0, 4096, 0, false },           { 0, 4096 * 2, 4096 + 64, false }, { 4096 + 64, 4096 + 128, 4096 + 64, false },
		{ 4096 + 96, 20000, 0, true },   { 0, 20000, 4096 + 64, false },    { 4096 + 96, MIB * 200, MIB * 100, true },
		{ MIB * 50, MIB * 60, 0, false }, { 4096 + 96, 4096 + 96, 0, false },
	};
	struct address_block taken;
	bool was_used;

	(void)state;
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

/* Else what is left after Python has gone would stand beside what was live before. */
static void
the_look_before_a_teardown_stays_the_last(void **state)
{
	const struct kmem_resident *two = capture_file_header()->resident;

	(void)state;
	capture_file_header()->is_finalizing = KMEM_YES;
	resident_take(false, 0);
	assert_int_equal(two[0].sequence + two[1].sequence, 0);
	capture_file_header()->is_finalizing = 0;
	resident_take(false, 0);
	assert_int_equal(two[0].sequence + two[1].sequence, 1);
}

/* The larger its parent, the longer it would take. */
static void
a_child_does_not_look_when_it_starts(void **state)
{
	const struct kmem_resident *two = capture_file_header()->resident;
	uint64_t sum;
	uint64_t begin_ns;

	(void)state;
	do {
		begin_ns = heartbeat_now_ns();
		sum = two[0].sequence + two[1].sequence;
		resident_forked();
		resident_take(false, 0);
	} while (heartbeat_now_ns() - begin_ns > 20000000); // so long that the next one was due
	assert_int_equal(two[0].sequence + two[1].sequence, sum);
}

/* The highest that was looked at counts: what grows and shrinks all the time is not looked at all the time. */
static void
a_process_that_grew_by_a_quarter_is_worth_a_look(void **state)
{
	struct kmem_resident found = look();
	uint64_t most = found.resident_bytes;

	(void)state;
	assert_false(resident_has_grown(0)); // not known
	assert_false(resident_has_grown(most + most / 5));
	assert_true(resident_has_grown(most + most / 3));
	char *mapped = map(most + 64 * MIB, MAP_PRIVATE);
	memset(mapped, 1, most + 64 * MIB);
	most = look().resident_bytes;
	assert_false(resident_has_grown(most));
	assert_int_equal(munmap(mapped, found.resident_bytes + 64 * MIB), 0);
	found = look();
	assert_true(found.resident_bytes < most / 4 * 3);
	assert_false(resident_has_grown(most));
}

static void
an_urgent_look_comes_sooner_than_a_usual_one(void **state)
{
	struct paced_look paced = { .period_ns = 1, .period_part = UINT64_C(1) << 32, .urgent_part = 0, .is_looking = ATOMIC_FLAG_INIT };

	(void)state;
	assert_true(paced_look_begin(&paced, PACED_USUAL));
	assert_false(paced_look_begin(&paced, PACED_DUE)); // one at a time
	paced_look_end(&paced);
	assert_false(paced_look_begin(&paced, PACED_USUAL));
	assert_true(paced_look_begin(&paced, PACED_URGENT));
	paced.urgent_part = UINT64_C(1) << 32;
	paced_look_end(&paced);
	assert_false(paced_look_begin(&paced, PACED_URGENT));
	assert_true(paced_look_begin(&paced, PACED_DUE));
	paced_look_end(&paced);
}

/* Where the system gives huge pages to all, a word of a table would be 2 MiB of memory. */
static void
our_tables_have_no_huge_pages(void **state)
{
	uint64_t table = (uint64_t)raw_reserve(KMEM_OWN_OTHER, 8 * MIB, RW);
	FILE *smaps = fopen("/proc/self/smaps", "r");
	uint64_t start, end;
	bool is_there = false, is_found = false;
	char line[512];

	(void)state;
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
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_look_before_a_teardown_stays_the_last, start_empty), // first: a look is due
		cmocka_unit_test_setup(a_child_does_not_look_when_it_starts, start_empty),
		cmocka_unit_test_setup(a_process_that_grew_by_a_quarter_is_worth_a_look, start_empty),
		cmocka_unit_test(an_urgent_look_comes_sooner_than_a_usual_one),
		cmocka_unit_test_setup(each_part_is_found_and_all_add_up, start_empty),
		cmocka_unit_test(our_tables_have_no_huge_pages),
		cmocka_unit_test_setup(of_a_range_the_lowest_block_is_found_and_that_there_was_one, start_empty),
	};

	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); // what is touched is resident, and nothing beside it
	pointer_map_start(true);
	return cmocka_run_group_tests_name("resident", tests, NULL, NULL);
}
