/*
 * test_verdict_texts.c - can what the verdict advises be done, and does the paragraph hold for the case that it is not about?
 */
#include "verdict_case.h"

#include "base/document.h"
#include "report/render.h"
#include "report/report.h"

TEST(commands_can_be_copied)
{
	static char long_name[1000];

	told(NULL, NULL, "heap:41 400M; exit 0");
	hand.model.argument = "'two words'/x.kmem";
	decided(NULL, NULL);
	next("=no action is needed; `kmemshim peak 'two words'/x.kmem` shows which lines made the peak");
	memset(long_name, 'x', sizeof(long_name) - 1);
	hand.model.argument = long_name;
	decided(NULL, NULL);
	next("=no action is needed; `kmemshim peak CAPTURE` shows which lines made the peak");
	hand.model.argument = "a`b.kmem";
	decided(NULL, NULL);
	next("`kmemshim peak CAPTURE`");
	told(NULL, NULL, "name mmap python/arena; mmap:60 400M; oom");
	next("`kmemshim run --python-objects -- python train.py 'it'\\''s'`;");
}

/* What was asked for and not touched yet counts for no limit. */
TEST(more_than_the_limit_may_be_live)
{
#define LIMITED "heap:41 %uM; limit cgroup 200M; heartbeat limit_bytes=max; oom"
	told("!; more-live-than-limit", NULL, LIMITED, 200);
	assert_cause(&verdict, "container-limit");
	told("; more-live-than-limit 400 MiB of 200 MiB", NULL, LIMITED, 400);
	assert_cause(&verdict, "container-limit");
}

/* Without a limit of a container the heartbeat holds the machine's memory, and one cgroup's usage says nothing about that. */
TEST(the_machines_memory_is_no_limit_of_a_container)
{
	told("usage 8.00 GiB of 16.0 GiB", NULL, "heap:41 400M; heartbeat limit_bytes=16G cgroup_bytes=149M; killed");
	said("!container");
	said("the machine's 16.0 GiB");
}

/* 3 GiB at once: two MiB of small objects have nothing to do with it. */
TEST(what_was_refused_is_not_the_arenas_doing)
{
	told(NULL, "ask-for-less-or-raise-limit", "name mmap python/arena; mmap:60 2M; exit 1; refuse 3G");
}

TEST(of_a_damaged_capture_nothing_is_fine)
{
	told("; damaged", "record-whole", "heap:41 400M; exit 0; model capture_damage_count=1");
	next("`kmemshim report kmemshim.out/python.4242.1.kmem`");
	hand.model.under_way_count = 1; // but what a request in progress explains is no damage
	decided("!damaged", "nothing");
}

TEST(what_was_not_recorded_is_said)
{
	scene("heap:41 400M; exit 0");
	hand.process.losses[KMEM_LOST_EVENT_BYTES] = 1000;
	decided("!unrecorded", NULL);
	hand.process.losses[KMEM_LOST_EVENT_BYTES] = 320 * MIB;
	decided("; unrecorded 320 MiB", "more-room-for-recorder");
}

/* Whose limit was it: the shell's, or one that the program set? */
TEST(the_limit_of_a_refusal_is_the_one_in_force_then)
{
	static const struct {
		const char *at_start, *then, *own, *says, *next; // whose limit it was is in no finding
	} cases[] = {
		{ "max", "1G", "82M", "(setrlimit, RLIMIT_AS), of which the recorder takes 82.0 MiB.", "RLIMIT_AS" },
		{ "1G", "1G", "82M", "(ulimit -v), of which the recorder takes 82.0 MiB.", "(ulimit -v)" },
		{ "max", "600M", "660M", "600 MiB (setrlimit, RLIMIT_AS). The recorder had reserved 660 MiB of addresses",
		  "`ulimit -v 614400`" },
		{ "max", "1G", "0", "1.00 GiB (setrlimit, RLIMIT_AS), of which the recorder",
		  "(RLIMIT_AS, which the program set)" },
		{ "4G", "1G", "0", "1.00 GiB (setrlimit, RLIMIT_AS), of which the recorder", "raise the limit" },
		{ "1G", "1G", "0", "1.00 GiB (ulimit -v), of which the recorder takes a part.", "(ulimit -v)" },
		{ "1G", "0", "0", "1.00 GiB (ulimit -v)", "(ulimit -v)" },
		{ "max", "0", "0", "", "raise the limit" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		told(i + 1 != ARRAY_LEN(cases) ? "ending 10.0 MiB at train.py:41 epoch; address-limit; live 400 MiB"
		                               : "ending 10.0 MiB at train.py:41 epoch; live 400 MiB",
		     i == 2 ? "start-under-limit" : "hold-less-before",
		     "heap:41 400M; exit 1; limit as %s; refuse 10M space_limit_bytes=%s own_space_bytes=%s", cases[i].at_start,
		     cases[i].then, cases[i].own);
		said(cases[i].says);
		next(cases[i].next);
	}
}

/* One worker died, its pool closed and ended the others: the largest of those is not the story, and the parent's own end is. */
TEST(who_was_lost_first_is_told_from_those_that_a_pool_ended)
{
	static const struct {
		uint64_t second_ms; // when the second of three was seen last
		bool is_counted, is_first_known;
	} cases[] = { { 51000, true, true }, { 51500, true, false }, { 0, true, false }, { 51000, false, false } };
	struct kmem_heartbeat beats[3];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const uint64_t seen_ms[] = { 52000, cases[i].second_ms, 52300 };

		scene("heap:41 140M process_count=4; before cgroup_oom_kill=%s; child live_bytes=60M peak_bytes=60M; "
		      "child live_bytes=7M peak_bytes=7M; child live_bytes=53M peak_bytes=53M; exit 1",
		      cases[i].is_counted ? "0" : "max");
		hand.family[0] = hand.process;
		scene_add(&hand, "parent live_bytes=20M peak_bytes=20M");
		for (unsigned k = 0; k < 3; k++) {
			beats[k] = hand.heartbeat;
			beats[k].monotonic_ns = seen_ms[k] * 1000000;
			hand.family[k + 1].heartbeats = &beats[k];
		}
		decided(cases[i].is_counted ? "; lost-children 120 MiB" : NULL, NULL);
		assert_cause(&verdict, cases[i].is_counted ? "failed" : "gone");
		assert_int_equal(verdict.process->identity->pid, cases[i].is_counted ? 4242 : 4243);
		if (!cases[i].is_counted)
			continue;
		assert_int_equal(verdict.lost_child->identity->pid, 4243);
		said(cases[i].is_first_known ? "was train.py (pid 4244), 14.0 s before the end; it held 7.0 MiB."
		                             : "!was train.py (pid 4244), 14.0 s before the end");
	}
}

/* OpenBLAS maps 64 MiB for itself and uses hardly any of them: that is not what a small program is about. */
TEST(a_mapping_that_nobody_touched_is_not_the_peak)
{
#define MMAP_PEAK "=ending; peak 64.0 MiB; peak-line 64.0 MiB of 64.0 MiB at train.py:42 epoch"
#define MAPPED "heap:41 8M; mmap:42 64M; exit 0; process ended_monotonic_ns=50s; "
	told("=ending; peak 8.0 MiB; peak-line 8.0 MiB of 8.0 MiB at train.py:41 epoch", NULL,
	     MAPPED "look mmap=16K heap=250M program=50M monotonic_ns=50s");
	told(MMAP_PEAK, NULL,
	     MAPPED "look mmap=16K heap=250M program=50M monotonic_ns=49s"); // it may have been touched since
	told(MMAP_PEAK, NULL, MAPPED "look mmap=40M heap=250M program=50M monotonic_ns=50s");
	told(MMAP_PEAK, NULL, MAPPED "process resident=0");
}

/* A line of two stacks: the larger one is steady. */
TEST(generations_are_those_of_the_stack_that_leaks)
{
	told("accumulates 100 MiB of 400 MiB at train.py:41 epoch, likely", NULL,
	     "heap:41 300M gens=1/12/0/3; heap:41 100M gens=9/9/3/3; killed");
	assert_int_equal(verdict.findings[4].kind, FINDING_ACCUMULATES);
	assert_int_equal(verdict.findings[4].line.telling->generations_alive, 9);
}

/* Nearly all that was allocated since then: a list that grows, or a data set. */
TEST(what_may_be_a_data_set_is_said)
{
	static const struct {
		const char *name;
		unsigned volume_mib;
		bool is_said;
	} cases[] = {
		{ "heap", 0, false },    { "heap", 350, true },           { "python/arena", 500, true },
		{ "heap", 2000, false }, { "python/arena", 2000, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		told(cases[i].is_said ? "accumulates 300 MiB of 300 MiB at train.py:41 epoch, possible"
		                      : "accumulates 300 MiB of 300 MiB at train.py:41 epoch, likely",
		     NULL, "name heap %s; heap:41 300M leak volume_bytes=%uM; killed; after cgroup_oom_kill=1", cases[i].name,
		     cases[i].volume_mib);
		next(cases[i].is_said ? "; if it is a data set, load less of it at once" : "!; if it is a data set");
		hand.launcher.after.cgroup_oom_kill = 0; // there was memory left: then a data set is no matter
		decided(NULL, NULL);
		next(cases[i].is_said && strcmp(cases[i].name, "heap") == 0 ? " alive, unless it is a data set"
		                                                            : "! alive, unless it is a data set");
	}
}

/* Rounds of a loop are recognised, and may be far too few. */
TEST(rounds_that_the_blocks_do_not_bear_out_are_not_said)
{
	static const struct {
		uint32_t source; // KMEM_STEPS_
		unsigned steps, blocks;
		const char *says;
	} cases[] = {
		{ KMEM_STEPS_PROGRAM, 100, 100, " One block of 3.0 MiB was kept in each of 100 steps." },
		{ KMEM_STEPS_PROGRAM, 100, 700, " 3.0 MiB was kept in each of 100 steps." },
		{ KMEM_STEPS_CELLS, 100, 700, " 3.0 MiB was kept in each of 100 cells." },
		{ KMEM_STEPS_LOOP, 90, 100, " One block of 3.0 MiB was kept in each of about 100 rounds" },
		{ KMEM_STEPS_LOOP, 7, 100, "!kept in each" },
		{ KMEM_STEPS_LOOP, 100, 7, "!kept in each" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		scene("heap:41 300M leak live_count=%u steps=%u; exit 0", cases[i].blocks, cases[i].steps);
		hand.process.steps.source = cases[i].source;
		decided(NULL, NULL);
		said(cases[i].says);
	}
}

TEST(where_a_cache_that_fills_ends_is_said)
{
	scene("heap:41 300M leak live_count=100 allocated_count=100; alive");
	memcpy(hand.sites[0].quarters, (const uint64_t[]){ 40, 30, 20, 10 }, sizeof(hand.sites[0].quarters));
	decided(NULL, NULL);
	said("fewer and fewer, as a cache that fills: it seems to end at about 368 MiB.");
	said("!accumulates");
}

/* One line trains a model: of what it holds some may accumulate, or next to nothing. */
TEST(how_much_of_a_line_accumulates_is_said)
{
#define PART "heap:41 300M-%s; heap:41 %s leak; exit 0"
	told("; accumulates 280 MiB of 300 MiB at train.py:41 epoch, likely", "release-blocks", PART, "280M", "280M");
	said(" It looks like a leak. ");
	told("; accumulates 100 MiB of 300 MiB at train.py:41 epoch, likely", "release-blocks", PART, "100M", "100M");
	said(" Only 100 MiB of it grows.");
	told("=ending; peak 300 MiB; peak-line 300 MiB of 300 MiB at train.py:41 epoch", "nothing-yet", PART, "2M", "2M");
	next("(2.0 MiB in all, most at train.py:41 epoch)");
	told("=ending; peak 300 MiB; peak-line 300 MiB of 300 MiB at train.py:41 epoch", "nothing", PART, "900K", "900K");
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
	scene_add(&hand, "launcher max_resident_bytes=300M");
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
	assert_true(is_swept_named(15 * MIB));
	assert_false(is_swept_named(15 * MIB - 16));
}

/* Of a program that needed much for a while: nothing says so but what it had at the end. */
TEST(what_it_had_at_the_end_is_told_where_it_is_less_than_half)
{
#define AT_END "heap:41 290M; resident resident_bytes=%s; %s; launcher max_resident_bytes=300M"
	told(NULL, NULL, AT_END, "150M-4K", "exit 0");
	said(" At the end it had 150 MiB.");
	told(NULL, NULL, AT_END, "150M", "exit 0");
	said("!At the end it had");
	told(NULL, NULL, AT_END, "40M", "exit 1");
	said(" At the end it had 40.0 MiB.");
	told(NULL, NULL, AT_END, "40M", "killed");
	said("!At the end it had");
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
	static const char *const cases[][2] = {
		{ "process=1", "; imports 300 MiB of 361 MiB" },
		{ "process=0", "!; imports" },
		{ "process=1 process_count=2", "!; imports" }, // how much in which?
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		told("live 361 MiB; line 60.0 MiB of 361 MiB at train.py:41 epoch; accumulates 60.0 MiB", NULL,
		     "heap:41 60M leak process=1; heap:1 300M import %s; exit 0; child live_bytes=361M", cases[i][0]);
		check_text(found_text(&verdict), cases[i][1]);
		said(" was live in train.py (pid 4243).");
	}
}

/* sh -c "python train.py": the shell tells nothing but a status. */
TEST(a_descendant_that_was_refused_explains_a_failing_parent)
{
	told("ending 3.00 GiB at train.py:41 epoch", NULL,
	     "heap:41 400M; exit 1; refuse 3G process=1; parent name=sh; child live_bytes=400M");
	assert_cause(&verdict, "request-refused");
	assert_int_equal(verdict.process->identity->pid, 4243);
	scene_add(&hand, "parent exit_code=0 launcher=0"); // its parent took it well
	decided(NULL, NULL);
	assert_cause(&verdict, "exited");
}

/* A parent outlives its worker and then ends by itself: when the worker died it was there, too. */
TEST(a_parent_that_ended_later_ran_when_its_worker_died)
{
	static const struct {
		unsigned ended_s, beat_s, beat_mib;
		const char *found, *says; // which processes
	} cases[] = {
		{ 90, 0, 0, "; live 500 MiB; ", "400 MiB of what was live was in sh (pid 4242)" },
		{ 90, 59, 450, "; live 550 MiB; ", "450 MiB of what was live was in sh (pid 4242)" },
		{ 90, 61, 450, "; live 500 MiB; ", "400 MiB of what was live was in sh (pid 4242)" },
		{ 30, 0, 0, "; live 100 MiB; ", "in train.py (pid 4243)" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		/* The parent released some since. */
		scene("heap:41 500M process_count=2; heartbeat available_bytes=max resident_bytes=0 monotonic_ns=65s; "
		      "child live_bytes=100M; parent state=%u exit_code=137 name=sh live_bytes=400M ended_monotonic_ns=5s+%us",
		      KMEM_STATE_CLEAN_EXIT, cases[i].ended_s);
		scene_add(&hand, "beat live_bytes=%uM monotonic_ns=5s+%us", cases[i].beat_mib, cases[i].beat_s);
		hand.family[0].heartbeats = hand.beats;
		decided(cases[i].found, NULL);
		said(cases[i].says);
		hand.family[0].untouched_bytes = 10 * MIB; // too little to be told: then all figures are of what was asked for
		decided(NULL, NULL);
		if (i == 0)
			said(cases[i].says);
	}
}

/* What ended this one was no kill, but others were killed; and where nothing was counted, nothing is denied. */
TEST(kills_of_others_are_told_and_none_is_denied_unread)
{
	static const struct {
		const char *end, *cgroup, *machine; // after; before: 3 and 5
		const char *available, *cause;
		bool is_told, is_far;
		const char *says, *never; // which counters are told, and what is said where none is known
	} cases[] = {
		{ "signal 15", "5", "7", "8G", "signal", true, false,
		  "2 processes of its container for lack of memory (the cgroup's oom_kill counter rose from 3 to 5)",
		  "!counted no kill" },
		{ "signal 2", "4", "5", "8G", "signal", true, false, "1 process of its container", "!counted no kill" },
		{ "signal 15", "max", "6", "8G", "signal", true, true, "1 process on this machine", "!counted no kill" },
		{ "signal 15", "max", "max", "8G", "signal", false, true, "It is not known who sent it.", "!he kernel " },
		{ "signal 15", "max", "max", "1M", "low-memory-daemon", false, false, "", "!he kernel" },
		{ "signal 15", "4", "6", "1M", "low-memory-daemon", true, false, "1 process of its container",
		  "!show no kill" },
		{ "signal 15", "3", "5", "1M", "low-memory-daemon", false, false, "show no kill", "!the kernel killed" },
		{ "signal 15", "3", "5", "8G", "signal", false, true, "counted no kill", "!the kernel killed" },
		{ "signal 11", "4", "6", "8G", "crashed", true, false, "1 process of its container", "!likely" },
		{ "status 1", "4", "6", "8G", "failed", true, false, "1 process of its container", "!likely" },
		{ "status 1", "3", "6", "8G", "failed", false, false, "", "!the kernel killed" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		told(cases[i].is_told ? "; kernel-kills" : "!; kernel-kills", NULL,
		     "heap:41 400M; before cgroup_oom_kill=3 machine_oom_kill=5; heartbeat available_bytes=%s; %s; "
		     "after cgroup_oom_kill=%s machine_oom_kill=%s",
		     cases[i].available, cases[i].end, cases[i].cgroup, cases[i].machine);
		assert_cause(&verdict, cases[i].cause);
		check_text(found_text(&verdict), cases[i].is_far ? "; far-from-limits" : "!; far-from-limits");
		said(cases[i].says);
		said(cases[i].never);
	}
}

/* It is the child that has to hold less, at the line of its peak; a parent's line is no advice about it. */
TEST(of_a_killed_child_its_own_line_is_advised)
{
	static const struct {
		unsigned child_mib;
		const char *domain, *advised, *next;
	} cases[] = {
		{ 900, "python/arena", "record-python-objects, see-child", "!(most at train.py:41 epoch)" },
		{ 900, "heap", "hold-less-in-children, see-child", "(most at train.py:41 epoch)" },
		{ 100, "heap", "hold-less-in-children, see-child", "!(most at train.py:41 epoch)" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		told(NULL, cases[i].advised,
		     "heap:41 500M process_count=2; name heap %s; signal 15; after cgroup_oom_kill=1; parent peak_bytes=400M; "
		     "child peak_bytes=%uM; domain heap peak_bytes=1G",
		     cases[i].domain, cases[i].child_mib);
		assert_cause(&verdict, "child-killed");
		next(cases[i].next);
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
