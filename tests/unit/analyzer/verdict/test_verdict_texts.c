/*
 * test_verdict_texts.c - can what the verdict advises be done, and does the paragraph hold for the case that it is not about?
 */
#include "verdict_case.h"

#include <signal.h>
#include <stdlib.h>

#include "base/document.h"
#include "report/render.h"
#include "report/report.h"
#include "verdict/verdict.h"

TEST(commands_can_be_copied)
{
	static char long_name[1000];

	hand_model_site(&hand, HEAP, 41, 400 * MIB);
	hand_model_exited(&hand, 0);
	hand.model.argument = "'two words'/x.kmem";
	hand_model_decide(&hand, &verdict);
	assert_string_equal(verdict.next,
	                    "no action is needed; `kmemshim peak 'two words'/x.kmem` shows which lines made the peak");

	memset(long_name, 'x', sizeof(long_name) - 1);
	hand.model.argument = long_name;
	hand_model_decide(&hand, &verdict);
	assert_string_equal(verdict.next, "no action is needed; `kmemshim peak CAPTURE` shows which lines made the peak");

	hand.model.argument = "a`b.kmem";
	hand_model_decide(&hand, &verdict);
	assert_non_null(strstr(verdict.next, "`kmemshim peak CAPTURE`"));

	hand_model_make(&hand);
	hand_model_domain(&hand.domains[MMAP], "python/arena");
	hand_model_site(&hand, MMAP, 60, 400 * MIB);
	hand_model_waited(&hand, SIGKILL);
	hand.launcher.after = (struct kmem_kill_counters){ 1, 1, 1, 1 };
	hand_model_decide(&hand, &verdict);
	assert_non_null(strstr(verdict.next, "`kmemshim run --python-objects -- python train.py 'it'\\''s'`;"));
}

/* What was asked for and not touched yet counts for no limit. */
TEST(more_than_the_limit_may_be_live)
{
	for (uint64_t live = 200 * MIB; live <= 400 * MIB; live += 200 * MIB) {
		hand_model_make(&hand);
		hand_model_site(&hand, HEAP, 41, live);
		hand.identity.limits[0] = (struct kmem_limit){ .kind = KMEM_LIMIT_CGROUP, .bytes = 200 * MIB };
		hand_model_waited(&hand, SIGKILL);
		hand.launcher.after = (struct kmem_kill_counters){ 1, 1, 1, 1 };
		hand_model_decide(&hand, &verdict);
		assert_cause(&verdict, "container-limit");
		assert_int_equal(strstr(found_text(&verdict), "; more-live-than-limit 400 MiB of 200 MiB") != NULL,
		                 live > 200 * MIB);
	}
}

/* Without a limit of a container the heartbeat holds the machine's memory, and one cgroup's usage says nothing about that. */
TEST(the_machines_memory_is_no_limit_of_a_container)
{
	hand_model_site(&hand, HEAP, 41, 400 * MIB);
	hand.heartbeat.limit_bytes = hand.identity.machine_bytes;
	hand.heartbeat.cgroup_bytes = 149 * MIB;
	verdict_waited(SIGKILL);
	assert_null(strstr(verdict.text, "container"));
	assert_found(&verdict, "usage 8.00 GiB of 16.0 GiB");
	assert_non_null(strstr(verdict.text, "the machine's 16.0 GiB"));
}

/* 3 GiB at once: two MiB of small objects have nothing to do with it. */
TEST(what_was_refused_is_not_the_arenas_doing)
{
	hand_model_domain(&hand.domains[MMAP], "python/arena");
	hand_model_site(&hand, MMAP, 60, 2 * MIB);
	hand_model_exited(&hand, 1);
	hand_model_refuse(&hand, 3 * GIB);
	hand_model_decide(&hand, &verdict);
	assert_advised(&verdict, "ask-for-less-or-raise-limit");
}

TEST(of_a_damaged_capture_nothing_is_fine)
{
	hand_model_site(&hand, HEAP, 41, 400 * MIB);
	hand_model_exited(&hand, 0);
	hand.model.capture_damage_count = 1;
	hand_model_decide(&hand, &verdict);
	assert_found(&verdict, "; damaged");
	assert_advised(&verdict, "record-whole");
	assert_non_null(strstr(verdict.next, "`kmemshim report kmemshim.out/python.4242.1.kmem`"));
	hand.model.under_way_count = 1; // but what a request in progress explains is no damage
	hand_model_decide(&hand, &verdict);
	assert_not_found(&verdict, "damaged");
	assert_advised(&verdict, "nothing");
}

TEST(what_was_not_recorded_is_said)
{
	hand_model_site(&hand, HEAP, 41, 400 * MIB);
	hand_model_exited(&hand, 0);
	hand.process.losses[KMEM_LOST_EVENT_BYTES] = 1000;
	hand_model_decide(&hand, &verdict);
	assert_not_found(&verdict, "unrecorded");
	hand.process.losses[KMEM_LOST_EVENT_BYTES] = 320 * MIB;
	hand_model_decide(&hand, &verdict);
	assert_found(&verdict, "; unrecorded 320 MiB");
	assert_advised(&verdict, "more-room-for-recorder");
}

/* Whose limit was it: the shell's, or one that the program set? */
TEST(the_limit_of_a_refusal_is_the_one_in_force_then)
{
	static const struct {
		uint64_t at_start, then;
		bool has_limit;
		const char *says, *next; // whose limit it was is in no finding
		uint64_t own;
		const char *advised;
	} cases[] = {
		{ UINT64_MAX, GIB, true, "(setrlimit, RLIMIT_AS), of which the recorder takes 82.0 MiB.", "RLIMIT_AS", 82 * MIB,
		  "hold-less-before" },
		{ GIB, GIB, true, "(ulimit -v), of which the recorder takes 82.0 MiB.", "(ulimit -v)", 82 * MIB,
		  "hold-less-before" },
		{ UINT64_MAX, 600 * MIB, true, "600 MiB (setrlimit, RLIMIT_AS). The recorder had reserved 660 MiB of addresses",
		  "`ulimit -v 614400`", 660 * MIB, "start-under-limit" },
		{ UINT64_MAX, GIB, true, "1.00 GiB (setrlimit, RLIMIT_AS), of which the recorder",
		  "(RLIMIT_AS, which the program set)", 0, "hold-less-before" },
		{ 4 * GIB, GIB, true, "1.00 GiB (setrlimit, RLIMIT_AS), of which the recorder", "raise the limit", 0,
		  "hold-less-before" },
		{ GIB, GIB, true, "1.00 GiB (ulimit -v), of which the recorder takes a part.", "(ulimit -v)", 0,
		  "hold-less-before" },
		{ GIB, 0, true, "1.00 GiB (ulimit -v)", "(ulimit -v)", 0, "hold-less-before" },
		{ UINT64_MAX, 0, false, "", "raise the limit", 0, "hold-less-before" },
	};

	EACH_CASE(i, cases)
	{
		hand_model_site(&hand, HEAP, 41, 400 * MIB);
		hand_model_exited(&hand, 1);
		hand_model_refuse(&hand, 10 * MIB);
		hand.failed.space_limit_bytes = cases[i].then;
		hand.failed.own_space_bytes = cases[i].own;
		hand.identity.limits[0] = (struct kmem_limit){ .kind = KMEM_LIMIT_ADDRESS_SPACE, .bytes = cases[i].at_start };
		hand_model_decide(&hand, &verdict);
		if (strstr(verdict.text, cases[i].says) == NULL || strstr(verdict.next, cases[i].next) == NULL)
			fail_msg("%zu: %s Next: %s", i, verdict.text, verdict.next);
		assert_found(&verdict, cases[i].has_limit ? "ending 10.0 MiB at train.py:41 epoch; address-limit; live 400 MiB"
		                                          : "ending 10.0 MiB at train.py:41 epoch; live 400 MiB");
		assert_advised(&verdict, cases[i].advised);
	}
}

/* One worker died, its pool closed and ended the others: the largest of those is not the story, and the parent's own end is. */
TEST(who_was_lost_first_is_told_from_those_that_a_pool_ended)
{
	static const struct {
		uint64_t seen_ms[3];
		bool is_counted;
		const char *cause;
		bool is_first_known;
	} cases[] = {
		{ { 52000, 51000, 52300 }, true, "failed", true },
		{ { 52000, 51500, 52300 }, true, "failed", false },
		{ { 52000, 0, 52300 }, true, "failed", false },
		{ { 52000, 51000, 52300 }, false, "gone", false },
	};
	static const uint64_t mib[] = { 20, 60, 7, 53 };
	struct kmem_heartbeat beats[3];
	struct kmem_identity identities[3];
	struct model_process processes[4];

	EACH_CASE(i, cases)
	{
		hand_model_site(&hand, HEAP, 41, 140 * MIB)->process_count = 4;
		if (!cases[i].is_counted)
			hand.identity.before.cgroup_oom_kill = UINT64_MAX;
		for (unsigned k = 0; k < 3; k++) {
			beats[k] = hand.heartbeat;
			beats[k].monotonic_ns = cases[i].seen_ms[k] * 1000000;
			identities[k] = hand_model_child(&hand);
			identities[k].pid += k;
		}
		for (unsigned k = 0; k < 4; k++) {
			if (k == 0)
				hand_model_exited(&hand, 1);
			processes[k] = hand.process;
			processes[k].live_bytes = processes[k].peak_bytes = mib[k] * MIB;
			if (k == 0)
				continue;
			processes[k].state = KMEM_STATE_RUNNING;
			processes[k].launcher = NULL;
			processes[k].identity = &identities[k - 1];
			processes[k].heartbeats = &beats[k - 1];
			processes[k].parent = 0;
		}
		hand.model.processes = processes;
		hand.model.process_count = 4;
		hand_model_decide(&hand, &verdict);
		assert_cause(&verdict, cases[i].cause);
		if (!cases[i].is_counted) {
			assert_int_equal(verdict.process->identity->pid, 4243);
			continue;
		}
		assert_int_equal(verdict.process->identity->pid, 4242);
		assert_int_equal(verdict.lost_child->identity->pid, 4243);
		assert_found(&verdict, "; lost-children 120 MiB");
		assert_int_equal(strstr(verdict.text, "was train.py (pid 4244), 14.0 s before the end; it held 7.0 MiB.") !=
		                     NULL,
		                 cases[i].is_first_known);
	}
}

#define MMAP_PEAK "ending; peak 64.0 MiB; peak-line 64.0 MiB of 64.0 MiB at train.py:42 epoch"

/* OpenBLAS maps 64 MiB for itself and uses hardly any of them: that is not what a small program is about. */
TEST(a_mapping_that_nobody_touched_is_not_the_peak)
{
	static const struct {
		uint64_t resident_bytes, looked_before_ms;
		bool is_looked;
		const char *found;
	} cases[] = {
		{ 16 * KIB, 0, true, "ending; peak 8.0 MiB; peak-line 8.0 MiB of 8.0 MiB at train.py:41 epoch" },
		{ 16 * KIB, 1000, true, MMAP_PEAK }, // it may have been touched since
		{ 40 * MIB, 0, true, MMAP_PEAK },
		{ 0, 0, false, MMAP_PEAK },
	};

	EACH_CASE(i, cases)
	{
		hand_model_site(&hand, HEAP, 41, 8 * MIB);
		hand_model_site(&hand, MMAP, 42, 64 * MIB);
		hand_model_exited(&hand, 0);
		hand.resident.part_bytes[KMEM_RESIDENT_MMAP] = cases[i].resident_bytes;
		hand.process.ended_monotonic_ns = 50 * UINT64_C(1000000000);
		hand.resident.monotonic_ns = hand.process.ended_monotonic_ns - cases[i].looked_before_ms * 1000000;
		if (!cases[i].is_looked)
			hand.process.resident = NULL;
		hand_model_decide(&hand, &verdict);
		assert_string_equal(found_text(&verdict), cases[i].found);
	}
}

/* A line of two stacks: the larger one is steady. */
TEST(generations_are_those_of_the_stack_that_leaks)
{
	hand_model_generations(hand_model_site(&hand, HEAP, 41, 300 * MIB), 1, 12, 0, 3);
	hand_model_generations(hand_model_site(&hand, HEAP, 41, 100 * MIB), 9, 9, 3, 3);
	verdict_waited(SIGKILL);
	assert_found(&verdict, "accumulates 100 MiB of 400 MiB at train.py:41 epoch, likely");
	assert_int_equal(verdict.findings[4].kind, FINDING_ACCUMULATES);
	assert_int_equal(verdict.findings[4].line.telling->generations_alive, 9);
}

/* Nearly all that was allocated since then: a list that grows, or a data set. */
TEST(what_may_be_a_data_set_is_said)
{
	static const struct {
		uint64_t volume_mib;
		bool is_said, is_arena;
	} cases[] = {
		{ 0, false, false }, { 350, true, false }, { 500, true, true }, { 2000, false, false }, { 2000, false, true },
	};

	EACH_CASE(i, cases)
	{
		struct model_site *site;
		if (cases[i].is_arena)
			hand_model_domain(&hand.domains[HEAP], "python/arena");
		site = leaking(HEAP, 41, 300 * MIB);
		site->volume_bytes = cases[i].volume_mib * MIB;
		hand_model_waited(&hand, SIGKILL);
		hand.launcher.after.cgroup_oom_kill = 1;
		hand_model_decide(&hand, &verdict);
		assert_found(&verdict, cases[i].is_said ? "accumulates 300 MiB of 300 MiB at train.py:41 epoch, possible"
		                                        : "accumulates 300 MiB of 300 MiB at train.py:41 epoch, likely");
		assert_int_equal(strstr(verdict.next, "; if it is a data set, load less of it at once") != NULL,
		                 cases[i].is_said);
		hand.launcher.after.cgroup_oom_kill = 0; // there was memory left: then a data set is no matter
		hand_model_decide(&hand, &verdict);
		assert_int_equal(strstr(verdict.next, " alive, unless it is a data set") != NULL,
		                 cases[i].is_said && !cases[i].is_arena);
	}
}

/* Rounds of a loop are recognised, and may be far too few. */
static const struct {
	uint32_t source; // KMEM_STEPS_
	uint64_t steps, blocks;
	const char *says; // NULL: nothing of steps
} steps[] = {
	{ KMEM_STEPS_PROGRAM, 100, 100, " One block of 3.0 MiB was kept in each of 100 steps." },
	{ KMEM_STEPS_PROGRAM, 100, 700, " 3.0 MiB was kept in each of 100 steps." },
	{ KMEM_STEPS_CELLS, 100, 700, " 3.0 MiB was kept in each of 100 cells." },
	{ KMEM_STEPS_LOOP, 90, 100, " One block of 3.0 MiB was kept in each of about 100 rounds" },
	{ KMEM_STEPS_LOOP, 7, 100, NULL },
	{ KMEM_STEPS_LOOP, 100, 7, NULL },
};

TEST(rounds_that_the_blocks_do_not_bear_out_are_not_said)
{
	EACH_CASE(i, steps)
	{
		struct model_site *site;
		site = leaking(HEAP, 41, 300 * MIB);
		site->live_count = steps[i].blocks;
		site->steps = steps[i].steps;
		site->process_count = 1;
		hand.process.steps.source = steps[i].source;
		verdict_exited(0);
		if (steps[i].says != NULL ? strstr(verdict.text, steps[i].says) == NULL
		                          : strstr(verdict.text, "kept in each") != NULL)
			fail_msg("case %zu: %s", i, verdict.text);
	}
}

TEST(where_a_cache_that_fills_ends_is_said)
{
	struct model_site *site;

	site = leaking(HEAP, 41, 300 * MIB);
	site->live_count = site->allocated_count = 100;
	memcpy(site->quarters, (const uint64_t[]){ 40, 30, 20, 10 }, sizeof(site->quarters));
	hand.process.is_alive = true;
	hand_model_decide(&hand, &verdict);
	assert_non_null(strstr(verdict.text, "fewer and fewer, as a cache that fills: it seems to end at about 368 MiB."));
	assert_null(strstr(verdict.text, "accumulates"));
}

/* One line trains a model: of what it holds some may accumulate, or next to nothing. */
TEST(how_much_of_a_line_accumulates_is_said)
{
	static const struct {
		uint64_t leaking_bytes;
		const char *found, *says, *advised;
	} cases[] = {
		{ 280 * MIB, "; accumulates 280 MiB of 300 MiB at train.py:41 epoch, likely", " It looks like a leak. ",
		  "release-blocks" },
		{ 100 * MIB, "; accumulates 100 MiB of 300 MiB at train.py:41 epoch, likely", " Only 100 MiB of it grows.",
		  "release-blocks" },
		{ 2 * MIB, "ending; peak 300 MiB; peak-line 300 MiB of 300 MiB at train.py:41 epoch", "", "nothing-yet" },
		{ 900 * KIB, "ending; peak 300 MiB; peak-line 300 MiB of 300 MiB at train.py:41 epoch", "", "nothing" },
	};

	EACH_CASE(i, cases)
	{
		hand_model_site(&hand, HEAP, 41, 300 * MIB - cases[i].leaking_bytes);
		leaking(HEAP, 41, cases[i].leaking_bytes);
		verdict_exited(0);
		assert_found(&verdict, cases[i].found);
		assert_advised(&verdict, cases[i].advised);
		if (cases[i].says[0] == '\0')
			assert_not_found(&verdict, "accumulates");
		assert_non_null(strstr(verdict.text, cases[i].says));
		if (i == 2)
			assert_non_null(strstr(verdict.next, "(2.0 MiB in all, most at train.py:41 epoch)"));
	}
}

/* A line held so much at the end of its 16 rounds, of a peak of 300 MiB, and nothing when the program ended. */
static void
decide_swept(uint64_t bytes, struct verdict *verdict)
{
	static struct model_point points[17];
	static struct model_point_site held[16];

	hand_model_make(&hand);
	hand_model_site(&hand, HEAP, 41, 300 * MIB);
	hand.sites[0].live_bytes = hand.sites[0].live_count = 0;
	hand.domains[HEAP].live_bytes = hand.domains[HEAP].together_live_bytes = 0;
	memset(points, 0, sizeof(points));
	for (unsigned i = 0; i < 16; i++) {
		held[i] = (struct model_point_site){ 0, bytes / 16 * (i + 1) };
		points[i] = (struct model_point){ .volume_bytes = (i + 1) * 64 * MIB, .site_count = 1, .sites = &held[i] };
	}
	points[16] = (struct model_point){ .volume_bytes = 16 * 64 * MIB, .is_end = true };
	hand.process.points = points;
	hand.process.point_count = ARRAY_LEN(points);
	hand_model_exited(&hand, 0);
	hand_model_decide(&hand, verdict);
}

static bool
is_swept_told(uint64_t bytes)
{
	struct verdict verdict;

	decide_swept(bytes, &verdict);
	return strcmp(advised_text(&verdict), "release-before-end") == 0;
}

static bool
is_swept_named(uint64_t bytes)
{
	struct verdict verdict;

	decide_swept(bytes, &verdict);
	return strstr(verdict.next, "train.py:41 epoch grew until the peak") != NULL && verdict.needs_nothing;
}

/* It is no action, and yet what a longer run will have more of. */
TEST(what_was_swept_and_is_a_smaller_part_of_the_peak_is_named)
{
	decide_swept(100 * MIB, &verdict);
	assert_advised(&verdict, "nothing");
	assert_non_null(strstr(verdict.next,
	                       "no action is needed, unless longer runs must fit: train.py:41 epoch grew until the "
	                       "peak, then was released"));
	assert_true(is_swept_named(37 * MIB + 512 * KIB));
	assert_false(is_swept_named(37 * MIB + 512 * KIB - 16));
}

/* Of a program that needed much for a while: nothing says so but what it had at the end. */
TEST(what_it_had_at_the_end_is_told_where_it_is_less_than_half)
{
	static const struct {
		uint64_t end_bytes;
		int status;
		bool is_told;
	} cases[] = {
		{ 150 * MIB - 4096, 0, true }, { 150 * MIB, 0, false }, { 40 * MIB, 1, true }, { 40 * MIB, -1, false }
	};

	EACH_CASE(i, cases)
	{
		hand_model_site(&hand, HEAP, 41, 290 * MIB);
		hand.resident.resident_bytes = cases[i].end_bytes;
		hand_model_exited(&hand, cases[i].status);
		if (cases[i].status == -1)
			hand_model_waited(&hand, SIGKILL);
		hand.launcher.max_resident_bytes = 300 * MIB;
		hand_model_decide(&hand, &verdict);
		if (cases[i].is_told)
			assert_non_null(strstr(verdict.text, cases[i].status == 0 ? " At the end it had 150 MiB."
			                                                          : " At the end it had 40.0 MiB."));
		else
			assert_null(strstr(verdict.text, "At the end it had"));
	}
}

/* It would be said that no action is needed: nothing is left of it. */
TEST(what_was_swept_away_at_the_end_is_looked_at)
{
	decide_swept(300 * MIB, &verdict);
	assert_advised(&verdict, "release-before-end");
	assert_non_null(strstr(verdict.next, "look at train.py:41 epoch: what it held grew until the peak, then was "
	                                     "released, and the program ended;"));
	assert_true(is_swept_told(150 * MIB));
	assert_false(is_swept_told(150 * MIB - 16));
}

/* sh -c "python train.py", or timeout: a child that imported much is told as it is alone. */
TEST(what_imports_left_in_one_of_several_processes_is_told)
{
	static const struct {
		uint32_t process, processes;
		bool is_told;
	} cases[] = {
		{ 1, 1, true }, { 0, 1, false }, { 1, 2, false }, // how much in which?
	};
	struct model_process processes[2];
	struct kmem_identity child;

	EACH_CASE(i, cases)
	{
		struct model_site *site;
		site = hand_model_site(&hand, HEAP, 41, 60 * MIB);
		site->process = 1;
		hand_model_generations(site, 12, 12, 3, 3);
		site = hand_model_site(&hand, HEAP, 1, 300 * MIB);
		site->process = cases[i].process;
		site->process_count = cases[i].processes;
		site->stack_flags = KMEM_STACK_IMPORT_CUT;
		hand_model_exited(&hand, 0);
		child = hand_model_child(&hand);
		processes[0] = processes[1] = hand.process;
		processes[1].launcher = NULL;
		processes[1].identity = &child;
		processes[1].live_bytes = 361 * MIB;
		hand.model.processes = processes;
		hand.model.process_count = 2;
		hand_model_decide(&hand, &verdict);
		assert_found(&verdict, "live 361 MiB; line 60.0 MiB of 361 MiB at train.py:41 epoch; accumulates 60.0 MiB");
		assert_int_equal(strstr(found_text(&verdict), "; imports 300 MiB of 361 MiB") != NULL, cases[i].is_told);
		assert_non_null(strstr(verdict.text, " was live in train.py (pid 4243)."));
	}
}

/* sh -c "python train.py": the shell tells nothing but a status. */
TEST(a_descendant_that_was_refused_explains_a_failing_parent)
{
	struct model_process processes[2];
	struct kmem_identity child;

	hand_model_site(&hand, HEAP, 41, 400 * MIB);
	hand_model_exited(&hand, 1);
	hand_model_refuse(&hand, 3 * GIB);
	hand.failed.process = 1;
	child = hand_model_child(&hand);
	processes[0] = hand.process;
	processes[0].name = "sh";
	processes[1] = hand.process;
	processes[1].identity = &child;
	processes[1].launcher = NULL;
	processes[1].parent = 0;
	processes[1].live_bytes = 400 * MIB;
	hand.model.processes = processes;
	hand.model.process_count = 2;
	hand_model_decide(&hand, &verdict);
	assert_string_equal(verdict_cause_name(verdict.cause), "request-refused");
	assert_int_equal(verdict.process->identity->pid, 4243);
	assert_found(&verdict, "ending 3.00 GiB at train.py:41 epoch");

	processes[0].exit_code = 0; // its parent took it well
	processes[0].launcher = NULL;
	hand_model_decide(&hand, &verdict);
	assert_string_equal(verdict_cause_name(verdict.cause), "exited");
}

/* A parent outlives its worker and then ends by itself: when the worker died it was there, too. */
TEST(a_parent_that_ended_later_ran_when_its_worker_died)
{
	static const struct {
		uint64_t ended_s, beat_s, beat_bytes;
		const char *found, *says; // which processes
	} cases[] = {
		{ 90, 0, 0, "; live 500 MiB; ", "400 MiB of what was live was in sh (pid 4242)" },
		{ 90, 59, 450 * MIB, "; live 550 MiB; ", "450 MiB of what was live was in sh (pid 4242)" },
		{ 90, 61, 450 * MIB, "; live 500 MiB; ", "400 MiB of what was live was in sh (pid 4242)" },
		{ 30, 0, 0, "; live 100 MiB; ", "in train.py (pid 4243)" },
	};
	const char *asked = "400 MiB of what was live was in sh (pid 4242)";
	struct model_process processes[2];
	struct kmem_heartbeat beat = { .sequence = 1, .limit_bytes = UINT64_MAX, .available_bytes = UINT64_MAX };
	struct kmem_heartbeat parents = beat;
	struct kmem_identity child;

	EACH_CASE(i, cases)
	{
		hand_model_site(&hand, HEAP, 41, 500 * MIB)->process_count = 2;
		child = hand_model_child(&hand);
		beat.monotonic_ns = child.start_monotonic_ns + UINT64_C(60000000000);
		processes[1] = hand.process;
		processes[1].identity = &child;
		processes[1].heartbeats = &beat;
		processes[1].parent = 0;
		processes[1].live_bytes = 100 * MIB;
		hand_model_exited(&hand, 137);
		hand.process.launcher = NULL;
		processes[0] = hand.process;
		processes[0].name = "sh";
		processes[0].live_bytes = 400 * MIB; // it released some since
		parents.live_bytes = cases[i].beat_bytes;
		parents.monotonic_ns = child.start_monotonic_ns + cases[i].beat_s * UINT64_C(1000000000);
		processes[0].heartbeats = &parents;
		processes[0].ended_monotonic_ns = child.start_monotonic_ns + cases[i].ended_s * UINT64_C(1000000000);
		hand.model.processes = processes;
		hand.model.process_count = 2;
		hand_model_decide(&hand, &verdict);
		assert_found(&verdict, cases[i].found);
		if (strstr(verdict.text, cases[i].says) == NULL)
			fail_msg("%zu: %s", i, verdict.text);
		processes[0].untouched_bytes = 10 * MIB; // too little to be told: then all figures are of what was asked for
		hand_model_decide(&hand, &verdict);
		if (i == 0 && strstr(verdict.text, asked) == NULL)
			fail_msg("%s", verdict.text);
	}
}

/* What ended this one was no kill, but others were killed; and where nothing was counted, nothing is denied. */
TEST(kills_of_others_are_told_and_none_is_denied_unread)
{
	static const struct {
		int wait_status;
		uint64_t cgroup, machine; // after; before: 3 and 5
		uint64_t available_bytes;
		const char *cause;
		bool is_told, is_far;
		const char *says, *never; // which counters are told, and what is said where none is known
	} cases[] = {
		{ SIGTERM, 5, 7, 8 * GIB, "signal", true, false,
		  "2 processes of its container for lack of memory (the cgroup's oom_kill counter rose from 3 to 5)",
		  "counted no kill" },
		{ SIGINT, 4, 5, 8 * GIB, "signal", true, false, "1 process of its container", "counted no kill" },
		{ SIGTERM, UINT64_MAX, 6, 8 * GIB, "signal", true, true, "1 process on this machine", "counted no kill" },
		{ SIGTERM, UINT64_MAX, UINT64_MAX, 8 * GIB, "signal", false, true, "It is not known who sent it.",
		  "he kernel " },
		{ SIGTERM, UINT64_MAX, UINT64_MAX, MIB, "low-memory-daemon", false, false, "", "he kernel" },
		{ SIGTERM, 4, 6, MIB, "low-memory-daemon", true, false, "1 process of its container", "show no kill" },
		{ SIGTERM, 3, 5, MIB, "low-memory-daemon", false, false, "show no kill", "the kernel killed" },
		{ SIGTERM, 3, 5, 8 * GIB, "signal", false, true, "counted no kill", "the kernel killed" },
		{ SIGSEGV, 4, 6, 8 * GIB, "crashed", true, false, "1 process of its container", "likely" },
		{ 1 << 8, 4, 6, 8 * GIB, "failed", true, false, "1 process of its container", "likely" },
		{ 1 << 8, 3, 6, 8 * GIB, "failed", false, false, "", "the kernel killed" },
	};

	EACH_CASE(i, cases)
	{
		hand_model_site(&hand, HEAP, 41, 400 * MIB);
		hand.identity.before.cgroup_oom_kill = 3;
		hand.identity.before.machine_oom_kill = 5;
		hand.heartbeat.available_bytes = cases[i].available_bytes;
		hand_model_waited(&hand, cases[i].wait_status);
		hand.launcher.after.cgroup_oom_kill = cases[i].cgroup;
		hand.launcher.after.machine_oom_kill = cases[i].machine;
		hand_model_decide(&hand, &verdict);
		assert_cause(&verdict, cases[i].cause);
		assert_int_equal(strstr(found_text(&verdict), "; kernel-kills") != NULL, cases[i].is_told);
		assert_int_equal(strstr(found_text(&verdict), "; far-from-limits") != NULL, cases[i].is_far);
		if (strstr(verdict.text, cases[i].says) == NULL || strstr(verdict.text, cases[i].never) != NULL)
			fail_msg("%zu: %s", i, verdict.text);
	}
}

/* It is the child that has to hold less, at the line of its peak; a parent's line is no advice about it. */
TEST(of_a_killed_child_its_own_line_is_advised)
{
	static const struct {
		uint64_t child_mib;
		const char *domain, *advised;
		bool is_line_named;
	} cases[] = {
		{ 900, "python/arena", "record-python-objects, see-child", false },
		{ 900, "heap", "hold-less-in-children, see-child", true },
		{ 100, "heap", "hold-less-in-children, see-child", false },
	};
	struct model_process processes[2];
	struct kmem_identity child;

	EACH_CASE(i, cases)
	{
		hand_model_site(&hand, HEAP, 41, 500 * MIB)->process_count = 2;
		hand_model_domain(&hand.domains[HEAP], cases[i].domain);
		child = hand_model_child(&hand);
		hand_model_waited(&hand, SIGTERM);
		hand.launcher.after.cgroup_oom_kill = 1;
		processes[0] = processes[1] = hand.process;
		processes[0].peak_bytes = 400 * MIB;
		processes[1].identity = &child;
		processes[1].launcher = NULL;
		processes[1].parent = 0;
		processes[1].peak_bytes = cases[i].child_mib * MIB;
		hand.domains[HEAP].peak_bytes = GIB;
		hand.model.processes = processes;
		hand.model.process_count = 2;
		hand_model_decide(&hand, &verdict);
		assert_string_equal(verdict_cause_name(verdict.cause), "child-killed");
		assert_advised(&verdict, cases[i].advised);
		assert_int_equal(strstr(verdict.next, "(most at train.py:41 epoch)") != NULL, cases[i].is_line_named);
	}
}

TEST(lines_break_where_a_person_would)
{
	static const char *const kept[] = { "304 KiB,", "9 B.", "(12 %)", "`kmemshim peak a.kmem`", "1.00 GiB" };

	for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
		for (int width = 80; width < 100; width++) {
			char text[256];
			char *written = NULL;
			size_t length = 0;
			FILE *stream = open_memstream(&written, &length);
			struct report report = { .verdict = { .headline = text, .next = "", .evidence = "" } };
			struct document document = { .count = 0 };

			(void)snprintf(text, sizeof(text), "%0*d %s and more B words", width, 0, kept[i]);
			render_verdict(&report, &document);
			document_put(&document, stream);
			assert_int_equal(fclose(stream), 0);
			assert_non_null(strstr(written, kept[i]));
			assert_true(strcspn(written, "\n") <= 100);
			free(written);
		}
	}
}

RUN_TESTS(verdict_case_begin, NULL)
