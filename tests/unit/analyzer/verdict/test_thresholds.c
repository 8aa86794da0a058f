/*
 * test_thresholds.c - at exactly which number does the verdict draw another conclusion?
 *
 * Of facts and of what became of requests, not of words. `make test-thresholds` changes the constants one by one.
 */
#include "scene.h"

#include "threshold.h"
#include "analysis/endings.h"
#include "verdict/facts.h"
#include "analysis/refused_requests.h"
#include "verdict/phrases.h"

#define SECOND UINT64_C(1000000000)
#define WHOLE 1000000u // percents and parts of it have no rounding

static struct hand_model hand;
static struct verdict_facts facts;
static struct verdict verdict;

static void
gather(void)
{
	facts = (struct verdict_facts){
		.finished = { &hand.model }, .model = &hand.model, .process = &hand.process, .end = VERDICT_END_FAILED
	};
	memset(&verdict, 0, sizeof(verdict));
	rank_leaks_classify(&hand.model);
	verdict_facts_gather((struct finished_model){ &hand.model }, &hand_model_now, &facts);
}

static void
begin(void)
{
	hand_model_make(&hand);
	facts = (struct verdict_facts){
		.finished = { &hand.model }, .model = &hand.model, .process = &hand.process, .end = VERDICT_END_FAILED
	};
}

/* ---- facts that are given ---- */

static bool
is_near(uint64_t charged)
{
	begin();
	facts.limit_bytes = WHOLE;
	facts.charged_bytes = charged;
	return verdict_is_near_limit(&facts);
}

static bool
is_not_far(uint64_t charged)
{
	begin();
	facts.limit_bytes = WHOLE;
	facts.charged_bytes = charged;
	facts.available_bytes = UINT64_MAX;
	return !verdict_is_far_from_limits(&facts);
}

static bool
is_machine_low(uint64_t available)
{
	begin();
	hand.identity.machine_bytes = WHOLE;
	facts.available_bytes = available;
	return verdict_is_machine_low(&facts);
}

static bool
is_tight(uint64_t used)
{
	begin();
	hand.heartbeat = (struct kmem_heartbeat){ .limit_bytes = WHOLE, .live_bytes = used, .resident_bytes = used };
	facts.peak_process = &hand.process;
	return verdict_fullest(&facts) != NULL;
}

static bool
is_request_alone(uint64_t bytes)
{
	begin();
	hand_model_refuse(&hand, bytes);
	facts.refused = &hand.failed;
	facts.live_bytes = 1000 * MIB;
	return verdict_is_request_alone(&facts);
}

/* A larger one so long before the last: it is what the program asked for. */
static bool
are_one(uint64_t ns)
{
	struct model_failed failed[2];

	begin();
	scene_add(&hand, "refuse 1G; closed 1");
	failed[0] = failed[1] = hand.failed;
	failed[1].monotonic_ns += ns;
	failed[1].bytes = 100;
	hand.model.failed = failed;
	hand.model.failed_count = 2;
	return refusal_of_end(&hand.model, &hand_model_now, 0) == &failed[0];
}

/* PyTorch took 8000 bytes of the device; line 44 has tensors of so much. It was refused a byte. */
#define DEVICE(tensors)                                                                                            \
	"cuda0:44 8000 module=libc10_cuda.so; tensors:44 " tensors "; closed 1; refuse 1 error=2 thread=1 of=tensors " \
	"at=1 monotonic_ns=0"

/* 10 blocks are alive; so many were allocated at the line, and so much is kept of an earlier refusal. */
static bool
is_kept(uint64_t allocated, uint64_t kept)
{
	static uint64_t bytes[HAND_DOMAINS + 1];
	struct model_held held = { .live_bytes = 8000, .live_count = 10, .kept_bytes = kept, .site = &hand.sites[1] };

	begin();
	scene_add(&hand, DEVICE("8000 live_count=10"));
	hand.sites[1].allocated_count = allocated;
	bytes[TENSORS0] = 8000;
	hand.failed.has_held = true;
	hand.failed.held = &held;
	hand.failed.held_count = 1;
	hand.failed.domain_bytes = bytes;
	hand.failed.domain_count = HAND_DOMAINS + 1;
	gather();
	return facts.kept_bytes != 0;
}

static bool
is_of_steps(uint64_t allocated)
{
	return is_kept(allocated, 8000);
}

static bool
is_kept_worth_telling(uint64_t kept)
{
	return is_kept(1000, kept);
}

static bool
is_line_enough(uint64_t bytes)
{
	begin();
	facts.memory.bytes = 5 * GIB;
	facts.memory.program_bytes = 2 * GIB; // code of libraries is not asked about
	facts.top_live.live_bytes = bytes;
	return verdict_is_explained(&facts);
}

static bool
is_much_in_memory(uint64_t bytes)
{
	begin();
	facts.memory.bytes = bytes;
	return !verdict_is_explained(&facts);
}

static bool
changes_a_figure(uint64_t untouched)
{
	return verdict_tells_in_memory(8000, untouched);
}

/* Of a run of 1,600 s, which ended well: 256 MiB were freed so long before the end, and so much was allocated since. */
static bool
was_freed_last(uint64_t ns, uint64_t volume)
{
	struct model_point points[] = {
		{ .monotonic_ns = 5 * SECOND, .live_bytes = 400 * MIB },
		{ .monotonic_ns = 1605 * SECOND - ns },
		{ .monotonic_ns = 1605 * SECOND, .volume_bytes = volume, .is_end = true },
	};

	begin();
	scene_add(&hand,
	          "look heap=400M monotonic_ns=100s; heartbeat monotonic_ns=100s; sample bytes=400M empty_bytes=256M");
	bool is_freed = verdict_freed_of(&hand.model, &hand.process).freed_bytes != 0;
	hand.process.heartbeat_count = 0;
	hand.process.points = points;
	hand.process.point_count = ARRAY_LEN(points);
	hand_model_exited(&hand, 0);
	gather();
	return is_freed && facts.memory.freed.freed_bytes == 0;
}

static bool
was_freed_in_the_last_moments(uint64_t ns)
{
	return was_freed_last(ns, 0);
}

static bool
needed_next_to_nothing_since(uint64_t volume)
{
	return was_freed_last(SECOND, volume);
}

/* timeout -s KILL 60, which ran so long. */
static bool
was_time_up(uint64_t ns)
{
	static const char command[] = "timeout\0"
								  "-sKILL\0"
								  "60\0"
								  "python";

	begin();
	hand.process.name = "timeout";
	memcpy(hand.identity.command, command, sizeof(command));
	hand.identity.command_bytes = sizeof(command);
	hand_model_waited(&hand, SIGKILL);
	hand.launcher.ended_realtime_ns = hand.identity.start_realtime_ns + ns;
	return verdict_was_time_up(&hand.process, 0);
}

TEST(conclusions_change_where_they_are_said_to)
{
	static const struct threshold rows[] = {
		{ "near the limit: 97 %", is_near, 970000, 969999 },
		{ "far from it: below 80 %", is_not_far, 800000, 799999 },
		{ "the machine is low: 5 %", is_machine_low, 50000, 50001 },
		{ "tight: 80 %", is_tight, 800000, 799999 },
		{ "a request alone: 64 times what was live", is_request_alone, 64000 * MIB + 64, 64000 * MIB },
		{ "one request: 1 s", are_one, SECOND, SECOND + 1 },
		{ "of steps: 4 for each that is alive", is_of_steps, 40, 39 },
		{ "kept: an eighth", is_kept_worth_telling, 1000, 999 },
		{ "a line explains: a third", is_line_enough, GIB, GIB - 1 },
		{ "much in memory: 64 MiB", is_much_in_memory, 64 * MIB, 64 * MIB - 1 },
		{ "untouched: an eighth of what is in memory", changes_a_figure, 1001, 1000 },
		{ "freed last: a sixteenth of the run", was_freed_in_the_last_moments, 100 * SECOND, 100 * SECOND + 1 },
		{ "freed last: an eighth of it allocated since", needed_next_to_nothing_since, 32 * MIB, 32 * MIB + 1 },
		{ "the time was up: 1 s early", was_time_up, 59 * SECOND, 59 * SECOND - 1000 },
	};

	thresholds_check(rows, ARRAY_LEN(rows));
}

/* ---- facts that are gathered ---- */

static bool
is_accumulating(void)
{
	return verdict_is_accumulating(&facts);
}

static bool
is_next_told(void)
{
	return facts.next_live.site_count != 0;
}

static bool
is_last_told(void)
{
	return facts.last_taker.site_count != 0;
}

static bool
is_beside_told(void)
{
	return facts.beside.site_count != 0;
}

static bool
is_beside_of_one_process(void)
{
	return facts.beside_process != NULL;
}

static bool
is_top_a_leak(void)
{
	return facts.top_live.leak == MODEL_LEAK_LEAK;
}

static bool
is_told_beside_arenas(void)
{
	return facts.beside_arenas.site_count != 0;
}

static bool
is_told_for_arenas(void)
{
	return facts.top_live.where->line == 41;
}

static bool
was_given_more(void)
{
	facts.refused = &hand.failed;
	return verdict_was_given_more(&facts);
}

static bool
has_recovered(void)
{
	return refusal_state(&hand.model, &hand_model_now, &hand.failed) == REFUSAL_RECOVERED;
}

static bool
is_end_of_it(void)
{
	return refusal_state(&hand.model, &hand_model_now, &hand.failed) == REFUSAL_FATAL;
}

static bool
is_fragmented(void)
{
	return verdict_is_device_fragmented(&facts);
}

static bool
is_preallocated(void)
{
	return verdict_is_preallocated(&facts);
}

static bool
is_pace_known(void)
{
	return facts.growing_rounds == hand.sites[1].live_count;
}

static bool
is_rounded(void)
{
	return facts.rounded_bytes != 0;
}

static bool
is_told_as_untouched(void)
{
	return facts.untouched.site_count != 0;
}

static bool
is_freed(void)
{
	return verdict_freed_of(&hand.model, &hand.process).freed_bytes != 0;
}

static bool
is_later(void)
{
	return verdict_freed_of(&hand.model, &hand.process).is_later;
}

static bool
has_fallen(void)
{
	return verdict_freed_of(&hand.model, &hand.process).has_fallen;
}

static bool
is_mapping_untouched(void)
{
	return verdict_untouched_bytes(&hand.process, &hand.domains[MMAP]) != 0;
}

static bool
is_copy_worth_telling(void)
{
	struct verdict_copies copies;

	verdict_copies_gather(&hand.model, &copies);
	return copies.child_count != 0;
}

static bool
is_first_lost(void)
{
	return facts.first_lost == &hand.family[1];
}

static bool
ran_at_the_end(void)
{
	return facts.live_count == 2;
}

#define SMALL(ten) \
	"heap:" ten "0 500; heap:" ten "1 500; heap:" ten "2 500; heap:" ten "3 500; heap:" ten "4 500; heap:" ten "5 500; "
#define ARENAS "name mmap python/arena; mmap:60 "
/* Malloc's pages, which were seen after 100 s. */
#define LOOK(parts) "look " parts " monotonic_ns=100s; heartbeat monotonic_ns=100s; "
#define SEEN(parts, sampled) \
	"heap:41 16M; " LOOK(parts) "sample bytes=" sampled "; heartbeat monotonic_ns=101s live_bytes=16M "
/* A parent and two children, last seen at work 100 seconds after the start of time. */
#define FAMILY "heap:41 300M process_count=3; heartbeat monotonic_ns=100s; process live_bytes=100M; "

TEST(conclusions_of_scenes_change_where_they_are_said_to)
{
	static const struct scene_threshold rows[] = {
		{ "accumulates: 16 MiB", "heap:41 $ leak", is_accumulating, 16 * MIB, 16 * MIB - 1 },
		{ "the next line: half of the first", "heap:41 1000000; heap:50 $", is_next_told, WHOLE / 2, WHOLE / 2 - 1 },
		{ "and an eighth of all", "heap:41 1000; heap:50 $; " SMALL("6") SMALL("7") "domain heap live_bytes=8000",
		  is_next_told, 1000, 999 },
		{ "took much last: an eighth of all", "heap:41 8000-$; heap:50 $ gens=1/1/1/1", is_last_told, 1000, 999 },
		{ "growth: an eighth of a line", "heap:41 800M-$; heap:41 $ leak", is_top_a_leak, 100 * MIB, 100 * MIB - 1 },
		{ "beside arenas: a hundredth", ARENAS "1000M leak; heap:41 $ leak", is_told_beside_arenas, 10 * MIB,
		  10 * MIB - 1 },
		{ "beside a larger line: 1 MiB", "heap:41 4M-$; heap:50 $ leak", is_beside_told, MIB, MIB - 1 },
		{ "beside it: a twentieth of all", "heap:41 100M-$; heap:50 $ leak", is_beside_told, 5 * MIB, 5 * MIB - 1 },
		{ "beside it: 16 MiB", "heap:41 1G-$; heap:50 $ leak", is_beside_told, 16 * MIB, 16 * MIB - 1 },
		{ "beside it: nine tenths are of one process", "heap:41 200M; heap:50 20000000 leak most_live_bytes=$",
		  is_beside_of_one_process, WHOLE * 18, WHOLE * 18 - 1 },
		{ "for arenas: a quarter", ARENAS "100M; heap:41 $; heap:1 900M import", is_told_for_arenas, 25 * MIB,
		  25 * MIB - 1 },
		{ "more than an error takes: 4 MiB", "refuse 1G got_bytes=$", was_given_more, 4 * MIB, 4 * MIB - 1 },
		{ "went on: 16 MiB at least", "closed 1; refuse 1M got_bytes=$ monotonic_ns=0", has_recovered, 16 * MIB,
		  16 * MIB - 1 },
		{ "went on: 64 MiB are enough", "closed 1; refuse 64G got_bytes=$ monotonic_ns=0", has_recovered, 64 * MIB,
		  64 * MIB - 1 },
		{ "the end of it: 5 s",
		  "closed 1; refuse 1G monotonic_ns=100s had_success_after=1; process ended_monotonic_ns=100s+$", is_end_of_it,
		  5 * SECOND - 1, 5 * SECOND },
		{ "in pieces: an eighth lies idle", DEVICE("8000-$ live_count=100"), is_fragmented, 1000, 999 },
		{ "taken in advance: 3 blocks", DEVICE("8000 live_count=$"), is_preallocated, 3, 4 },
		{ "rounds: 6", DEVICE("8M live_count=$ leak") "; domain cuda0 live_bytes=8M", is_pace_known, 6, 5 },
		{ "rounded up: 1 MiB", "name mmap cuda/pinned; mmap:41 $ module=libtorch_cuda.so", is_rounded, MIB, MIB / 2 },
		{ "untouched: 16 MiB", "heap:41 100M untouched=$", is_told_as_untouched, 16 * MIB, 16 * MIB - 1 },
		{ "untouched: an eighth", "heap:41 800M untouched=$", is_told_as_untouched, 100 * MIB, 100 * MIB - 1 },
		{ "freed: 32 MiB", LOOK("heap=64M") "sample bytes=64M empty_bytes=$", is_freed, 32 * MIB, 32 * MIB - 1 },
		{ "freed: a quarter", LOOK("heap=400M") "sample bytes=400M empty_bytes=$", is_freed, 100 * MIB, 100 * MIB - 1 },
		{ "unclear: a sixteenth", SEEN("heap=1600M-$ reserved=$", "1000M") "resident_bytes=4000M", is_later, 100 * MIB,
		  100 * MIB + 1 },
		{ "grown: an eighth", SEEN("heap=800M", "800M") "resident_bytes=$", is_later, 900 * MIB, 900 * MIB - 1 },
		{ "fallen: a quarter", SEEN("heap=800M", "800M") "; beat monotonic_ns=99s live_bytes=400M; beat live_bytes=$",
		  has_fallen, 300 * MIB - 1, 300 * MIB },
		{ "a look at the end: 100 ms",
		  "heap:41 16M; process live_bytes=16M ended_monotonic_ns=100s+$; closed 0; " LOOK(
			  "heap=800M") "beat monotonic_ns=99s live_bytes=790M",
		  is_freed, SECOND / 10, SECOND / 10 + 1 },
		{ "of mappings, too", "mmap:41 800M; look monotonic_ns=100s; closed 0; process ended_monotonic_ns=100s+$",
		  is_mapping_untouched, SECOND / 10, SECOND / 10 + 1 },
		{ "malloc's words: 24 bytes",
		  "heap:41 160M live_count=1048576 allocated_count=1048576; domain heap live_count=1048576 allocated_count=1048576; "
		  "process live_bytes=160M is_finalizing=1; " LOOK("heap=$"),
		  is_freed, (170 + 24 + 65) * MIB, (170 + 24 + 64) * MIB },
		{ "copied: 16 MiB", FAMILY "child copied_bytes=$; child", is_copy_worth_telling, 16 * MIB, 16 * MIB - 1 },
		{ "lost first: 1 s", FAMILY "child; child seen=100s+$; closed 0; parent state=0x02020202", is_first_lost,
		  SECOND, SECOND - 1 },
		{ "at work at the end: 2 s", FAMILY "killed; child state=0x02020202; child; parent ended_monotonic_ns=100s+$",
		  ran_at_the_end, 2 * SECOND, 2 * SECOND + 1 },
	};

	scene_thresholds_check(&hand, rows, ARRAY_LEN(rows), gather);
}

RUN_TESTS(NULL, NULL)
