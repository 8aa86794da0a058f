/*
 * test_advice.c - can a person do what Next says, and is it about the memory that was the reason?
 */
#include "verdict_case.h"
#include "made_ways.h"

#include "verdict/words.h"

/* What can be raised is named: a limit that nobody set cannot be. */
TEST(who_may_raise_something_is_told_what)
{
#define LESS "=ask for less at once at train.py:41 epoch, or "
	static const char *const cases[][2] = {
		{ "limit as max; refuse 2G", LESS "raise the limit" },
		{ "limit as 4G; refuse 2G", LESS "raise the limit (ulimit -v)" },
		{ "limit as max; refuse 2G space_limit_bytes=4G", LESS "raise the limit (RLIMIT_AS, which the program set)" },
		{ "limit as max; refuse 2G; identity overcommit_mode=2",
		  LESS "let the machine promise more: add swap, or raise vm.overcommit_ratio" },
		{ "limit as 4G; refuse 2G is_by_guard=1; identity overcommit_mode=2", LESS "raise its guard (--guard)" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		told(NULL, "ask-for-less-or-raise-limit", "heap:41 3G; exit 1; %s", cases[i][0]);
		next(cases[i][1]);
	}
}

/* While it runs it can be looked into: the line that grows comes before what else grows. */
TEST(what_grows_in_a_program_that_runs_is_to_be_looked_into_now)
{
#define LOOK "what keeps the blocks of train.py:41 epoch alive: `kmemshim holders 4242`"
	told(NULL, "release-blocks", "heap:41 300M leak; alive");
	next(LOOK);
	told(NULL, "watch-growth", "heap:41 300M gens=1/12/3/3; alive");
	next("!" LOOK);
	/* The largest line is a data set, and another one grows: it is the one to look for. */
	told(NULL, "release-blocks", "heap:12 300M; heap:41 40M leak; alive");
	next(LOOK);
}

/* Of a leak that is slow enough to be seen for half a minute, more memory finishes the run. */
TEST(who_has_a_run_to_finish_is_told_how_fast_it_grew)
{
	static struct kmem_heartbeat beats[60];
	static const struct {
		int status;
		bool is_even;
		const char *advised;
	} cases[] = {
		{ SIGKILL, true, "release-blocks, more-memory" },
		{ SIGKILL, false, "release-blocks" },
		{ 0, true, "release-blocks" },
		{ SIGTERM, true, "release-blocks" }, // more memory would not have finished it
		{ SIGSEGV, true, "release-blocks" },
	};

	EACH_CASE(i, cases)
	{
		leaking(HEAP, 41, 300 * MIB);
		for (size_t beat = 0; beat < ARRAY_LEN(beats); beat++) {
			beats[beat] = hand.heartbeat;
			beats[beat].monotonic_ns = hand.identity.start_monotonic_ns + (beat + 1) * UINT64_C(1000000000);
			beats[beat].resident_bytes = (cases[i].is_even ? beat : beat / 50 * 50) * 5 * MIB;
			beats[beat].limit_bytes = beats[beat].cgroup_bytes = 512 * MIB;
		}
		hand.process.heartbeats = beats;
		hand.process.heartbeat_count = ARRAY_LEN(beats);
		hand_model_waited(&hand, cases[i].status);
		hand.launcher.after.cgroup_oom_kill = cases[i].status == SIGKILL;
		hand_model_decide(&hand, &verdict);
		assert_advised(&verdict, cases[i].advised);
		assert_int_equal(strstr(verdict.next, "give it more memory: it took 300 MiB more each minute") != NULL,
		                 strstr(cases[i].advised, "more-memory") != NULL);
	}
}

/* It ended well, and nobody else would tell of it. */
TEST(a_request_that_was_refused_is_told_of_a_program_that_went_on)
{
	told("!recovered", NULL, "heap:41 700M; exit 0");
	scene_add(&hand, "refuse 64G had_success_after=1 got_bytes=600M; process failed_count=3");
	decided("; recovered [heap] 64.0 GiB at train.py:41 epoch +3", NULL);
	said(
		" 3 requests were refused, and the program went on; the largest was for 64.0 GiB in heap at train.py:41 epoch.");
	/* Those that are not known may be the device's, which refuses as a matter of course. */
	scene_add(&hand, "cuda0:50 100M");
	decided("; recovered [heap] 64.0 GiB at train.py:41 epoch +1", NULL);
	said(" At least 1 request was refused, and the program went on; the largest that is known was for ");
}

/* The heap of it may hold more; it is not what filled /dev/shm. */
TEST(where_shared_memory_is_full_its_line_is_told)
{
	told("=ending; shared-line 61.0 MiB of 61.0 MiB at train.py:31 epoch; live 171 MiB", NULL,
	     "name mmap shared; mmap:31 61M; heap:20 110M; identity shm_bytes=64M; signal 7");
}

/* Blocks of the heap are looked at: what a library maps at the same line may be held by anything. */
TEST(what_holds_a_line_is_said_of_memory_that_was_looked_at)
{
	struct holders_way way = made_way((struct holders_way){ HEAD(HELD, 32, "list", 30, ""),
	                                                        STEPS(ROOT(GLOBAL, "hot", "__main__"), MANY("list", 30)) });
	struct holders_line line = { .samples = 32, .way_count = 1, .ways = &way, .line = 41 };
	struct holders holders = { .line_count = 1, .lines = &line, .monotonic_ns = 1 };

	for (int is_mapped = 0; is_mapped < 2; is_mapped++) {
		hand_model_make(&hand);
		struct model_site *site = leaking(is_mapped ? MMAP : HEAP, 41, 300 * MIB);
		line.file = site->where->file;
		line.function = site->where->function;
		hand.process.holders = &holders;
		hand.heartbeat.available_bytes = 100 * MIB;
		verdict_waited(SIGKILL);
		assert_int_equal(strstr(found_text(&verdict), "held-by") != NULL, !is_mapped);
		assert_int_equal(strstr(verdict.next, "global `hot`") != NULL, !is_mapped);
	}
}

/* Of small objects a sample is known: neither figure is exact. */
TEST(how_many_blocks_a_caller_keeps_is_as_exact_as_it_is_known)
{
#define KEPT                                                                                          \
	"heap:41 200M leak live_count=4190506 allocated_count=4190506; heap:41 0 leak same live_count=0 " \
	"allocated_count=50000 allocated_bytes=3M; process live_bytes=200M; oom"
	told(NULL, NULL, KEPT);
	next(": 4,190,506 of 4,190,506 blocks that ");
	told(NULL, NULL, "name heap python/object; model sample_bytes=1K; " KEPT);
	next(": ≈4,190,000 of ≈4,190,000 blocks that ");
}

/* What it ends with tells most. */
TEST(of_a_long_way_the_middle_is_left_out)
{
	struct holders_way way = made_way((struct holders_way){
		HEAD(HELD, 32, "", 0, ""),
		STEPS(ROOT(GLOBAL, "_active", "threading"),
	          CONTAINER("dict", 1, .by = WAY_BY_ITEM, .member = "139813088917184"),
	          OBJECT("asyncio.unix_events._UnixSubprocessTransport", .by = WAY_BY_ATTRIBUTE, .member = "_protocol"),
	          OBJECT("asyncio.subprocess.SubprocessStreamProtocol", .by = WAY_BY_ATTRIBUTE, .member = "stdin"),
	          OBJECT("asyncio.subprocess.SubprocessStreamProtocol", .by = WAY_BY_ATTRIBUTE, .member = "stdin"),
	          OBJECT("asyncio.streams.StreamWriter", .by = WAY_BY_ATTRIBUTE, .member = "_transport"),
	          OBJECT("asyncio.unix_events._UnixWritePipeTransport", .by = WAY_BY_ATTRIBUTE, .member = "_buffer"),
	          OBJECT("bytearray")) });
	const char *text = verdict_way_text(&way, 0, way.step_count, false, VERDICT_WAY_ROOM);

	assert_true(strlen(text) < VERDICT_WAY_BYTES);
	assert_ptr_equal(strstr(text, "global `_active` of module threading -> dict"), text);
	assert_non_null(strstr(text, " -> ... -> asyncio."));
	assert_string_equal(strstr(text, " ._transport"),
	                    " ._transport -> asyncio.unix_events._UnixWritePipeTransport ._buffer -> bytearray");
}

RUN_TESTS(verdict_case_begin, NULL)
