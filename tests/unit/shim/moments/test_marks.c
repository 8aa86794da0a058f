/*
 * test_marks.c - is a mark whole or not there, does the capture stay as large as it is, and are states at even distances?
 */
#include "unit.h"

#include "base/capture_life.h"
#include "base/settings.h"
#include "capture/capture_file.h"
#include "moments/marks.h"
#include "unwind/each_instruction.h"

#define SITES 40
#define FIRST_EVEN (KMEM_MARKS_PLAIN + KMEM_SNAPSHOTS_NAMED)
#define FIRST_HIGH (FIRST_EVEN + KMEM_SNAPSHOTS_EVEN)

static struct kmem_site *sites[SITES];

SETUP(start_empty)
{
	uint32_t index;

	capture_file_forked();
	marks_forked();
	settings.snapshots = 0;
	settings.capture_max = 0;
	capture_file_header()->generation_clock = 7;
	for (unsigned i = 0; i < SITES; i++) {
		sites[i] = capture_file_append(KMEM_SECTION_SITES, sizeof(*sites[i]), &index);
		assert_non_null(sites[i]);
		sites[i]->domain = KMEM_DOMAIN_HEAP;
		sites[i]->slot = 1;
		sites[i]->allocated_bytes = 0;
		sites[i]->allocated_count = 0;
	}
}

static void
hold(unsigned count)
{
	for (unsigned i = 0; i < SITES; i++) {
		sites[i]->allocated_bytes = i < count ? 1000 * (i + 1) : 0;
		sites[i]->allocated_count = i < count;
	}
}

static struct kmem_mark *
mark_at(unsigned place)
{
	return &capture_file_timeline()->marks[place];
}

static bool
is_whole(unsigned place)
{
	return mark_at(place)->checksum != 0 && mark_at(place)->checksum == kmem_mark_checksum(mark_at(place));
}

static const struct kmem_snapshot *
held_at(unsigned place)
{
	const struct kmem_snapshot *held = capture_file_item(KMEM_SECTION_RECORDS, mark_at(place)->record);

	assert_true(is_whole(place));
	assert_int_not_equal(mark_at(place)->record, 0);
	assert_int_equal(held->record.type, KMEM_RECORD_SNAPSHOT);
	assert_int_equal(held->record.checksum, kmem_record_checksum(&held->record, 0));
	assert_int_equal(held->sequence, mark_at(place)->sequence);
	return held;
}

TEST(a_name_is_cut_at_a_whole_character)
{
	static const struct {
		const char *name;
		size_t kept;
		bool is_cut;
	} cases[] = {
		{ "", 0, false },
		{ "epoch 3", 7, false },
		{ "1234567890123456789012345678901234567890123456789012345", 55, false },
		{ "12345678901234567890123456789012345678901234567890123456", 55, true },
		{ "123456789012345678901234567890123456789012345678901234\xc3\xa4", 54, true }, // two bytes from the 55th on
		{ "1234567890123456789012345678901234567890123456789012\xe2\x82\xac", 55, false },
		{ "12345678901234567890123456789012345678901234567890123\xe2\x82\xac", 53, true },
		{ "1234567890123456789012345678901234567890123456789012\x80\x80\x80\x80\x80\x80", 55, true }, // no UTF-8
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		marks_note(KMEM_MARK_PROGRAM, cases[i].name);
		assert_true(is_whole(i));
		assert_int_equal(strlen(mark_at(i)->name), cases[i].kept);
		assert_memory_equal(mark_at(i)->name, cases[i].name, cases[i].kept);
		assert_int_equal(mark_at(i)->is_cut, cases[i].is_cut);
	}
}

TEST(a_snapshot_has_what_each_record_holds)
{
	hold(3);
	marks_snapshot(KMEM_MARK_PROGRAM, "three");
	const struct kmem_snapshot *held = held_at(KMEM_MARKS_PLAIN);

	assert_int_equal(held->site_count, 3);
	assert_int_equal(held->left_out, 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(held->sites[i].site, i + 1);
		assert_int_equal(held->sites[i].live_bytes, 1000 * (i + 1));
		assert_int_equal(held->sites[i].live_count, 1);
	}
}

static struct {
	unsigned torn;
	unsigned voids;
	unsigned looks;
} seen;

static bool
look_at_place(void)
{
	const struct kmem_mark *mark = mark_at(KMEM_MARKS_PLAIN);

	seen.looks++;
	seen.voids += mark->checksum == 0;
	if (mark->checksum != 0) {
		const struct kmem_snapshot *held = capture_file_item(KMEM_SECTION_RECORDS, mark->record);

		seen.torn += mark->checksum != kmem_mark_checksum(mark) || held->sequence != mark->sequence ||
		             held->record.checksum != kmem_record_checksum(&held->record, 0);
	}
	return strcmp(mark->name, "new") != 0 || mark->checksum == 0;
}

TEST(M1_killed_at_any_instruction_a_snapshot_is_whole_or_does_not_count)
{
	hold(3);
	for (unsigned i = 0; i < KMEM_SNAPSHOTS_NAMED; i++) // each place has been used
		marks_snapshot(KMEM_MARK_PROGRAM, "old");
	hold(5);
	seen.torn = seen.voids = seen.looks = 0;
	each_instruction(look_at_place);
	marks_snapshot(KMEM_MARK_PROGRAM, "new");
	assert_string_equal(mark_at(KMEM_MARKS_PLAIN)->name, "new");
	assert_int_equal(held_at(KMEM_MARKS_PLAIN)->site_count, 5);
	assert_int_equal(seen.torn, 0);
	assert_true(seen.voids > 100 && seen.looks > seen.voids); // it was looked at while it was half written
}

TEST(M2_the_capture_does_not_grow_with_the_number_of_marks)
{
	hold(SITES);
	for (unsigned i = 0; i < KMEM_SNAPSHOTS_NAMED; i++)
		marks_snapshot(KMEM_MARK_PROGRAM, "first");
	uint64_t used = capture_file_header()->used_bytes[KMEM_SECTION_RECORDS];
	for (unsigned i = 0; i < 5000; i++) {
		marks_note(KMEM_MARK_PROGRAM, "mark");
		marks_snapshot(KMEM_MARK_OUTSIDE, "snapshot");
	}
	assert_int_equal(capture_file_header()->used_bytes[KMEM_SECTION_RECORDS], used);
	assert_int_equal(capture_file_timeline()->mark_sequence, KMEM_SNAPSHOTS_NAMED + 10000);
}

TEST(M2_without_room_the_largest_are_kept_and_the_rest_is_told)
{
	hold(2);
	marks_snapshot(KMEM_MARK_PROGRAM, "small");
	settings.capture_max = 1 << 10; // nothing more
	for (unsigned i = 1; i < KMEM_SNAPSHOTS_NAMED; i++)
		marks_snapshot(KMEM_MARK_PROGRAM, "none");
	assert_int_equal(mark_at(KMEM_MARKS_PLAIN + 1)->record, 0); // a mark alone
	assert_true(is_whole(KMEM_MARKS_PLAIN + 1));

	struct kmem_snapshot *first = capture_file_item(KMEM_SECTION_RECORDS, mark_at(KMEM_MARKS_PLAIN)->record);
	first->record.bytes = sizeof(*first) + 10 * sizeof(first->sites[0]);
	hold(SITES);
	marks_snapshot(KMEM_MARK_PROGRAM, "large");
	const struct kmem_snapshot *held = held_at(KMEM_MARKS_PLAIN);

	assert_in_range(held->site_count, 1, 10);
	assert_int_equal(held->site_count + held->left_out, SITES);
	assert_int_equal(held->sites[held->site_count - 1].site, SITES); // the largest is there
	int64_t sum = held->left_out_bytes;
	for (unsigned i = 0; i < held->site_count; i++)
		sum += held->sites[i].live_bytes;
	assert_int_equal(sum, 1000 * SITES * (SITES + 1) / 2);
}

TEST(M3_states_are_at_even_distances_over_the_whole_run)
{
	for (unsigned most = 2; most <= KMEM_SNAPSHOTS_EVEN; most++) {
		start_empty(NULL);
		hold(1);
		settings.snapshots = most;
		for (uint64_t ms = 0; ms < 200000; ms += 50) {
			capture_file_header()->volume_bytes = ms; // the mark tells when it was
			marks_beat(0, 0, ms * 1000000 + 1);
		}
		uint64_t times[KMEM_SNAPSHOTS_EVEN];
		unsigned count = 0;

		for (unsigned i = 0; i < KMEM_SNAPSHOTS_EVEN; i++) {
			if (mark_at(FIRST_EVEN + i)->checksum == 0)
				continue;
			unsigned at = count++;

			for (; at > 0 && times[at - 1] > mark_at(FIRST_EVEN + i)->volume_bytes; at--)
				times[at] = times[at - 1];
			times[at] = mark_at(FIRST_EVEN + i)->volume_bytes;
		}
		assert_in_range(count, most / 2, most);
		for (unsigned i = 2; i < count; i++)
			assert_in_range(times[i] - times[i - 1], (times[1] - times[0]) - 100, (times[1] - times[0]) + 100);
		if (count > 1) // the first one is one distance behind the start, the last one not longer before the end
			assert_in_range(200000 - times[count - 1], 0, times[1] - times[0] + 100);
	}
}

TEST(the_high_water_mark_is_at_most_an_eighth_below_the_peak)
{
	uint64_t best = 0;

	hold(1);
	for (uint64_t bytes = 0; bytes < UINT64_C(100) << 20; bytes += 1 << 20) {
		capture_file_header()->volume_bytes = bytes;
		marks_beat(bytes, 0, 1);
	}
	for (unsigned i = 0; i < KMEM_SNAPSHOTS_HIGH_WATER; i++) {
		if (mark_at(FIRST_HIGH + i)->volume_bytes > best)
			best = mark_at(FIRST_HIGH + i)->volume_bytes;
	}
	assert_in_range(best, (UINT64_C(99) << 20) / 9 * 8, UINT64_C(99) << 20);
}

TEST(a_request_is_served_once_and_only_when_it_is_whole)
{
	struct kmem_timeline *timeline = capture_file_timeline();
	struct kmem_request request = { .wants = 2, .number = 5, .name = "asked" };

	hold(1);
	timeline->request = request; // without its checksum: half written
	marks_look();
	assert_int_equal(timeline->mark_sequence, 0);
	timeline->request.checksum = kmem_request_checksum(&request);
	marks_look();
	marks_look();
	assert_int_equal(timeline->mark_sequence, 1);
	assert_int_equal(timeline->request_done, 5);
	assert_string_equal(mark_at(KMEM_MARKS_PLAIN)->name, "asked");
	assert_int_equal(mark_at(KMEM_MARKS_PLAIN)->kind, KMEM_MARK_OUTSIDE);
	memset(request.name, 'x', sizeof(request.name)); // without an end
	request.number = 6;
	request.wants = 1;
	request.checksum = kmem_request_checksum(&request);
	timeline->request = request;
	marks_look();
	assert_int_equal(strlen(mark_at(0)->name), KMEM_MARK_NAME_BYTES - 1);
}

TEST(a_child_marks_its_own_refused_requests)
{
	marks_refused(KMEM_DOMAIN_HEAP);
	assert_int_equal(mark_at(0)->kind, KMEM_MARK_REFUSED);
	marks_refused(KMEM_DOMAIN_HEAP); // one a second
	assert_int_equal(mark_at(1)->kind, 0);
	start_empty(NULL); // as after a fork
	marks_refused(KMEM_DOMAIN_HEAP);
	assert_int_equal(mark_at(0)->kind, KMEM_MARK_REFUSED);
}

RUN_TESTS(start_empty, NULL)
