/*
 * test_advice.c - can a person do what Next says, and is it about the memory that was the reason?
 */
#include "verdict_case.h"
#include "made_ways.h"
#include "model/model_holders.h"

#include <signal.h>

/* What can be raised is named: a limit that nobody set cannot be. */
TEST(who_may_raise_something_is_told_what)
{
	static const struct {
		uint64_t space_bytes, set_bytes;
		unsigned overcommit_mode;
		bool is_by_guard;
		const char *next;
	} cases[] = {
		{ UINT64_MAX, 0, 0, false, "ask for less at once at train.py:41 epoch, or raise the limit" },
		{ 4 * GIB, 0, 0, false, "ask for less at once at train.py:41 epoch, or raise the limit (ulimit -v)" },
		{ UINT64_MAX, 4 * GIB, 0, false,
		  "ask for less at once at train.py:41 epoch, or raise the limit (RLIMIT_AS, which the program set)" },
		{ UINT64_MAX, 0, 2, false,
		  "ask for less at once at train.py:41 epoch, or let the machine promise more: add swap, or raise "
		  "vm.overcommit_ratio" },
		{ 4 * GIB, 0, 2, true, "ask for less at once at train.py:41 epoch, or raise its guard (--guard)" },
	};

	EACH_CASE(i, cases)
	{
		hand_model_site(&hand, HEAP, 41, 3 * GIB);
		hand_model_exited(&hand, 1);
		hand_model_refuse(&hand, 2 * GIB);
		hand.identity.limits[0] = (struct kmem_limit){ .kind = KMEM_LIMIT_ADDRESS_SPACE,
			                                           .bytes = cases[i].space_bytes };
		hand.failed.space_limit_bytes = cases[i].set_bytes;
		hand.identity.overcommit_mode = cases[i].overcommit_mode;
		hand.failed.is_by_guard = cases[i].is_by_guard;
		hand_model_decide(&hand, &verdict);
		assert_advised(&verdict, "ask-for-less-or-raise-limit");
		assert_string_equal(verdict.next, cases[i].next);
	}
}

/* While it runs it can be looked into: the line that grows comes before what else grows. */
TEST(what_grows_in_a_program_that_runs_is_to_be_looked_into_now)
{
	for (int is_leak = 0; is_leak < 2; is_leak++) {
		hand_model_make(&hand);
		hand_model_generations(hand_model_site(&hand, HEAP, 41, 300 * MIB), is_leak ? 12 : 1, 12, 3, 3);
		hand.process.is_alive = true;
		hand_model_decide(&hand, &verdict);
		assert_advised(&verdict, is_leak ? "release-blocks" : "watch-growth");
		assert_int_equal(
			strstr(verdict.next, "what keeps the blocks of train.py:41 epoch alive: `kmemshim holders 4242`") != NULL,
			is_leak);
	}
}

/* The largest line is a data set, and another one grows: it is the one to look for. */
TEST(what_grows_beside_a_larger_line_is_to_be_looked_into)
{
	hand_model_site(&hand, HEAP, 12, 300 * MIB);
	leaking(HEAP, 41, 40 * MIB);
	hand.process.is_alive = true;
	hand_model_decide(&hand, &verdict);
	assert_advised(&verdict, "release-blocks");
	assert_non_null(strstr(verdict.next, "what keeps the blocks of train.py:41 epoch alive: `kmemshim holders 4242`"));
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
	hand_model_site(&hand, HEAP, 41, 700 * MIB);
	verdict_exited(0);
	assert_not_found(&verdict, "recovered");
	hand_model_refuse(&hand, 64 * GIB);
	hand.failed.had_success_after = true;
	hand.failed.got_bytes = 600 * MIB;
	hand.process.failed_count = 3;
	hand_model_decide(&hand, &verdict);
	assert_found(&verdict, "; recovered [heap] 64.0 GiB at train.py:41 epoch +3");
	assert_non_null(strstr(verdict.text, " 3 requests were refused, and the program went on; the largest was "
	                                     "for 64.0 GiB in heap at train.py:41 epoch."));
	/* Those that are not known may be the device's, which refuses as a matter of course. */
	hand_model_site(&hand, CUDA0, 50, 100 * MIB);
	hand_model_decide(&hand, &verdict);
	assert_found(&verdict, "; recovered [heap] 64.0 GiB at train.py:41 epoch +1");
	assert_non_null(strstr(
		verdict.text, " At least 1 request was refused, and the program went on; the largest that is known was for "));
}

/* The heap of it may hold more; it is not what filled /dev/shm. */
TEST(where_shared_memory_is_full_its_line_is_told)
{
	hand_model_domain(&hand.domains[MMAP], "shared");
	hand_model_site(&hand, MMAP, 31, 61 * MIB);
	hand_model_site(&hand, HEAP, 20, 110 * MIB);
	hand.identity.shm_bytes = 64 * MIB;
	verdict_waited(SIGBUS);
	assert_string_equal(found_text(&verdict),
	                    "ending; shared-line 61.0 MiB of 61.0 MiB at train.py:31 epoch; live 171 MiB");
}

/* Blocks of the heap are looked at: what a library maps at the same line may be held by anything. */
TEST(what_holds_a_line_is_said_of_memory_that_was_looked_at)
{
	struct holders_way way = made_way((struct holders_way){ HEAD(HELD, 32, "list", 30, ""),
	                                                        STEPS(ROOT(GLOBAL, "hot", "__main__"), MANY("list", 30)) });
	struct holders_line line = { .samples = 32, .way_count = 1, .ways = &way, .line = 41 };
	struct holders holders = { .line_count = 1, .lines = &line, .monotonic_ns = 1 };

	for (int is_mapped = 0; is_mapped < 2; is_mapped++) {
		struct model_site *site;

		hand_model_make(&hand);
		site = leaking(is_mapped ? MMAP : HEAP, 41, 300 * MIB);
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
	static const char *const says[] = { ": 4,190,506 of 4,190,506 blocks that ",
		                                ": ≈4,190,000 of ≈4,190,000 blocks that " };

	for (unsigned is_sample = 0; is_sample < 2; is_sample++) {
		hand_model_make(&hand);
		if (is_sample != 0)
			hand_model_domain(&hand.domains[HEAP], "python/object");
		hand.model.sample_bytes = is_sample * KIB;
		for (unsigned i = 0; i < 2; i++) {
			struct model_site *site = leaking(HEAP, 41, i == 0 ? 200 * MIB : 0);

			site->live_count = i == 0 ? 4190506 : 0;
			site->allocated_count = i == 0 ? 4190506 : 50000;
			site->allocated_bytes = i == 0 ? 200 * MIB : 3 * MIB;
		}
		hand.stacks[1][2] = &hand.frames[0][2];
		hand.sites[1].where = hand.sites[0].where;
		hand.process.live_bytes = 200 * MIB;
		hand_model_waited(&hand, SIGKILL);
		hand.launcher.after = (struct kmem_kill_counters){ 1, 1, 1, 1 };
		hand_model_decide(&hand, &verdict);
		if (strstr(verdict.next, says[is_sample]) == NULL)
			fail_msg("%s", verdict.next);
	}
}

RUN_TESTS(verdict_case_begin, NULL)
