/*
 * test_line_steps.c - from which number on is it said what a line kept in each step?
 */

#include "hand_model.h"

#include "threshold.h"
#include "analysis/line_steps.h"

#define SECOND UINT64_C(1000000000)

static struct hand_model hand;

static struct line_steps
kept_in_steps(uint64_t steps, uint64_t blocks, enum kmem_step_source source, uint64_t seconds)
{
	hand_model_make(&hand);
	struct model_site *site = hand_model_site(&hand, HEAP, 41, blocks * MIB);
	site->live_count = blocks;
	site->steps = steps;
	hand.process.steps.source = source;
	hand.process.ended_monotonic_ns = hand.identity.start_monotonic_ns + seconds;
	struct rank_line line = (struct rank_line){ .telling = site, .leaking_bytes = site->live_bytes };
	return line_steps_of(&hand.model, &line);
}

static bool
are_steps_enough(uint64_t steps)
{
	return kept_in_steps(steps, steps, KMEM_STEPS_PROGRAM, SECOND).count == steps;
}

static bool
are_few_blocks_one_in_each(uint64_t blocks)
{
	return kept_in_steps(1000, blocks, KMEM_STEPS_LOOP, SECOND).is_one_block;
}

static bool
are_many_blocks_one_in_each(uint64_t blocks)
{
	return kept_in_steps(999, blocks, KMEM_STEPS_LOOP, SECOND).is_one_block;
}

static bool
is_hour_told(uint64_t ns)
{
	return kept_in_steps(100, 100, KMEM_STEPS_PROGRAM, ns).bytes_per_hour == 100 * 60 * MIB; // of a minute's 100 MiB
}

/* The loop's stack changed at second 6: the rounds are those since then. */
static bool
is_beginning_told(uint64_t earlier_bytes)
{
	hand_model_make(&hand);
	struct model_site *site = hand_model_site(&hand, HEAP, 41, 100 * MIB);

	site->live_count = site->steps = 100;
	site->first_ms = 6000;
	hand.process.steps.source = KMEM_STEPS_LOOP;
	struct rank_line line = (struct rank_line){ .telling = site,
		                                        .leaking_bytes = site->live_bytes,
		                                        .live_bytes = site->live_bytes + earlier_bytes };
	return line_steps_of(&hand.model, &line).since_ms == 6000;
}

TEST(thresholds)
{
	static const struct threshold rows[] = {
		{ "steps: 6", are_steps_enough, 6, 5 },
		{ "one in each: three quarters", are_few_blocks_one_in_each, 750, 749 },
		{ "one in each: four thirds", are_many_blocks_one_in_each, 1332, 1333 },
		{ "earlier: a quarter", is_beginning_told, 25 * MIB, 25 * MIB - 1 },
		{ "an hour: from a minute", is_hour_told, 60 * SECOND, 60 * SECOND - 1 },
	};

	thresholds_check(rows, ARRAY_LEN(rows));
}

/* A round that reserved address space was one of many that needed some. */
TEST(rounds_are_not_confirmed_by_what_an_allocator_takes)
{
	for (unsigned i = 0; i < 2; i++) {
		hand_model_make(&hand);
		struct model_site *site = hand_model_site(&hand, i == 0 ? HEAP : RESERVED, 41, 14 * MIB);
		site->live_count = site->steps = 14;
		hand.process.steps.source = KMEM_STEPS_LOOP;
		struct rank_line line = { .telling = site, .leaking_bytes = 14 * MIB };
		assert_int_equal(line_steps_of(&hand.model, &line).count, i == 0 ? 14 : 0);
	}
}

RUN_TESTS(NULL, NULL)
