/*
 * test_history.c - is a point whole or not there, are points at even distances, and are their sums those of all records?
 */
#include "unit.h"

#include "base/capture_life.h"
#include "base/settings.h"
#include "capture/capture_file.h"
#include "moments/history.h"
#include "sites/site_table.h"
#include "unwind/each_instruction.h"

#define SITES 40
#define MS UINT64_C(1000000)

static uint32_t sites[SITES];

/* Small enough for every domain; of different stacks, so that each record stands alone. */
static void
make_site(unsigned number)
{
	struct call_stack stack = { .hash = 0x1234567 + number * UINT64_C(0x9e3779b97f4a7c15),
		                        .frame_count = 1,
		                        .frames = { KMEM_FRAME_PYTHON | (6 + number) } };

	sites[number] = site_table_find(NULL, &stack, number % 2 == 0 ? KMEM_DOMAIN_HEAP : KMEM_DOMAIN_MMAP, 1);
	assert_int_not_equal(sites[number], 0);
}

static void
hold(unsigned number, uint64_t bytes)
{
	site_table_at(sites[number])->peak = kmem_peak_pack(bytes, 0, 0);
}

SETUP(start_empty)
{
	capture_file_forked();
	site_table_clear();
	history_forked();
	settings.capture_max = 0;
	for (unsigned i = 0; i < SITES; i++)
		make_site(i);
}

/* NULL: there is none. */
static struct kmem_history_point *
place(unsigned number)
{
	uint64_t part = capture_file_header()->history[number / KMEM_HISTORY_PART_POINTS];

	if (part == 0)
		return NULL;
	assert_true(kmem_twice_agrees(part));
	struct kmem_history *found = capture_file_item(KMEM_SECTION_RECORDS, (uint32_t)part);
	assert_int_equal(found->record.type, KMEM_RECORD_HISTORY);
	assert_int_equal(found->record.checksum, kmem_history_head_checksum(&found->record));
	return &found->points[number % KMEM_HISTORY_PART_POINTS];
}

static int
compare(const void *left, const void *right)
{
	const struct kmem_history_point *const *a = left;
	const struct kmem_history_point *const *b = right;

	return (*a)->number < (*b)->number ? -1 : 1;
}

/* Those that count, in order. */
static unsigned
points(struct kmem_history_point *found[KMEM_HISTORY_POINTS])
{
	unsigned count = 0;

	for (unsigned i = 0; i < KMEM_HISTORY_POINTS; i++) {
		struct kmem_history_point *point = place(i);

		if (point == NULL || point->checksum == 0)
			continue;
		assert_int_equal(point->checksum, kmem_history_checksum(point));
		found[count++] = point;
	}
	if (count != 0)
		qsort(found, count, sizeof(struct kmem_history_point *), compare);
	return count;
}

TEST(H3_a_point_is_the_sum_of_all_records)
{
	struct kmem_history_point *found[KMEM_HISTORY_POINTS];

	for (unsigned i = 0; i < SITES; i++)
		hold(i, 1000 * (i + 1));
	history_beat(0, 5 << 20, 7 << 20, 1 * MS);
	assert_int_equal(points(found), 1);
	assert_int_equal(found[0]->number, 1);
	assert_int_equal(found[0]->monotonic_ns, 1 * MS);
	assert_int_equal(found[0]->resident_bytes, 5 << 20);
	assert_int_equal(found[0]->limit_bytes, 7 << 20);
	assert_int_equal(found[0]->domain_count, 2);
	assert_int_equal(found[0]->domains[0], KMEM_DOMAIN_HEAP);
	assert_int_equal(found[0]->domain_bytes[0], 1000 * (SITES / 2) * (SITES / 2));
	assert_int_equal(found[0]->domains[1], KMEM_DOMAIN_MMAP);
	assert_int_equal(found[0]->domain_bytes[1], 1000 * (SITES / 2) * (SITES / 2 + 1));
	assert_int_equal(found[0]->site_count, KMEM_HISTORY_SITES);
	for (unsigned i = 0; i < KMEM_HISTORY_SITES; i++) {
		assert_int_equal(found[0]->sites[i], sites[SITES - 1 - i]);
		assert_int_equal(found[0]->site_bytes[i], 1000 * (SITES - i));
	}
}

TEST(H3_records_of_several_threads_are_one_site)
{
	static struct site_owner owners[3];
	struct kmem_history_point *found[KMEM_HISTORY_POINTS];
	struct call_stack stack = { .hash = 0x777, .frame_count = 1, .frames = { KMEM_FRAME_PYTHON | 600 } };
	uint32_t records[3];

	for (unsigned i = 0; i < 3; i++) {
		memset(&owners[i], 0, sizeof(owners[i]));
		owners[i].slot = (uint16_t)(i + 1);
		records[i] = site_table_find(&owners[i], &stack, KMEM_DOMAIN_HEAP, 1);
	}
	assert_true(records[0] != records[1] && records[1] != records[2]);
	site_table_at(records[0])->peak = kmem_peak_pack(1000, 0, 0);
	site_table_at(records[1])->peak = kmem_peak_pack((uint64_t)-300, 0, 0); // released what the first one allocated
	site_table_at(records[2])->peak = kmem_peak_pack(20, 0, 0);
	history_beat(0, 0, UINT64_MAX, 1 * MS);
	assert_int_equal(points(found), 1);
	assert_int_equal(found[0]->domain_bytes[0], 720);
	assert_int_equal(found[0]->site_count, 1);
	assert_int_equal(found[0]->site_bytes[0], 720);
}

TEST(H2_points_are_bounded_and_at_even_distances_over_the_whole_run)
{
	static const unsigned lengths[] = { 300, 512, 513, 5000, 40000 };

	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct kmem_history_point *found[KMEM_HISTORY_POINTS];
		uint64_t highest_ms = lengths[i] / 3;
		bool has_highest = false;

		start_empty(NULL);
		for (uint64_t ms = 1; ms <= lengths[i]; ms++) {
			uint64_t bytes = ms == highest_ms ? 1000000 : 1000;

			hold(0, bytes);
			history_beat(bytes, 0, UINT64_MAX, ms * 10 * MS);
		}
		unsigned count = points(found);
		assert_in_range(count, lengths[i] < KMEM_HISTORY_POINTS ? lengths[i] : KMEM_HISTORY_POINTS / 2,
		                KMEM_HISTORY_POINTS);
		for (unsigned k = 1; k < count; k++) {
			uint64_t mean = (found[count - 1]->monotonic_ns - found[0]->monotonic_ns) / (count - 1);

			assert_true(found[k]->monotonic_ns > found[k - 1]->monotonic_ns);
			assert_in_range(found[k]->monotonic_ns - found[k - 1]->monotonic_ns, 1, 3 * mean);
		}
		for (unsigned k = 0; k < count; k++)
			has_highest = has_highest || found[k]->monotonic_ns == highest_ms * 10 * MS;
		assert_true(has_highest);
		assert_in_range(found[0]->monotonic_ns, 0, lengths[i] * 10 * MS / 100 + 20 * MS);
		assert_in_range(found[count - 1]->monotonic_ns, lengths[i] * 10 * MS / 100 * 98, lengths[i] * 10 * MS);
	}
}

TEST(the_capture_does_not_grow_with_the_number_of_points)
{
	hold(0, 1000);
	for (uint64_t ms = 1; ms <= 2000; ms++)
		history_beat(0, 0, UINT64_MAX, ms * 10 * MS);
	uint64_t used = capture_file_header()->used_bytes[KMEM_SECTION_RECORDS];
	assert_in_range(used, KMEM_HISTORY_PARTS * sizeof(struct kmem_history), 400 << 10);
	for (uint64_t ms = 2000; ms <= 100000; ms += 10)
		history_beat(0, 0, UINT64_MAX, ms * 10 * MS);
	assert_int_equal(capture_file_header()->used_bytes[KMEM_SECTION_RECORDS], used);
}

TEST(without_room_there_are_fewer_points_or_none)
{
	struct kmem_history_point *found[KMEM_HISTORY_POINTS];

	hold(0, 1000);
	settings.capture_max = 1; // nothing more
	history_beat(0, 0, UINT64_MAX, 1 * MS);
	assert_int_equal(points(found), 0);
	settings.capture_max = 0;
	history_beat(0, 0, UINT64_MAX, 2 * MS); // the first part
	settings.capture_max = 1;
	for (uint64_t ms = 3; ms < 1000; ms++)
		history_beat(0, 0, UINT64_MAX, ms * 10 * MS);
	assert_in_range(points(found), KMEM_HISTORY_PART_POINTS / 2, KMEM_HISTORY_PART_POINTS);
}

TEST(a_capture_that_is_given_up_takes_no_points)
{
	struct kmem_history_point *found[KMEM_HISTORY_POINTS];

	for (uint64_t ms = 1; ms <= 100; ms++)
		history_beat(0, 0, UINT64_MAX, ms * MS);
	assert_int_equal(points(found), 100);
	memset(capture_file_header()->history, 0, sizeof(capture_file_header()->history));
	history_beat(0, 0, UINT64_MAX, 200 * MS);
	for (uint64_t ms = 201; ms <= 210; ms++)
		history_beat(0, 0, UINT64_MAX, ms * MS);
	assert_int_equal(points(found), 10);
}

TEST(before_the_first_beat_and_beyond_the_cost_there_is_no_point)
{
	struct kmem_history_point *found[KMEM_HISTORY_POINTS];

	hold(0, 1000);
	history_tick(1 << 20);
	history_look();
	assert_int_equal(points(found), 0);
	for (unsigned i = 0; i < 100000; i++) // all at one moment: 2 ms of work at most
		history_beat(0, 0, UINT64_MAX, 1 * MS);
	assert_in_range(points(found), 1, KMEM_HISTORY_POINTS);
	history_beat(0, 0, UINT64_MAX, 1 * MS);
	unsigned before = (unsigned)found[points(found) - 1]->number;

	history_beat(0, 0, UINT64_MAX, 1 * MS);
	assert_int_equal(found[points(found) - 1]->number, before);
}

TEST(a_point_is_due_when_a_sixteenth_more_was_allocated)
{
	struct kmem_history_point *found[KMEM_HISTORY_POINTS];

	hold(0, 1000);
	history_beat(0, 0, UINT64_MAX, 1);
	unsigned count = points(found);
	for (uint64_t volume = 0; volume < UINT64_C(64) << 20; volume += 4096) {
		atomic_store(&capture_file_header()->volume_bytes, volume);
		history_look();
	}
	/* 16 steps of 256 KiB, then 16 for each factor e. */
	assert_in_range(points(found) - count, 50, 70);
}

static struct {
	unsigned torn;
	unsigned voids;
	unsigned looks;
	uint64_t wanted;
} seen;

static bool
look_at_all(void)
{
	const struct kmem_history_point *point = place(1);

	seen.looks++;
	seen.voids += point->checksum == 0;
	seen.torn += point->checksum != 0 && point->checksum != kmem_history_checksum(point);
	return seen.looks < 4000000 && (point->number < seen.wanted || point->checksum == 0);
}

TEST(H1_killed_at_any_instruction_a_point_is_whole_or_does_not_count)
{
	for (unsigned i = 0; i < SITES; i++)
		hold(i, 1000 * (i + 1));
	for (uint64_t ms = 1; ms <= KMEM_HISTORY_POINTS;
	     ms++) // the next one takes the place of the second: the first is the highest
		history_beat(0, 0, UINT64_MAX, ms * 10 * MS);
	seen.torn = seen.voids = seen.looks = 0;
	seen.wanted = KMEM_HISTORY_POINTS + 1;
	each_instruction(look_at_all);
	history_beat(0, 0, UINT64_MAX, KMEM_HISTORY_POINTS * 100 * MS);
	assert_int_equal(place(1)->number, seen.wanted);
	assert_int_equal(seen.torn, 0);
	assert_true(seen.voids > 100);
}

RUN_TESTS(start_empty, NULL)
