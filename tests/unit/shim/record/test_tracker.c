/*
 * test_tracker.c - do the books of domains and sites agree with a ledger, whatever happens to a block?
 */
#include "gpu/tracker_devices.h"
#include "record/tracker_books.h"

#include <errno.h>

#include "random.h"
#include "record/python_samples.h"

#define MIB (UINT64_C(1) << 20)
#define SITES 3

/* ---- hooks, and three places in "the program" that call them ---- */

static void
hook_free(void *addr)
{
	if (!tracker_freed_fast(addr))
		tracker_freed(__builtin_frame_address(0), addr);
}

static NOINLINE void
hook_malloc(uint64_t addr, size_t bytes)
{
	tracker_allocated(HERE, at(addr), bytes);
	KEEP_FRAME();
}

static NOINLINE void
hook_realloc(struct live_block old, uint64_t addr, size_t bytes)
{
	tracker_resized(HERE, old, at(addr), bytes);
	KEEP_FRAME();
}

/* In the primary context of the domain's device. */
static NOINLINE void
hook_device(unsigned domain, uint64_t key, uint64_t bytes)
{
	tracker_device_allocated(HERE, domain, key, bytes, domain - KMEM_DOMAIN_CUDA_FIRST);
	KEEP_FRAME();
}

static NOINLINE void
hook_failed(enum kmem_domain domain, size_t bytes, int error)
{
	tracker_failed(HERE, domain, bytes, error);
	KEEP_FRAME();
}

struct request {
	struct live_block old;
	uint64_t addr;
	size_t bytes;
	bool is_realloc;
};

#define PLACE(name)                                                    \
	static NOINLINE void name(const struct request *request)           \
	{                                                                  \
		if (request->is_realloc)                                       \
			hook_realloc(request->old, request->addr, request->bytes); \
		else                                                           \
			hook_malloc(request->addr, request->bytes);                \
		KEEP_FRAME();                                                  \
	}
PLACE(place_a)
PLACE(place_b)
PLACE(place_c)

static void (*const places[SITES])(const struct request *) = { place_a, place_b, place_c };

/* ---- heap ---- */

TEST(S3_P2_a_random_heap_agrees_with_a_ledger_site_by_site)
{
	enum { BLOCKS = 300, EVENTS = 30000 };
	static struct {
		uint64_t bytes;
		unsigned site;
		bool is_live;
	} blocks[BLOCKS];
	uint64_t live[SITES] = { 0 };
	uint64_t count[SITES] = { 0 };
	uint64_t at_peak[SITES] = { 0 };
	struct totals all = { 0 };
	uint64_t random = random_seed();

	memset(blocks, 0, sizeof(blocks));
	for (unsigned i = 0; i < EVENTS; i++) {
		unsigned which = (unsigned)random_below(&random, BLOCKS);
		unsigned site = (unsigned)random_below(&random, SITES);
		uint64_t bytes = random_below(&random, 10) == 0 ? random_below(&random, 4096 * MIB)
		                                                : random_below(&random, 2000);
		unsigned what = (unsigned)random_below(&random, 6);
		struct request request = { .addr = 0x10000000 + which * UINT64_C(16384), .bytes = bytes };

		if (blocks[which].is_live && what < 3) {
			hook_free(at(request.addr));
			all.freed_bytes += blocks[which].bytes;
			all.freed_count++;
			live[blocks[which].site] -= blocks[which].bytes;
			count[blocks[which].site]--;
			blocks[which].is_live = false;
		} else if (blocks[which].is_live && what == 3) { // a realloc that fails
			tracker_put_back(tracker_take(at(request.addr)));
		} else {
			if (blocks[which].is_live) {
				bytes += bytes == blocks[which].bytes; // a change of site alone is no event of the total
				request.old = tracker_take(at(request.addr));
				assert_int_equal(request.old.bytes, blocks[which].bytes);
				request.is_realloc = true;
				request.bytes = bytes;
				all.freed_bytes += blocks[which].bytes;
				all.freed_count++;
				live[blocks[which].site] -= blocks[which].bytes;
				count[blocks[which].site]--;
			}
			places[site](&request);
			all.allocated_bytes += bytes;
			all.allocated_count++;
			live[site] += bytes;
			count[site]++;
			blocks[which].bytes = bytes;
			blocks[which].site = site;
			blocks[which].is_live = true;
		}
		if (all.allocated_bytes - all.freed_bytes > all.peak_bytes) {
			all.peak_bytes = all.allocated_bytes - all.freed_bytes;
			memcpy(at_peak, live, sizeof(live));
		}
	}
	assert_row(KMEM_DOMAIN_HEAP, all);

	/* The stack of a place in malloc and of the same place in realloc differ by one line: two sites per place. */
	uint64_t sites = capture_file_header()->used_bytes[KMEM_SECTION_SITES] / sizeof(struct kmem_site);
	uint64_t found = 0;
	unsigned used = 0;

	for (uint32_t i = 1; i <= sites; i++)
		used += site_table_at(i)->allocated_count != 0;
	assert_int_equal(used, 2 * SITES);
	assert_in_range(sites, used, used + 1); // the stack that releases, where a watched block was
	for (unsigned place = 0; place < SITES; place++) {
		uint64_t sum[3] = { 0 };

		for (uint32_t i = 1; i <= sites; i++) {
			const struct kmem_site *site = site_table_at(i);
			const struct kmem_stack *stack = capture_file_item(KMEM_SECTION_RECORDS, site->stack);
			uint64_t pc = stack->frames[0] & KMEM_FRAME_PC_MASK;
			uint64_t start = (uint64_t)places[place];

			for (unsigned other = 0; other < SITES; other++) { // the nearest function below is the caller
				if ((uint64_t)places[other] <= pc && (uint64_t)places[other] > start)
					start = (uint64_t)places[other];
			}
			if (pc < start || start != (uint64_t)places[place] || site->allocated_count == 0)
				continue;
			sum[0] += site->allocated_bytes - site->freed_bytes;
			sum[1] += site->allocated_count - site->freed_count;
			sum[2] += kmem_site_peak_bytes(peak_word(KMEM_DOMAIN_HEAP), site->peak);
			found++;
		}
		assert_int_equal(sum[0], live[place]);
		assert_int_equal(sum[1], count[place]);
		assert_int_equal(sum[2], at_peak[place]);
	}
	assert_int_equal(found, used);
	for (enum kmem_loss i = 0; i < KMEM_LOSS_COUNT; i++)
		assert_int_equal(i == KMEM_LOST_FALLBACK_UNWINDS || i == KMEM_LOST_UNWINDS ? 0 : lost(i), 0);
}

/* ---- samples ---- */

#define R PYTHON_SAMPLES_BYTES

static NOINLINE void
hook_sample(uint64_t addr, size_t bytes)
{
	tracker_sampled(HERE, at(addr), bytes);
	KEEP_FRAME();
}

/* No thread's own: the fast paths leave the records alone. */
static void
assert_samples_belong_to_no_thread(void)
{
	uint32_t count = capture_file_count(KMEM_SECTION_SITES);

	for (uint32_t i = 1; i <= count; i++) {
		if (site_table_at(i)->domain == KMEM_DOMAIN_PYTHON_OBJECT)
			assert_int_equal(site_table_at(i)->slot, 0);
	}
}

TEST(a_sample_stands_for_many_and_goes_as_any_block_goes)
{
	assert_int_equal(capture_file_header()->python_sample_bytes, 0);
	for (unsigned i = 0; i < 3; i++)
		hook_sample(0x10000000 + i * UINT64_C(1024), 64);
	assert_int_equal(capture_file_header()->python_sample_bytes, kmem_twice(R));
	assert_row(KMEM_DOMAIN_PYTHON_OBJECT, (struct totals){ 3 * R, 0, 3 * R / 64, 0, 3 * R });
	assert_row(KMEM_DOMAIN_HEAP, (struct totals){ 0 });

	hook_free(at(0x10000000));
	assert_row(KMEM_DOMAIN_PYTHON_OBJECT, (struct totals){ 3 * R, R, 3 * R / 64, R / 64, 3 * R });

	/* Out of malloc's hands by realloc: from now on it is a block like any other. */
	hook_realloc(tracker_take(at(0x10000400)), 0x20000000, 100);
	assert_row(KMEM_DOMAIN_PYTHON_OBJECT, (struct totals){ 3 * R, 2 * R, 3 * R / 64, 2 * R / 64, 3 * R });
	assert_row(KMEM_DOMAIN_HEAP, (struct totals){ 100, 0, 1, 0, 100 });

	/* A realloc that fails. */
	tracker_put_back(tracker_take(at(0x10000800)));
	assert_row(KMEM_DOMAIN_PYTHON_OBJECT, (struct totals){ 3 * R, 2 * R, 3 * R / 64, 2 * R / 64, 3 * R });
	hook_free(at(0x10000800));
	hook_free(at(0x20000000));
	assert_samples_belong_to_no_thread();
	assert_row(KMEM_DOMAIN_PYTHON_OBJECT, (struct totals){ 3 * R, 3 * R, 3 * R / 64, 3 * R / 64, 3 * R });
	assert_row(KMEM_DOMAIN_HEAP, (struct totals){ 100, 100, 1, 1, 100 });
	assert_int_equal(lost(KMEM_LOST_UNKNOWN_FREES), 0);
}

/* Its memory stays: the release that comes later is no event, nor is what is put there when that was not seen. */
TEST(a_sample_that_nobody_owns_is_released_once)
{
	for (unsigned i = 0; i < 2; i++) {
		hook_sample(0x10000000 + i * UINT64_C(1024), 64);
		tracker_disowned(at(0x10000000 + i * UINT64_C(1024)));
		tracker_disowned(at(0x10000000 + i * UINT64_C(1024)));
	}
	assert_row(KMEM_DOMAIN_PYTHON_OBJECT, (struct totals){ 2 * R, 2 * R, 2 * R / 64, 2 * R / 64, R });
	hook_free(at(0x10000000));
	hook_malloc(0x10000400, 5);
	assert_row(KMEM_DOMAIN_PYTHON_OBJECT, (struct totals){ 2 * R, 2 * R, 2 * R / 64, 2 * R / 64, R });
	assert_row(KMEM_DOMAIN_HEAP, (struct totals){ 5, 0, 1, 0, 5 });
	assert_int_equal(lost(KMEM_LOST_UNKNOWN_FREES), 0);
	hook_free(at(0x10000400));
}

/* What another sample or block found there is gone without its release having been seen. */
TEST(a_sample_whose_release_was_not_seen_is_no_more_alive)
{
	hook_sample(0x10000000, 512);
	hook_sample(0x10000000, 16);
	assert_row(KMEM_DOMAIN_PYTHON_OBJECT, (struct totals){ 2 * R, R, R / 512 + R / 16, R / 512, 2 * R });
	hook_malloc(0x10000000, 5);
	assert_row(KMEM_DOMAIN_PYTHON_OBJECT, (struct totals){ 2 * R, 2 * R, R / 512 + R / 16, R / 512 + R / 16, 2 * R });
	assert_row(KMEM_DOMAIN_HEAP, (struct totals){ 5, 0, 1, 0, 5 });
	assert_int_equal(lost(KMEM_LOST_MISSED_FREES), 2);
}

/* A script of events on one block, and what the heap's row must say afterwards. */
TEST(a_block_is_counted_as_requested)
{
	hook_malloc(0x1000, 0); // malloc(0): a live block of no bytes
	assert_row(KMEM_DOMAIN_HEAP, (struct totals){ 0, 0, 1, 0, 0 });
	hook_malloc(0x2000, 100);
	assert_row(KMEM_DOMAIN_HEAP, (struct totals){ 100, 0, 2, 0, 100 });
	hook_realloc(tracker_take(at(0x2000)), 0x3000,
	             150); // moved: the peak is that of the net change
	assert_row(KMEM_DOMAIN_HEAP, (struct totals){ 250, 100, 3, 1, 150 });
	hook_realloc(tracker_take(at(0x3000)), 0x3000, 50); // shrunk in place
	assert_row(KMEM_DOMAIN_HEAP, (struct totals){ 300, 250, 4, 2, 150 });
	hook_realloc(tracker_take(NULL), 0x4000, 7); // realloc(NULL, n) is malloc
	assert_row(KMEM_DOMAIN_HEAP, (struct totals){ 307, 250, 5, 2, 150 });
	hook_realloc(tracker_take(at(0x3000)), 0, 0); // realloc(p, 0) that frees
	assert_row(KMEM_DOMAIN_HEAP, (struct totals){ 307, 300, 5, 3, 150 });
	hook_free(at(0x4000));
	hook_free(at(0x1000));
	assert_row(KMEM_DOMAIN_HEAP, (struct totals){ 307, 307, 5, 5, 150 });
	hook_free(NULL);
	assert_int_equal(lost(KMEM_LOST_UNKNOWN_FREES), 0);
}

TEST(unseen_releases_and_allocations_are_counted_not_guessed)
{
	hook_free(at(0x1000));
	assert_int_equal(lost(KMEM_LOST_UNKNOWN_FREES), 1);
	assert_row(KMEM_DOMAIN_HEAP, (struct totals){ 0 });
	struct live_block unknown = tracker_take(at(0x2000));
	assert_int_equal(unknown.site, 0);
	assert_int_equal(lost(KMEM_LOST_UNKNOWN_FREES), 2);
	tracker_put_back(unknown); // stays unknown
	assert_row(KMEM_DOMAIN_HEAP, (struct totals){ 0 });
	hook_realloc(unknown, 0x3000, 10); // known from here
	assert_row(KMEM_DOMAIN_HEAP, (struct totals){ 10, 0, 1, 0, 10 });
	hook_malloc(0x3000, 20); // given out again: the old one must have been released
	assert_int_equal(lost(KMEM_LOST_MISSED_FREES), 1);
	assert_row(KMEM_DOMAIN_HEAP, (struct totals){ 30, 10, 2, 1, 30 });
}

TEST(errno_is_left_alone)
{
	struct range_pieces taken;

	errno = 4711;
	hook_malloc(0x1000, 100);
	hook_free(at(0x1000));
	hook_free(at(0x1000));
	tracker_mapped(HERE, KMEM_DOMAIN_MMAP, at(0x100000), PAGE);
	tracker_unmap_begin(at(0x100000), PAGE, &taken);
	tracker_unmap_end(&taken, true);
	assert_int_equal(errno, 4711);
}

/* ---- devices ---- */

TEST(devices_have_a_domain_each_and_a_map_of_their_own)
{
	const unsigned first = tracker_device_domain(0);
	const unsigned second = tracker_device_domain(1);

	hook_device(first, 0x7000, 100);
	hook_device(second, 0x8000, 200);
	hook_malloc(0x7000, 5); // the same number, in another address space
	assert_row(first, (struct totals){ 100, 0, 1, 0, 100 });
	assert_row(second, (struct totals){ 200, 0, 1, 0, 200 });
	assert_row(KMEM_DOMAIN_HEAP, (struct totals){ 5, 0, 1, 0, 5 });
	struct live_block block = tracker_device_take(0x7000);
	tracker_device_put_back(block); // the real free failed
	assert_row(first, (struct totals){ 100, 0, 1, 0, 100 });
	tracker_device_released(tracker_device_take(0x7000));
	tracker_device_released(tracker_device_take(0x7000)); // twice
	assert_int_equal(lost(KMEM_LOST_UNKNOWN_FREES), 1);
	tracker_device_released(tracker_device_take(0)); // cudaFree(NULL) is nothing
	assert_int_equal(lost(KMEM_LOST_UNKNOWN_FREES), 1);
	assert_row(first, (struct totals){ 100, 100, 1, 1, 100 });
	assert_row(second, (struct totals){ 200, 0, 1, 0, 200 });
}

TEST(what_ends_with_its_owner_is_that_ones_alone)
{
	const unsigned first = tracker_device_domain(0), second = tracker_device_domain(1);

	hook_device(first, 0x7000, 100);
	hook_device(second, 0x8000, 200);
	tracker_device_allocated(HERE, second, 0x9000, 400, TRACKER_OWNER_CONTEXT + 63);
	tracker_device_allocated(HERE, second, 0xa000, 800, TRACKER_OWNER_NONE); // of a pool
	tracker_tensor_allocated(HERE, 1, 0x8000, 150);
	tracker_device_put_back(tracker_device_take(0x8000)); // still its owner's
	tracker_owner_gone(1);
	assert_row(first, (struct totals){ 100, 0, 1, 0, 100 });
	assert_row(second, (struct totals){ 1400, 200, 3, 1, 1400 });
	tracker_owner_gone(TRACKER_OWNER_CONTEXT + 63);
	tracker_owner_gone(TRACKER_OWNER_CONTEXT);
	assert_row(second, (struct totals){ 1400, 600, 3, 2, 1400 });
	tracker_owner_gone(0);
	assert_row(first, (struct totals){ 100, 100, 1, 1, 100 });
	assert_row(KMEM_DOMAIN_TENSORS_FIRST + 1, (struct totals){ 150, 0, 1, 0, 150 });
	assert_int_equal(lost(KMEM_LOST_UNKNOWN_FREES) + lost(KMEM_LOST_MISSED_FREES), 0);
}

/* It was unmapped unseen, and memory of this process is mapped there. */
TEST(memory_of_others_whose_place_another_takes_is_gone)
{
	const unsigned domain = tracker_device_domain(0);

	tracker_object_imported(0x7000);
	tracker_object_mapped(HERE, 0x100000, PAGE, 0x7000);
	tracker_object_created(HERE, domain, 0x8000, PAGE, TRACKER_OWNER_NONE);
	tracker_object_mapped(HERE, 0x100000, PAGE, 0x8000);
	assert_int_equal(lost(KMEM_LOST_MISSED_FREES), 1);
	assert_row(KMEM_DOMAIN_CUDA_IMPORTED, (struct totals){ PAGE, PAGE, 1, 1, PAGE });
	tracker_object_unmapped(0x100000, PAGE);
	tracker_object_released(device_objects_release(0x8000));
	tracker_object_released(device_objects_release(0x7000));
	assert_row(domain, (struct totals){ PAGE, PAGE, 1, 1, PAGE });
	assert_int_equal(lost(KMEM_LOST_MISSED_FREES), 1);
	assert_int_equal(lost(KMEM_LOST_UNKNOWN_FREES), 0);
}

TEST(an_allocation_of_no_device_bytes_is_not_alive_for_ever)
{
	const unsigned domain = tracker_device_domain(0);

	hook_device(domain, 0, 0); // cudaMalloc(&p, 0) succeeds and gives NULL
	assert_row(domain, (struct totals){ 0, 0, 1, 1, 0 });
}

TEST(device_numbers_out_of_range_share_the_last_row)
{
	static const struct {
		int device;
		unsigned domain;
	} cases[] = { { 0, KMEM_DOMAIN_CUDA_FIRST }, { 1, KMEM_DOMAIN_CUDA_FIRST + 1 }, { 30, KMEM_DOMAIN_CUDA_LAST - 1 },
		          { 31, KMEM_DOMAIN_CUDA_LAST }, { 32, KMEM_DOMAIN_CUDA_LAST },     { -1, KMEM_DOMAIN_CUDA_LAST } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(tracker_device_domain(cases[i].device), cases[i].domain);
}

/* ---- requests ---- */

TEST(failed_requests_are_a_ring_with_their_site)
{
	const struct kmem_header *header = capture_file_header();

	hook_malloc(0x1000, 10);
	for (unsigned i = 1; i <= KMEM_FAILED_MAX + 3; i++)
		hook_failed(KMEM_DOMAIN_HEAP, i * MIB, ENOMEM);
	assert_int_equal(header->failed_count, KMEM_FAILED_MAX + 3);
	for (unsigned i = 4; i <= KMEM_FAILED_MAX + 3; i++) {
		const struct kmem_failed *failed = &header->failed[i % KMEM_FAILED_MAX];

		assert_int_equal(failed->sequence, i);
		assert_int_equal(failed->bytes, i * MIB);
		assert_int_equal(failed->error, ENOMEM);
		assert_int_equal(failed->domain, KMEM_DOMAIN_HEAP);
		assert_int_equal(failed->events_before, 1);
		assert_int_not_equal(failed->site, 0);
		assert_int_equal(site_table_at(failed->site)->allocated_count, 0);
	}
}

TEST(large_attempts_are_stored_before_they_are_made)
{
	static const struct {
		size_t bytes;
		uint64_t wanted;
	} cases[] = { { MIB - 1, 0 }, { MIB, MIB }, { 5, MIB }, { 900 * MIB, 900 * MIB } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_true(tracker_attempt(KMEM_DOMAIN_MMAP, cases[i].bytes, 0));
		assert_int_equal(capture_file_header()->attempt_bytes, cases[i].wanted);
	}
	assert_int_equal(capture_file_header()->attempt_domain, KMEM_DOMAIN_MMAP);
}

int
main(void)
{
	native_stack_start();
	if (test_run(NULL, NULL, start_empty, NULL) != 0)
		return 1;
	thread_slot_start();
	if (test_run(NULL, NULL, start_empty, NULL) != 0)
		return 1;
	pointer_map_start(true);
	return test_run(NULL, NULL, start_empty, NULL); // tracker_fast.c
}
