/*
 * test_failed_requests.c - is a refused request in the ring whole, whoever else writes there and whenever the program dies?
 */
#include "unit.h"

#include "base/capture_life.h"
#include "capture/capture_file.h"
#include "moments/failed_requests.h"
#include "sites/site_table.h"
#include "unwind/each_instruction.h"

static struct site_owner owner = { .slot = 2 };

SETUP(start_empty)
{
	capture_file_forked();
}

static void
refuse(uint64_t bytes)
{
	(void)failed_requests_note(
		&(struct failed_request){ .bytes = bytes, .domain = KMEM_DOMAIN_HEAP, .error = 12, .site = 3 });
}

static struct {
	uint64_t number; // of the request that is being written
	uint32_t last;   // checksum of what was in its place
	unsigned changes;
	unsigned torn; // looks that found a checksum, and not of what stands there
} seen;

static bool
look_at_request(void)
{
	const struct kmem_failed *failed = &capture_file_header()->failed[seen.number % KMEM_FAILED_MAX];
	uint32_t found = kmem_failed_checksum(failed, failed->sequence);

	seen.torn += failed->checksum != 0 && failed->checksum != found;
	seen.changes += found != seen.last;
	seen.last = found;
	return failed->sequence != seen.number || failed->checksum == 0;
}

TEST(F7_killed_at_any_instruction_a_request_is_whole_or_does_not_count)
{
	for (uint64_t i = 1; i <= KMEM_FAILED_MAX; i++) // each place has been used
		refuse(i);
	seen.number = KMEM_FAILED_MAX + 1;
	seen.torn = seen.changes = 0;
	each_instruction(look_at_request);
	refuse(77 << 20); // small ones leave the place to what began the burst
	assert_int_equal(capture_file_header()->failed[seen.number % KMEM_FAILED_MAX].bytes, 77 << 20);
	assert_in_range(seen.changes, 3, 14); // it was looked at while it was half written
	assert_int_equal(seen.torn, 0);
}

TEST(a_place_in_which_another_thread_writes_is_left_to_it)
{
	struct kmem_header *header = capture_file_header();
	struct kmem_failed *failed = &header->failed[1];

	for (unsigned was_used = 0; was_used < 2; was_used++) {
		*failed = (struct kmem_failed){ .sequence = 1, .bytes = 55 }; // no checksum yet
		header->failed_count = was_used * KMEM_FAILED_MAX;
		refuse(66);
		assert_int_equal(failed->bytes, 55);
		assert_int_equal(failed->checksum, 0);
		assert_int_equal(header->failed_count, was_used * KMEM_FAILED_MAX + 1); // it is counted all the same
	}
	failed->checksum = kmem_failed_checksum(failed, 1);
	header->failed_count = KMEM_FAILED_MAX;
	refuse(66);
	assert_int_equal(failed->bytes, 66);
	assert_int_equal(failed->checksum, kmem_failed_checksum(failed, KMEM_FAILED_MAX + 1));
}

TEST(of_a_burst_what_began_it_stays)
{
	struct kmem_header *header = capture_file_header();
	struct kmem_failed *first = &header->failed[1];

	refuse(1000);
	for (uint64_t i = 0; i < 3 * KMEM_FAILED_MAX; i++)
		refuse(64);
	assert_int_equal(first->bytes, 1000);
	assert_int_equal(first->checksum, kmem_failed_checksum(first, 1));
	assert_int_equal(header->failed_count, 3 * KMEM_FAILED_MAX + 1);

	refuse(4096); // larger, and as little: what prints an error asks for it
	while (header->failed_count % KMEM_FAILED_MAX != 0)
		refuse(4096);
	refuse(4096);
	assert_int_equal(first->bytes, 1000);
	header->failed_count += KMEM_FAILED_MAX - 1;
	refuse(1 << 20); // it asks for much: that is another one
	assert_int_equal(first->bytes, 1 << 20);

	first->monotonic_ns -= UINT64_C(2000000000); // that was another time
	while (header->failed_count % KMEM_FAILED_MAX != 0)
		refuse(64);
	refuse(64);
	assert_int_equal(first->bytes, 64);
}

TEST(a_request_says_what_its_thread_was_given_before)
{
	struct kmem_header *header = capture_file_header();

	refuse(2 << 20);
	assert_int_equal(header->failed[1].flags, 0); // of a thread without a slot nothing is known
	for (unsigned i = 0; i < 4; i++) {
		struct call_stack stack = { .hash = i + 1, .frame_count = 1, .frames = { 0x400000 + i } };
		struct kmem_site *site = site_table_at(
			site_table_find(&owner, &stack, i == 3 ? KMEM_DOMAIN_RESERVED : KMEM_DOMAIN_HEAP, 1));

		site->allocated_bytes = i < 3 ? (i + 1) * (10ul << 20) : UINT64_C(1) << 40;
	}
	for (unsigned slot = 2; slot <= 3; slot++)
		(void)failed_requests_note(
			&(struct failed_request){ .bytes = 2 << 20, .domain = KMEM_DOMAIN_MMAP, .slot = (uint16_t)slot });
	assert_int_equal(header->failed[2].flags, KMEM_FAILED_SLOT_KNOWN);
	assert_int_equal(header->failed[2].pool_kept, 2);
	assert_int_equal(header->failed[2].thread, 60);
	assert_int_equal(header->failed[3].thread, 0); // another's
}

RUN_TESTS(start_empty, NULL)
