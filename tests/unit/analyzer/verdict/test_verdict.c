/*
 * test_verdict.c - is each death told by its evidence, and is nothing claimed beyond it?
 */
#include "verdict_case.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/kill_counters.h"
#include "analysis/refused_requests.h"
#include "verdict/verdict.h"

#define EXITED(status) ((status) << 8)
#define SIGNALED(number) (number)

static struct kmem_kill_counters counters_now;

static void
read_counters(const struct kmem_identity *identity, struct kmem_kill_counters *counters)
{
	(void)identity;
	*counters = counters_now;
}

static const struct verdict_now this_boot = { .boot_id = "this-boot", .read_counters = read_counters };

/* --- what the cases are made of -------------------------------------------------------------------------------- */

static void
nothing(void)
{
}
static void
alive(void)
{
	hand.process.is_alive = true;
}
static void
clean(void)
{
	hand.process.state = KMEM_STATE_CLEAN_EXIT;
	hand.process.exit_code = 0;
}
static void
other_boot(void)
{
	strcpy(hand.identity.boot_id, "another");
}
static void
replaced(void)
{
	hand.process.state = KMEM_STATE_EXEC_REPLACED;
}
static void
exit_0(void)
{
	clean();
	hand_model_waited(&hand, EXITED(0));
}
static void
exit_1(void)
{
	clean();
	hand.process.exit_code = 1;
	hand_model_waited(&hand, EXITED(1));
}
static void
exit_137(void)
{
	clean();
	hand.process.exit_code = 137;
	hand_model_waited(&hand, EXITED(137));
}
static void
killed(void)
{
	hand_model_waited(&hand, SIGNALED(SIGKILL));
}
static void
segv(void)
{
	hand_model_waited(&hand, SIGNALED(SIGSEGV));
}
static void
aborted(void)
{
	hand_model_waited(&hand, SIGNALED(SIGABRT));
}
static void
bus(void)
{
	hand_model_waited(&hand, SIGNALED(SIGBUS));
}
static void
terminated(void)
{
	hand_model_waited(&hand, SIGNALED(SIGTERM));
}

static void
unknown_counters(void)
{
	memset(&hand.launcher.after, 0xff, sizeof(hand.launcher.after));
}

static void
limited(void)
{
	hand.heartbeat.limit_bytes = 512 * MIB;
	hand.heartbeat.cgroup_bytes = 300 * MIB;
	hand.identity.limits[0] = (struct kmem_limit){ .kind = KMEM_LIMIT_CGROUP, .bytes = 512 * MIB };
}

static void
near(void)
{
	limited();
	hand.heartbeat.cgroup_bytes = 505 * MIB;
}
static void
low(void)
{
	hand.heartbeat.available_bytes = 100 * MIB;
}

static void
container_killed(void)
{
	killed();
	limited();
	hand.launcher.after = (struct kmem_kill_counters){ 1, 1, 900, 1 };
}

/* A full machine counts in the victim's cgroup as well, but the limit was not hit. */
static void
machine_killed(void)
{
	killed();
	low();
	hand.launcher.after = (struct kmem_kill_counters){ 1, 0, 0, 1 };
}
static void
machine_counted(void)
{
	killed();
	low();
	hand.identity.before.cgroup_oom_kill = UINT64_MAX;
	hand.launcher.after = (struct kmem_kill_counters){ UINT64_MAX, UINT64_MAX, UINT64_MAX, 3 };
}
static void
others_killed(void)
{
	killed();
	hand.launcher.after.machine_oom_kill = 2;
}
static void
near_unknown(void)
{
	killed();
	near();
	unknown_counters();
}
static void
near_known(void)
{
	killed();
	near();
}
static void
killed_low(void)
{
	killed();
	low();
}
static void
gone_late(void)
{
	limited();
	counters_now = (struct kmem_kill_counters){ 1, 1, 5, 1 };
}
static void
gone_near(void)
{
	near();
	memset(&counters_now, 0xff, sizeof(counters_now));
}
static void
version_1(void)
{
	container_killed();
	hand.identity.cgroup_version = 1;
	hand.launcher.after = (struct kmem_kill_counters){ 1, 0, 7, 1 };
}

/* Recent kernels leave version 1's memory.failcnt at 0: what was charged and what the machine had left decide. */
static void
version_1_uncounted(void)
{
	version_1();
	hand.heartbeat.cgroup_bytes = 480 * MIB;
	hand.launcher.after.cgroup_max_hits = 0;
}
/* It filled the container between two looks. */
static void
version_1_burst(void)
{
	version_1_uncounted();
	hand.heartbeat.cgroup_bytes = 22 * MIB;
}
static void
version_1_machine(void)
{
	version_1_uncounted();
	low();
}

static void
refused(uint64_t bytes, unsigned domain, uint64_t before_end_ns, bool had_success_after)
{
	hand.failed = (struct model_failed){
		.bytes = bytes,
		.domain = domain,
		.error = ENOMEM,
		.had_success_after = had_success_after,
		.monotonic_ns = hand.identity.start_monotonic_ns + UINT64_C(60000000000) - before_end_ns,
		.site = &hand.sites[0],
	};
	hand.model.failed_count = 1;
}

static void
rlimit(void)
{
	exit_1();
	refused(256 * MIB, HEAP, 40000000, true); // the error's own message allocated
	hand.identity.limits[0] = (struct kmem_limit){ .kind = KMEM_LIMIT_ADDRESS_SPACE, .bytes = 6 * GIB };
}
static void
refused_long_ago(void)
{
	exit_1();
	refused(256 * MIB, HEAP, UINT64_C(30000000000), true);
}
static void
refused_abort(void)
{
	aborted();
	refused(64 * GIB, HEAP, 40000000, false);
}
static void
refused_device(void)
{
	exit_1();
	refused(2 * GIB, CUDA0, 40000000, false);
}
static void
shm_full(void)
{
	bus();
	hand.identity.shm_bytes = 64 * MIB;
	hand_model_domain(&hand.domains[MMAP], "shared");
	hand.domains[MMAP].live_bytes = 61 * MIB;
}

/* Row: made by, cause, confidence, what the findings begin with, the advice; of an ending with several sentences which one it is. */
static const struct {
	void (*make)(void);
	const char *cause, *confidence, *found, *advised, *says;
} cases[] = {
	{ alive, "running", "certain", "ending; live 500 MiB; line 400 MiB of 500 MiB at train.py:41 epoch; usage",
	  "watch-growth", "" },
	{ exit_0, "exited", "certain", "ending; peak 500 MiB; peak-line 400 MiB of 500 MiB at train.py:41 epoch", "nothing",
	  "" },
	{ clean, "exited", "certain", "ending; peak 500 MiB; peak-line 400 MiB of 500 MiB at train.py:41 epoch", "nothing",
	  "" },
	{ replaced, "exec-replaced", "certain", "ending; peak 500 MiB; peak-line 400 MiB of 500 MiB at train.py:41 epoch",
	  "look-at-next-program", "" },
	{ other_boot, "not-closed", "unknown", "ending; live 500 MiB", "read-where-recorded", "" },
	{ container_killed, "container-limit", "certain",
	  "ending; live 500 MiB; line 400 MiB of 500 MiB at train.py:41 epoch", "hold-less",
	  "limit of 512 MiB was reached" },
	{ version_1, "container-limit", "certain", "ending; live", "hold-less", "" },
	{ version_1_uncounted, "container-limit", "certain", "ending; live", "hold-less", "" },
	{ version_1_burst, "container-limit", "certain", "ending; live", "hold-less", "" },
	{ version_1_machine, "machine-memory", "certain", "ending; usage 480 MiB of 512 MiB; live", "hold-less", "" },
	{ near_unknown, "container-limit", "likely", "ending; usage 505 MiB of 512 MiB; live", "hold-less", "" },
	{ near_known, "signal", "certain", "ending; live", "find-sender", "the kernel counted no kill" },
	{ machine_killed, "machine-memory", "certain", "ending; usage 15.9 GiB of 16.0 GiB; live", "hold-less",
	  "because the machine ran out of memory" },
	{ machine_counted, "machine-memory", "likely", "ending; usage 15.9 GiB of 16.0 GiB; live", "hold-less",
	  "the kernel killed 3 processes on this machine" },
	{ others_killed, "signal", "certain", "ending; far-from-limits; live", "find-sender", "" },
	{ killed, "signal", "certain", "ending; far-from-limits; live", "find-sender", "" },
	{ killed_low, "low-memory-daemon", "possible", "ending; usage 15.9 GiB of 16.0 GiB; live", "hold-less",
	  "was almost out of memory" },
	{ terminated, "signal", "certain", "ending; far-from-limits; live", "find-sender", "" },
	{ segv, "crashed", "certain", "ending; far-from-limits; usage", "show-python-crash", "" },
	{ aborted, "aborted", "certain", "ending; far-from-limits; usage", "show-python-crash", "" },
	{ refused_abort, "request-refused", "likely",
	  "ending 64.0 GiB at train.py:41 epoch; address-limit; little-held 500 MiB", "ask-for-less",
	  "nothing shows that it went on after that" },
	{ rlimit, "request-refused", "likely", "ending 256 MiB at train.py:41 epoch; address-limit; live",
	  "ask-for-less-or-raise-limit", "" },
	{ refused_long_ago, "failed", "certain",
	  "ending; peak 500 MiB; peak-line 400 MiB of 500 MiB at train.py:41 epoch; usage", "read-error", "" },
	{ refused_device, "device-memory", "likely", "ending 2.00 GiB at train.py:41 epoch; device-held", "see-other-users",
	  "" },
	{ shm_full, "shm-full", "likely", "ending; live 561 MiB; line", "enlarge-shm", "" },
	{ exit_1, "failed", "certain", "ending; peak 500 MiB; peak-line 400 MiB of 500 MiB at train.py:41 epoch; usage",
	  "read-error", "" },
	{ exit_137, "failed", "certain", "ending; shell-status; peak", "read-error", "" },
	{ nothing, "gone", "likely", "ending; no-kill; live", "see-system-log",
	  "or it called the kernel's exit_group itself" },
	{ gone_late, "container-limit", "likely", "ending; live", "hold-less", "read after the fact" },
	{ gone_near, "container-limit", "likely", "ending; usage 505 MiB of 512 MiB; live", "hold-less", "" },
};

TEST(each_death_has_its_verdict)
{
	EACH_CASE(i, cases)
	{
		memset(&counters_now, 0, sizeof(counters_now));
		hand_model_site(&hand, HEAP, 41, 400 * MIB);
		hand_model_site(&hand, HEAP, 50, 100 * MIB);
		cases[i].make();
		rank_leaks_classify(&hand.model);
		verdict_decide((struct finished_model){ &hand.model }, &this_boot, &verdict);
		if (strcmp(verdict_cause_name(verdict.cause), cases[i].cause) != 0 ||
		    strcmp(verdict_confidence_name(verdict.confidence), cases[i].confidence) != 0 ||
		    strncmp(found_text(&verdict), cases[i].found, strlen(cases[i].found)) != 0)
			fail_msg("case %zu: wanted %s (%s): %s\ngot %s (%s): %s\n%s", i, cases[i].cause, cases[i].confidence,
			         cases[i].found, verdict_cause_name(verdict.cause), verdict_confidence_name(verdict.confidence),
			         found_text(&verdict), verdict.text);
		assert_advised(&verdict, cases[i].advised);
		assert_non_null(strstr(verdict.text, cases[i].says));
		assert_null(strstr(verdict.text, "OOM"));
		assert_true(verdict.next[0] != '\0');
	}
}

TEST(who_held_most_is_named_with_share_and_growth)
{
	leaking(HEAP, 41, 400 * MIB);
	hand_model_site(&hand, HEAP, 50, 100 * MIB);
	hand_model_site(&hand, HEAP, 1, 900 * MIB)->stack_flags = KMEM_STACK_IMPORT_CUT;
	hand_model_site(&hand, RESERVED, 60, 90 * GIB);
	container_killed();
	rank_leaks_classify(&hand.model);
	verdict_decide((struct finished_model){ &hand.model }, &this_boot, &verdict);
	assert_found(&verdict,
	             "live 1.37 GiB; line 400 MiB of 1.37 GiB at train.py:41 epoch; accumulates 400 MiB of 400 MiB at "
	             "train.py:41 epoch, likely; imports 900 MiB of 1.37 GiB; more-live-than-limit");
	assert_advised(&verdict, "release-blocks");
}

/*
 * Too few generations for the name of a leak: said as that, and only where none of them was released. Of few blocks of which none was
 * released the likely cause is said, too: something keeps them.
 */
TEST(what_is_too_short_to_judge_says_so)
{
	static const struct {
		unsigned alive, total, live, allocated;
		bool is_said;
		const char *advised;
	} cases[] = {
		{ 2, 2, 2, 2, false, "hold-less" },
		{ 2, 2, 8, 8, false, "release-blocks-or-hold-less" },
		{ 3, 3, 3, 3, true, "hold-less" },
		{ 5, 5, 7, 7, true, "hold-less" },
		{ 5, 5, 8, 8, true, "release-blocks-or-hold-less" },
		{ 4, 5, 8, 20, false, "hold-less" },
		{ 6, 6, 8, 8, false, "release-blocks" },
	};

	EACH_CASE(i, cases)
	{
		struct model_site *site = hand_model_site(&hand, HEAP, 41, 400 * MIB);

		hand_model_generations(site, cases[i].alive, cases[i].total, 1, 1);
		site->live_count = cases[i].live;
		site->allocated_count = cases[i].allocated;
		container_killed();
		rank_leaks_classify(&hand.model);
		verdict_decide((struct finished_model){ &hand.model }, &this_boot, &verdict);
		assert_int_equal(strstr(found_text(&verdict), "may-accumulate 400 MiB at train.py:41 epoch, possible") != NULL,
		                 cases[i].is_said);
		assert_advised(&verdict, cases[i].advised);
	}
}

/* Nobody knows what in the arenas is the user's: they are named where they hold most of the memory, or nothing else does. */
TEST(arenas_are_named_where_no_line_tells_more)
{
	static const struct {
		uint64_t of_line, of_imports;
		const char *advised, *found;
	} cases[] = {
		{ 60, 300, "import-less", "; imports 300 MiB of 460 MiB; line 60.0 MiB of 460 MiB at train.py:41 epoch" },
		{ 60, 0, "record-python-objects", "; line 100 MiB of 160 MiB at train.py:60 epoch; accumulates" },
		{ 20, 300, "record-python-objects", "; line 100 MiB of 420 MiB at train.py:60 epoch; accumulates" },
	};

	EACH_CASE(i, cases)
	{
		hand_model_domain(&hand.domains[MMAP], "python/arena");
		leaking(MMAP, 60, 100 * MIB);
		hand_model_site(&hand, HEAP, 41, cases[i].of_line * MIB);
		hand_model_site(&hand, HEAP, 1, cases[i].of_imports * MIB)->stack_flags = KMEM_STACK_IMPORT_CUT;
		container_killed();
		rank_leaks_classify(&hand.model);
		verdict_decide((struct finished_model){ &hand.model }, &this_boot, &verdict);
		assert_found(&verdict, cases[i].found);
		assert_advised(&verdict, cases[i].advised);
	}
}

/* The launcher waited for a shell; the program that the shell started was killed. */
/* It held so many KiB itself, and started so many programs, of which each held 16 MiB. */
static bool
is_story_of_program(uint64_t own_kib, unsigned programs)
{
	struct kmem_identity children[2];
	struct model_process processes[3];
	struct verdict verdict;

	hand_model_make(&hand);
	hand_model_site(&hand, HEAP, 41, 16 * MIB);
	hand_model_exited(&hand, 0);
	processes[0] = hand.process;
	processes[0].peak_bytes = own_kib * KIB;
	for (unsigned i = 0; i < programs; i++) {
		children[i] = hand_model_child(&hand);
		processes[i + 1] = hand.process;
		processes[i + 1].identity = &children[i];
		processes[i + 1].parent = i == 0 ? 0 : -1;
		processes[i + 1].name = "leak.py";
		processes[i + 1].peak_bytes = 16 * MIB;
	}
	hand.sites[0].process = 1;
	hand.model.processes = processes;
	hand.model.process_count = programs + 1;
	hand_model_decide(&hand, &verdict);
	return strncmp(verdict.text, "A child process, leak.py (pid 4243), exited normally", 52) == 0;
}

TEST(the_one_program_of_a_script_is_the_story)
{
	assert_true(is_story_of_program(1023, 1));
	assert_false(is_story_of_program(1024, 1));
	assert_false(is_story_of_program(0, 2));
}

TEST(a_descendant_that_is_gone_explains_a_failing_parent)
{
	struct model_process processes[2];
	struct kmem_identity child;

	hand_model_site(&hand, HEAP, 41, 400 * MIB);
	exit_137();
	limited();
	hand.launcher.after = (struct kmem_kill_counters){ 1, 1, 5, 1 };
	child = hand.identity;
	child.pid = 4243;
	child.is_first = 0;
	processes[0] = hand.process;
	processes[0].name = "sh";
	processes[1] = hand.process;
	processes[1].identity = &child;
	processes[1].launcher = NULL;
	processes[1].state = KMEM_STATE_RUNNING;
	hand.model.processes = processes;
	hand.model.process_count = 2;
	rank_leaks_classify(&hand.model);
	verdict_decide((struct finished_model){ &hand.model }, &this_boot, &verdict);
	assert_string_equal(verdict_cause_name(verdict.cause), "container-limit");
	assert_string_equal(verdict_confidence_name(verdict.confidence), "likely");
	assert_int_equal(verdict.process->identity->pid, 4243);

	processes[0].launcher = NULL; // and when the parent is well, a child's end is no verdict on the program
	processes[0].exit_code = 0;
	verdict_decide((struct finished_model){ &hand.model }, &this_boot, &verdict);
	assert_string_equal(verdict_cause_name(verdict.cause), "exited");
	assert_int_equal(verdict.lost_child->identity->pid, 4243);
	assert_found(&verdict, "lost-children");
}

/* --- several processes ------------------------------------------------------------------------------------------- */

#define FAMILY 5

static struct model_process family[FAMILY];
static struct kmem_identity family_identity[FAMILY];
static struct kmem_heartbeat family_beat[FAMILY];

/* A parent and its children, pids 4242 and up, each with `bytes` at one line, started one second after the other. */
static struct model_site *
make_family(uint64_t bytes)
{
	struct model_site *site;

	hand_model_make(&hand);
	site = hand_model_site(&hand, HEAP, 41, bytes * FAMILY);
	site->process_count = FAMILY;
	for (unsigned i = 0; i < FAMILY; i++) {
		family[i] = hand.process;
		family_identity[i] = hand.identity;
		family_beat[i] = hand.heartbeat;
		family_identity[i].pid = 4242 + i;
		family_identity[i].is_first = i == 0;
		family_identity[i].start_monotonic_ns += i * UINT64_C(1000000000);
		family_beat[i].monotonic_ns = family_identity[i].start_monotonic_ns;
		family[i].identity = &family_identity[i];
		family[i].heartbeats = &family_beat[i];
		family[i].live_bytes = bytes + i;
		family[i].peak_bytes = bytes + i;
	}
	hand.model.processes = family;
	hand.model.process_count = FAMILY;
	return site;
}

static void
waited(unsigned number, int wait_status)
{
	hand_model_waited(&hand, wait_status);
	family[number].launcher = &hand.launcher;
}

static void
decide(struct verdict *verdict)
{
	memset(&counters_now, 0, sizeof(counters_now));
	rank_leaks_classify(&hand.model);
	verdict_decide((struct finished_model){ &hand.model }, &this_boot, verdict);
}

TEST(processes_that_did_not_coexist_are_never_summed)
{
	hand_model_generations(make_family(192 * MIB), 12, 12, 3, 3);
	for (unsigned i = 0; i < FAMILY; i++) {
		family[i].state = KMEM_STATE_CLEAN_EXIT;
		family[i].exit_code = 0;
	}
	waited(0, EXITED(0));
	decide(&verdict);
	assert_found(
		&verdict,
		"peak 192 MiB; live 192 MiB; line-of-all-processes 960 MiB of 960 MiB at train.py:41 epoch; accumulates");
	assert_non_null(strstr(verdict.text, "train.py (pid 4246) had the highest peak"));

	/* Of one process it is said. */
	assert_non_null(strstr(verdict.text, "allocated at train.py:41 epoch, in 5 of them."));
	hand.sites[0].most_live_bytes = 950 * MIB;
	decide(&verdict);
	assert_non_null(strstr(verdict.text, "allocated at train.py:41 epoch, nearly all of it in train.py (pid 42"));

	/* Killed: what ended before, or was last seen long before, is left out. */
	make_family(192 * MIB);
	for (unsigned i = 1; i < 3; i++)
		family[i].state = KMEM_STATE_CLEAN_EXIT;
	waited(0, SIGNALED(SIGKILL));
	decide(&verdict);
	assert_found(&verdict, "live 192 MiB; line-of-all-processes 960 MiB of 960 MiB at train.py:41 epoch");

	/* And those at work in its last second count. */
	family_beat[3].monotonic_ns = family_beat[4].monotonic_ns = family_identity[0].start_monotonic_ns +
	                                                            UINT64_C(59500000000);
	decide(&verdict);
	assert_found(&verdict, "live 576 MiB; line-of-all-processes 960 MiB of 960 MiB at train.py:41 epoch");
	assert_non_null(strstr(verdict.text, "192 MiB of what was live was in train.py (pid 4246)"));
}

TEST(children_that_a_pool_ended_are_a_note)
{
	make_family(4 * MIB);
	family[3].live_bytes = 9 * MIB;
	family[3].peak_bytes = family[3].inherited_bytes = 20 * MIB;
	waited(0, EXITED(0));
	decide(&verdict);
	assert_string_equal(verdict_cause_name(verdict.cause), "exited");
	assert_found(&verdict, "lost-children 21.0 MiB");
	assert_int_equal(verdict.lost_child->identity->pid, 4245);
	assert_non_null(
		strstr(verdict.text,
	           "held 9.0 MiB (20.0 MiB at its peak). It is not known how much it copied of its parent's 20.0 MiB. "));

	/* The parent failed by itself and held more than any of them: still a note. */
	family[0].peak_bytes = 50 * MIB;
	waited(0, EXITED(3));
	decide(&verdict);
	assert_string_equal(verdict_cause_name(verdict.cause), "failed");
	assert_int_equal(verdict.process->identity->pid, 4242);
	assert_found(&verdict, "lost-children 21.0 MiB");

	/* One of them held most: it may be the story. */
	family[3].live_bytes = 900 * MIB;
	decide(&verdict);
	assert_int_equal(verdict.process->identity->pid, 4245);
}

TEST(a_leak_is_named_when_a_signal_ended_the_program)
{
	static const struct {
		void (*make)(void);
		const char *cause, *advised;
	} deaths[] = { { killed, "signal", "find-sender, release-blocks" },
		           { aborted, "aborted", "show-python-crash, release-blocks" },
		           { segv, "crashed", "show-python-crash, release-blocks" },
		           { nothing, "gone", "release-blocks" } };

	EACH_CASE(i, deaths)
	{
		leaking(HEAP, 41, 400 * MIB);
		deaths[i].make();
		decide(&verdict);
		assert_string_equal(verdict_cause_name(verdict.cause), deaths[i].cause);
		assert_found(&verdict, "; live 400 MiB; line 400 MiB of 400 MiB at train.py:41 epoch; accumulates 400 MiB");
		assert_advised(&verdict, deaths[i].advised);
	}
}

/* What unwinding released was held when the request was refused; the error path asks for little. */
TEST(a_refusal_is_judged_by_what_was_held_then)
{
	struct model_failed failed[3];

	hand_model_site(&hand, MMAP, 41, 290 * MIB)->live_bytes = 0;
	hand.domains[MMAP].live_bytes = 0;
	hand_model_site(&hand, HEAP, 50, 5 * MIB);
	rlimit();
	for (size_t i = 0; i < ARRAY_LEN(failed); i++)
		failed[i] = hand.failed;
	failed[0].bytes = failed[1].bytes = MIB;
	failed[0].domain = failed[1].domain = MMAP;
	failed[0].monotonic_ns -= 50000000;
	failed[1].monotonic_ns -= 40000000;
	failed[2].bytes = 56;
	hand.model.failed = failed;
	hand.model.failed_count = ARRAY_LEN(failed);
	decide(&verdict);
	assert_string_equal(verdict_cause_name(verdict.cause), "request-refused");
	assert_string_equal(found_text(&verdict),
	                    "ending 1.0 MiB at train.py:41 epoch; address-limit; peak 290 MiB; peak-line 290 MiB of "
	                    "290 MiB at train.py:41 epoch");
	assert_advised(&verdict, "hold-less-before");

	failed[2].bytes = 200 * MIB;
	decide(&verdict);
	assert_found(&verdict, "ending 200 MiB at train.py:41 epoch");
	assert_advised(&verdict, "ask-for-less-or-raise-limit");
}

TEST(nobody_is_told_to_record_what_was_recorded)
{
	hand_model_site(&hand, HEAP, 41, MIB);
	hand.identity.is_first = 0;
	hand.identity.parent_pid = 4000;
	decide(&verdict);
	assert_string_equal(verdict_cause_name(verdict.cause), "gone");
	assert_advised(&verdict, "ask-parent");

	hand.identity.is_first = 1; // of a launcher that died: the session is older than the program
	decide(&verdict);
	assert_advised(&verdict, "see-system-log");
	assert_non_null(strstr(verdict.next, "journalctl -k"));

	(void)snprintf(hand.identity.session, sizeof(hand.identity.session), "%lx.4242",
	               (unsigned long)(hand.identity.start_realtime_ns / 1000));
	decide(&verdict);
	assert_advised(&verdict, "record-with-run");
}

TEST(a_refused_request_is_fatal_only_when_the_program_ended_with_it)
{
	static const struct {
		void (*make)(void);
		uint64_t before_end_ns;
		bool had_success_after;
		const char *wanted;
	} requests[] = {
		{ alive, 0, false, "pending" },
		{ alive, 0, true, "recovered" },
		{ exit_0, 0, false, "recovered" },
		{ killed, UINT64_C(30000000000), true, "recovered" },
		{ exit_1, 100000000, true, "fatal" },
		{ exit_1, UINT64_C(30000000000), true, "recovered" },
		{ exit_1, UINT64_C(30000000000), false, "fatal" },
		{ nothing, 0, false, "fatal" },
		{ nothing, 0, true, "recovered" },
	};

	EACH_CASE(i, requests)
	{
		hand_model_site(&hand, HEAP, 41, MIB);
		requests[i].make();
		refused(GIB, HEAP, requests[i].before_end_ns, requests[i].had_success_after);
		assert_string_equal(refusal_state_name(refusal_state(&hand.model, &this_boot, &hand.failed)),
		                    requests[i].wanted);
	}
}

static void
write_file(const char *folder, const char *name, const char *text)
{
	char path[256];
	FILE *stream;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	stream = fopen(path, "w");
	assert_non_null(stream);
	assert_true(fputs(text, stream) >= 0);
	assert_int_equal(fclose(stream), 0);
}

/* Of a container, /own in it is the program's own. */
TEST(room_is_told_where_all_of_a_container_are_killed_together)
{
	static const char *const names[] = {
		"own/memory.oom.group",  "memory.oom.group",      "memory.max", "memory.current", "memory.stat",
		"memory.limit_in_bytes", "memory.usage_in_bytes", "own"
	};
	char folder[] = "/tmp/kmem-counters-XXXXXX";
	char path[256];

	assert_non_null(mkdtemp(folder));
	(void)snprintf(hand.identity.cgroup_path, sizeof(hand.identity.cgroup_path), "%s/own", folder);
	strcpy(hand.identity.limit_path, folder);
	assert_int_equal(mkdir(hand.identity.cgroup_path, 0700), 0);
	write_file(folder, "own/memory.oom.group", "0\n");
	write_file(folder, "memory.oom.group", "0\n");
	write_file(folder, "memory.max", "1000000\n");
	write_file(folder, "memory.current", "900000\n");
	write_file(folder, "memory.stat", "anon 400000\ninactive_file 300000\nactive_file 50000\n");
	assert_true(kill_counters_room_of_all(&hand.identity, 64 * MIB - 1) == UINT64_MAX);
	assert_int_equal(kill_counters_room_of_all(&hand.identity, 64 * MIB),
	                 450000); // of files: it looks larger than we do

	write_file(folder, "memory.oom.group", "1\n"); // of the container, as Kubernetes sets it
	assert_int_equal(kill_counters_room_of_all(&hand.identity, 0), 450000);
	write_file(folder, "memory.oom.group", "0\n");
	write_file(folder, "own/memory.oom.group", "1\n");
	assert_int_equal(kill_counters_room_of_all(&hand.identity, 0), 450000);
	write_file(folder, "memory.current", "1400000\n");
	assert_int_equal(kill_counters_room_of_all(&hand.identity, 0), 0);
	write_file(folder, "memory.max", "max\n");
	assert_true(kill_counters_room_of_all(&hand.identity, 0) == UINT64_MAX);

	hand.identity.cgroup_version = 1;
	write_file(folder, "memory.limit_in_bytes", "1000000\n");
	write_file(folder, "memory.usage_in_bytes", "800000\n");
	write_file(folder, "memory.stat", "inactive_file 9\ntotal_inactive_file 60000\ntotal_active_file 5000\n");
	assert_true(kill_counters_room_of_all(&hand.identity, 0) == UINT64_MAX);
	assert_int_equal(kill_counters_room_of_all(&hand.identity, 64 * MIB), 265000);
	hand.identity.cgroup_version = 0;
	assert_true(kill_counters_room_of_all(&hand.identity, 64 * MIB) == UINT64_MAX);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		assert_int_equal(remove(path), 0);
	}
	assert_int_equal(rmdir(folder), 0);
}

TEST(counters_are_read_from_the_files_of_either_version)
{
	char folder[] = "/tmp/kmem-counters-XXXXXX";
	struct kmem_kill_counters counters;

	assert_non_null(mkdtemp(folder));
	strcpy(hand.identity.cgroup_path, folder);
	write_file(folder, "memory.events", "low 0\nhigh 0\nmax 211514\noom 3\noom_kill 2\noom_group_kill 0\n");
	write_file(folder, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n");
	write_file(folder, "memory.failcnt", "109201\n");

	kill_counters_read(&hand.identity, &counters);
	assert_int_equal(counters.cgroup_oom_kill, 2);
	assert_int_equal(counters.cgroup_oom, 3);
	assert_int_equal(counters.cgroup_max_hits, 211514);

	hand.identity.cgroup_version = 1;
	kill_counters_read(&hand.identity, &counters);
	assert_int_equal(counters.cgroup_oom_kill, 7);
	assert_int_equal(counters.cgroup_max_hits, 109201);

	strcpy(hand.identity.cgroup_path, "/nonexistent");
	kill_counters_read(&hand.identity, &counters);
	assert_true(counters.cgroup_oom_kill == UINT64_MAX);
	for (size_t i = 0; i < 3; i++) {
		static const char *const names[] = { "memory.events", "memory.oom_control", "memory.failcnt" };
		char path[256];

		(void)snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		assert_int_equal(unlink(path), 0);
	}
	assert_int_equal(rmdir(folder), 0);
}

/* A tenth that is free is as good as none. */
TEST(swap_is_told_where_it_is_full)
{
	for (unsigned i = 0; i < 2; i++) {
		hand_model_make(&hand);
		hand_model_site(&hand, HEAP, 41, 9 * GIB);
		hand.heartbeat.available_bytes = 90 * MIB;
		hand.identity.swap_bytes = 8 * GIB;
		hand.heartbeat.swap_free_bytes = 8 * GIB / 10 + i;
		hand_model_waited(&hand, SIGKILL);
		hand.launcher.after = (struct kmem_kill_counters){ 1, 0, 0, 1 };
		hand_model_decide(&hand, &verdict);
		assert_cause(&verdict, "machine-memory");
		assert_int_equal(strstr(verdict.text, "of swap was in use too: such a machine is very slow.") != NULL, i == 0);
	}
}

RUN_TESTS(verdict_case_begin, NULL)
