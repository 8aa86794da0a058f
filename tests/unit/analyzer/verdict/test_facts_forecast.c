/*
 * test_facts_forecast.c - from which growth is it foretold when the limit is reached, and when?
 *
 * One process, 100 MiB at first, which grows by 1 MiB a second; each test changes one thing.
 */
#include "test.h"

#include "verdict/facts.h"

#define MIB ((double)(1 << 20))
#define BEATS_MAX 512
#define QUARTERS 4

static struct {
	double start_s;
	double end_s; // of the last heartbeat
	unsigned beats;
	double first_mib;
	double rate_mib[QUARTERS]; // a second, in each quarter of what comes after the first fifth
	double limit_mib;
	double leaking_mib;
	double cgroup_more_mib; // of others under the limit; < 0: no cgroup
	enum verdict_end end;
	uint64_t steps;
	double steps_from_s;
	enum kmem_step_source steps_source;
	uint64_t kept_count; // blocks that are kept, of a line that began with the steps; 0: no line is known
} run;

static struct verdict_facts facts;

SETUP(set_up)
{
	memset(&run, 0, sizeof(run));
	run.start_s = 1000;
	run.end_s = 1100;
	run.beats = 101;
	run.first_mib = 100;
	for (unsigned i = 0; i < QUARTERS; i++)
		run.rate_mib[i] = 1;
	run.limit_mib = 1000;
	run.leaking_mib = 64;
	run.cgroup_more_mib = -1;
	run.end = VERDICT_END_RUNNING;
}

static uint64_t
ns(double seconds)
{
	return (uint64_t)(seconds * 1e9 + 0.5);
}

/* Seconds after the start. In the first fifth it grows as in the first quarter of the rest. */
static double
resident_mib(double at_s)
{
	double life_s = run.end_s - run.start_s;
	double quarter_s = life_s * 4 / 5 / QUARTERS;
	double from_s = life_s / 5;
	double mib = run.first_mib + run.rate_mib[0] * (at_s < from_s ? at_s : from_s);

	for (unsigned i = 0; i < QUARTERS && at_s > from_s; i++, from_s += quarter_s)
		mib += run.rate_mib[i] * (at_s - from_s < quarter_s ? at_s - from_s : quarter_s);
	return mib;
}

/* Minutes until the limit; -1: nothing is foretold. */
static int64_t
foretold(void)
{
	static struct kmem_heartbeat beats[BEATS_MAX];
	static struct kmem_identity identity;
	static struct model_process process;
	static struct model model;
	static struct model_site site;
	static struct model_domain domain;
	double step_s = (run.end_s - run.start_s) / (run.beats - 1);

	assert_true(run.beats <= BEATS_MAX);
	for (unsigned i = 0; i < run.beats; i++) {
		double mib = resident_mib(step_s * i);

		beats[i] = (struct kmem_heartbeat){
			.monotonic_ns = ns(run.start_s + step_s * i),
			.resident_bytes = (uint64_t)(mib * MIB),
			.cgroup_bytes = run.cgroup_more_mib < 0 ? 0 : (uint64_t)((mib + run.cgroup_more_mib) * MIB),
			.limit_bytes = run.limit_mib < 0 ? UINT64_MAX : (uint64_t)(run.limit_mib * MIB),
		};
	}
	identity.start_monotonic_ns = ns(run.start_s);
	process = (struct model_process){
		.identity = &identity,
		.heartbeats = beats,
		.heartbeat_count = run.beats,
		.steps = { .count = run.steps, .source = run.steps_source, .began_ns = ns(run.start_s + run.steps_from_s) },
	};
	model = (struct model){ .processes = &process, .process_count = 1, .domains = &domain };
	site = (struct model_site){
		.live_count = run.kept_count, .live_bytes = 64 << 20, .steps = run.steps, .process_count = 1
	};
	facts = (struct verdict_facts){ .process = &process,
		                            .model = &model,
		                            .end = run.end,
		                            .most_leaking = { .telling = run.kept_count != 0 ? &site : NULL,
		                                              .leaking_bytes = site.live_bytes },
		                            .leaking_bytes = (uint64_t)(run.leaking_mib * MIB) };
	verdict_forecast_gather(&facts);
	return facts.forecast.bytes_per_minute != 0 ? (int64_t)facts.forecast.minutes : -1;
}

TEST(from_steady_growth)
{
	assert_int_equal(foretold(), 13); // 200 MiB are in use, 800 are left, at 60 a minute
	assert_int_equal(facts.forecast.bytes_per_minute >> 20, 60);
	assert_int_equal(facts.forecast.used_bytes >> 20, 200);
	assert_int_equal(facts.forecast.limit_bytes >> 20, 1000);
	run.end = VERDICT_END_OK;
	assert_int_equal(foretold(), 13);
	run.cgroup_more_mib = 400; // of others: they are in use, and do not grow
	assert_int_equal(foretold(), 400 / 60 + 1);
}

TEST(only_of_who_may_go_on)
{
	run.end = VERDICT_END_SIGNAL;
	assert_int_equal(foretold(), -1);
}

TEST(only_below_a_limit)
{
	run.limit_mib = -1;
	assert_int_equal(foretold(), -1);
	run.limit_mib = 200;
	assert_int_equal(foretold(), -1); // it is reached
	run.limit_mib = 201;
	assert_int_equal(foretold(), 0);
}

TEST(only_where_a_line_accumulates)
{
	run.leaking_mib = 1;
	assert_int_equal(foretold(), 13);
	run.leaking_mib = 0.999;
	assert_int_equal(foretold(), -1);
}

TEST(only_from_growth_that_is_worth_it)
{
	for (unsigned i = 0; i < QUARTERS; i++)
		run.rate_mib[i] = 1.01 / 80; // in the 80 s that count
	assert_int_not_equal(foretold(), -1);
	for (unsigned i = 0; i < QUARTERS; i++)
		run.rate_mib[i] = 0.99 / 80;
	assert_int_equal(foretold(), -1);
}

TEST(only_from_thirty_seconds_after_the_first_fifth)
{
	run.end_s = run.start_s + 37.5;
	assert_int_equal(foretold(), 14);
	run.end_s = run.start_s + 37.4;
	assert_int_equal(foretold(), -1);
}

TEST(only_from_eight_heartbeats)
{
	run.beats = 8;
	assert_int_equal(foretold(), 13);
	run.beats = 7;
	assert_int_equal(foretold(), -1);
}

TEST(what_comes_at_the_start_does_not_count)
{
	run.first_mib = 500;
	assert_int_equal(foretold(), 400 / 60 + 1);
	run.rate_mib[0] = run.rate_mib[1] = run.rate_mib[2] = run.rate_mib[3] = 0;
	assert_int_equal(foretold(), -1);
}

/* Sum of the four: 4 times the mean. */
TEST(only_from_even_growth)
{
	static const struct {
		double most; // in one quarter, of the mean; the others share the rest
		bool is_even;
	} cases[] = { { 2.9, true }, { 3.2, false }, { 3.9, false }, { 0.35, true }, { 0.3, false } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (unsigned quarter = 0; quarter < QUARTERS; quarter++) {
			for (unsigned k = 0; k < QUARTERS; k++)
				run.rate_mib[k] = k == quarter ? cases[i].most : (4 - cases[i].most) / 3;
			run.limit_mib = 2000;
			if ((foretold() != -1) != cases[i].is_even)
				fail_msg("%g of the mean in quarter %u", cases[i].most, quarter);
		}
	}
}

TEST(nobody_knows_what_is_in_a_week)
{
	run.limit_mib = 200 + 60.0 * (7 * 24 * 60 - 1);
	assert_int_equal(foretold(), 7 * 24 * 60 - 1);
	run.limit_mib = 200 + 60.0 * (7 * 24 * 60 + 1);
	assert_int_equal(foretold(), -1);
}

TEST(in_steps_that_the_program_counts)
{
	run.steps_from_s = 50;
	run.steps = 6; // in 50 s; 800 s are left
	run.steps_source = KMEM_STEPS_PROGRAM;
	foretold();
	assert_in_range(facts.forecast.steps, 95, 96);
	run.steps_source = KMEM_STEPS_CELLS;
	foretold();
	assert_in_range(facts.forecast.steps, 95, 96);
	run.steps_source = KMEM_STEPS_LOOP; // an estimate
	foretold();
	assert_int_equal(facts.forecast.steps, 0);
	run.kept_count = 7; // as many blocks as rounds, about
	foretold();
	assert_in_range(facts.forecast.steps, 95, 96);
	run.kept_count = 70;
	foretold();
	assert_int_equal(facts.forecast.steps, 0);
	run.steps_source = KMEM_STEPS_PROGRAM;
	run.steps = 5;
	foretold();
	assert_int_equal(facts.forecast.steps, 0);
}

RUN_TESTS(set_up, NULL)
