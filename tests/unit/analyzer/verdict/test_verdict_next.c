/*
 * test_verdict_next.c - is a person whose program died sent to the right thing first?
 */
#include "hand_model.h"

#include <signal.h>

static struct hand_model hand;

/* What ended it was not memory; what accumulates is the second thing to look at. */
static void
far_from_the_limits_the_cause_comes_before_what_accumulates(void **state)
{
	static const struct {
		int signal;
		uint64_t available_bytes;
		const char *next;
		bool is_native;
	} cases[] = {
		{ 1 << 8, 8 * GIB,
		  "read the program's own error message; then look for what keeps the blocks of train.py:41 epoch alive",
		  false },
		{ SIGSEGV, 8 * GIB,
		  "look at the crash itself: with PYTHONFAULTHANDLER=1 Python shows where it was; then look for what keeps the "
		  "blocks of train.py:41 epoch alive",
		  false },
		{ SIGSEGV, 8 * GIB,
		  "look at the crash itself, with a debugger; then look for what keeps the blocks of train.py:41 epoch alive",
		  true },
		{ SIGKILL, 8 * GIB,
		  "find out who sent the signal: a time limit, a scheduler, a person; then look for what keeps the blocks of "
		  "train.py:41 epoch alive",
		  false },
		{ SIGINT, 8 * GIB,
		  "if it was not Ctrl-C, find out who sent the signal: a time limit, a scheduler, a person; then look for what keeps",
		  false },
		{ SIGKILL, 100 * MIB,
		  "look for what keeps the blocks of train.py:41 epoch alive: often a list that is appended to", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct verdict verdict;

		hand_model_make(&hand);
		hand_model_generations(hand_model_site(&hand, HEAP, 41, 300 * MIB), 12, 12, 3, 3);
		hand.heartbeat.available_bytes = cases[i].available_bytes;
		hand.process.python_version = cases[i].is_native ? 0 : hand.process.python_version;
		hand_model_waited(&hand, cases[i].signal);
		hand_model_decide(&hand, &verdict);
		if (strncmp(verdict.next, cases[i].next, strlen(cases[i].next)) != 0 ||
		    strstr(verdict.text, " It accumulates: blocks") == NULL)
			fail_msg("%zu: %s", i, verdict.next);
	}
}

/* frames.append(read_csv()), then concat(frames): the half of it is half of the truth. */
static void
a_line_that_holds_nearly_as_much_is_named_too(void **state)
{
	static const struct {
		uint64_t bytes;
		bool is_first_leak, is_leak;
		const char *says;
		bool is_same_line;
	} cases[] = {
		{ 290, false, true,
		  ". 300 MiB of it (51 %) was allocated at train.py:41 epoch. Another 290 MiB (49 %) was allocated at train.py:50 epoch, which "
		  "accumulates.",
		  false },
		{ 290, true, false, "train.py:41 epoch. It accumulates: blocks from 12 of 12", false },
		{ 290, true, true,
		  "generations are still alive. Another 290 MiB (49 %) was allocated at train.py:50 epoch, which accumulates too.",
		  false },
		{ 290, false, false, "Another 290 MiB (49 %) was allocated at train.py:50 epoch.", false },
		{ 149, true, true, "was allocated at train.py:41 epoch. It accumulates: blocks", false },
		{ 290, true, false,
		  "was allocated at train.py:41 epoch. It accumulates: blocks from 12 of 12 generations are still alive. Another 290 MiB (49 %) was allocated at the same line in mmap.",
		  true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct verdict verdict;

		hand_model_make(&hand);
		hand_model_generations(hand_model_site(&hand, HEAP, 41, 300 * MIB), cases[i].is_first_leak ? 12 : 1, 12, 3, 3);
		hand_model_generations(hand_model_site(&hand, cases[i].is_same_line ? MMAP : HEAP,
		                                       cases[i].is_same_line ? 41 : 50, cases[i].bytes * MIB),
		                       cases[i].is_leak ? 12 : 1, 12, 3, 3);
		hand_model_waited(&hand, SIGKILL);
		hand_model_decide(&hand, &verdict);
		if (strstr(verdict.text, cases[i].says) == NULL)
			fail_msg("%zu: %s", i, verdict.text);
	}
}

/* timeout 3600 python train.py: it ends itself by SIGKILL when its child was ended by that, whoever sent it. */
static void
a_time_limit_is_named(void **state)
{
	static const char plain[] = "timeout\0"
								"60\0"
								"python";
	static const char kills[] = "timeout\0-s\0KILL\0"
								"60\0"
								"python";
	static const char number[] = "timeout\0-s\0"
								 "9\0"
								 "0.9m\0"
								 "python";
	static const char later[] = "timeout\0-k\0"
								"5\0"
								"60s\0"
								"python";
	static const char early[] = "timeout\0-k\0"
								"5\0"
								"2h\0"
								"python"; // it ran for a minute
	static const char never[] = "timeout\0--signal=KILL\0"
								"0\0"
								"python";
	static const struct {
		const char *parent, *command;
		size_t command_bytes;
		int status;
		uint64_t kills;
		const char *cause, *says, *next;
	} cases[] = {
		{ "timeout", plain, sizeof(plain), 124 << 8, 0, "gone",
		  "A child process, train.py (pid 4243), was ended by timeout: its exit status "
		  "says that the time was up (likely).",
		  "give it more time, or see" },
		{ "timeout", kills, sizeof(kills), SIGKILL, 0, "gone",
		  "A child process, train.py (pid 4243), was ended by timeout", "give it more time" },
		{ "timeout", number, sizeof(number), SIGKILL, 0, "gone",
		  "A child process, train.py (pid 4243), was ended by timeout", "" },
		{ "timeout", later, sizeof(later), SIGKILL, 0, "gone",
		  "A child process, train.py (pid 4243), was ended by timeout", "" },
		{ "timeout", early, sizeof(early), SIGKILL, 0, "gone", "is gone without a clean-exit mark", "" },
		{ "timeout", never, sizeof(never), SIGKILL, 0, "gone", "is gone without a clean-exit mark", "" },
		{ "timeout", plain, sizeof(plain), SIGKILL, 0, "gone", "is gone without a clean-exit mark", "" },
		{ "timeout", plain, sizeof(plain), 1 << 8, 0, "gone", "is gone without a clean-exit mark", "" },
		{ "sh", plain, sizeof(plain), 124 << 8, 0, "gone", "is gone without a clean-exit mark", "" },
		{ "timeout", kills, sizeof(kills), SIGKILL, 1, "machine-memory",
		  "A child process, train.py (pid 4243), was killed by the kernel", "hold less at once at" },
	};
	struct model_process processes[2];
	struct verdict verdict;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct kmem_identity child;

		hand_model_make(&hand);
		memcpy(hand.identity.command, cases[i].command, cases[i].command_bytes);
		hand.identity.command_bytes = (uint32_t)cases[i].command_bytes;
		child = hand_model_child(&hand);
		hand_model_site(&hand, HEAP, 41, 400 * MIB)->process = 1;
		hand_model_waited(&hand, cases[i].status);
		hand.launcher.after.cgroup_oom_kill = cases[i].kills;
		processes[0] = processes[1] = hand.process;
		processes[0].name = cases[i].parent;
		processes[0].live_bytes = 0;
		processes[1].identity = &child;
		processes[1].launcher = NULL;
		processes[1].parent = 0;
		processes[1].live_bytes = 400 * MIB;
		hand.model.processes = processes;
		hand.model.process_count = 2;
		hand_model_decide(&hand, &verdict);
		if (strcmp(verdict_cause_name(verdict.cause), cases[i].cause) != 0 ||
		    strstr(verdict.text, cases[i].says) == NULL || strstr(verdict.next, cases[i].next) == NULL)
			fail_msg("%zu: %s: %s Next: %s", i, verdict_cause_name(verdict.cause), verdict.text, verdict.next);
	}
}

static void
nobody_is_told_to_raise_a_limit_that_is_the_machine(void **state)
{
	struct verdict verdict;

	(void)state;
	for (int is_growing = 0; is_growing < 2; is_growing++) { // that is no matter
		hand_model_make(&hand);
		hand_model_generations(hand_model_site(&hand, HEAP, 41, 40 * MIB), is_growing ? 12 : 1, 12, 3, 3);
		hand_model_exited(&hand, 1);
		hand_model_refuse(&hand, 58 * GIB * 1024);
		hand_model_decide(&hand, &verdict);
		assert_string_equal(verdict.next, "ask for less at once there (smaller pieces, a smaller type)");
		assert_non_null(
			strstr(verdict.text, "That is more than the machine has (16.0 GiB). No more than 40.0 MiB was live then."));
	}
	hand.failed.bytes = 12 * GIB; // a limit was in the way
	hand_model_decide(&hand, &verdict);
	assert_string_equal(verdict.next, "ask for less at once there, or raise what limits it");
}

/* A device is full of what was given back to the driver's pools: that is nobody else's, and no line's. */
static void
what_pools_keep_is_told(void **state)
{
	static const struct {
		uint64_t live_bytes, pool_kept_bytes, asked_bytes;
		bool is_leak, is_told, is_enough;
		const char *next;
	} cases[] = {
		{ 8 * MIB, 40 * MIB, 50 * MIB, false, true, true,
		  "give back what the driver's pools keep before such a request: cudaMemPoolTrimTo" },
		{ 0, 40 * MIB, 50 * MIB, false, true, true, "give back what the driver's pools keep" },
		{ 8 * MIB, 40 * MIB, 70 * MIB, false, true, false, "`kmemshim peak " },
		{ 30 * MIB, 4 * MIB, 70 * MIB, false, false, false, "`kmemshim peak " },
		{ 30 * MIB, 0, 10 * MIB, false, false, false, "`kmemshim peak " },
		{ 40 * MIB, 12 * MIB, 20 * MIB, true, true, true, "look for what keeps the blocks of " },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct verdict verdict;

		hand_model_make(&hand);
		if (cases[i].live_bytes != 0)
			hand_model_generations(hand_model_site(&hand, CUDA0, 41, cases[i].live_bytes), cases[i].is_leak ? 12 : 1,
			                       12, 3, 3);
		hand_model_exited(&hand, 1);
		hand_model_refuse(&hand, cases[i].asked_bytes);
		hand.failed.domain = CUDA0;
		hand.failed.free_bytes = 12 * MIB;
		hand.failed.total_bytes = 64 * MIB;
		hand.failed.pool_kept_bytes = cases[i].pool_kept_bytes;
		hand_model_decide(&hand, &verdict);
		if ((strstr(verdict.text, " lay unused in the driver's pools (cudaMallocAsync)") != NULL) != cases[i].is_told ||
		    (strstr(verdict.text, "(cudaMallocAsync): enough for the request, with what was free.") != NULL) !=
		        cases[i].is_enough ||
		    strncmp(verdict.next, cases[i].next, strlen(cases[i].next)) != 0)
			fail_msg("%zu: %s Next: %s", i, verdict.text, verdict.next);
	}
}

/* Nobody but its author knows whether it is a data set: the text and what to do next may not contradict each other. */
static void
what_may_be_a_data_set_of_a_program_that_ended_well_is_left_to_its_author(void **state)
{
	static const struct {
		uint64_t volume_bytes;
		bool is_arena, has_device;
		const char *text, *next;
	} cases[] = {
		{ 400 * MIB, false, false, "It accumulates, or it is a one-time load",
		  "look for what keeps the blocks of train.py:41 epoch alive: often a list that is appended to, a running sum of tensors, or a "
		  "cache; if it is a data set, no action is needed" },
		{ 16 * GIB, false, false, "It accumulates: ", // pandas parses chunks of a CSV file
		  "look for what keeps the blocks of train.py:41 epoch alive: often a list that is appended to, a running sum of tensors, or a "
		  "cache; if it is a data set, no action is needed" },
		{ 0, false, false, "It accumulates: ",
		  "look for what keeps the blocks of train.py:41 epoch alive: often a list that is "
		  "appended to, a running sum of tensors, or a cache" },
		{ 400 * MIB, true, false, "It accumulates, or it is a one-time load",
		  "record small Python objects too: `kmemshim run --python-objects -- python train.py 'it'\\''s'`; then the lines that hold "
		  "them are named; if it is a data set, no action is needed" },
		{ 400 * MIB, false, true, "It accumulates, or it is a one-time load",
		  "look for what keeps the blocks of train.py:50 epoch alive: "
		  "often a list that is appended to, a running sum of tensors, or a cache" },
	};
	struct verdict verdict;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct model_site *site;

		hand_model_make(&hand);
		if (cases[i].is_arena)
			hand_model_domain(&hand.domains[HEAP], "python/arena");
		site = hand_model_site(&hand, HEAP, 41, 300 * MIB);
		hand_model_generations(site, 12, 12, 3, 3);
		site->volume_bytes = cases[i].volume_bytes;
		if (cases[i].has_device)
			hand_model_generations(hand_model_site(&hand, CUDA0, 50, 20 * MIB), 12, 12, 3, 3);
		hand_model_exited(&hand, 0);
		hand_model_decide(&hand, &verdict);
		if (strstr(verdict.text, cases[i].text) == NULL || strcmp(verdict.next, cases[i].next) != 0)
			fail_msg("%zu: %s Next: %s", i, verdict.text, verdict.next);
	}
}

/* It ended well, and with some more data it would not have. */
static void
who_nearly_filled_the_limit_is_told_at_which_line(void **state)
{
	static const struct {
		uint64_t limit_bytes, live_bytes, resident_bytes;
		const char *text, *next;
	} cases[] = {
		{ 400 * MIB, 370 * MIB, 396 * MIB,
		  " was allocated at train.py:41 epoch. At one sample 396 MiB of the container's 400 MiB were in use (99 %).",
		  "little room was left: hold less at once (most was allocated at train.py:41 epoch), or give the program more memory" },
		{ 16 * GIB, 14 * GIB, 15 * GIB, " At one sample 15.0 GiB of the machine's 16.0 GiB were in use (94 %).",
		  "little room was left: " },
		{ 400 * MIB, 300 * MIB, 399 * MIB, "41 epoch.", "no action is needed; " }, // files that it read
		{ 400 * MIB, 900 * MIB, 300 * MIB, "41 epoch.", "no action is needed; " }, // not touched
		{ UINT64_MAX, 900 * MIB, 900 * MIB, "41 epoch.", "no action is needed; " },
	};
	struct verdict verdict;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct kmem_heartbeat beats[2];

		hand_model_make(&hand);
		hand_model_site(&hand, HEAP, 41, 370 * MIB)->live_bytes = MIB;
		beats[0] = beats[1] = hand.heartbeat; // the last one is long after the peak
		beats[0].limit_bytes = beats[1].limit_bytes = cases[i].limit_bytes;
		beats[0].live_bytes = cases[i].live_bytes;
		beats[0].resident_bytes = cases[i].resident_bytes + 9 * MIB; // a file's pages are charged to who read it first
		beats[0].cgroup_bytes = cases[i].resident_bytes;
		beats[1].resident_bytes = 20 * MIB;
		hand.process.heartbeats = beats;
		hand.process.heartbeat_count = 2;
		hand_model_exited(&hand, 0);
		hand_model_decide(&hand, &verdict);
		if (strcmp(verdict.text + strlen(verdict.text) - strlen(cases[i].text), cases[i].text) != 0 ||
		    strncmp(verdict.next, cases[i].next, strlen(cases[i].next)) != 0)
			fail_msg("%zu: %s Next: %s", i, verdict.text, verdict.next);
	}
}

/* After "The peak of its heap was 300 MiB" more than that can only be live elsewhere, too. */
static void
more_than_the_peak_of_a_domain_is_live_in_all(void **state)
{
	struct verdict verdict;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		hand_model_make(&hand);
		hand_model_generations(hand_model_site(&hand, HEAP, 41, 300 * MIB), 12, 12, 3, 3);
		if (i != 0)
			hand_model_site(&hand, MMAP, 42, 8 * MIB);
		if (i == 2)
			hand_model_site(&hand, CUDA0, 43, 100 * MIB);
		hand_model_exited(&hand, i == 3); // by itself, too
		hand_model_decide(&hand, &verdict);
		assert_non_null(strstr(verdict.text, "The peak of its heap was 300 MiB"));
		assert_non_null(
			strstr(verdict.text, i == 2   ? " At the end 308 MiB was live in all on the host. 300 MiB of it (97 %)"
		                         : i != 0 ? " At the end 308 MiB was live in all. 300 MiB of it (97 %)"
		                                  : " At the end 300 MiB was live. 300 MiB of it (100 %)"));
	}
}

/* A model of some size that is loaded once hides no leak beside it. */
static void
what_accumulates_beside_the_largest_line_is_what_there_is_to_do(void **state)
{
	struct verdict verdict;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct model_site *site;

		hand_model_make(&hand);
		hand_model_site(&hand, HEAP, 12, 300 * MIB);
		site = hand_model_site(&hand, HEAP, 41, 200 * MIB);
		hand_model_generations(site, i == 1 ? 1 : 12, 12, i == 1 ? 0 : 3, 3);
		site->volume_bytes = i == 2 ? 300 * MIB : 2 * GIB; // perhaps a second data set
		if (i == 3)
			hand_model_waited(&hand, SIGKILL);
		else
			hand_model_exited(&hand, 0);
		hand.launcher.after.cgroup_oom_kill = i == 3;
		hand_model_decide(&hand, &verdict);
		if (i == 1 || i == 2) {
			assert_null(strstr(verdict.text, "train.py:41"));
			assert_non_null(strstr(verdict.next, "no action is needed"));
			continue;
		}
		assert_non_null(strstr(
			verdict.text,
			" was allocated at train.py:12 epoch. Another 200 MiB (40 %) was allocated at train.py:41 epoch, which "
			"accumulates."));
		assert_non_null(
			strstr(verdict.next, "look for what keeps the blocks of train.py:41 epoch alive: often a list"));
	}
}

/* "A running sum of tensors" is no help to who writes C++. */
static void
what_often_keeps_blocks_depends_on_the_language(void **state)
{
	struct verdict verdict;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		hand_model_make(&hand);
		hand_model_generations(hand_model_site(&hand, HEAP, 41, 300 * MIB), 12, 12, 3, 3);
		hand.process.python_version = i == 0 ? 0x030b07f0 : 0;
		hand_model_exited(&hand, 0);
		hand_model_decide(&hand, &verdict);
		assert_int_equal(strstr(verdict.next, "a running sum of tensors") != NULL, i == 0);
		assert_int_equal(strstr(verdict.next, "a release that is missing") != NULL, i == 1);
	}
}

/* "Hold less at arenas": nobody can do that before the lines are known. */
static void
arenas_that_fill_a_limit_are_to_be_recorded_object_by_object(void **state)
{
	struct verdict verdict;

	(void)state;
	hand_model_make(&hand);
	hand_model_domain(&hand.domains[MMAP], "python/arena");
	hand_model_generations(hand_model_site(&hand, MMAP, 41, 900 * MIB), 12, 12, 3, 3);
	hand_model_exited(&hand, 1);
	hand_model_refuse(&hand, MIB);
	hand.failed.domain = MMAP;
	hand.identity.limits[0] = (struct kmem_limit){ .kind = KMEM_LIMIT_ADDRESS_SPACE, .bytes = GIB };
	hand_model_decide(&hand, &verdict);
	assert_non_null(strstr(verdict.next, "`kmemshim run --python-objects -- "));
	assert_non_null(strstr(verdict.next, "Or raise what limits it (ulimit -v)"));
}

/* A higher limit is reached as well. */
static void
a_line_that_accumulates_up_to_a_limit_is_what_to_look_at(void **state)
{
	struct verdict verdict;

	(void)state;
	hand_model_make(&hand);
	hand_model_generations(hand_model_site(&hand, HEAP, 41, 900 * MIB), 46, 46, 3, 3);
	hand.sites[0].allocated_bytes = 5000 * MIB;
	hand_model_exited(&hand, 1);
	hand_model_refuse(&hand, MIB);
	hand.identity.limits[0] = (struct kmem_limit){ .kind = KMEM_LIMIT_ADDRESS_SPACE, .bytes = GIB };
	hand_model_decide(&hand, &verdict);
	assert_non_null(strstr(verdict.next, "look for what keeps the blocks of train.py:41 epoch alive"));
}

/* Lists and dictionaries of the small objects are larger blocks: they show the line without a second run. */
static void
what_accumulates_beside_arenas_is_the_better_clue(void **state)
{
	static const struct {
		uint64_t bytes;
		bool is_leak, is_user, is_said;
	} cases[] = {
		{ 3 * MIB, true, true, true },
		{ 3 * MIB, true, false, false },
		{ 3 * MIB, false, true, false },
		{ MIB / 2, true, true, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct verdict verdict;

		hand_model_make(&hand);
		hand_model_domain(&hand.domains[MMAP], "python/arena");
		hand_model_generations(hand_model_site(&hand, MMAP, 60, 106 * MIB), 12, 12, 3, 3);
		hand_model_generations(hand_model_site(&hand, HEAP, 41, cases[i].bytes), cases[i].is_leak ? 12 : 1, 12, 3, 3);
		hand.frames[1][2].is_user = cases[i].is_user;
		hand_model_waited(&hand, SIGKILL);
		hand.heartbeat.available_bytes = 100 * MIB;
		hand_model_decide(&hand, &verdict);
		assert_int_equal(
			strstr(verdict.text,
		           "Larger blocks of train.py:41 epoch (3.0 MiB) accumulate too, perhaps of the same objects.") != NULL,
			cases[i].is_said);
		assert_int_equal(
			strstr(verdict.next, "look for what keeps the blocks of train.py:41 epoch alive; or record small") != NULL,
			cases[i].is_said);
		assert_non_null(strstr(verdict.next, "record small Python objects too: `kmemshim run --python-objects"));
	}
}

/* PyTorch under a small limit: no line is to blame, and no recording of small objects would find one. */
static void
what_imports_left_is_said_where_it_is_most(void **state)
{
	static const struct {
		uint64_t of_imports;
		unsigned alive;
		const char *says, *next;
	} cases[] = {
		{ 200, 1, "live. 200 MiB of it (65 %) was left by imports. 109 MiB of it (35 %) was in ",
		  "give the program more memory, or import less" },
		{ 100, 1, "live. 109 MiB of it (52 %) was in ", "record small Python objects too" },
		{ 200, 12, "live. 109 MiB of it (35 %) was in train.py:60 epoch. It accumulates",
		  "record small Python objects too" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct verdict verdict;

		hand_model_make(&hand);
		hand_model_domain(&hand.domains[MMAP], "python/arena");
		hand_model_generations(hand_model_site(&hand, MMAP, 60, 109 * MIB), cases[i].alive, 12, cases[i].alive / 4, 3);
		hand_model_site(&hand, HEAP, 1, cases[i].of_imports * MIB)->stack_flags = KMEM_STACK_IMPORT_CUT;
		hand.heartbeat.available_bytes = 100 * MIB;
		hand_model_waited(&hand, SIGKILL);
		hand_model_decide(&hand, &verdict);
		if (strstr(verdict.text, cases[i].says) == NULL || strstr(verdict.next, cases[i].next) == NULL)
			fail_msg("%zu: %s Next: %s", i, verdict.text, verdict.next);
	}
}

/* The total of several threads is behind its parts by as much as they keep for themselves. */
static void
a_line_is_told_once_and_never_of_more_than_all(void **state)
{
	struct verdict verdict;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		hand_model_make(&hand);
		hand_model_generations(hand_model_site(&hand, HEAP, 41, 300 * MIB), i == 0 ? 12 : 1, 12, 3, 3);
		hand.domains[HEAP].peak_bytes = 299 * MIB;
		hand_model_exited(&hand, 0);
		hand_model_decide(&hand, &verdict);
		assert_int_equal(strstr(verdict.text, "was 299 MiB. At the end") != NULL, i == 0);
		assert_int_equal(
			strstr(verdict.text, "was 299 MiB. 299 MiB of it (100 %) was allocated at train.py:41") != NULL, i == 1);
		assert_null(strstr(strstr(verdict.text, "train.py:41") + 1, "train.py:41"));
	}
}

/* Who reads of 40 MiB that accumulate would not know who made the 900. */
static void
a_line_that_held_much_more_at_the_peak_is_told_of_both(void **state)
{
	struct verdict verdict;

	(void)state;
	hand_model_make(&hand);
	hand_model_generations(hand_model_site(&hand, HEAP, 41, 40 * MIB), 12, 12, 3, 3);
	hand.sites[0].peak_bytes = hand.domains[HEAP].peak_bytes = 900 * MIB;
	hand_model_exited(&hand, 0);
	hand_model_decide(&hand, &verdict);
	assert_non_null(strstr(
		verdict.text,
		"was 900 MiB. 900 MiB of it (100 %) was allocated at train.py:41 epoch. Of the 300 MiB that it had in memory "));
	assert_non_null(strstr(verdict.text, " No line holds a third of it. At the end 40.0 MiB was live"));
	assert_non_null(strstr(verdict.text, "(100 %) was allocated at train.py:41 epoch. It accumulates"));
}

static void
what_imports_held_at_the_peak_is_said_where_it_is_most(void **state)
{
	static const struct {
		uint64_t own;
		const char *says;
	} cases[] = {
		{ 4,
		  "The peak of its heap was 204 MiB. 4.0 MiB of it (2 %) was allocated at train.py:41 epoch. 200 MiB of it (98 %) was left by "
		  "imports." },
		{ 300, "The peak of its heap was 500 MiB. 300 MiB of it (60 %) was allocated at train.py:41 epoch." },
		{ 0, "The peak of its heap was 200 MiB. 200 MiB of it (100 %) was left by imports." },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct verdict verdict;

		hand_model_make(&hand);
		if (cases[i].own != 0)
			hand_model_site(&hand, HEAP, 41, cases[i].own * MIB);
		hand_model_site(&hand, HEAP, 1, 200 * MIB)->stack_flags = KMEM_STACK_IMPORT_CUT;
		hand_model_exited(&hand, 0);
		hand_model_decide(&hand, &verdict);
		if (strstr(verdict.text, cases[i].says) == NULL)
			fail_msg("%zu: %s", i, verdict.text);
	}
}

/* 300 MiB of PyTorch beside 136 MiB of kept losses: "nothing here points at memory" was said of them. */
static void
imports_do_not_hide_what_accumulates(void **state)
{
	struct verdict verdict;

	(void)state;
	hand_model_make(&hand);
	hand_model_generations(hand_model_site(&hand, HEAP, 41, 136 * MIB), 12, 12, 3, 3);
	hand_model_site(&hand, HEAP, 1, 300 * MIB)->stack_flags = KMEM_STACK_IMPORT_CUT;
	hand_model_waited(&hand, SIGKILL);
	hand_model_decide(&hand, &verdict);
	assert_non_null(strstr(verdict.text, "Memory was far from the limits."));
	assert_non_null(strstr(verdict.text, "136 MiB of it (31 %) was allocated at train.py:41 epoch. It accumulates: "));
	assert_non_null(strstr(verdict.next, "; then look for what keeps the blocks of train.py:41 epoch alive"));
}

/* A parent of 4242 that is well, and a child without a mark of its end. */
static void
a_child_that_a_signal_ended_is_to_be_looked_at(void **state)
{
	static const struct {
		bool is_growing;
		uint64_t kills;
		const char *next;
	} cases[] = {
		{ false, 0,
		  "`kmemshim report kmemshim.out/child.kmem` shows what the child process held that was ended; if a pool ended it as "
		  "it closed, no action is needed" },
		{ true, 0,
		  "look for what keeps the blocks of train.py:41 epoch alive: often a list that is appended to, a running sum of tensors, or "
		  "a cache; `kmemshim report kmemshim.out/child.kmem` shows what the child process held that was ended" },
		{ true, 1,
		  "look for what keeps the blocks of train.py:41 epoch alive: often a list that is appended to, a running sum of tensors, or "
		  "a cache; if it is a data set, load less of it at once, or give the program more memory; "
		  "`kmemshim report kmemshim.out/child.kmem` shows what the child process held that was ended" },
	};
	static struct model_process processes[2];
	static struct kmem_identity child;
	struct verdict verdict;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct model_site *site;

		hand_model_make(&hand);
		site = hand_model_site(&hand, HEAP, 41, 400 * MIB);
		if (cases[i].is_growing)
			hand_model_generations(site, 12, 12, 3, 3);
		site->volume_bytes = 400 * MIB;
		processes[1] = hand.process;
		hand_model_exited(&hand, 0);
		hand_model_waited(&hand, 0);
		hand.launcher.after.cgroup_oom_kill = hand.identity.before.cgroup_oom_kill + cases[i].kills;
		processes[0] = hand.process;
		child = hand_model_child(&hand);
		processes[1].identity = &child;
		processes[1].path = "kmemshim.out/child.kmem";
		hand.model.processes = processes;
		hand.model.process_count = 2;
		hand_model_decide(&hand, &verdict);
		assert_string_equal(verdict_cause_name(verdict.cause), cases[i].kills != 0 ? "child-killed" : "exited");
		assert_string_equal(verdict.next, cases[i].next);
		if (cases[i].kills == 0)
			assert_non_null(
				strstr(verdict.text, "Only its parent knows the signal; a pool that closes sends SIGTERM."));
	}
}

static void
a_program_that_allocates_nothing_has_no_peak_to_look_at(void **state)
{
	struct verdict verdict;

	(void)state;
	hand_model_make(&hand);
	hand.model.domain_count = 0;
	hand_model_exited(&hand, 0);
	hand_model_decide(&hand, &verdict);
	assert_non_null(strstr(verdict.text, "exited normally, with status 0. No allocation of it was seen."));
	assert_string_equal(verdict.next, "no action is needed");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(far_from_the_limits_the_cause_comes_before_what_accumulates),
		cmocka_unit_test(a_line_that_holds_nearly_as_much_is_named_too),
		cmocka_unit_test(a_time_limit_is_named),
		cmocka_unit_test(nobody_is_told_to_raise_a_limit_that_is_the_machine),
		cmocka_unit_test(what_pools_keep_is_told),
		cmocka_unit_test(what_may_be_a_data_set_of_a_program_that_ended_well_is_left_to_its_author),
		cmocka_unit_test(who_nearly_filled_the_limit_is_told_at_which_line),
		cmocka_unit_test(more_than_the_peak_of_a_domain_is_live_in_all),
		cmocka_unit_test(what_accumulates_beside_the_largest_line_is_what_there_is_to_do),
		cmocka_unit_test(what_often_keeps_blocks_depends_on_the_language),
		cmocka_unit_test(arenas_that_fill_a_limit_are_to_be_recorded_object_by_object),
		cmocka_unit_test(a_line_that_accumulates_up_to_a_limit_is_what_to_look_at),
		cmocka_unit_test(what_accumulates_beside_arenas_is_the_better_clue),
		cmocka_unit_test(what_imports_left_is_said_where_it_is_most),
		cmocka_unit_test(a_line_is_told_once_and_never_of_more_than_all),
		cmocka_unit_test(a_line_that_held_much_more_at_the_peak_is_told_of_both),
		cmocka_unit_test(what_imports_held_at_the_peak_is_said_where_it_is_most),
		cmocka_unit_test(imports_do_not_hide_what_accumulates),
		cmocka_unit_test(a_child_that_a_signal_ended_is_to_be_looked_at),
		cmocka_unit_test(a_program_that_allocates_nothing_has_no_peak_to_look_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
