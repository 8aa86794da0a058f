/*
 * test_end_log.c - which line of a log is believed, and what is concluded from it?
 */

#include "base/memory.h"
#include "verdict_case.h"
#include "threshold.h"

#define HOST_NAMESPACE UINT32_C(4026531836)
#define SECOND UINT64_C(1000000000)
#define START (5 * SECOND) // of the hand-made process
#define END (START + 60 * SECOND)

static struct {
	const char *writer;
	const char *text;
	uint64_t monotonic_ns;
} lines[4];

static void
read_log(const struct model_process *process, struct system_log *log)
{
	log->lines = memory_zeroed(4, sizeof(*log->lines));
	for (size_t i = 0; i < 4 && lines[i].writer != NULL; i++) {
		log->lines[i].monotonic_ns = lines[i].monotonic_ns;
		(void)snprintf(log->lines[i].writer, sizeof(log->lines[i].writer), "%s", lines[i].writer);
		(void)snprintf(log->lines[i].text, sizeof(log->lines[i].text), "%s", lines[i].text);
		log->count++;
	}
}

static const struct verdict_now now = { .boot_id = "this-boot",
	                                    .read_counters = hand_model_read_counters,
	                                    .read_log = read_log };

static void
decide(void)
{
	rank_leaks_classify(&hand.model);
	verdict_decide((struct finished_model){ &hand.model }, &now, &verdict);
}

/* signal: 0 = nobody waited for it. */
static void
ended(int signal)
{
	memset(lines, 0, sizeof(lines));
	hand_model_make(&hand);
	(void)snprintf(hand.identity.executable, sizeof(hand.identity.executable), "/usr/bin/python3.11");
	(void)snprintf(hand.identity.cgroup_path, sizeof(hand.identity.cgroup_path),
	               "/sys/fs/cgroup/user.slice/run-u5.scope");
	hand.identity.pid_namespace = HOST_NAMESPACE;
	(void)hand_model_site(&hand, HEAP, 41, 400 * MIB);
	hand.process.launcher = NULL;
	hand.process.ended_monotonic_ns = signal != 0 ? END : 0;
	if (signal != 0) {
		hand.launcher.is_filled = 1;
		hand.launcher.wait_status = signal;
		memset(&hand.launcher.after, 0xff, sizeof(hand.launcher.after));
		hand.process.launcher = &hand.launcher;
	}
}

static void
wrote(size_t number, uint64_t monotonic_ns, const char *writer, const char *text)
{
	lines[number].monotonic_ns = monotonic_ns;
	lines[number].writer = writer;
	lines[number].text = text;
}

#define MEMCG \
	"Memory cgroup out of memory: Killed process 4242 (python3) total-vm:9kB, anon-rss:8kB, file-rss:1kB, shmem-rss:0kB, UID:0"
#define GLOBAL \
	"Out of memory: Killed process 4242 (python3) total-vm:9kB, anon-rss:8kB, file-rss:1kB, shmem-rss:0kB, UID:0"
#define STACK_OVERFLOW(addr) \
	"python3[4242]: segfault at " addr " ip 000055e0c8a6f1a9 sp 00007ffe4d1f4000 error 6 in foo[1000+2000]"
#define SEGFAULT \
	"python3[4242]: segfault at 0 ip 0000 sp 0000 error 4 in libfoo.so[1000+2000] likely on CPU 1 (core 1, socket 0)"
#define TRAP "traps: python3[4242] general protection fault ip:1 sp:2 error:0 in libfoo.so[1000+2000]"
#define EARLYOOM "sending SIGTERM to process 4242 uid 1000 \"python3\": badness 853, VmRSS 11000 MiB"
#define OOMD \
	"Killed /user.slice/run-u5.scope due to memory pressure for /user.slice being 60.22% > 50.00% for > 20s with reclaim activity"

static const struct {
	const char *writer, *text;
	int signal;
	const char *cause, *confidence, *says;
} cases[] = {
	{ "kernel", MEMCG, SIGKILL, "container-limit", "certain",
	  "The log of the kernel says: \"Memory cgroup out of memory: Killed process 4242 (python3) total-vm:9kB, anon-rss:8kB, "
	  "file-rss:1kB\"." },
	{ "kernel", MEMCG, 0, "container-limit", "likely", "Likely: the system's log names it." },
	{ "kernel", GLOBAL, SIGKILL, "machine-memory", "certain", "because the machine ran out of memory, with" },
	{ "kernel", GLOBAL, 0, "machine-memory", "likely", "because the machine ran out of memory" },
	{ "kernel", SEGFAULT, SIGSEGV, "crashed", "certain", "error 4 in libfoo.so[1000+2000]\"." },
	{ "kernel", SEGFAULT, 0, "crashed", "likely", "it crashed. It was not killed for memory" },
	/* A thread crashed: its number is its own. */
	{ "kernel", "python3[4250]: segfault at 0 ip 0000 sp 0000 error 4 in libfoo.so[1000+2000]", SIGSEGV, "crashed",
	  "certain", "This line fits by name and time: the number in it is of a thread." },
	{ "kernel", "python3[4250]: segfault at 7ffe4d1efff1 ip 1 sp 7ffe4d1f4000 error 6", SIGSEGV, "stack-overflow",
	  "likely", "its stack was full" },
	{ "kernel", "other[4250]: segfault at 0 ip 0000", SIGSEGV, "crashed", "certain", NULL },
	{ "kernel", "python3[4250]: segfault at 0 ip 0000", 0, "gone", "likely", NULL },
	{ "kernel", "python3[4250]: segfault at 0 ip 0000", SIGKILL, "signal", "certain", NULL },
	{ "kernel", "Out of memory: Killed process 4250 (python3) total-vm:9kB", SIGKILL, "signal", "certain", NULL },
	{ "kernel", STACK_OVERFLOW("7ffe4d1efff1"), SIGSEGV, "stack-overflow", "likely", "its stack was full" },
	{ "kernel", STACK_OVERFLOW("7ffe4d1f3ff8"), 0, "stack-overflow", "likely", "its stack was full" },
	{ "kernel", STACK_OVERFLOW("7ffe4d1e4000"), SIGSEGV, "crashed", "certain",
	  "it crashed. It was not killed for memory" },
	{ "kernel", STACK_OVERFLOW("7ffe4d203fff"), SIGSEGV, "stack-overflow", "likely", "recursion without an end" },
	{ "kernel", TRAP, 0, "crashed", "likely", "general protection" },
	{ "kernel", "Memory failure: 0x1a2b3c: Sending SIGBUS to python3:4242 due to hardware memory corruption", SIGBUS,
	  "hardware", "certain", "the hardware failed under it (certain)" },
	{ "kernel", "MCE: Killing python3:4242 due to hardware memory corruption fault at 7f0012345678", 0, "hardware",
	  "likely", "Killing python3:4242 due to hardware" },
	{ "kernel", "NVRM: Xid (PCI:0000:3b:00): 48, pid=4242, name=python3, Ch 00000010, intr 10000000", SIGABRT,
	  "hardware", "certain", "NVRM: Xid (PCI:0000:3b:00): 48" },
	{ "kernel", "NVRM: Xid (PCI:0000:3b:00): 31, pid=4242, name=python3, Ch 00000010, MMU Fault", SIGABRT, "aborted",
	  "certain", NULL },
	{ "kernel", "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus", SIGABRT,
	  "aborted", "certain", NULL },
	{ "kernel", "Memory failure: 0x1a2b3c: Sending SIGBUS to python3:4241 due to hardware memory corruption", SIGBUS,
	  "crashed", "certain", NULL },
	{ "logger", "MCE: Killing python3:4242 due to hardware memory corruption fault at 7f0012345678", SIGBUS, "crashed",
	  "certain", NULL },
	{ "earlyoom", EARLYOOM, SIGTERM, "low-memory-daemon", "certain", "was killed by earlyoom, a daemon that" },
	{ "systemd-oomd", OOMD, SIGKILL, "low-memory-daemon", "certain", "was killed by systemd-oomd, a daemon that" },
	{ "systemd-oomd", OOMD, 0, "low-memory-daemon", "likely",
	  "The log of systemd-oomd says: \"Killed /user.slice/run-u5" },
	/* It gave itself a name (prctl, setproctitle): the number and the moment are its own. */
	{ "kernel", "Out of memory: Killed process 4242 (worker: 3) total-vm:9kB", SIGKILL, "machine-memory", "certain",
	  "Killed process 4242 (worker: 3)" },
	{ "kernel", "Memory cgroup out of memory: Killed process 4242 (worker: 3) total-vm:9kB", 0, "container-limit",
	  "likely", "Killed process 4242 (worker: 3)" },
	/* Not about this process. */
	{ "kernel", "Out of memory: Killed process 4241 (python3) total-vm:9kB", SIGKILL, "signal", "certain", NULL },
	{ "kernel", "Out of memory: Killed process 42424 (python3) total-vm:9kB", SIGKILL, "signal", "certain", NULL },
	{ "kernel", "python3[4241]: segfault at 0 ip 0000", SIGSEGV, "crashed", "certain", NULL },
	{ "systemd-oomd", "Killed /system.slice/a.service due to memory pressure for / being", SIGKILL, "signal", "certain",
	  NULL },
	{ "systemd-oomd", "Killed / due to memory pressure for / being", SIGKILL, "signal", "certain", NULL },
	/* Damaged, or written by who likes. */
	{ "kernel", "Killed process ", SIGKILL, "signal", "certain", NULL },
	{ "kernel", "Killed process 4242", SIGKILL, "signal", "certain", NULL },
	{ "kernel", "[", SIGKILL, "signal", "certain", NULL },
	{ "logger", MEMCG, SIGKILL, "signal", "certain", NULL },
	{ "logger", OOMD, SIGKILL, "signal", "certain", NULL },
	{ "logger", EARLYOOM, SIGKILL, "signal", "certain", NULL },
	{ "kernel", EARLYOOM, SIGKILL, "signal", "certain", NULL },
};

TEST(a_line_tells_the_cause)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		ended(cases[i].signal);
		wrote(0, cases[i].signal != 0 ? END : START + SECOND, cases[i].writer, cases[i].text);
		decide();
		assert_cause(&verdict, cases[i].cause);
		assert_string_equal(verdict_confidence_name(verdict.confidence), cases[i].confidence);
		said(cases[i].says != NULL ? "The log of" : "!The log of");
		said(cases[i].says != NULL ? cases[i].says : "");
	}
}

/* Process numbers are used again. */
TEST(a_line_of_another_time_is_another_process)
{
	ended(SIGKILL);
	hand.identity.start_monotonic_ns += 100 * SECOND;
	hand.process.ended_monotonic_ns += 100 * SECOND;
	wrote(0, START, "kernel", MEMCG);
	wrote(1, END + 200 * SECOND, "kernel", MEMCG);
	decide();
	assert_cause(&verdict, "signal");
	said("!The log of");

	wrote(1, END + 101 * SECOND, "kernel", GLOBAL);
	decide();
	assert_cause(&verdict, "machine-memory");
}

/* The kernel's clock and ours may differ by less than half a minute, and a moment is known to 5 s. */
static bool
is_believed(bool is_in_container, uint64_t behind_ns)
{
	ended(SIGKILL);
	if (is_in_container)
		hand.identity.pid_namespace = HOST_NAMESPACE + 100;
	wrote(0, END + behind_ns, "kernel", GLOBAL);
	decide();
	return verdict.cause == VERDICT_MACHINE_MEMORY;
}

static bool
is_in_time(uint64_t behind_ns)
{
	return is_believed(false, behind_ns);
}

static bool
is_at_the_end(uint64_t behind_ns)
{
	return is_believed(true, behind_ns);
}

TEST(times_that_fit)
{
	static const struct threshold rows[] = {
		{ "clocks: 30 s", is_in_time, 30 * SECOND, 30 * SECOND + 1 },
		{ "by name: less than 5 s", is_at_the_end, 5 * SECOND - 1, 5 * SECOND },
	};

	thresholds_check(rows, ARRAY_LEN(rows));
}

/* Of a process with another name the number alone counts, but only at the moment of the end, or of the last sign of life. */
TEST(a_line_with_another_name_must_be_of_the_end)
{
	static const char line[] = "Out of memory: Killed process 4242 (worker: 3) total-vm:9kB";
	ended(SIGKILL);
	wrote(0, END - 40 * SECOND, "kernel", line);
	decide();
	assert_cause(&verdict, "signal");

	ended(0);
	wrote(0, END + 300 * SECOND, "kernel", line);
	decide();
	assert_cause(&verdict, "gone");
}

/* One library at two places, and a program; the same place again, as loaded elsewhere, is the same. */
static const struct {
	const char *lines[4];
	bool is_anywhere;
	uint32_t python_version;
} crashes[] = {
	{ { "python3[9]: segfault at 8 ip 00007f0000001200 sp 7ffe00000000 error 4 in libc.so.6[7f0000001000+1000]",
	    "python3[10]: segfault at 8 ip 00007f0000001300 sp 7ffe00000000 error 4 in libc.so.6[7f0000001000+1000]",
	    "python3[4242]: segfault at 8 ip 0000000000401000 sp 7ffe00000000 error 4 in python3.11[400000+9000]" },
	  true,
	  0 },
	{ { "python3[9]: segfault at 8 ip 00007f0000001200 sp 7ffe00000000 error 4 in libc.so.6[7f0000001000+1000]",
	    "traps: python3[10] general protection fault ip:7f0000001300 sp:7ffe00000000 error:0 in libc.so.6[7f0000001000+1000]",
	    "python3[4242]: segfault at 8 ip 0000000000401000 sp 7ffe00000000 error 4 in python3.11[400000+9000]" },
	  true,
	  0 },
	{ { "python3[9]: segfault at 8 ip 00007f0000001200 sp 7ffe00000000 error 4 in libc.so.6[7f0000001000+1000]",
	    "python3[10]: segfault at 8 ip 00007f0000009200 sp 7ffe00000000 error 4 in libc.so.6[7f0000009000+1000]",
	    "python3[4242]: segfault at 8 ip 0000000000401000 sp 7ffe00000000 error 4 in python3.11[400000+9000]" },
	  false,
	  0 },
	{ { "python3[9]: segfault at 8 ip 00007f0000001200 sp 7ffe00000000 error 4 in libc.so.6[7f0000001000+1000]",
	    "java[10]: segfault at 8 ip 00007f0000001300 sp 7ffe00000000 error 4 in libc.so.6[7f0000001000+1000]",
	    "python3[4242]: segfault at 8 ip 0000000000401000 sp 7ffe00000000 error 4 in python3.11[400000+9000]" },
	  false,
	  0 },
	{ { "python3[9]: segfault at 8 ip 00007f0000001200 sp 7ffe00000000 error 4 in libc.so.6[7f0000001000+1000]",
	    "python3[10]: segfault at 8 ip 00007f0000001300 sp 7ffe00000000 error 4 in libc.so.6[7f0000001000+1000]",
	    "python3[4242]: segfault at 8 ip 0000000000401000 sp 7ffe00000000 error 4 in python3.11[400000+9000]" },
	  false,
	  0x030b0000 }, // of an interpreter the name says nothing of the program
	{ { "python3[9]: segfault at 8 ip 00007f0000001200 sp 7ffe00000000 error 4",
	    "python3[10]: segfault at 8 ip 0000000000000000 sp 7ffe00000000 error 14 in",
	    "python3[4242]: segfault at 8 ip 0000000000401000 sp 7ffe00000000 error 4 in python3.11[400000+9000]" },
	  false,
	  0 },
};

TEST(crashes_at_many_places_suggest_broken_memory)
{
	for (size_t i = 0; i < ARRAY_LEN(crashes); i++) {
		ended(SIGSEGV);
		hand.process.python_version = crashes[i].python_version;
		for (size_t j = 0; crashes[i].lines[j] != NULL; j++)
			wrote(j, j == 2 ? END : START + j * SECOND, "kernel", crashes[i].lines[j]);
		decide();
		assert_cause(&verdict, "crashed");
		said(crashes[i].is_anywhere ? "at 3 different places: such crashes suggest broken memory"
		                            : "!different places");
		next(crashes[i].is_anywhere ? "memtest86+" : "!memtest86+");
	}
}

/* In a container the log has the host's numbers. */
TEST(in_a_container_name_and_time_must_fit)
{
	static const char line[] = "Memory cgroup out of memory: Killed process 77 (python3) total-vm:9kB";
	ended(SIGKILL);
	hand.identity.pid_namespace = HOST_NAMESPACE + 100;
	wrote(0, END + SECOND, "kernel", line);
	decide();
	assert_cause(&verdict, "container-limit");
	assert_string_equal(verdict_confidence_name(verdict.confidence), "likely");
	said("This line fits by name and time. Its numbers of processes are those of the host.");

	wrote(0, END + 20 * SECOND, "kernel", line);
	decide();
	assert_cause(&verdict, "signal");

	ended(0); // nobody saw the end: there is no time to compare
	hand.identity.pid_namespace = HOST_NAMESPACE + 100;
	wrote(0, START + SECOND, "kernel", line);
	decide();
	assert_cause(&verdict, "gone");
}

TEST(a_log_of_an_earlier_boot_tells)
{
	ended(0);
	(void)snprintf(hand.identity.boot_id, sizeof(hand.identity.boot_id), "another-boot");
	decide();
	assert_cause(&verdict, "not-closed");
	wrote(0, START + SECOND, "kernel", GLOBAL);
	decide();
	assert_cause(&verdict, "machine-memory");
	assert_string_equal(verdict_confidence_name(verdict.confidence), "likely");
}

/* Its kill is not in the counters of the cgroup where it began: that they stood still proves nothing. */
TEST(who_was_moved_to_another_cgroup_is_not_acquitted_by_the_first_one)
{
	static const char *notes[] = { KMEM_NOTE_MOVED ": limits are of that one since then" };

	for (size_t moved = 0; moved < 2; moved++) {
		ended(SIGKILL);
		memset(&hand.launcher.after, 0, sizeof(hand.launcher.after));
		hand.heartbeat.cgroup_bytes = 199 * MIB;
		hand.heartbeat.limit_bytes = 200 * MIB;
		hand.process.notes = notes;
		hand.process.note_count = moved;
		decide();
		assert_cause(&verdict, moved ? "container-limit" : "signal");
		if (moved)
			assert_string_equal(verdict_confidence_name(verdict.confidence), "likely");
	}
}

/* When this boot began, after the last sign of life; -1 = before it. */
static const struct {
	int64_t dark_seconds;
	const char *cause, *confidence, *says;
} boots[] = {
	{ 0, "machine-restarted", "likely", "started anew within 1 s of its last sign of life (likely" },
	{ 3, "machine-restarted", "likely", "started anew within 4 s of its last sign of life (likely" },
	{ 599, "machine-restarted", "likely", "Whether it was restarted, crashed or lost power is not known." },
	{ 601, "not-closed", "unknown", "was recorded on another machine, or before this one was restarted: " },
	{ -1, "not-closed", "unknown", "how it ended is not known" }, // clocks were set
	{ INT64_MIN, "not-closed", "unknown", "how it ended is not known" },
};

TEST(a_boot_that_began_right_after_is_the_same_machines)
{
	for (size_t i = 0; i < ARRAY_LEN(boots); i++) {
		struct verdict_now later = now;
		ended(0);
		(void)snprintf(hand.identity.boot_id, sizeof(hand.identity.boot_id), "another-boot");
		hand.heartbeat.monotonic_ns = END;
		if (boots[i].dark_seconds != INT64_MIN)
			later.booted_at_ns = hand.identity.start_realtime_ns + END - START +
			                     (uint64_t)boots[i].dark_seconds * SECOND + 1;
		rank_leaks_classify(&hand.model);
		verdict_decide((struct finished_model){ &hand.model }, &later, &verdict);
		assert_cause(&verdict, boots[i].cause);
		assert_string_equal(verdict_confidence_name(verdict.confidence), boots[i].confidence);
		said(boots[i].says);
	}
}

TEST(who_exited_is_not_looked_for)
{
	ended(SIGKILL);
	hand.launcher.wait_status = 1 << 8;
	wrote(0, END, "kernel", MEMCG);
	decide();
	assert_cause(&verdict, "failed");
	said("!The log of");
}

/* It is newer than any sample. */
TEST(what_the_kernel_found_in_memory_is_in_memory)
{
	ended(SIGKILL);
	scene_add(&hand, "look brk=300M");
	wrote(
		0, END, "kernel",
		"Memory cgroup out of memory: Killed process 4242 (python3) total-vm:9kB, anon-rss:409600kB, file-rss:1024kB, shmem-rss:0kB");
	decide();
	said(", with 401 MiB in memory.");
}

RUN_TESTS(NULL, NULL)
