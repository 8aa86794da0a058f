/*
 * test_verdict.c - is each death told by its evidence, and is nothing claimed beyond it?
 */
#include "verdict_case.h"

#include <sys/stat.h>
#include <unistd.h>

#include "capture/kill_counters.h"
#include "analysis/refused_requests.h"
#include "base/memory.h"

/* Of two lines, and of counters that are read after the fact. */
#define NO_KILL "now cgroup_oom_kill=0 cgroup_oom=0 cgroup_max_hits=0 machine_oom_kill=0; "
#define LINES NO_KILL "heap:41 400M; "
#define LIMITED "limit cgroup 512M; heartbeat cgroup_bytes=300M; "
#define CONTAINER_KILLED \
	"killed; " LIMITED "after cgroup_oom_kill=1 cgroup_oom=1 cgroup_max_hits=900 machine_oom_kill=1; "
#define LOW "heartbeat available_bytes=100M; "
#define NEAR LIMITED "heartbeat cgroup_bytes=505M; "
#define UNKNOWN "cgroup_oom_kill=max cgroup_oom=max cgroup_max_hits=max machine_oom_kill=max; "
#define VERSION_1 CONTAINER_KILLED "identity cgroup_version=1; after cgroup_oom=0 cgroup_max_hits=7; "
/* Recent kernels leave version 1's memory.failcnt at 0: what was charged and what the machine had left decide. */
#define UNCOUNTED VERSION_1 "heartbeat cgroup_bytes=480M; after cgroup_max_hits=0; "
/* So long before the end of a minute. */
#define REFUSED(bytes, before) "refuse " bytes " monotonic_ns=65s-" before " "
#define AT_LINE "400 MiB of 500 MiB at train.py:41 epoch"

TEST(each_death_has_its_verdict)
{
	/* What the findings begin with; of an ending with several sentences which one it is. */
	static const struct {
		const char *scene, *cause, *confidence, *found, *advised, *says;
	} cases[] = {
		{ "alive", "running", "certain", "^ending; live 500 MiB; line " AT_LINE "; usage", "watch-growth", "" },
		{ "exit 0", "exited", "certain", "^ending; peak 500 MiB; peak-line " AT_LINE, "nothing", "" },
		{ "closed 0", "exited", "certain", "^ending; peak 500 MiB; peak-line " AT_LINE, "nothing", "" },
		{ CONTAINER_KILLED, "container-limit", "certain", "^ending; live 500 MiB; line " AT_LINE, "hold-less",
		  "limit of 512 MiB was reached" },
		{ VERSION_1, "container-limit", "certain", "^ending; live", "hold-less", "" },
		{ UNCOUNTED, "container-limit", "certain", "^ending; live", "hold-less", "" },
		// it filled the container between two looks
		{ UNCOUNTED "heartbeat cgroup_bytes=22M", "container-limit", "certain", "^ending; live", "hold-less", "" },
		{ UNCOUNTED LOW, "machine-memory", "certain", "^ending; usage 480 MiB of 512 MiB; live", "hold-less", "" },
		{ "killed; " NEAR "after " UNKNOWN, "container-limit", "likely", "^ending; usage 505 MiB of 512 MiB; live",
		  "hold-less", "" },
		{ "killed; " NEAR, "signal", "certain", "^ending; live", "find-sender", "the kernel counted no kill" },
		// a full machine counts in the victim's cgroup as well, but the limit was not hit
		{ "killed; " LOW "after cgroup_oom_kill=1 machine_oom_kill=1", "machine-memory", "certain",
		  "^ending; usage 15.9 GiB of 16.0 GiB; live", "hold-less", "because the machine ran out of memory" },
		{ "killed; " LOW "before cgroup_oom_kill=max; after " UNKNOWN "after machine_oom_kill=3", "machine-memory",
		  "likely", "^ending; usage 15.9 GiB of 16.0 GiB; live", "hold-less",
		  "the kernel killed 3 processes on this machine" },
		{ "killed; after machine_oom_kill=2", "signal", "certain", "^ending; far-from-limits; live", "find-sender",
		  "" },
		{ "killed", "signal", "certain", "^ending; far-from-limits; live", "find-sender", "" },
		{ "killed; " LOW, "low-memory-daemon", "possible", "^ending; usage 15.9 GiB of 16.0 GiB; live", "hold-less",
		  "was almost out of memory" },
		{ "signal 15", "signal", "certain", "^ending; far-from-limits; live", "find-sender", "" },
		{ "signal 11", "crashed", "certain", "^ending; far-from-limits; usage", "show-python-crash", "" },
		{ "signal 6", "aborted", "certain", "^ending; far-from-limits; usage", "show-python-crash", "" },
		{ "signal 6; " REFUSED("64G", "40ms"), "request-refused", "likely",
		  "^ending 64.0 GiB at train.py:41 epoch; address-limit; little-held 500 MiB", "ask-for-less",
		  "nothing shows that it went on after that" },
		// the error's own message allocated
		{ "exit 1; " REFUSED("256M", "40ms") "had_success_after=1; limit as 6G", "request-refused", "likely",
		  "^ending 256 MiB at train.py:41 epoch; address-limit; live", "ask-for-less-or-raise-limit", "" },
		{ "exit 1; " REFUSED("256M", "30s") "had_success_after=1", "failed", "certain",
		  "^ending; peak 500 MiB; peak-line " AT_LINE "; usage", "read-error", "" },
		{ "exit 1; " REFUSED("2G", "40ms") "of=cuda0", "device-memory", "likely",
		  "^ending 2.00 GiB at train.py:41 epoch; device-held", "see-other-users", "" },
		{ "signal 7; identity shm_bytes=64M; name mmap shared; domain mmap live_bytes=61M", "shm-full", "likely",
		  "^ending; live 561 MiB; line", "enlarge-shm", "" },
		{ "exit 1", "failed", "certain", "^ending; peak 500 MiB; peak-line " AT_LINE "; usage", "read-error", "" },
		{ "exit 137", "failed", "certain", "^ending; shell-status; peak", "read-error", "" },
		{ "exit 143", "failed", "certain", "^ending; shell-status; peak", "find-sender",
		  "Such a status says that signal 15 (SIGTERM) ended the program, which handled it" },
		{ "", "gone", "likely", "^ending; no-kill; live", "see-system-log",
		  "or it called the kernel's exit_group itself" },
		{ LIMITED "now cgroup_oom_kill=1 cgroup_oom=1 cgroup_max_hits=5 machine_oom_kill=1", "container-limit",
		  "likely", "^ending; live", "hold-less", "read after the fact" },
		{ NEAR "now " UNKNOWN, "container-limit", "likely", "^ending; usage 505 MiB of 512 MiB; live", "hold-less",
		  "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		told(cases[i].found, cases[i].advised, LINES "heap:50 100M; %s", cases[i].scene);
		assert_cause(&verdict, cases[i].cause);
		assert_string_equal(verdict_confidence_name(verdict.confidence), cases[i].confidence);
		said(cases[i].says);
		said("!OOM");
		assert_true(verdict.next[0] != '\0');
	}

	scene(LINES "heap:50 100M");
	hand.process.state = KMEM_STATE_EXEC_REPLACED;
	decided("^ending; peak 500 MiB; peak-line " AT_LINE, "look-at-next-program");
	assert_cause(&verdict, "exec-replaced");
	hand.process.state = KMEM_STATE_RUNNING;
	strcpy(hand.identity.boot_id, "another");
	decided("^ending; live 500 MiB", "read-where-recorded");
	assert_cause(&verdict, "not-closed");
	assert_string_equal(verdict_confidence_name(verdict.confidence), "unknown");
}

/* The kernel killed others on the machine: far from its own limit, and with less live than that, it was not one of them. */
TEST(kills_on_the_machine_are_no_cause_far_from_its_own_limit)
{
	static const char *const cases[][3] = { { "409M", "100M", "gone" },
		                                    { "410M", "100M", "machine-memory" },
		                                    { "100M", "409M", "gone" },
		                                    { "100M", "410M", "machine-memory" } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		told(NULL, NULL,
		     "heap:41 %s; limit cgroup 512M; heartbeat cgroup_bytes=%s limit_bytes=512M; before machine_oom_kill=0; "
		     "now " UNKNOWN "now machine_oom_kill=3",
		     cases[i][0], cases[i][1]);
		assert_cause(&verdict, cases[i][2]);
	}
}

TEST(who_held_most_is_named_with_share_and_growth)
{
	told(
		"live 1.37 GiB; line 400 MiB of 1.37 GiB at train.py:41 epoch; accumulates 400 MiB of 400 MiB at "
		"train.py:41 epoch, likely; imports 900 MiB of 1.37 GiB; not-looked at train.py:41 epoch; more-live-than-limit",
		"release-blocks", "heap:41 400M leak; heap:50 100M; heap:1 900M import; reserved:60 90G; " CONTAINER_KILLED);
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

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		told(cases[i].is_said ? "may-accumulate 400 MiB at train.py:41 epoch, possible" : "!may-accumulate",
		     cases[i].advised, "heap:41 400M gens=%u/%u/1/1 live_count=%u allocated_count=%u; " CONTAINER_KILLED,
		     cases[i].alive, cases[i].total, cases[i].live, cases[i].allocated);
}

/* Nobody knows what in the arenas is the user's: they are named where they hold most of the memory, or nothing else does. */
TEST(arenas_are_named_where_no_line_tells_more)
{
#define ARENAS "name mmap python/arena; mmap:60 100M leak; heap:41 %uM; heap:1 %uM import; " CONTAINER_KILLED
	told("; imports 300 MiB of 460 MiB; line 60.0 MiB of 460 MiB at train.py:41 epoch", "import-less", ARENAS, 60, 300);
	told("; line 100 MiB of 160 MiB at train.py:60 epoch; accumulates", "record-python-objects", ARENAS, 60, 0);
	told("; line 100 MiB of 420 MiB at train.py:60 epoch; accumulates", "record-python-objects", ARENAS, 20, 300);
}

/* The launcher waited for a shell, which held so many KiB itself; it started so many programs, of which each held 16 MiB. */
TEST(the_one_program_of_a_script_is_the_story)
{
#define SCRIPT "heap:41 16M process=1; exit 0; parent peak_bytes=%uK; child name=leak.py peak_bytes=16M"
	told(NULL, NULL, SCRIPT, 1023);
	said("^A child process, leak.py (pid 4243), exited normally");
	told(NULL, NULL, SCRIPT, 1024);
	said("!A child process");
	told(NULL, NULL, SCRIPT "; child name=leak.py parent=-1 peak_bytes=16M", 0);
	said("!A child process");
}

TEST(a_descendant_that_is_gone_explains_a_failing_parent)
{
	told(NULL, NULL,
	     LINES LIMITED "exit 137; after cgroup_oom_kill=1 cgroup_oom=1 cgroup_max_hits=5 machine_oom_kill=1; "
	                   "parent name=sh; child state=0 parent=-1");
	assert_cause(&verdict, "container-limit");
	assert_string_equal(verdict_confidence_name(verdict.confidence), "likely");
	assert_int_equal(verdict.process->identity->pid, 4243);

	/* And when the parent is well, a child's end is no verdict on the program. */
	scene_add(&hand, "parent launcher=0 exit_code=0");
	decided("lost-children", NULL);
	assert_cause(&verdict, "exited");
	assert_int_equal(verdict.lost_child->identity->pid, 4243);
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
	hand_model_make(&hand);
	struct model_site *site = hand_model_site(&hand, HEAP, 41, bytes * FAMILY);
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

TEST(processes_that_did_not_coexist_are_never_summed)
{
	hand_model_generations(make_family(192 * MIB), 12, 12, 3, 3);
	for (unsigned i = 0; i < FAMILY; i++) {
		family[i].state = KMEM_STATE_CLEAN_EXIT;
		family[i].exit_code = 0;
	}
	waited(0, 0);
	decided(NULL, NULL);
	assert_found(
		&verdict,
		"peak 192 MiB; live 192 MiB; line-of-all-processes 960 MiB of 960 MiB at train.py:41 epoch; accumulates");
	assert_non_null(strstr(verdict.text, "train.py (pid 4246) had the highest peak"));

	/* Of one process it is said. */
	assert_non_null(strstr(verdict.text, "allocated at train.py:41 epoch, in 5 of them."));
	hand.sites[0].most_live_bytes = 950 * MIB;
	decided(NULL, NULL);
	assert_non_null(strstr(verdict.text, "allocated at train.py:41 epoch, nearly all of it in train.py (pid 42"));

	/* Killed: what ended before, or was last seen long before, is left out. */
	make_family(192 * MIB);
	for (unsigned i = 1; i < 3; i++)
		family[i].state = KMEM_STATE_CLEAN_EXIT;
	waited(0, SIGKILL);
	decided(NULL, NULL);
	assert_found(&verdict, "live 192 MiB; line-of-all-processes 960 MiB of 960 MiB at train.py:41 epoch");

	/* And those at work in its last second count. */
	family_beat[3].monotonic_ns = family_beat[4].monotonic_ns = family_identity[0].start_monotonic_ns +
	                                                            UINT64_C(59500000000);
	decided(NULL, NULL);
	assert_found(&verdict, "live 576 MiB; line-of-all-processes 960 MiB of 960 MiB at train.py:41 epoch");
	assert_non_null(strstr(verdict.text, "192 MiB of what was live was in train.py (pid 4246)"));
}

TEST(children_that_a_pool_ended_are_a_note)
{
	make_family(4 * MIB);
	family[3].live_bytes = 9 * MIB;
	family[3].peak_bytes = family[3].inherited_bytes = 20 * MIB;
	waited(0, 0);
	decided(NULL, NULL);
	assert_string_equal(verdict_cause_name(verdict.cause), "exited");
	assert_found(&verdict, "lost-children 21.0 MiB");
	assert_int_equal(verdict.lost_child->identity->pid, 4245);
	assert_non_null(
		strstr(verdict.text,
	           "held 9.0 MiB (20.0 MiB at its peak). It is not known how much it copied of its parent's 20.0 MiB. "));

	/* The parent failed by itself and held more than any of them: still a note. */
	family[0].peak_bytes = 50 * MIB;
	waited(0, 3 << 8);
	decided(NULL, NULL);
	assert_string_equal(verdict_cause_name(verdict.cause), "failed");
	assert_int_equal(verdict.process->identity->pid, 4242);
	assert_found(&verdict, "lost-children 21.0 MiB");

	/* One of them held most: it may be the story. */
	family[3].live_bytes = 900 * MIB;
	decided(NULL, NULL);
	assert_int_equal(verdict.process->identity->pid, 4245);
}

TEST(a_leak_is_named_when_a_signal_ended_the_program)
{
	static const char *const deaths[][3] = { { "killed", "signal", "find-sender, release-blocks" },
		                                     { "signal 6", "aborted", "show-python-crash, release-blocks" },
		                                     { "signal 11", "crashed", "show-python-crash, release-blocks" },
		                                     { "", "gone", "see-system-log, release-blocks" } };

	for (size_t i = 0; i < ARRAY_LEN(deaths); i++) {
		told("; live 400 MiB; line 400 MiB of 400 MiB at train.py:41 epoch; accumulates 400 MiB", deaths[i][2],
		     NO_KILL "heap:41 400M leak; %s", deaths[i][0]);
		assert_cause(&verdict, deaths[i][1]);
	}
}

/* What unwinding released was held when the request was refused; the error path asks for little. */
TEST(a_refusal_is_judged_by_what_was_held_then)
{
	struct model_failed failed[3];

	scene(NO_KILL "mmap:41 290M live_bytes=0; domain mmap live_bytes=0; heap:50 5M; exit 1; limit as 6G; " REFUSED(
		"256M", "40ms") "had_success_after=1");
	for (size_t i = 0; i < ARRAY_LEN(failed); i++)
		failed[i] = hand.failed;
	failed[0].bytes = failed[1].bytes = MIB;
	failed[0].domain = failed[1].domain = MMAP;
	failed[0].monotonic_ns -= 50000000;
	failed[1].monotonic_ns -= 40000000;
	failed[2].bytes = 56;
	hand.model.failed = failed;
	hand.model.failed_count = ARRAY_LEN(failed);
	decided("=ending 1.0 MiB at train.py:41 epoch; address-limit; peak 290 MiB; peak-line 290 MiB of "
	        "290 MiB at train.py:41 epoch",
	        "hold-less-before");
	assert_cause(&verdict, "request-refused");

	failed[2].bytes = 200 * MIB;
	decided("ending 200 MiB at train.py:41 epoch", "ask-for-less-or-raise-limit");
}

TEST(nobody_is_told_to_record_what_was_recorded)
{
	told(NULL, "ask-parent", NO_KILL "heap:41 1M; identity is_first=0 parent_pid=4000");
	assert_cause(&verdict, "gone");

	hand.identity.is_first = 1; // of a launcher that died: the session is older than the program
	decided(NULL, "see-system-log");
	next("journalctl -k");

	(void)snprintf(hand.identity.session, sizeof(hand.identity.session), "%lx.4242",
	               (unsigned long)(hand.identity.start_realtime_ns / 1000));
	decided(NULL, "record-with-run");
}

TEST(a_refused_request_is_fatal_only_when_the_program_ended_with_it)
{
	static const char *const requests[][2] = {
		{ "alive; " REFUSED("1G", "0"), "pending" },
		{ "alive; " REFUSED("1G", "0") "had_success_after=1", "recovered" },
		{ "exit 0; " REFUSED("1G", "0"), "recovered" },
		{ "killed; " REFUSED("1G", "30s") "had_success_after=1", "recovered" },
		{ "exit 1; " REFUSED("1G", "100ms") "had_success_after=1", "fatal" },
		{ "exit 1; " REFUSED("1G", "30s") "had_success_after=1", "recovered" },
		{ "exit 1; " REFUSED("1G", "30s"), "fatal" },
		{ REFUSED("1G", "0"), "fatal" },
		{ REFUSED("1G", "0") "had_success_after=1", "recovered" },
	};

	for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
		scene("heap:41 1M; %s", requests[i][0]);
		assert_string_equal(refusal_state_name(refusal_state(&hand.model, &hand_model_now, &hand.failed)),
		                    requests[i][1]);
	}
}

static void
write_file(const char *folder, const char *name, const char *text)
{
	const char *path = TEXT(256, "%s/%s", folder, name);
	FILE *stream = fopen(path, "w");
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

		const char *path = TEXT(256, "%s/%s", folder, names[i]);
		assert_int_equal(unlink(path), 0);
	}
	assert_int_equal(rmdir(folder), 0);
}

/* A tenth that is free is as good as none. */
TEST(swap_is_told_where_it_is_full)
{
	for (unsigned i = 0; i < 2; i++) {
		told(NULL, NULL,
		     "heap:41 9G; identity swap_bytes=10G; heartbeat available_bytes=90M swap_free_bytes=1G+%u; killed; "
		     "after cgroup_oom_kill=1 machine_oom_kill=1",
		     i);
		assert_cause(&verdict, "machine-memory");
		said(i == 0 ? "of swap was in use too: such a machine is very slow." : "!of swap was in use too");
	}
}

RUN_TESTS(verdict_case_begin, NULL)
