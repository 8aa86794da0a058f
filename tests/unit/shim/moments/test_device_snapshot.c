/*
 * test_device_snapshot.c - is it written down what a device held when it refused, and what the thread got afterwards?
 */
#include "gpu/tracker_devices.h"
#include "record/tracker_books.h"

#include "base/clock.h"
#include "moments/failed_requests.h"

#define DEVICE KMEM_DOMAIN_CUDA_FIRST
#define MIB (UINT64_C(1) << 20)
#define OUT_OF_MEMORY 2

static NOINLINE void
hook_device(unsigned domain, uint64_t key, uint64_t bytes)
{
	tracker_device_allocated(HERE, domain, key, bytes, TRACKER_OWNER_NONE);
	KEEP_FRAME();
}

static NOINLINE void
hook_tensor(uint64_t addr, uint64_t bytes)
{
	tracker_tensor_allocated(HERE, 0, addr, bytes);
	KEEP_FRAME();
}

/* Each depth is a call site: two functions call each other, for of one that calls itself only the first and the last call are kept. */
#define CALLS_EACH_OTHER(name, other)                                       \
	static NOINLINE void name(unsigned depth, uint64_t key, uint64_t bytes) \
	{                                                                       \
		if (depth != 0)                                                     \
			other(depth - 1, key, bytes);                                   \
		else                                                                \
			hook_device(DEVICE, key, bytes);                                \
		__asm__ volatile("# " #name); /* not made one with its like */      \
		KEEP_FRAME();                                                       \
	}
static void place_even(unsigned depth, uint64_t key, uint64_t bytes);
static void other_place_even(unsigned depth, uint64_t key, uint64_t bytes);
CALLS_EACH_OTHER(place, place_even)
CALLS_EACH_OTHER(place_even, place)
CALLS_EACH_OTHER(other_place, other_place_even)
CALLS_EACH_OTHER(other_place_even, other_place)

static NOINLINE const struct kmem_failed *
refuse(unsigned domain, uint64_t bytes)
{
	const struct kmem_header *header = capture_file_header();

	tracker_device_refused(HERE, domain, bytes, OUT_OF_MEMORY, (struct device_memory){ 3, 100, 1 << 20 });
	KEEP_FRAME();
	return &header->failed[header->failed_count % KMEM_FAILED_MAX];
}

static const struct kmem_device_snapshot *
device_snapshot_of(const struct kmem_failed *failed)
{
	const struct kmem_device_snapshot *device_snapshot = capture_file_item(KMEM_SECTION_RECORDS,
	                                                                       failed->device_snapshot);

	assert_int_not_equal(failed->device_snapshot, 0);
	assert_int_equal(device_snapshot->record.type, KMEM_RECORD_DEVICE_SNAPSHOT);
	assert_int_equal(device_snapshot->record.checksum, kmem_record_checksum(&device_snapshot->record, 0));
	assert_int_equal(failed->checksum, kmem_failed_checksum(failed, failed->sequence));
	return device_snapshot;
}

static int64_t
sum_of(const struct kmem_device_snapshot *device_snapshot, unsigned domain)
{
	int64_t bytes = 0;

	for (unsigned i = 0; i < KMEM_DEVICE_SNAPSHOT_MAX; i++) {
		if (device_snapshot->sites[i].site != 0 && site_table_at(device_snapshot->sites[i].site)->domain == domain)
			bytes += device_snapshot->sites[i].live_bytes;
	}
	return bytes;
}

TEST(what_was_held_is_of_that_moment)
{
	hook_device(DEVICE, 0x1000, 40 * MIB);
	hook_device(DEVICE + 1, 0x2000, 5 * MIB);
	hook_device(KMEM_DOMAIN_CUDA_PINNED, 0x3000, 7 * MIB);
	hook_tensor(0x1000, 30 * MIB);
	const struct kmem_failed *failed = refuse(DEVICE, 60 * MIB);
	tracker_device_released(tracker_device_take(0x1000)); // the program goes on
	tracker_tensor_released(0x1000);
	hook_device(DEVICE, 0x4000, 9 * MIB);

	const struct kmem_device_snapshot *device_snapshot = device_snapshot_of(failed);
	assert_int_equal(device_snapshot->sequence, failed->sequence);
	assert_int_equal(failed->free_bytes, 3);
	assert_int_equal(failed->total_bytes, 100);
	assert_int_equal(kmem_rough_bytes(failed->pool_kept), 1 << 20);
	assert_int_equal(failed->flags, KMEM_FAILED_MEMORY_KNOWN);
	assert_int_equal(failed->events_before, 1);
	assert_int_equal(device_snapshot->left_out, 0);
	assert_int_equal(device_snapshot->live_bytes[DEVICE], 40 * MIB);
	assert_int_equal(device_snapshot->live_bytes[DEVICE + 1], 5 * MIB);
	assert_int_equal(device_snapshot->live_bytes[KMEM_DOMAIN_CUDA_PINNED], 7 * MIB);
	assert_int_equal(device_snapshot->live_bytes[KMEM_DOMAIN_TENSORS_FIRST], 30 * MIB);
	assert_int_equal(sum_of(device_snapshot, DEVICE), 40 * MIB);
	assert_int_equal(sum_of(device_snapshot, DEVICE + 1), 0); // another device's
	assert_int_equal(sum_of(device_snapshot, KMEM_DOMAIN_CUDA_PINNED), 7 * MIB);
	assert_int_equal(sum_of(device_snapshot, KMEM_DOMAIN_TENSORS_FIRST), 30 * MIB);
}

TEST(a_refusal_of_host_memory_looks_at_nothing)
{
	const struct kmem_header *header = capture_file_header();

	hook_device(DEVICE, 0x1000, 40 * MIB);
	tracker_failed(HERE, KMEM_DOMAIN_HEAP, MIB, 12);
	assert_int_equal(header->failed[1].device_snapshot, 0);
	assert_int_equal(header->failed[1].thread, 0);
	assert_int_equal(header->failed[1].flags, KMEM_FAILED_SLOT_KNOWN); // and of its thread, what it was given
}

/* The largest have places, whatever order they were made in; the rest is counted, and in the sum. */
TEST(more_call_sites_than_places)
{
	enum { DEPTHS = 300 };
	uint64_t bytes = 0;
	unsigned large = 0;

	for (unsigned i = 0; i < DEPTHS; i++) {
		uint64_t one = i % 50 == 0 ? 50 * MIB : 1000 + i % 10;

		place(i, 0x10000 + i, one);
		bytes += one;
	}
	const struct kmem_device_snapshot *device_snapshot = device_snapshot_of(refuse(DEVICE, MIB));
	assert_int_equal(device_snapshot->left_out, 0);
	assert_int_equal(sum_of(device_snapshot, DEVICE), device_snapshot->live_bytes[DEVICE]);
	for (unsigned i = 0; i < DEPTHS; i++) {
		uint64_t one = i % 50 == 0 ? 60 * MIB : 2000 + i % 10;

		other_place(i, 0x20000 + i, one);
		bytes += one;
	}
	device_snapshot = device_snapshot_of(refuse(DEVICE, MIB));
	assert_int_equal(device_snapshot->left_out, 2 * DEPTHS - KMEM_DEVICE_SNAPSHOT_MAX);
	for (unsigned i = 0; i < KMEM_DEVICE_SNAPSHOT_MAX; i++) {
		assert_int_not_equal(device_snapshot->sites[i].site, 0);
		assert_int_equal(device_snapshot->sites[i].live_count, 1);
		large += device_snapshot->sites[i].live_bytes >= 50 * (int64_t)MIB && i < 12;
	}
	assert_int_equal(large, 12);
	assert_int_equal(device_snapshot->live_bytes[DEVICE], bytes);
}

TEST(the_ring_keeps_its_records)
{
	const struct kmem_header *header = capture_file_header();
	uint32_t first[KMEM_FAILED_MAX];

	hook_device(DEVICE, 0x1000, 40 * MIB);
	for (unsigned i = 0; i < KMEM_FAILED_MAX; i++)
		(void)refuse(DEVICE, MIB);
	for (unsigned i = 0; i < KMEM_FAILED_MAX; i++)
		first[i] = header->failed[i].device_snapshot;
	uint64_t used = header->used_bytes[KMEM_SECTION_RECORDS];
	hook_device(DEVICE, 0x2000, 2 * MIB);
	for (unsigned i = 0; i < 3 * KMEM_FAILED_MAX; i++)
		(void)refuse(DEVICE, MIB);
	assert_true(header->used_bytes[KMEM_SECTION_RECORDS] <
	            used + sizeof(struct kmem_device_snapshot) + // a stack is new, and perhaps the history grows
	                KMEM_HISTORY_PARTS * sizeof(struct kmem_history));
	for (unsigned i = 0; i < KMEM_FAILED_MAX; i++) {
		assert_int_equal(header->failed[i].device_snapshot, first[i]);
		assert_int_equal(device_snapshot_of(&header->failed[i])->sequence, header->failed[i].sequence);
		assert_int_equal(device_snapshot_of(&header->failed[i])->live_bytes[DEVICE], 42 * MIB);
	}
}

static NOINLINE const struct kmem_failed *
give_up(int device)
{
	const struct kmem_header *header = capture_file_header();

	tracker_tensor_failed(HERE, device, MIB, OUT_OF_MEMORY);
	KEEP_FRAME();
	return &header->failed[header->failed_count % KMEM_FAILED_MAX];
}

static uint64_t
kept_of(const struct kmem_device_snapshot *device_snapshot)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < KMEM_DEVICE_SNAPSHOT_MAX; i++)
		bytes += device_snapshot->sites[i].kept_bytes;
	return bytes;
}

/* Tensors of before PyTorch gave up the last time; those of after it do not count, nor do those of another device. */
TEST(what_is_still_alive_of_the_time_before)
{
	hook_tensor(0x1000, 30);
	hook_tensor(0x2000, 500);
	assert_int_equal(kept_of(device_snapshot_of(give_up(0))), 0);
	tracker_tensor_released(0x2000);
	hook_tensor(0x3000, 7000);
	assert_int_equal(kept_of(device_snapshot_of(give_up(1))), 0);
	assert_int_equal(kept_of(device_snapshot_of(give_up(0))), 30);
	tracker_tensor_released(0x1000);
	hook_tensor(0x1000, 90000); // at the same address
	assert_int_equal(kept_of(device_snapshot_of(give_up(0))), 7000);
	tracker_tensor_released(0x3000);
	tracker_tensor_released(0x1000);
	assert_int_equal(capture_file_header()->losses[KMEM_LOST_UNKNOWN_FREES], 0);
}

/* ---- what the thread got afterwards ---- */

static void *
allocate_elsewhere(void *context)
{
	hook_device(DEVICE, 0x9000, 800 * MIB);
	return NULL;
}

#define OPEN KMEM_FAILED_OPEN
#define LESS KMEM_FAILED_GOT_LESS
#define ENOUGH KMEM_FAILED_GOT_ENOUGH

TEST(what_the_thread_got_afterwards)
{
	static const struct {
		const char *why;
		uint64_t refused[3];
		unsigned domain;
		uint64_t got;
		enum kmem_failed_outcome wanted[3];
	} cases[] = {
		{ "the cache was given back", { 20, 20, 20 }, DEVICE, 20, { ENOUGH, ENOUGH, ENOUGH } },
		{ "a tenth less each time", { 90, 81, 73 }, DEVICE, 66, { LESS, LESS, LESS } },
		{ "as much as the last", { 90, 81, 73 }, DEVICE, 73, { LESS, LESS, ENOUGH } },
		{ "a trifle", { 90, 81, 73 }, DEVICE, 1, { OPEN, OPEN, OPEN } },
		{ "on another device", { 90, 81, 73 }, DEVICE + 1, 90, { OPEN, OPEN, OPEN } },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct kmem_failed *failed[3];
		pthread_t other;
		uint64_t start_ns;

		print_message("%s\n", cases[i].why);
		do { // a machine may be slow: then they are no tries of one allocator
			start_empty(NULL);
			start_ns = clock_now_ns();
			for (unsigned k = 0; k < 3; k++)
				failed[k] = refuse(DEVICE, cases[i].refused[k] * MIB);
			assert_int_equal(pthread_create(&other, NULL, allocate_elsewhere, NULL), 0); // is none of its business
			assert_int_equal(pthread_join(other, NULL), 0);
			hook_device(cases[i].domain, 0x1000, cases[i].got * MIB);
		} while (clock_now_ns() - start_ns > UINT64_C(900000000));
		for (unsigned k = 0; k < 3; k++)
			assert_int_equal(failed[k]->outcome, cases[i].wanted[k]);
		hook_device(DEVICE, 0x2000, 100 * MIB); // in the end it got everything
		for (unsigned k = 0; k < 3; k++)
			assert_int_equal(failed[k]->outcome, cases[i].wanted[k] == LESS ? LESS : ENOUGH);
		assert_true(failed_requests_least == UINT64_MAX);
	}
}

static int
refuse_in_child(void *context)
{
	start_empty(NULL);
	assert_true(failed_requests_least == UINT64_MAX);
	hook_device(DEVICE, 0x1000, MIB);
	return device_snapshot_of(refuse(DEVICE, MIB))->live_bytes[DEVICE] == (int64_t)MIB ? 0 : 1;
}

TEST(a_child_begins_anew)
{
	hook_device(DEVICE, 0x1000, 40 * MIB);
	(void)refuse(DEVICE, MIB);
	assert_int_equal(in_child(refuse_in_child, NULL), 0);
}

int
main(void)
{
	native_stack_start();
	thread_slot_start();
	return test_run(NULL, NULL, start_empty, NULL);
}
