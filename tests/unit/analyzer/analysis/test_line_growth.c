/*
 * test_line_growth.c - how is it said that a line grows: evenly, faster and faster, in bursts?
 */
#include "hand_model.h"

#include "analysis/line_growth.h"

#define POINTS_MAX 65

static struct hand_model hand;
static struct model_point points[POINTS_MAX];
static struct model_point_site held[POINTS_MAX];
static size_t moment; // the point at which a snapshot was taken; 0 = none

/* A line with so many blocks of each quarter, which had so many bytes at each point; between two points 1 MiB was allocated. */
static enum line_pace
pace(const uint64_t *quarters, const uint64_t *bytes, size_t count)
{
	hand_model_make(&hand);
	struct model_site *site = hand_model_site(&hand, HEAP, 41, 100 * MIB);
	memcpy(site->quarters, quarters, sizeof(site->quarters));
	struct rank_line line = (struct rank_line){
		.where = site->where, .leak = MODEL_LEAK_LEAK, .telling = site, .largest = site, .live_bytes = site->live_bytes
	};
	for (size_t i = 0; i < count; i++) {
		held[i] = (struct model_point_site){ 0, bytes[i] };
		points[i] = (struct model_point){ .monotonic_ns = hand.identity.start_monotonic_ns + i,
			                              .volume_bytes = (i + 1) * MIB,
			                              .live_bytes = MIB + bytes[i],
			                              .is_end = i + 1 == count,
			                              .site_count = bytes[i] != 0,
			                              .sites = &held[i] };
	}
	hand.process.points = points;
	hand.process.point_count = count;
	hand.process.moment_ns = moment != 0 ? points[moment].monotonic_ns : 0;
	hand.process.live_bytes = points[moment != 0 ? moment : count - 1].live_bytes;
	struct line_growth growth = line_growth_of(&hand.model, &line);
	assert_true(growth.is_known);
	return growth.pace;
}

static enum line_pace
pace_of_blocks(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	return pace((const uint64_t[]){ a, b, c, d }, (const uint64_t[]){ 1, 2 * MIB }, 2); // too few points
}

TEST(by_the_blocks_of_each_quarter)
{
	assert_int_equal(pace_of_blocks(10, 20, 15, 12), LINE_PACE_EVEN);
	assert_int_equal(pace_of_blocks(10, 21, 15, 12), LINE_PACE_BURSTS);
	assert_int_equal(pace_of_blocks(10, 12, 15, 20), LINE_PACE_EVEN);
	assert_int_equal(pace_of_blocks(10, 12, 15, 21), LINE_PACE_FASTER);
	assert_int_equal(pace_of_blocks(10, 9, 15, 30), LINE_PACE_BURSTS);
}

static const uint64_t in_bursts[] = { 1, 40, 1, 1 };
static const uint64_t even[] = { 10, 10, 10, 10 };

TEST(by_what_it_held_where_there_are_points_enough)
{
	uint64_t bytes[POINTS_MAX];

	for (size_t i = 0; i < POINTS_MAX; i++)
		bytes[i] = (i + 1) * 1000;
	assert_int_equal(pace(in_bursts, bytes, 17), LINE_PACE_EVEN); // of counters that are full
	assert_int_equal(pace(in_bursts, bytes, 16), LINE_PACE_BURSTS);
	bytes[8] = 0; // it was not among the largest
	assert_int_equal(pace(in_bursts, bytes, 17), LINE_PACE_BURSTS);
	for (size_t i = 0; i < POINTS_MAX; i++)
		bytes[i] = (i + 1) * (i + 1) * 1000; // blocks that become larger
	assert_int_equal(pace(even, bytes, 33), LINE_PACE_FASTER);
}

/* Of each `period` points the line grows in one: by that of all, and the rest of it grows evenly. */
static enum line_pace
pace_of_bursts(const uint64_t *quarters, size_t period, uint64_t burst, uint64_t rest)
{
	uint64_t bytes[POINTS_MAX];

	bytes[0] = 1000;
	for (size_t i = 1; i < POINTS_MAX; i++)
		bytes[i] = bytes[i - 1] + rest + (i % period == 1 ? burst : 0);
	return pace(quarters, bytes, POINTS_MAX);
}

TEST(half_of_it_in_bursts)
{
	assert_int_equal(pace_of_bursts(in_bursts, 4, 1000, 0), LINE_PACE_BURSTS);
	assert_int_equal(pace_of_bursts(even, 4, 1000, 0), LINE_PACE_EVEN);      // a round of a loop, which has four points
	assert_int_equal(pace_of_bursts(in_bursts, 2, 1000, 0), LINE_PACE_EVEN); // twice as fast as on average
	assert_int_equal(pace_of_bursts(in_bursts, 4, 3000, 400),
	                 LINE_PACE_EVEN); // 3,400 of 4,600: not three times as fast
	assert_int_equal(pace_of_bursts(in_bursts, 4, 3000, 300), LINE_PACE_BURSTS);
	assert_int_equal(pace_of_bursts(in_bursts, 16, 1500, 100), LINE_PACE_BURSTS); // 1,600 of 3,100
	assert_int_equal(pace_of_bursts(in_bursts, 16, 1300, 100), LINE_PACE_EVEN);   // 1,400 of 2,900
}

/* A snapshot at the second of four points, at each of which the line held half of what was live beside the first MiB. */
TEST(a_snapshot_is_compared_with_what_was_live_then)
{
	hand_model_make(&hand);
	struct model_site *site = hand_model_site(&hand, HEAP, 41, 10 * MIB);
	site->first_ms = 1;
	struct rank_line line = (struct rank_line){
		.where = site->where, .leak = MODEL_LEAK_LEAK, .telling = site, .largest = site, .live_bytes = site->live_bytes
	};
	for (size_t i = 0; i < 4; i++)
		points[i] = (struct model_point){ .monotonic_ns = hand.identity.start_monotonic_ns + i * 2000000,
			                              .live_bytes = MIB + i * 20 * MIB,
			                              .is_end = i == 3 };
	hand.process.points = points;
	hand.process.point_count = 4;
	hand.process.live_bytes = 21 * MIB;
	hand.process.moment_ns = points[1].monotonic_ns;
	struct line_growth growth = line_growth_of(&hand.model, &line);
	assert_true(growth.is_known);
	assert_int_equal(growth.whole_bytes, 20 * MIB);
	/* Its end released much, which the last point no longer has. */
	hand.process.moment_ns = 0;
	hand.process.live_bytes = 81 * MIB;
	assert_int_equal(line_growth_of(&hand.model, &line).whole_bytes, 80 * MIB);
}

/* It is no part of what the process holds. */
TEST(address_space_is_no_part_of_the_growth)
{
	hand_model_make(&hand);
	struct model_site *site = hand_model_site(&hand, RESERVED, 41, 10 * MIB);
	struct rank_line line = { .leak = MODEL_LEAK_LEAK, .telling = site, .largest = site, .live_bytes = 10 * MIB };

	points[0] = (struct model_point){ .is_end = true };
	hand.process.points = points;
	hand.process.point_count = 1;
	assert_false(line_growth_of(&hand.model, &line).is_known);
}

/* What it held later is no part of how it grew until then. */
TEST(the_pace_until_a_snapshot)
{
	uint64_t bytes[POINTS_MAX];

	for (size_t i = 0; i < POINTS_MAX; i++)
		bytes[i] = i < 20 ? (i + 1) * 1000 : 20000;
	assert_int_equal(pace(in_bursts, bytes, POINTS_MAX), LINE_PACE_BURSTS);
	moment = 19;
	assert_int_equal(pace(in_bursts, bytes, POINTS_MAX), LINE_PACE_EVEN);
	moment = 0;
}

RUN_TESTS(NULL, NULL)
