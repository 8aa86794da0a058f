/*
 * test_object_census.c - are the kinds of objects that live at a call site told from a sample, and is nothing touched that may be dying?
 */
#include "unit.h"

#include <stdatomic.h>

#include "base/capture_life.h"
#include "base/clock.h"
#include "base/raw_sys.h"
#include "capture/capture_file.h"
#include "periodic/object_census.h"
#include "python/python_fakes.h"
#include "python/python_runtime.h"
#include "tables/pointer_map.h"

#define READY (UINT64_C(1) << 12)
#define OBJECT_BYTES 32
#define STEP 64 // from block to block
#define KINDS 20
#define SITES 300
#define HEAP_BYTES ((size_t)4 << 20)

static _Alignas(16) char kinds[KINDS][400]; // types
static char names[KINDS][16];
static char *heap; // blocks of this test
static size_t heap_used;
static bool is_attached;

static void *
give_state(void)
{
	return is_attached ? kinds : NULL;
}

static int
start(void **state)
{
	static uint32_t captures;

	capture_file_forked();
	capture_file_header()->identity.pid = ++captures; // another one
	pointer_map_clear();
	object_census_forked();
	heap = raw_mmap(NULL, HEAP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(heap, MAP_FAILED);
	heap_used = 0;
	is_attached = true;
	python_runtime.interpreter = fake_interpreter();
	python_runtime.current_state = python_runtime.thread_state = give_state;
	atomic_store(&python_runtime.state, PYTHON_RUNTIME_FOUND);
	for (unsigned i = 0; i < KINDS; i++) {
		snprintf(names[i], sizeof(names[i]), "Kind%u", i);
		memset(kinds[i], 0, sizeof(kinds[i]));
		fake_put(kinds[i], 8, python_runtime.interpreter.types.type);
		fake_put(kinds[i], 24, (uint64_t)names[i]);
		fake_put(kinds[i], 32, OBJECT_BYTES);
		fake_put(kinds[i], 168, READY);
	}
	return 0;
}

SETUP(stop)
{
	raw_munmap(heap, HEAP_BYTES);
}

/* A record of the heap that holds so much, as site_table.c would make it. */
static uint32_t
site_of(uint64_t blocks)
{
	uint32_t index;
	struct kmem_site *site = capture_file_append(KMEM_SECTION_SITES, sizeof(*site), &index);

	assert_non_null(site);
	site->domain = KMEM_DOMAIN_HEAP;
	atomic_store(&site->allocated_count, blocks + 5);
	atomic_store(&site->freed_count, 5);
	site->peak = kmem_peak_pack(blocks * OBJECT_BYTES, 0, 0);
	atomic_store(&site->stack, 1); // S1
	return index + 1;
}

/* A block of the OBJ wrapper. */
static char *
block_of(uint32_t site)
{
	char *block = heap + heap_used;
	struct address_block old;

	heap_used += STEP;
	assert_true(heap_used <= HEAP_BYTES);
	assert_int_equal(pointer_map_put(block, (struct address_block){ OBJECT_BYTES, site, POINTER_MAP_OBJECT }, &old),
	                 POINTER_MAP_STORED);
	return block;
}

static void
objects_of(uint32_t site, unsigned kind, unsigned count, uint64_t references)
{
	for (unsigned i = 0; i < count; i++) {
		char *block = block_of(site);

		fake_put(block, 0, references);
		fake_put(block, 8, (uint64_t)kinds[kind]);
	}
}

/* What the capture says. */
static uint32_t
rows(void)
{
	return (uint32_t)atomic_load(&capture_file_header()->object_count_total); // once of twice
}

static uint64_t
told(uint32_t site, unsigned kind)
{
	const struct kmem_header *header = capture_file_header();

	for (uint32_t i = 0; i < rows(); i++) {
		const struct kmem_object_count *row = &header->object_census[i];
		const struct kmem_type *type = capture_file_item(KMEM_SECTION_RECORDS, row->type);

		if (row->site == site && type->name_bytes == strlen(names[kind]) &&
		    memcmp(type + 1, names[kind], type->name_bytes) == 0)
			return row->count;
	}
	return 0;
}

static void
assert_about(uint64_t count, uint64_t wanted)
{
	if (count < wanted * 8 / 10 || count > wanted * 12 / 10)
		fail_msg("%lu told, %lu are there", (unsigned long)count, (unsigned long)wanted);
}

/* The first test: nobody has said that objects are in the map. */
TEST(nothing_is_looked_at_before_the_wrappers_are_there)
{
	objects_of(site_of(100), 0, 100, 1);
	object_census_take(true);
	assert_int_equal(rows(), 0);
	object_census_begin(OBJECT_CENSUS_ALL);
	object_census_take(true);
	assert_int_equal(rows(), 1);
}

TEST(kinds_are_estimated_from_a_sample)
{
	uint32_t mixed = site_of(20000);
	uint32_t few = site_of(3);

	for (unsigned i = 0; i < 100; i++) { // in turns
		objects_of(mixed, 0, 120, 1);
		objects_of(mixed, 1, 60, 1);
		objects_of(mixed, 2, 20, 1);
	}
	objects_of(few, 3, 3, 1);
	object_census_take(true);
	assert_about(told(mixed, 0), 12000);
	assert_about(told(mixed, 1), 6000);
	assert_true(told(mixed, 2) > 1000 && told(mixed, 2) < 3000); // about a hundred samples
	assert_int_equal(told(few, 3), 3);
	assert_int_equal(rows(), 4);
}

/* Without references it dies, or waits in a free list; what is no object is counted among those that were looked at. */
TEST(what_is_dying_has_no_kind)
{
	uint32_t site = site_of(600);

	objects_of(site, 0, 200, 1);
	objects_of(site, 1, 200, 0);
	for (unsigned i = 0; i < 200; i++)
		memset(block_of(site), 0xdb, OBJECT_BYTES);
	object_census_take(true);
	assert_int_equal(told(site, 0), 200);
	assert_int_equal(rows(), 1);
}

/* Nothing is written into what is looked at, and what is gone behind the map's back may be unmapped. */
TEST(a_look_neither_writes_nor_faults)
{
	const unsigned half = 4096 / STEP / 2; // a page's, and of what is copied at once
	uint32_t site = site_of(7 * half);

	objects_of(site, 0, half, 1);
	heap_used = 4096;
	objects_of(site, 1, 2 * half, 1);
	objects_of(site, 2, 2 * half, 1);
	objects_of(site, 3, half, 1); // copied together with blocks that are not there
	objects_of(site, 0, half, 1);
	assert_int_equal(mprotect(heap, HEAP_BYTES, PROT_READ), 0);
	assert_int_equal(raw_munmap(heap + 4096, 4096), 0);
	assert_int_equal(mprotect(heap + 8192, 4096, PROT_NONE), 0);
	object_census_take(true);
	assert_true(told(site, 0) >= 2 * half);
	assert_true(told(site, 3) >= half);
	assert_int_equal(told(site, 1) + told(site, 2), 0);
}

TEST(what_left_the_map_is_not_looked_at)
{
	uint32_t site = site_of(100);
	struct address_block gone;

	objects_of(site, 0, 100, 1);
	objects_of(site, 1, 100, 1);
	for (size_t at = 100 * STEP; at < heap_used; at += STEP)
		assert_true(pointer_map_take(heap + at, &gone));
	object_census_take(true);
	assert_int_equal(told(site, 0), 100);
	assert_int_equal(rows(), 1);
}

/* 64 records, those that hold most; of each the three kinds of which there are most. */
TEST(the_capture_gets_a_bounded_table)
{
	uint32_t sites[SITES];
	unsigned told_sites = 0;

	for (unsigned i = 0; i < SITES; i++) {
		sites[i] = site_of(SITES + i);
		for (unsigned kind = 0; kind < 5; kind++)
			objects_of(sites[i], kind, 1 + 2 * kind, 1);
	}
	object_census_take(true);
	assert_int_equal(rows(), KMEM_OBJECT_CENSUS_MAX);
	for (unsigned i = 0; i < SITES; i++) {
		told_sites += told(sites[i], 4) == 9 && told(sites[i], 3) == 7 && told(sites[i], 2) == 5;
		assert_int_equal(told(sites[i], 0) + told(sites[i], 1), 0);
		assert_int_equal(told(sites[i], 4) != 0, i >= SITES - 64);
	}
	assert_int_equal(told_sites, 64);
}

TEST(more_kinds_than_there_is_room_for_are_none)
{
	uint32_t site = site_of(KINDS * 10);

	objects_of(site, 0, 30, 1);
	for (unsigned kind = 1; kind < KINDS; kind++)
		objects_of(site, kind, 10, 1);
	object_census_take(true);
	assert_int_equal(told(site, 0), 30);
	assert_int_equal(rows(), 3);
}

TEST(only_a_thread_that_holds_the_lock_looks)
{
	objects_of(site_of(10), 0, 10, 1);
	is_attached = false;
	object_census_take(true);
	assert_int_equal(rows(), 0);
}

TEST(looks_are_paced)
{
	uint64_t begin_ns = clock_now_ns();

	objects_of(site_of(10), 0, 10, 1);
	object_census_take(true);
	assert_int_equal(rows(), 1);
	objects_of(site_of(10), 1, 10, 1);
	object_census_take(false);
	if (clock_now_ns() - begin_ns < 200000000) // else it was due
		assert_int_equal(rows(), 1);
	object_census_take(true);
	assert_int_equal(rows(), 2);
}

/* Without a lock the head of an object is another one, and what stands in front of collected ones is not there. */
TEST(free_threaded_objects_are_named)
{
	const struct python_layout *row = python_layout_find(0x030d05f0, true);
	static const struct {
		uint32_t local;
		uint64_t shared;
		bool is_alive;
	} heads[] = { { 1, 0, true }, { 0, 1 << 2, true }, { UINT32_MAX, 0, true }, { 0, 3, false }, { 0, 0, false } };
	uint32_t site = site_of(500);
	char *type = kinds[0];

	assert_non_null(row);
	python_runtime.interpreter.layout = *row;
	memset(type, 0, sizeof(kinds[0]));
	fake_put(type, 24, python_runtime.interpreter.types.type);
	fake_put(type, 40, (uint64_t)names[0]);
	fake_put(type, 48, OBJECT_BYTES);
	fake_put(type, 184, READY | UINT64_C(1) << 14);
	for (unsigned i = 0; i < 500; i++) {
		char *block = block_of(site);

		fake_put(block, 8, (uint64_t)heads[i % 5].local << 32);
		fake_put(block, 16, heads[i % 5].shared);
		fake_put(block, 24, (uint64_t)type);
	}
	object_census_take(true);
	assert_int_equal(told(site, 0), 300);
	assert_int_equal(rows(), 1);
}

int
main(void)
{
	pointer_map_start(true);
	return test_run(NULL, NULL, start, stop);
}
