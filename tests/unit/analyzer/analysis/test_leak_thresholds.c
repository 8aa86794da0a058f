/*
 * test_leak_thresholds.c - where exactly does one leak class end and the next one begin?
 *
 * Each row has a number at which it holds and the next one at which it does not: make test-thresholds changes the constants one by one.
 */
#include "hand_model.h"

#include "analysis/rank.h"
#include "threshold.h"

static struct hand_model hand;

static struct model_site *
site_of(unsigned domain, uint32_t line, uint64_t bytes, uint32_t alive, uint32_t recent)
{
	struct model_site *site = hand_model_site(&hand, domain, line, bytes);

	hand_model_generations(site, alive, 100, recent, 100);
	return site;
}

static enum model_leak_class
class_of(uint32_t alive, uint32_t recent)
{
	struct model_site *site;

	hand_model_make(&hand);
	site = site_of(HEAP, 41, GIB, alive, recent);
	rank_leaks_classify(&hand.model);
	return site->leak;
}

static bool
is_leak_by_alive(uint64_t percent)
{
	return class_of((uint32_t)percent, 100) == MODEL_LEAK_LEAK;
}

static bool
is_leak_by_recent(uint64_t percent)
{
	return class_of(100, (uint32_t)percent) == MODEL_LEAK_LEAK;
}

static bool
is_backlog(uint64_t percent)
{
	return class_of((uint32_t)percent, 1) == MODEL_LEAK_BACKLOG;
}

static bool
is_judged(uint64_t generations)
{
	struct model_site *site;

	hand_model_make(&hand);
	site = hand_model_site(&hand, HEAP, 41, GIB);
	hand_model_generations(site, (uint32_t)generations, (uint32_t)generations, 1, 1);
	rank_leaks_classify(&hand.model);
	return site->leak == MODEL_LEAK_LEAK;
}

static bool
may_accumulate(uint64_t generations)
{
	struct model_site *site;

	hand_model_make(&hand);
	site = hand_model_site(&hand, HEAP, 41, GIB);
	hand_model_generations(site, (uint32_t)generations, (uint32_t)generations, 1, 1);
	rank_leaks_classify(&hand.model);
	return rank_may_accumulate(site);
}

static bool
is_worth_the_name(uint64_t bytes)
{
	struct model_site *site;

	hand_model_make(&hand);
	site = site_of(HEAP, 41, bytes, 100, 100);
	rank_leaks_classify(&hand.model);
	return site->leak == MODEL_LEAK_LEAK;
}

/* Of a line that gave back 1,000 blocks of 1 MiB. */
static bool
has_grown(uint64_t bytes)
{
	struct model_site *site;

	hand_model_make(&hand);
	site = site_of(HEAP, 41, bytes, 100, 100);
	site->allocated_bytes += 1000 * MIB;
	site->allocated_count += 1000;
	rank_leaks_classify(&hand.model);
	return site->leak == MODEL_LEAK_LEAK;
}

static bool
is_arena_worth_the_name(uint64_t bytes)
{
	struct model_site *site;

	hand_model_make(&hand);
	hand_model_domain(&hand.domains[MMAP], "python/arena");
	site = site_of(MMAP, 41, bytes, 100, 100);
	rank_leaks_classify(&hand.model);
	return site->leak == MODEL_LEAK_LEAK;
}

/* Of many blocks few stay, half of the generations have none, and each quarter has so many: */
static bool
is_even(uint64_t first, uint64_t others)
{
	struct model_site *site;

	hand_model_make(&hand);
	site = site_of(HEAP, 41, GIB, 50, 100);
	site->allocated_count = 2 * site->live_count;
	for (unsigned i = 0; i < SURVIVAL_QUARTERS; i++)
		site->quarters[i] = i == 0 ? first : others;
	rank_leaks_classify(&hand.model);
	return site->leak == MODEL_LEAK_LEAK;
}

static bool
are_enough_even(uint64_t blocks)
{
	return is_even(blocks - 12, 4);
}

static bool
has_quarter_enough(uint64_t first)
{
	return is_even(first, 210);
}

/* Half of all that was allocated is its own, and one block of each of so many steps. */
static bool
is_of_steps(uint64_t steps)
{
	struct model_site *site;

	hand_model_make(&hand);
	hand.process.steps.source = KMEM_STEPS_CELLS;
	site = site_of(HEAP, 41, GIB, 100, 100);
	site->process_count = 1;
	site->volume_bytes = GIB;
	site->live_count = site->steps = steps;
	rank_leaks_classify(&hand.model);
	return site->leak == MODEL_LEAK_LEAK && !rank_may_be_built_once(site);
}

/* It keeps so many of 1,000 blocks, and each quarter has fewer. */
static bool
is_filling(const uint64_t quarters[SURVIVAL_QUARTERS], uint64_t kept)
{
	struct model_site *site;

	hand_model_make(&hand);
	site = site_of(HEAP, 41, GIB, 100, 100);
	site->live_count = kept;
	site->allocated_count = 1000;
	memcpy(site->quarters, quarters, sizeof(site->quarters));
	rank_leaks_classify(&hand.model);
	return site->leak == MODEL_LEAK_FILLING;
}

static bool
are_halves_apart(uint64_t first)
{
	return is_filling((const uint64_t[]){ first, 200, 190, 100 }, 1000);
}

static bool
does_last_quarter_slow_down(uint64_t last)
{
	return is_filling((const uint64_t[]){ 600, 300, 250, last }, 1000);
}

static bool
are_enough_to_be_filling(uint64_t blocks)
{
	return is_filling((const uint64_t[]){ blocks - 9, 6, 2, 1 }, 1000);
}

static bool
is_nearly_all_kept(uint64_t kept)
{
	return is_filling((const uint64_t[]){ 600, 300, 100, 0 }, kept);
}

/* Is line 41, which is too short to judge and gave nothing back, told before line 50, a leak of 1 MiB? */
static bool
is_before_a_leak(uint64_t bytes, uint64_t count)
{
	struct model_site *site;
	struct ranked *ranked;
	bool is_first;

	hand_model_make(&hand);
	site = hand_model_site(&hand, HEAP, 41, bytes);
	site->live_count = site->allocated_count = count;
	hand_model_generations(site, 2, 2, 1, 1);
	site_of(HEAP, 50, MIB, 100, 100);
	rank_leaks_classify(&hand.model);
	ranked = rank_run((struct finished_model){ &hand.model }, &rank_leaks, NULL);
	is_first = ranked->lines[0].where->line == 41;
	rank_free(ranked);
	return is_first;
}

static bool
is_large_beside_a_leak(uint64_t bytes)
{
	return is_before_a_leak(bytes, 100);
}

static bool
has_many_blocks(uint64_t count)
{
	return is_before_a_leak(GIB, count);
}

/* Booked at a caller, for want of room. */
static bool
is_elsewhere_worth(uint64_t bytes)
{
	hand_model_make(&hand);
	hand_model_site(&hand, HEAP, 41, bytes)->stack_flags = KMEM_STACK_MERGED;
	return rank_elsewhere_worth_bytes(&hand.model) != 0;
}

static bool
is_elsewhere_a_part(uint64_t bytes)
{
	hand_model_make(&hand);
	hand.process.peak_bytes = GIB;
	hand_model_site(&hand, HEAP, 41, bytes)->stack_flags = KMEM_STACK_MERGED;
	return rank_elsewhere_worth_bytes(&hand.model) != 0;
}

/* A quarter of all that was allocated since is of each of two lines. */
static bool
are_of_one_load(bool are_of_one_function, uint64_t bytes, uint64_t blocks)
{
	struct model_site *site;

	hand_model_make(&hand);
	for (uint32_t line = 41; line <= 42; line++) {
		site = site_of(HEAP, line, bytes, 100, 100);
		site->volume_bytes = 4 * MIB;
		site->live_count = site->allocated_count = blocks / 2;
	}
	if (!are_of_one_function)
		hand.frames[1][2].function = "validate";
	rank_leaks_classify(&hand.model);
	return rank_may_be_built_once(&hand.sites[0]) && rank_may_be_built_once(&hand.sites[1]);
}

static bool
are_two_lines_of_one_load(uint64_t bytes)
{
	return are_of_one_load(true, bytes, 1024) && !are_of_one_load(false, bytes, 1024);
}

static bool
are_rows_of_a_load(uint64_t blocks)
{
	return are_of_one_load(true, MIB, blocks);
}

/* What it is parsed of was released, at another stack. */
static bool
is_with_its_parser_a_load(uint64_t bytes)
{
	struct model_site *site;

	hand_model_make(&hand);
	site = site_of(HEAP, 41, MIB, 100, 100);
	site->volume_bytes = 4 * MIB;
	site->live_count = site->allocated_count = 1024;
	hand_model_site(&hand, HEAP, 41, 0)->allocated_bytes = bytes;
	rank_leaks_classify(&hand.model);
	return rank_may_be_built_once(site);
}

/* A load that began after 100 ms, and had come to all but so many bytes of 16 MiB then. Destructors released it. */
static bool
is_over_in_state(uint32_t state, uint64_t missing_bytes, uint64_t loaded_ms, uint64_t end_ms)
{
	const uint64_t times_ms[] = { 100, loaded_ms, end_ms, end_ms };
	const uint64_t bytes[] = { 0, 16 * MIB - missing_bytes, 16 * MIB, 0 };
	struct model_point_site held[4];
	struct model_point points[4];
	struct model_site *site;

	hand_model_make(&hand);
	hand.process.state = state;
	hand.process.points = points;
	hand.process.point_count = 4;
	hand.process.ended_monotonic_ns = hand.process.identity->start_monotonic_ns + end_ms * 1000000;
	site = site_of(HEAP, 41, 16 * MIB, 100, 100);
	site->volume_bytes = 16 * MIB;
	for (unsigned i = 0; i < 4; i++) {
		held[i] = (struct model_point_site){ 0, bytes[i] };
		points[i] = (struct model_point){
			.monotonic_ns = hand.process.identity->start_monotonic_ns + times_ms[i] * 1000000,
			.site_count = 1,
			.sites = &held[i],
		};
	}
	rank_leaks_classify(&hand.model);
	return site->leak == MODEL_LEAK_STEADY;
}

static bool
is_over(uint64_t missing_bytes)
{
	return is_over_in_state(KMEM_STATE_CLEAN_EXIT, missing_bytes, 1600, 3100) &&
	       !is_over_in_state(KMEM_STATE_RUNNING, missing_bytes, 1600, 3100); // a service that waits
}

static bool
is_over_for_so_long(uint64_t end_ms)
{
	return is_over_in_state(KMEM_STATE_CLEAN_EXIT, 0, 1600, end_ms);
}

static bool
is_over_for_a_second(uint64_t end_ms)
{
	return is_over_in_state(KMEM_STATE_CLEAN_EXIT, 0, 600, end_ms);
}

/* A line holds so much, of 16 MiB that were allocated there and in what it called; and the process allocated so much elsewhere. */
static bool
is_fed_by_calls(uint64_t bytes, uint64_t elsewhere_bytes)
{
	struct model_site *site;
	struct model_site *callee;

	hand_model_make(&hand);
	site = site_of(HEAP, 41, bytes, 100, 100);
	callee = hand_model_site(&hand, HEAP, 50, 0);
	hand.stacks[1][3] = site->where;
	callee->allocated_bytes = 16 * MIB - bytes;
	site->volume_bytes = 16 * MIB + elsewhere_bytes;
	rank_leaks_classify(&hand.model);
	return rank_may_be_built_once(site);
}

static bool
is_held_of_its_calls(uint64_t bytes)
{
	return is_fed_by_calls(bytes, 0);
}

static bool
is_called_alone(uint64_t elsewhere_bytes)
{
	return is_fed_by_calls(6 * MIB, elsewhere_bytes);
}

static const struct threshold rows[] = {
	{ "75 % of all generations are alive", is_leak_by_alive, 75, 74 },
	{ "and 70 % of the latest", is_leak_by_recent, 70, 69 },
	{ "25 % of all: a backlog", is_backlog, 25, 24 },
	{ "6 generations", is_judged, 6, 5 },
	{ "3 are enough to say that it may", may_accumulate, 3, 2 },
	{ "6 are judged", may_accumulate, 5, 6 },
	{ "64 KiB", is_worth_the_name, 64 * KIB, 64 * KIB - 1 },
	{ "64 KiB more than 8 of the blocks that it works with", has_grown, 8 * MIB + 64 * KIB, 8 * MIB + 64 * KIB - 1 },
	{ "16 blocks that stay", are_enough_even, 16, 15 },
	{ "a quarter has half of the mean", has_quarter_enough, 90, 89 },
	{ "the first half has one and a half of the second", are_halves_apart, 235, 234 },
	{ "the last quarter has half of the second", does_last_quarter_slow_down, 150, 151 },
	{ "24 blocks of a cache that fills", are_enough_to_be_filling, 24, 23 },
	{ "seven eighths are kept", is_nearly_all_kept, 875, 874 },
	{ "two lines of a function hold half of what was allocated", are_two_lines_of_one_load, MIB, MIB - 1 },
	{ "1,024 rows", are_rows_of_a_load, 1024, 1022 },
	{ "a line, with what its other stacks allocated", is_with_its_parser_a_load, MIB, MIB - 1 },
	{ "a quarter of what its calls allocated is its own", is_held_of_its_calls, 4 * MIB, 4 * MIB - 1 },
	{ "a quarter of all may be allocated elsewhere", is_called_alone, 16 * MIB / 3, 16 * MIB / 3 + 8 },
	{ "a sixteenth may come after it", is_over, MIB, MIB + 1 },
	{ "the program goes on for as long as it took", is_over_for_so_long, 3100, 3099 },
	{ "and for a second", is_over_for_a_second, 1600, 1599 },
	{ "6 steps with a block of each are no one-time load", is_of_steps, 6, 5 },
	{ "16 MiB of arenas", is_arena_worth_the_name, 16 * MIB, 16 * MIB - 1 },
	{ "16 times the leak", is_large_beside_a_leak, 16 * MIB + 16, 16 * MIB - 16 },
	{ "8 blocks", has_many_blocks, 8, 7 },
	{ "1 MiB booked elsewhere", is_elsewhere_worth, MIB, MIB - 1 },
	{ "a sixteenth of the peak booked elsewhere", is_elsewhere_a_part, GIB / 16, GIB / 16 - 1 },
};

TEST(a_class_begins_where_it_is_said_to)
{
	thresholds_check(rows, ARRAY_LEN(rows));
}

RUN_TESTS(NULL, NULL)
