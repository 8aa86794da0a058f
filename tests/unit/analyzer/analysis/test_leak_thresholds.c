/*
 * test_leak_thresholds.c - where exactly does one leak class end and the next one begin?
 *
 * Each row has a number at which it holds and the next one at which it does not: make test-thresholds changes the constants one by one.
 */
#include "scene.h"

#include "threshold.h"

static struct hand_model hand;

static void
classify(void)
{
	rank_leaks_classify(&hand.model);
}

static bool
is_leak(void)
{
	return hand.sites[0].leak == MODEL_LEAK_LEAK;
}

static bool
is_backlog(void)
{
	return hand.sites[0].leak == MODEL_LEAK_BACKLOG;
}

static bool
is_filling(void)
{
	return hand.sites[0].leak == MODEL_LEAK_FILLING;
}

static bool
may_accumulate(void)
{
	return rank_may_accumulate(&hand.sites[0]);
}

/* Half of all that was allocated is its own, and one block of each of so many steps. */
static bool
is_of_steps(void)
{
	hand.process.steps.source = KMEM_STEPS_CELLS;
	classify();
	return is_leak() && !rank_may_be_built_once(&hand.sites[0]);
}

/* Is line 41, which is too short to judge and gave nothing back, told before line 50, a leak of 1 MiB? */
static bool
is_before_a_leak(void)
{
	struct ranked *ranked = rank_run((struct finished_model){ &hand.model }, &rank_leaks, NULL);
	bool is_first = ranked->lines[0].where->line == 41;

	rank_free(ranked);
	return is_first;
}

/* Booked at a caller, for want of room. */
static bool
is_elsewhere_worth(void)
{
	hand.sites[0].stack_flags = KMEM_STACK_MERGED;
	return rank_elsewhere_worth_bytes(&hand.model) != 0;
}

static bool
may_be_built_once(void)
{
	return rank_may_be_built_once(&hand.sites[0]);
}

static bool
may_both_be_built_once(void)
{
	return rank_may_be_built_once(&hand.sites[0]) && rank_may_be_built_once(&hand.sites[1]);
}

static bool
may_be_built_once_by_one_function(void)
{
	bool is_of_one = may_both_be_built_once();

	hand.frames[1][2].function = "validate";
	classify();
	return is_of_one && !may_both_be_built_once();
}

/* What a line held, of what was allocated there and in what it called: line 50. */
static bool
is_fed_by_calls(void)
{
	hand.stacks[1][3] = hand.sites[0].where;
	classify();
	return may_be_built_once();
}

#define LEAK(bytes) "heap:41 " bytes " gens=100/100/100/100 "
#define TOO_SHORT " gens=2/2/1/1; heap:50 1M gens=100/100/100/100"
/* A quarter of all that was allocated since is of each of two lines. */
#define TWO_LINES(bytes, blocks)                                                                                \
	LEAK(bytes)                                                                                                 \
	"volume_bytes=4M live_count=" blocks " allocated_count=" blocks "; heap:42 " bytes " gens=100/100/100/100 " \
	"volume_bytes=4M live_count=" blocks " allocated_count=" blocks
/* Of many blocks few stay, and half of the generations have none; the first quarter has so many, the others have these. */
#define QUARTERS(one, others) \
	"heap:41 1G gens=50/100/100/100 allocated_count=2 quarters=" others "/" others "/" one "/" others
/* It keeps so many of 1,000 blocks, and each quarter has fewer. */
#define FILLING(quarters, kept) LEAK("1G") "live_count=" kept " allocated_count=1000 quarters=" quarters

TEST(a_class_begins_where_it_is_said_to)
{
	static const struct scene_threshold rows[] = {
		{ "75 % of all generations are alive", "heap:41 1G gens=$/100/100/100", is_leak, 75, 74 },
		{ "and 70 % of the latest", "heap:41 1G gens=100/100/$/100", is_leak, 70, 69 },
		{ "25 % of all: a backlog", "heap:41 1G gens=$/100/1/100", is_backlog, 25, 24 },
		{ "6 generations", "heap:41 1G gens=$/$/1/1", is_leak, 6, 5 },
		{ "3 are enough to say that it may", "heap:41 1G gens=$/$/1/1", may_accumulate, 3, 2 },
		{ "6 are judged", "heap:41 1G gens=$/$/1/1", may_accumulate, 5, 6 },
		{ "64 KiB", LEAK("$"), is_leak, 64 * KIB, 64 * KIB - 1 },
		{ "a 256th of the peak", "process peak_bytes=64M state=33686018; " LEAK("$"), is_leak, 256 * KIB,
		  256 * KIB - 1 },
		{ "but 1 MiB always", "process peak_bytes=1G state=33686018; " LEAK("$"), is_leak, MIB, MIB - 1 },
		{ "64 KiB more than 8 of the blocks that it works with", LEAK("$") "freed=1000M/1000", is_leak,
		  8 * MIB + 64 * KIB, 8 * MIB + 64 * KIB - 1 },
		{ "16 blocks that stay", QUARTERS("$-12", "4"), is_leak, 16, 15 },
		{ "a quarter has half of the mean", QUARTERS("$", "210"), is_leak, 90, 89 },
		{ "a queue's first has less than chance leaves",
		  "heap:41 1G gens=50/100/100/100 allocated_count=2 quarters=$/400/400/400", is_leak, 320, 319 },
		{ "the first half has one and a half of the second", FILLING("$/200/190/100", "1000"), is_filling, 235, 234 },
		{ "the last quarter has half of the second", FILLING("600/300/250/$", "1000"), is_filling, 150, 151 },
		{ "24 blocks of a cache that fills", FILLING("$-9/6/2/1", "1000"), is_filling, 24, 23 },
		{ "seven eighths are kept", FILLING("600/300/100/0", "$"), is_filling, 875, 874 },
		{ "two lines of a function hold half of what was allocated", TWO_LINES("$", "512"),
		  may_be_built_once_by_one_function, MIB, MIB - 1 },
		{ "1,024 rows", TWO_LINES("1M", "$"), may_both_be_built_once, 512, 511 },
		/* What it is parsed of was released, at another stack. */
		{ "a line, with what its other stacks allocated",
		  LEAK("1M") "volume_bytes=4M live_count=1024 allocated_count=1024; heap:41 0 allocated_bytes=$",
		  may_be_built_once, MIB, MIB - 1 },
		{ "a quarter of what its calls allocated is its own",
		  LEAK("$") "volume_bytes=16M; heap:50 0 allocated_bytes=16M-$", is_fed_by_calls, 4 * MIB, 4 * MIB - 1 },
		{ "a quarter of all may be allocated elsewhere", LEAK("6M") "volume_bytes=16M+$; heap:50 0 allocated_bytes=10M",
		  is_fed_by_calls, 16 * MIB / 3, 16 * MIB / 3 + 8 },
		{ "6 steps with a block of each are no one-time load", LEAK("1G") "volume_bytes=1G live_count=$ steps=$",
		  is_of_steps, 6, 5 },
		{ "16 MiB of arenas", "name mmap python/arena; mmap:41 $ gens=100/100/100/100", is_leak, 16 * MIB,
		  16 * MIB - 1 },
		{ "16 times the leak", "heap:41 $ live_count=100 allocated_count=100" TOO_SHORT, is_before_a_leak,
		  16 * MIB + 16, 16 * MIB - 16 },
		{ "8 blocks", "heap:41 1G live_count=$ allocated_count=$" TOO_SHORT, is_before_a_leak, 8, 7 },
		{ "1 MiB booked elsewhere", "heap:41 $", is_elsewhere_worth, MIB, MIB - 1 },
		{ "a sixteenth of the peak booked elsewhere", "process peak_bytes=1G; heap:41 $", is_elsewhere_worth, GIB / 16,
		  GIB / 16 - 1 },
	};

	scene_thresholds_check(&hand, rows, ARRAY_LEN(rows), classify);
}

/* A load that began after 100 ms, and had come to all but so many bytes of 16 MiB then. Destructors released it. */
static bool
is_over_in_state(uint32_t state, uint64_t missing_bytes, uint64_t loaded_ms, uint64_t end_ms)
{
	const uint64_t times_ms[] = { 100, loaded_ms, end_ms, end_ms };
	const uint64_t bytes[] = { 0, 16 * MIB - missing_bytes, 16 * MIB, 0 };
	struct model_point_site held[4];
	struct model_point points[4];

	hand_model_make(&hand);
	scene_add(&hand, LEAK("16M") "volume_bytes=16M; process state=%u ended_monotonic_ns=5s+%ums", state,
	          (unsigned)end_ms);
	hand.process.points = points;
	hand.process.point_count = 4;
	for (unsigned i = 0; i < 4; i++) {
		held[i] = (struct model_point_site){ 0, bytes[i] };
		points[i] = (struct model_point){
			.monotonic_ns = hand.identity.start_monotonic_ns + times_ms[i] * 1000000,
			.site_count = 1,
			.sites = &held[i],
		};
	}
	classify();
	return hand.sites[0].leak == MODEL_LEAK_STEADY;
}

static bool
is_over(uint64_t missing_bytes)
{
	return is_over_in_state(KMEM_STATE_CLEAN_EXIT, missing_bytes, 1600, 3100) &&
	       !is_over_in_state(KMEM_STATE_RUNNING, missing_bytes, 1600, 3100); // a service that waits
}

/* It has not ended by itself: a load that was done after a second, and so many points of work in three more. */
static bool
is_over_at_work(uint64_t count)
{
	struct model_point_site held[2] = { { 0, 0 }, { 0, 16 * MIB } };
	struct model_point points[16];
	uint64_t used_mib = count >> 32 ? count >> 32 : 100;

	count &= UINT32_MAX;
	hand_model_make(&hand);
	scene_add(&hand, LEAK("16M") "volume_bytes=16M; heartbeat limit_bytes=400M resident_bytes=%uM cgroup_bytes=%uM",
	          (unsigned)used_mib, (unsigned)used_mib);
	hand.process.points = points;
	hand.process.point_count = count + 2;
	for (uint64_t i = 0; i < count + 2; i++)
		points[i] = (struct model_point){
			.monotonic_ns = hand.identity.start_monotonic_ns + (i <= 1 ? i * 1000 : 4000) * 1000000,
			.site_count = 1,
			.sites = &held[i != 0],
		};
	classify();
	return hand.sites[0].leak == MODEL_LEAK_STEADY;
}

static bool
is_over_with_room(uint64_t used_mib)
{
	return is_over_at_work(used_mib << 32 | 12);
}

/* Of 100 MiB in the pool of a library at the end, so much was there after three quarters of its time. */
static bool
came_at_once(uint64_t before_bytes)
{
	struct model_point points[9];
	uint64_t bytes[9][HAND_DOMAINS] = { { 0 } };

	hand_model_make(&hand);
	scene_add(&hand, LEAK("100M") "volume_bytes=150M library=polars");
	hand.process.points = points;
	hand.process.point_count = ARRAY_LEN(points);
	for (unsigned i = 0; i < ARRAY_LEN(points); i++) {
		bytes[i][HEAP] = i < 7 ? before_bytes : 100 * MIB;
		points[i] = (struct model_point){
			.monotonic_ns = hand.identity.start_monotonic_ns + i * UINT64_C(1000000000),
			.domain_count = HAND_DOMAINS,
			.domain_bytes = bytes[i],
		};
	}
	classify();
	return hand.sites[0].leak == MODEL_LEAK_STEADY;
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

TEST(a_load_is_over_when_it_is_said_to_be)
{
	static const struct threshold rows[] = {
		{ "a sixteenth may come after it", is_over, MIB, MIB + 1 },
		{ "the program goes on for as long as it took", is_over_for_so_long, 3100, 3099 },
		{ "and for a second", is_over_for_a_second, 1600, 1599 },
		{ "or is at work in eight points", is_over_at_work, 8, 7 },
		{ "and has a quarter of its limit", is_over_with_room, 299, 300 },
		{ "the pool of a library had a quarter before", came_at_once, 25 * MIB, 25 * MIB + 1 },
	};

	thresholds_check(rows, ARRAY_LEN(rows));
}

RUN_TESTS(NULL, NULL)
