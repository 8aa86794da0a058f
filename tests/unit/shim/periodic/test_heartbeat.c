/*
 * test_heartbeat.c - are beats whole, numbered, in their places, and taken when they are due?
 */
#include "unit.h"

#include <alloca.h>

#include "base/capture_life.h"
#include "base/clock.h"
#include "base/memory_limits.h"
#include "base/thread_stack.h"
#include "capture/capture_file.h"
#include "periodic/heartbeat.h"
#include "record/beat_due.h"
#include "unwind/each_instruction.h"

#define MIB ((uint64_t)1 << 20)

SETUP(start_empty)
{
	struct kmem_identity *identity;

	capture_file_forked();
	identity = &capture_file_header()->identity;
	identity->page_bytes = 4096;
	identity->machine_bytes = 1024 * MIB; // the limit in force: a step of 4 MiB
	heartbeat_take(0);
}

/* As the tracker does after an event. */
static void
after(uint64_t live_bytes)
{
	if (beat_due_after(live_bytes))
		heartbeat_take(live_bytes);
}

static void
after_release(uint64_t live_bytes)
{
	if (beat_due_after_release(live_bytes))
		heartbeat_take(live_bytes);
}

static const struct kmem_heartbeat *
newest(void)
{
	const struct kmem_heartbeat *beats = capture_file_heartbeats();
	const struct kmem_heartbeat *found = &beats[0];

	for (unsigned i = 1; i < KMEM_HEARTBEATS_MAX; i++) {
		if (beats[i].sequence > found->sequence)
			found = &beats[i];
	}
	return found;
}

TEST(H1_the_ring_keeps_the_newest_beats_by_number)
{
	uint64_t first = newest()->sequence;
	uint64_t last_ns = newest()->monotonic_ns;

	assert_int_not_equal(first, 0);
	for (uint64_t i = 1; i <= KMEM_HEARTBEATS_MAX + 10; i++) {
		heartbeat_take(i * 1000);
		assert_int_equal(newest()->sequence, first + i);
		assert_int_equal(newest()->live_bytes, i * 1000);
		assert_true(newest()->monotonic_ns >= last_ns);
		last_ns = newest()->monotonic_ns;
	}
	for (unsigned i = 0; i < KMEM_HEARTBEATS_MAX; i++) {
		const struct kmem_heartbeat *beat = &capture_file_heartbeats()[i];

		assert_int_equal(beat->sequence % KMEM_HEARTBEATS_MAX, i);
		assert_int_equal(beat->live_bytes, (beat->sequence - first) * 1000);
	}
}

static struct {
	uint64_t number; // of the beat that is being taken
	uint32_t last;   // checksum of what was in its place
	unsigned changes;
	unsigned torn; // looks that found a checksum, and not of what stands there
} seen;

static bool
look_at_beat(void)
{
	const struct kmem_heartbeat *beat = &capture_file_heartbeats()[seen.number % KMEM_HEARTBEATS_MAX];
	uint32_t checksum = capture_file_header()->heartbeat_checksums[seen.number % KMEM_HEARTBEATS_MAX];
	uint32_t found = kmem_heartbeat_checksum(beat, beat->sequence);

	seen.torn += checksum != 0 && checksum != found;
	seen.changes += found != seen.last;
	seen.last = found;
	return beat->sequence != seen.number || checksum == 0;
}

TEST(H1_killed_at_any_instruction_a_beat_is_whole_or_does_not_count)
{
	for (uint64_t i = 1; i <= KMEM_HEARTBEATS_MAX; i++) // each place has been used
		heartbeat_take(i);
	seen.number = newest()->sequence + 1;
	seen.torn = seen.changes = 0;
	each_instruction(look_at_beat);
	heartbeat_take(UINT64_MAX - 5);
	assert_int_equal(newest()->sequence, seen.number);
	assert_int_equal(newest()->live_bytes, UINT64_MAX - 5);
	assert_in_range(seen.changes, 3, 9); // it was looked at while it was half written
	assert_int_equal(seen.torn, 0);
}

TEST(a_beat_says_what_the_system_says)
{
	struct memory_limits_now now;

	heartbeat_take(77);
	memory_limits_read_now(&capture_file_header()->identity, &now);
	assert_true(newest()->resident_bytes > now.resident_bytes / 2);
	assert_true(newest()->resident_bytes < now.resident_bytes * 2);
	assert_int_equal(newest()->limit_bytes, now.limit_bytes);
	assert_int_not_equal(newest()->available_bytes, 0);
}

TEST(a_step_of_growth_makes_a_beat)
{
	static const struct {
		uint64_t machine_bytes;
		uint64_t step_bytes;
	} cases[] = {
		{ 1024 * MIB, 4 * MIB },
		{ 16 * 1024 * MIB, 64 * MIB },
		{ 10 * MIB, MIB }, // never finer
		{ 0, MIB },        // no limit known
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint64_t step = cases[i].step_bytes;

		capture_file_header()->identity.machine_bytes = cases[i].machine_bytes;
		heartbeat_take(100);
		uint64_t before = newest()->sequence;
		after(100 + step - 1);
		assert_int_equal(newest()->sequence, before);
		after(100 + step);
		assert_int_equal(newest()->sequence, before + 1);
		assert_int_equal(newest()->live_bytes, 100 + step);
		after(100 + step); // the next step counts from there
		assert_int_equal(newest()->sequence, before + 1);
		after(100 + 2 * step);
		assert_int_equal(newest()->sequence, before + 2);
	}
}

TEST(a_fall_by_a_quarter_makes_a_beat)
{
	static const struct {
		uint64_t live_bytes;
		uint64_t fall_bytes; // 0 = none is one
	} cases[] = {
		{ 400 * MIB, 100 * MIB },
		{ 40 * MIB, 16 * MIB }, // no smaller one
		{ 16 * MIB, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint64_t live = cases[i].live_bytes;
		uint64_t fall = cases[i].fall_bytes;

		heartbeat_take(live);
		uint64_t before = newest()->sequence;
		after_release(fall != 0 ? live - fall + 1 : 0);
		assert_int_equal(newest()->sequence, before);
		if (fall == 0)
			continue;
		assert_false(beat_due_has_fallen(live - fall + 1));
		assert_true(beat_due_has_fallen(live - fall));
		after_release(live - fall);
		assert_int_equal(newest()->sequence, before + 1);
		assert_int_equal(newest()->live_bytes, live - fall);
		after_release(live - fall); // the next one counts from there
		assert_int_equal(newest()->sequence, before + 1);
	}
}

/* A block of long ago that is filled slowly: nothing grows but resident memory. */
TEST(resident_memory_that_grew_by_a_step_makes_a_beat)
{
	char *block = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(block, MAP_FAILED);
	capture_file_header()->identity.machine_bytes = 1024 * MIB; // steps of 4 MiB
	heartbeat_take(1 << 30);
	uint64_t before = newest()->sequence;
	for (uint64_t at = 0; at < 64 * MIB; at += MIB) {
		memset(block + at, 1, MIB);
		for (uint64_t end_ns = clock_now_ns() + 20000000; clock_now_ns() < end_ns;) // it is asked for now and then
			after(1);
	}
	assert_in_range(newest()->sequence - before, 10, 20);
	assert_int_equal(munmap(block, 64 * MIB), 0);
}

TEST(the_resident_set_is_noted_for_domains_at_their_peak)
{
	struct kmem_domain_row *heap = capture_file_domain(KMEM_DOMAIN_HEAP);
	struct kmem_domain_row *mmap = capture_file_domain(KMEM_DOMAIN_MMAP);

	heap->peak = kmem_peak_pack(100, 50, 1); // rising
	mmap->peak = kmem_peak_pack(10, 50, 1);  // below its peak
	heap->peak_resident_bytes = mmap->peak_resident_bytes = 1;
	heartbeat_take(0);
	assert_int_equal(heap->peak_resident_bytes, newest()->resident_bytes);
	assert_int_equal(mmap->peak_resident_bytes, 1);
}

/* Of a thread that has 5000 bytes of its stack left: of the real one, where a sanitizer keeps frames elsewhere. */
__attribute__((no_sanitize_address)) static void *
ask_with_little_stack(void *is_due)
{
	pthread_attr_t attributes;
	void *low;
	size_t bytes;

	if (pthread_getattr_np(pthread_self(), &attributes) != 0 || pthread_attr_getstack(&attributes, &low, &bytes) != 0)
		return is_due;
	(void)pthread_attr_destroy(&attributes);

	char *taken = alloca((uintptr_t)__builtin_frame_address(0) - (uintptr_t)low - 5000);

	__asm__ volatile("" : : "r"(taken) : "memory");
	*(bool *)is_due = thread_stack_has_room() || beat_due_now();
	return NULL;
}

TEST(a_beat_that_has_no_room_waits_for_one_that_has)
{
	bool is_due = true;
	pthread_t thread;
	void *failed;

	beat_due_restart(0, UINT64_C(1) << 40, UINT64_MAX, UINT64_MAX, 0); // its second is long over
	assert_int_equal(pthread_create(&thread, NULL, ask_with_little_stack, &is_due), 0);
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	assert_false(is_due);
	assert_true(beat_due_now());
	assert_false(beat_due_now()); // one is told
}

RUN_TESTS(start_empty, NULL)
