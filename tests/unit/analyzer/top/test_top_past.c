/*
 * test_top_past.c - how much more than a minute ago, how fast now, and in which order?
 */

#include "made_sample.h"

#include "top/top_past.h"

static struct hand_model hand;
static struct top_past *past;

SETUP(begin)
{
	hand_model_make(&hand);
	past = top_past_new();
}

SETUP(end)
{
	top_past_free(past);
}

/* A line that holds and allocated so much, seen at that second. */
static struct top_sample *
seen(double seconds, uint64_t live_bytes, uint64_t allocated_bytes)
{
	struct top_sample *sample = made_sample(&hand, seconds);

	(void)made_row(sample, "train.py:41 epoch", live_bytes, allocated_bytes);
	top_past_compare(past, sample, TOP_BY_LIVE);
	return sample;
}

TEST_WITH(the_first_look_has_nothing_to_compare_with, begin, end)
{
	struct top_sample *sample = seen(100, 5 * MIB, 9 * MIB);

	assert_false(sample->has_growth);
	assert_false(sample->has_rate);
	assert_false(sample->rows[0].has_growth);
	assert_false(sample->rows[0].has_rate);
	made_sample_free(sample);
}

/* 2 MiB a second at first, then 10: the rate is of the last five seconds, growth is of the last minute. */
TEST_WITH(rates_are_of_five_seconds_and_growth_is_of_a_minute, begin, end)
{
	static const struct {
		unsigned at;
		double growth_seconds;
		uint64_t growth_mib;
		uint64_t rate_mib;
	} cases[] = { { 1, 1, 1, 2 },    { 3, 3, 3, 2 },     { 59, 59, 59, 2 },
		          { 62, 60, 60, 5 }, { 70, 60, 60, 10 }, { 150, 60, 60, 10 } };
	size_t next = 0;

	/* At 62 it has gone three seconds at 2 MiB, and two at 10: 5.2. */
	for (unsigned at = 0; at <= 150; at++) {
		struct top_sample *sample = seen(at, at * MIB, (at <= 60 ? 2 * at : 120 + 10 * (at - 60)) * MIB);

		if (next < ARRAY_LEN(cases) && cases[next].at == at) {
			assert_true(sample->growth_seconds == cases[next].growth_seconds);
			assert_int_equal(sample->growth_bytes, cases[next].growth_mib * MIB);
			assert_int_equal(sample->rows[0].growth_bytes, cases[next].growth_mib * MIB);
			assert_int_equal(sample->rate_bytes / MIB, cases[next].rate_mib);
			assert_int_equal(sample->rows[0].rate_bytes, sample->rate_bytes);
			next++;
		}
		made_sample_free(sample);
	}
	assert_int_equal(next, ARRAY_LEN(cases));
}

/* Two samples a second: there is room for 45 seconds of them, and nothing older is claimed. */
TEST_WITH(with_many_looks_growth_is_of_less_than_a_minute, begin, end)
{
	struct top_sample *sample = NULL;

	for (unsigned half = 0; half <= 240; half++) {
		if (sample != NULL)
			made_sample_free(sample);
		sample = seen(half / 2.0, half * MIB, half * MIB);
	}
	assert_true(sample->growth_seconds == 45);
	assert_int_equal(sample->growth_bytes, 90 * MIB);
	made_sample_free(sample);
}

TEST_WITH(what_was_not_there_has_grown_by_all_of_it, begin, end)
{
	struct top_sample *sample = seen(0, MIB, MIB);

	made_sample_free(sample);
	sample = made_sample(&hand, 2);
	(void)made_row(sample, "train.py:41 epoch", MIB / 2, MIB);
	made_row(sample, "train.py:50 load", 6 * MIB, 8 * MIB)->held_bytes = MIB / 4; // most of it is not in memory
	(void)made_row(sample, "train.py:60 gone", 0, 0);
	(void)made_row(sample, "train.py:70 turns", 0, 4 * MIB); // holds nothing, and allocates
	top_past_compare(past, sample, TOP_BY_LIVE);
	assert_int_equal(sample->row_count, 3); // what holds nothing and does nothing is no row
	assert_string_equal(sample->rows[0].place, "train.py:41 epoch");
	assert_int_equal(sample->rows[0].growth_bytes, -(int64_t)(MIB / 2));
	assert_int_equal(sample->rows[0].rate_bytes, 0);
	assert_string_equal(sample->rows[1].place, "train.py:50 load");
	assert_int_equal(sample->rows[1].growth_bytes, 6 * MIB);
	assert_int_equal(sample->rows[1].rate_bytes, 4 * MIB);
	assert_string_equal(sample->rows[2].place, "train.py:70 turns");
	assert_int_equal(sample->rows[2].rate_bytes, 2 * MIB);
	made_sample_free(sample);
}

/* A capture that is read while it is written may tell less than the time before. */
TEST_WITH(a_rate_is_never_negative, begin, end)
{
	struct top_sample *sample = seen(0, MIB, 9 * MIB);

	made_sample_free(sample);
	sample = seen(1, MIB, 8 * MIB);
	assert_true(sample->has_rate);
	assert_int_equal(sample->rate_bytes, 0);
	assert_int_equal(sample->rows[0].rate_bytes, 0);
	made_sample_free(sample);
}

TEST_WITH(what_was_forgotten_is_not_compared_with, begin, end)
{
	made_sample_free(seen(0, MIB, MIB));
	top_past_forget(past);

	struct top_sample *sample = seen(1, 2 * MIB, 2 * MIB);

	assert_false(sample->has_growth);
	made_sample_free(sample);
}

TEST_WITH(rows_are_in_the_order_that_is_wanted, begin, end)
{
	static const struct {
		const char *place;
		uint64_t live[2];
		uint64_t allocated[2];
	} lines[] = {
		{ "a", { 50, 40 }, { 100, 101 } }, // shrinks
		{ "b", { 10, 30 }, { 100, 120 } }, // grows most
		{ "c", { 30, 31 }, { 100, 400 } }, // allocates most
		{ "d", { 30, 31 }, { 100, 110 } }, // holds as much as c: the key decides, which is always the same
	};
	static const char *const orders[TOP_ORDERS] = { "acdb", "bcda", "cbda" };

	for (enum top_order order = TOP_BY_LIVE; order < TOP_ORDERS; order++) {
		char found[8] = "";

		top_past_forget(past);
		for (unsigned turn = 0; turn < 2; turn++) {
			struct top_sample *sample = made_sample(&hand, turn);

			for (size_t i = 0; i < ARRAY_LEN(lines); i++)
				(void)made_row(sample, lines[i].place, lines[i].live[turn] * MIB, lines[i].allocated[turn] * MIB);
			top_past_compare(past, sample, order);
			for (size_t i = 0; i < sample->row_count; i++)
				found[i] = sample->rows[i].place[0];
			made_sample_free(sample);
		}
		assert_string_equal(found, orders[order]);
	}
}

/* Before there are samples, the capture's own timeline tells growth; it does not tell what was allocated by whom. */
TEST_WITH(the_timeline_of_the_capture_tells_growth_at_once, begin, end)
{
	static struct model_point_site then[KMEM_HISTORY_SITES];
	static struct model_point points[2];
	struct top_sample *sample;

	(void)hand_model_site(&hand, HEAP, 41, 50 * MIB);
	(void)hand_model_site(&hand, HEAP, 42, 20 * MIB);
	points[0] = (struct model_point){
		.monotonic_ns = UINT64_C(10000000000), .live_bytes = 45 * MIB, .site_count = 1, .sites = then
	};
	points[1] = (struct model_point){ .monotonic_ns = UINT64_C(50000000000), .live_bytes = 70 * MIB };
	hand.process.points = points;
	hand.process.point_count = 2;
	for (size_t full = 0; full < 2; full++) {
		/* With a full list, what is not in it may have held as much as the least of them. */
		points[0].site_count = full != 0 ? KMEM_HISTORY_SITES : 1;
		for (size_t i = 0; i < points[0].site_count; i++)
			then[i] = (struct model_point_site){ .site = 0,
				                                 .bytes = i == 0                        ? 30 * MIB
				                                          : i == KMEM_HISTORY_SITES - 1 ? 2 * MIB
				                                                                        : 0 };
		top_past_forget(past);
		sample = made_sample(&hand, 100);
		(void)made_row(sample, "train.py:41 epoch", 50 * MIB, 90 * MIB);
		(void)made_row(sample, "train.py:42 epoch", 20 * MIB, 20 * MIB);
		top_past_compare(past, sample, TOP_BY_LIVE);
		assert_true(sample->has_growth);
		assert_true(sample->growth_seconds == 40);
		assert_int_equal(sample->growth_bytes, 25 * MIB);
		assert_false(sample->has_rate);
		assert_true(sample->rows[0].has_growth);
		assert_int_equal(sample->rows[0].growth_bytes / MIB,
		                 full != 0 ? 18 : 20); // the rest of them is of this line, too
		assert_int_equal(sample->rows[1].has_growth, full == 0);
		made_sample_free(sample);
	}
}

/* A line that is not among the largest of the timeline then held less than the least of them: where that is little, all of it is growth. */
TEST_WITH(what_the_timeline_left_out_has_grown_by_nearly_all_of_it, begin, end)
{
	static struct model_point_site then[KMEM_HISTORY_SITES];
	static struct model_point points[2];
	static const struct {
		uint64_t least_bytes;
		bool has_growth;
	} cases[] = { { MIB, true }, { 5 * MIB / 4, true }, { 5 * MIB / 4 + 1, false } }; // of 20 MiB a sixteenth

	(void)hand_model_site(&hand, HEAP, 41, 50 * MIB);
	(void)hand_model_site(&hand, HEAP, 42, 20 * MIB);
	points[0] = (struct model_point){ .monotonic_ns = UINT64_C(10000000000),
		                              .site_count = KMEM_HISTORY_SITES,
		                              .sites = then };
	points[1] = (struct model_point){ .monotonic_ns = UINT64_C(50000000000), .live_bytes = 70 * MIB };
	hand.process.points = points;
	hand.process.point_count = 2;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct top_sample *sample = made_sample(&hand, 100);

		for (size_t j = 0; j < KMEM_HISTORY_SITES; j++)
			then[j] = (struct model_point_site){ .site = 0, .bytes = cases[i].least_bytes };
		top_past_forget(past);
		(void)made_row(sample, "train.py:41 epoch", 50 * MIB, 90 * MIB);
		(void)made_row(sample, "train.py:42 epoch", 20 * MIB, 20 * MIB);
		top_past_compare(past, sample, TOP_BY_LIVE);
		assert_int_equal(sample->rows[1].has_growth, cases[i].has_growth);
		if (cases[i].has_growth)
			assert_int_equal(sample->rows[1].growth_bytes, 20 * MIB);
		made_sample_free(sample);
	}
}

RUN_TESTS(NULL, NULL)
