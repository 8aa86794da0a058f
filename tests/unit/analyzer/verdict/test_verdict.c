/*
 * test_verdict.c - is each death told by its evidence, and is nothing claimed beyond it?
 */
#include "hand_model.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "capture/kill_counters.h"
#include "analysis/failed_requests.h"
#include "verdict/verdict.h"

#define EXITED(status) ((status) << 8)
#define SIGNALED(number) (number)

static struct hand_model hand;
static struct kmem_kill_counters counters_now;

static void
read_counters(const struct kmem_identity *identity, struct kmem_kill_counters *counters)
{
	(void)identity;
	*counters = counters_now;
}

static const struct verdict_now this_boot = { "this-boot", read_counters };

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

/* Row: made by, cause, confidence, a part of the text, what must not be in it. */
static const struct {
	void (*make)(void);
	const char *cause;
	const char *confidence;
	const char *says;
	const char *never;
} cases[] = {
	{ alive, "running", "certain", "is still running", "died" },
	{ exit_0, "exited", "certain", "exited normally", "killed" },
	{ clean, "exited", "certain", "exited normally", "killed" },
	{ replaced, "exec-replaced", "certain", "replaced by another program", "killed" },
	{ other_boot, "not-closed", "unknown", "how it ended is not known", "killed" },
	{ container_killed, "container-limit", "certain",
	  "memory limit of 512 MiB was reached (certain: the cgroup's oom_kill "
	  "counter rose from 0 to 1)",
	  "likely" },
	{ version_1, "container-limit", "certain", "was killed by the kernel", "likely" },
	{ version_1_uncounted, "container-limit", "certain", "was killed by the kernel", "machine ran out" },
	{ version_1_burst, "container-limit", "certain", "was killed by the kernel", "machine ran out" },
	{ version_1_machine, "machine-memory", "certain", "because the machine ran out of memory", "was reached" },
	{ near_unknown, "container-limit", "likely", "(likely)", "certain" },
	{ near_known, "signal", "certain", "the kernel counted no kill", "limit of" },
	{ machine_killed, "machine-memory", "certain", "because the machine ran out of memory", "container" },
	{ machine_counted, "machine-memory", "likely", "the kernel killed 3 processes on this machine", "container" },
	{ others_killed, "signal", "certain", "the kernel counted no kill", "ran out" },
	{ killed, "signal", "certain", "signal 9 (SIGKILL)", "because" },
	{ killed_low, "low-memory-daemon", "possible", "may have sent it", "certain" },
	{ terminated, "signal", "certain", "signal 15 (SIGTERM)", "killed for" },
	{ segv, "crashed", "certain", "was not killed for memory. Nothing here points at memory", "limit was" },
	{ aborted, "crashed", "certain", "signal 6 (SIGABRT)", "refused" },
	{ refused_abort, "request-refused", "likely", "a request for 64.0 GiB in heap at train.py:41 epoch was refused",
	  "crash" },
	{ rlimit, "request-refused", "likely", "address space is limited to 6.0 GiB (ulimit -v)", "machine ran" },
	{ refused_long_ago, "failed", "certain", "exited with status 1", "refused at" },
	{ refused_device, "device-memory", "likely", "refused by the driver", "ulimit" },
	{ shm_full, "shm-full", "likely", "/dev/shm (64.0 MiB) is full", "certain" },
	{ exit_1, "failed", "certain", "exited with status 1", "killed" },
	{ exit_137, "failed", "certain", "exited with status 137", "out of memory" },
	{ nothing, "gone", "likely", "nobody waited for it", "limit was reached" },
	{ gone_late, "container-limit", "likely", "read after the fact", "certain" },
	{ gone_near, "container-limit", "likely", "(likely)", "counter rose" },
};

static void
each_death_has_its_verdict(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct verdict verdict;
		bool is_right;

		hand_model_make(&hand);
		memset(&counters_now, 0, sizeof(counters_now));
		hand_model_site(&hand, HEAP, 41, 400 * MIB);
		hand_model_site(&hand, HEAP, 50, 100 * MIB);
		cases[i].make();
		rank_leaks_classify(&hand.model);
		verdict_decide((struct judged_model){ &hand.model }, &this_boot, &verdict);
		is_right = strcmp(verdict_cause_name(verdict.cause), cases[i].cause) == 0 &&
		           strcmp(verdict_confidence_name(verdict.confidence), cases[i].confidence) == 0 &&
		           strstr(verdict.text, cases[i].says) != NULL && strstr(verdict.text, cases[i].never) == NULL &&
		           strstr(verdict.text, "OOM") == NULL && verdict.next[0] != '\0';
		if (!is_right)
			print_error("case %zu: wanted %s (%s) saying \"%s\", got %s (%s): %s\n", i, cases[i].cause,
			            cases[i].confidence, cases[i].says, verdict_cause_name(verdict.cause),
			            verdict_confidence_name(verdict.confidence), verdict.text);
		assert_true(is_right);
	}
}

static void
who_held_most_is_named_with_share_and_growth(void **state)
{
	struct verdict verdict;

	(void)state;
	hand_model_make(&hand);
	hand_model_generations(hand_model_site(&hand, HEAP, 41, 400 * MIB), 12, 12, 3, 3);
	hand_model_site(&hand, HEAP, 50, 100 * MIB);
	hand_model_site(&hand, HEAP, 1, 900 * MIB)->stack_flags = KMEM_STACK_IMPORT_CUT;
	hand_model_site(&hand, RESERVED, 60, 90 * GIB);
	container_killed();
	rank_leaks_classify(&hand.model);
	verdict_decide((struct judged_model){ &hand.model }, &this_boot, &verdict);
	assert_non_null(strstr(verdict.text,
	                       "When it died 1.4 GiB was live. 400 MiB of it (29 %) was allocated at "
	                       "train.py:41 epoch. It accumulates: blocks from 12 of 12 generations are still alive. "
	                       "Another 900 MiB (64 %) was left by imports."));
	assert_non_null(strstr(verdict.next, "look for what keeps the blocks of train.py:41 epoch alive"));
}

/* Too few generations for the name of a leak: said as that, and only where none of them was released. */
static void
what_is_too_short_to_judge_says_so(void **state)
{
	static const struct {
		unsigned alive, total;
		bool is_said;
	} cases[] = {
		{ 2, 2, false }, { 3, 3, true }, { 5, 5, true }, { 4, 5, false }, { 6, 6, false },
	};
	struct verdict verdict;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		hand_model_make(&hand);
		hand_model_generations(hand_model_site(&hand, HEAP, 41, 400 * MIB), cases[i].alive, cases[i].total, 1, 1);
		container_killed();
		rank_leaks_classify(&hand.model);
		verdict_decide((struct judged_model){ &hand.model }, &this_boot, &verdict);
		assert_int_equal(strstr(verdict.text, "It may accumulate: none of its") != NULL, cases[i].is_said);
	}
}

/* Nobody knows what in the arenas is the user's: they are named where they hold most of the memory, or nothing else does. */
static void
arenas_are_named_where_no_line_tells_more(void **state)
{
	static const struct {
		uint64_t of_line, of_imports;
		bool is_arena;
	} cases[] = {
		{ 60, 300, false },
		{ 60, 0, true },
		{ 20, 300, true },
	};
	struct verdict verdict;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		hand_model_make(&hand);
		hand_model_domain(&hand.domains[MMAP], "python/arena");
		hand_model_generations(hand_model_site(&hand, MMAP, 60, 100 * MIB), 12, 12, 3, 3);
		hand_model_site(&hand, HEAP, 41, cases[i].of_line * MIB);
		hand_model_site(&hand, HEAP, 1, cases[i].of_imports * MIB)->stack_flags = KMEM_STACK_IMPORT_CUT;
		container_killed();
		rank_leaks_classify(&hand.model);
		verdict_decide((struct judged_model){ &hand.model }, &this_boot, &verdict);
		assert_true((strstr(verdict.text, "was in train.py:60 epoch") != NULL) == cases[i].is_arena);
		assert_true((strstr(verdict.text, "allocated at train.py:41 epoch") == NULL ||
		             strstr(verdict.text, " Another ") != NULL) == cases[i].is_arena);
		assert_true((strstr(verdict.next, "--python-objects") != NULL) == cases[i].is_arena);
	}
}

/* The launcher waited for a shell; the program that the shell started was killed. */
static void
a_descendant_that_is_gone_explains_a_failing_parent(void **state)
{
	struct model_process processes[2];
	struct kmem_identity child;
	struct verdict verdict;

	(void)state;
	hand_model_make(&hand);
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
	verdict_decide((struct judged_model){ &hand.model }, &this_boot, &verdict);
	assert_string_equal(verdict_cause_name(verdict.cause), "container-limit");
	assert_string_equal(verdict_confidence_name(verdict.confidence), "likely");
	assert_non_null(strstr(verdict.text, "A child process, train.py (pid 4243), "));

	processes[0].launcher = NULL; // and when the parent is well, a child's end is no verdict on the program
	processes[0].exit_code = 0;
	verdict_decide((struct judged_model){ &hand.model }, &this_boot, &verdict);
	assert_string_equal(verdict_cause_name(verdict.cause), "exited");
	assert_non_null(
		strstr(verdict.text, "One child process was ended by a signal or crashed: train.py (pid 4243). It held"));
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
	verdict_decide((struct judged_model){ &hand.model }, &this_boot, verdict);
}

static void
processes_that_did_not_coexist_are_never_summed(void **state)
{
	struct verdict verdict;

	(void)state;
	hand_model_generations(make_family(192 * MIB), 12, 12, 3, 3);
	for (unsigned i = 0; i < FAMILY; i++) {
		family[i].state = KMEM_STATE_CLEAN_EXIT;
		family[i].exit_code = 0;
	}
	waited(0, EXITED(0));
	decide(&verdict);
	assert_non_null(strstr(verdict.text, "train.py (pid 4246) had the highest peak: 192 MiB of heap"));
	assert_non_null(strstr(
		verdict.text, "Summed over all its processes, 960 MiB of the 960 MiB of heap that they held at their ends was "
					  "allocated at train.py:41 epoch, in 5 of them."));
	assert_non_null(strstr(verdict.text, "At the end 192 MiB was live in train.py (pid 4242)"));
	assert_null(strstr(verdict.text, "960 MiB was live"));
	assert_null(strstr(verdict.text, "was 960 MiB"));

	/* Killed: what ended before, or was last seen long before, is left out. */
	make_family(192 * MIB);
	for (unsigned i = 1; i < 3; i++)
		family[i].state = KMEM_STATE_CLEAN_EXIT;
	waited(0, SIGNALED(SIGKILL));
	decide(&verdict);
	assert_non_null(strstr(verdict.text, "When it died 192 MiB was live in train.py (pid 4242)"));

	/* And those at work in its last second count. */
	family_beat[3].monotonic_ns = family_beat[4].monotonic_ns = family_identity[0].start_monotonic_ns +
	                                                            UINT64_C(59500000000);
	decide(&verdict);
	assert_non_null(strstr(verdict.text,
	                       "When it died 576 MiB was live in the 3 processes that were at work then, 192 MiB "
	                       "of it in train.py (pid 4246)"));
}

static void
children_that_a_pool_ended_are_a_note(void **state)
{
	struct verdict verdict;

	(void)state;
	make_family(4 * MIB);
	family[3].live_bytes = 9 * MIB;
	family[3].peak_bytes = family[3].inherited_bytes = 20 * MIB;
	waited(0, EXITED(0));
	decide(&verdict);
	assert_string_equal(verdict_cause_name(verdict.cause), "exited");
	assert_non_null(strstr(
		verdict.text,
		"4 child processes were ended by a signal or crashed, and held 21.0 MiB in sum. The largest, "
		"train.py (pid 4245), held 9.0 MiB (20.0 MiB at its peak). It is not known how much it copied of its parent's 20.0 MiB. "));

	/* The parent failed by itself and held more than any of them: still a note. */
	family[0].peak_bytes = 50 * MIB;
	waited(0, EXITED(3));
	decide(&verdict);
	assert_string_equal(verdict_cause_name(verdict.cause), "failed");
	assert_int_equal(verdict.process->identity->pid, 4242);
	assert_non_null(strstr(verdict.text, "4 child processes"));

	/* One of them held most: it may be the story. */
	family[3].live_bytes = 900 * MIB;
	decide(&verdict);
	assert_int_equal(verdict.process->identity->pid, 4245);
}

static void
a_leak_is_named_when_a_signal_ended_the_program(void **state)
{
	static const struct {
		void (*make)(void);
		const char *cause;
	} deaths[] = { { killed, "signal" }, { aborted, "crashed" }, { segv, "crashed" }, { nothing, "gone" } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(deaths); i++) {
		struct verdict verdict;

		hand_model_make(&hand);
		hand_model_generations(hand_model_site(&hand, HEAP, 41, 400 * MIB), 12, 12, 3, 3);
		deaths[i].make();
		decide(&verdict);
		assert_string_equal(verdict_cause_name(verdict.cause), deaths[i].cause);
		assert_null(strstr(verdict.text, "Nothing here points at memory"));
		assert_non_null(
			strstr(verdict.text, "400 MiB of it (100 %) was allocated at train.py:41 epoch. It accumulates"));
		assert_non_null(strstr(verdict.next, "the blocks of train.py:41 epoch alive"));
	}
}

/* What unwinding released was held when the request was refused; the error path asks for little. */
static void
a_refusal_is_judged_by_what_was_held_then(void **state)
{
	struct model_failed failed[3];
	struct verdict verdict;

	(void)state;
	hand_model_make(&hand);
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
	assert_non_null(strstr(verdict.text, "a request for 1.0 MiB in mmap at train.py:41 epoch was refused"));
	assert_non_null(
		strstr(verdict.text, "The peak of its mmap was 290 MiB. 290 MiB of it (100 %) was allocated at train.py:41"));
	assert_null(strstr(verdict.text, "5.0 MiB was live"));
	assert_string_equal(verdict.next,
	                    "hold less before that (most at train.py:41 epoch), or raise what limits it (ulimit -v)");

	failed[2].bytes = 200 * MIB;
	decide(&verdict);
	assert_non_null(strstr(verdict.next, "ask for less at once there"));
}

static void
nobody_is_told_to_record_what_was_recorded(void **state)
{
	struct verdict verdict;

	(void)state;
	hand_model_make(&hand);
	hand_model_site(&hand, HEAP, 41, MIB);
	hand.identity.is_first = 0;
	hand.identity.parent_pid = 4000;
	decide(&verdict);
	assert_string_equal(verdict_cause_name(verdict.cause), "gone");
	assert_non_null(strstr(verdict.next, "report of its parent (pid 4000)"));

	hand.identity.is_first = 1; // of a launcher that died: the session is older than the program
	decide(&verdict);
	assert_null(strstr(verdict.next, "kmemshim run"));

	(void)snprintf(hand.identity.session, sizeof(hand.identity.session), "%lx.4242",
	               (unsigned long)(hand.identity.start_realtime_ns / 1000));
	decide(&verdict);
	assert_non_null(strstr(verdict.next, "kmemshim run"));
}

static void
a_refused_request_is_fatal_only_when_the_program_ended_with_it(void **state)
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

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
		hand_model_make(&hand);
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

static void
counters_are_read_from_the_files_of_either_version(void **state)
{
	char folder[] = "/tmp/kmem-counters-XXXXXX";
	struct kmem_kill_counters counters;

	(void)state;
	hand_model_make(&hand);
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_death_has_its_verdict),
		cmocka_unit_test(who_held_most_is_named_with_share_and_growth),
		cmocka_unit_test(what_is_too_short_to_judge_says_so),
		cmocka_unit_test(arenas_are_named_where_no_line_tells_more),
		cmocka_unit_test(a_descendant_that_is_gone_explains_a_failing_parent),
		cmocka_unit_test(processes_that_did_not_coexist_are_never_summed),
		cmocka_unit_test(children_that_a_pool_ended_are_a_note),
		cmocka_unit_test(a_leak_is_named_when_a_signal_ended_the_program),
		cmocka_unit_test(a_refusal_is_judged_by_what_was_held_then),
		cmocka_unit_test(nobody_is_told_to_record_what_was_recorded),
		cmocka_unit_test(a_refused_request_is_fatal_only_when_the_program_ended_with_it),
		cmocka_unit_test(counters_are_read_from_the_files_of_either_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
