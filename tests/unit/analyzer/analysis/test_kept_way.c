/*
 * test_kept_way.c - of the ways to a line: is there one whose blocks stay?
 */
#include "hand_model.h"

#include "analysis/kept_way.h"
#include "threshold.h"

static struct hand_model hand;
static struct rank_line line;
static const struct model_site *sites[2];

/* One line that two functions call: of the first way's blocks so many are alive, and of the other's. */
static bool
finds(uint64_t live, uint64_t allocated, uint64_t other_live, uint64_t other_allocated, struct kept_way *way)
{
	struct ranked ranked = { .site_count = 2, .sites = sites };
	uint64_t counts[][2] = { { live, allocated }, { other_live, other_allocated } };

	hand_model_make(&hand);
	line = (struct rank_line){ .site_count = 2 };
	for (unsigned i = 0; i < 2; i++) {
		struct model_site *site = hand_model_site(&hand, HEAP, 41, MIB);

		site->live_count = counts[i][0];
		site->allocated_count = counts[i][1];
		line.live_count += counts[i][0];
		line.allocated_count += counts[i][1];
		sites[i] = site;
	}
	hand.stacks[1][2] = &hand.frames[0][2]; // the line is one, and who called it are two
	line.where = hand.sites[1].where = hand.sites[0].where;
	return kept_way_find(&ranked, &line, way);
}

TEST(the_caller_that_forgets_is_found)
{
	struct kept_way way;

	assert_true(finds(90, 100, 1, 5000, &way));
	assert_ptr_equal(way.through, &hand.frames[0][3]);
	assert_int_equal(way.live_count, 90);
	assert_int_equal(way.allocated_count, 100);
	assert_int_equal(way.other_live_count, 1);
	assert_int_equal(way.other_allocated_count, 5000);
	assert_false(finds(90, 100, 90, 100, &way));   // both keep
	assert_false(finds(100, 100, 100, 100, &way)); // nothing was ever released
}

static bool
come_nearly_all_this_way(uint64_t others)
{
	return finds(900, 1000, others, 5000, &(struct kept_way){ 0 });
}

static bool
stays_enough(uint64_t allocated)
{
	return finds(500, allocated, 0, 5000, &(struct kept_way){ 0 });
}

static bool
is_little_left_of_others(uint64_t live)
{
	return finds(9000, 9000, live, 5000, &(struct kept_way){ 0 });
}

static bool
are_there_others(uint64_t allocated)
{
	return finds(100, 100, 0, allocated, &(struct kept_way){ 0 });
}

TEST(thresholds)
{
	static const struct threshold rows[] = {
		{ "blocks of other ways", come_nearly_all_this_way, 100, 101 },
		{ "half of them stays", stays_enough, 1001, 1002 },
		{ "of others a tenth", is_little_left_of_others, 499, 500 },
		{ "others", are_there_others, 16, 15 },
	};

	thresholds_check(rows, ARRAY_LEN(rows));
}

RUN_TESTS(NULL, NULL)
