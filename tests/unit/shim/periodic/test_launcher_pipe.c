/*
 * test_launcher_pipe.c - is the launcher asked for a look when much is live, and not more often?
 */
#include "unit.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/capture_life.h"
#include "base/raw_sys.h"
#include "base/real_libc.h"
#include "base/settings.h"
#include "capture/capture_file.h"
#include "periodic/launcher_pipe.h"
#include "record/tracker.h"

#define MIB ((uint64_t)1 << 20)
#define LIMIT (1024 * MIB)

static char folder[64];
static int pipe_end;
static uint64_t space_limit_bytes; // of the beats
static uint64_t untouched_bytes;   // of what is live

static int
start(void **state)
{
	char path[128];

	(void)snprintf(folder, sizeof(folder), "/tmp/kmem-pipe-XXXXXX");
	if (mkdtemp(folder) == NULL || !real_libc_find())
		return 1;
	(void)snprintf(path, sizeof(path), KMEM_GUARD_PIPE, folder, "5e55");
	if (mkfifo(path, 0600) != 0)
		return 1;
	pipe_end = open(path, O_RDWR | O_NONBLOCK);
	return pipe_end < 0;
}

static int
end(void **state)
{
	char command[96];

	(void)close(pipe_end);
	(void)snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

static void
start_process(uint64_t looker_pid)
{
	struct kmem_identity *identity;

	capture_file_forked();
	identity = &capture_file_header()->identity;
	identity->pid = 4711;
	identity->machine_bytes = 16 * LIMIT;
	(void)snprintf(identity->session, sizeof(identity->session), "5e55.1");
	capture_file_header()->generation_clock = 1;
	settings.looker_pid = looker_pid;
	diag_level = DIAG_QUIET;
	atomic_store(tracker_state, TRACKER_ON);
	launcher_pipe_start(folder);
	launcher_pipe_forked();
}

/* What a beat writes; "" = nothing. */
static const char *
beat(uint64_t live_bytes, uint64_t used_bytes, uint64_t limit_bytes)
{
	static char text[64];

	launcher_pipe_beat(&(struct memory_limits_now){ .resident_bytes = live_bytes - untouched_bytes,
	                                                .space_limit_bytes = space_limit_bytes,
	                                                .cgroup_bytes = used_bytes,
	                                                .limit_bytes = limit_bytes,
	                                                .available_bytes = 8 * LIMIT },
	                   live_bytes);
	ssize_t got = read(pipe_end, text, sizeof(text) - 1);
	text[got > 0 ? got : 0] = '\0';
	return text;
}

TEST_IN_CHILD(L1_an_eighth_of_the_limit_and_then_each_eighth_more)
{
	start_process(1);
	ASSERT_IN_CHILD(beat(127 * MIB, 200 * MIB, LIMIT)[0] == '\0');
	ASSERT_IN_CHILD(capture_file_count(KMEM_SECTION_HOLDERS) == 0);
	ASSERT_IN_CHILD(strcmp(beat(128 * MIB, 200 * MIB, LIMIT), "4711 1073741824\n") == 0);
	ASSERT_IN_CHILD(capture_file_count(KMEM_SECTION_HOLDERS) == 2);
	ASSERT_IN_CHILD(beat(143 * MIB, 200 * MIB, LIMIT)[0] == '\0');
	ASSERT_IN_CHILD(beat(20 * MIB, 200 * MIB, LIMIT)[0] == '\0' && beat(143 * MIB, 200 * MIB, LIMIT)[0] == '\0');
	ASSERT_IN_CHILD(beat(144 * MIB, 200 * MIB, LIMIT)[0] != '\0' && beat(144 * MIB, 200 * MIB, LIMIT)[0] == '\0');
	launcher_pipe_forked(); // a child's memory is its own
	ASSERT_IN_CHILD(beat(130 * MIB, 200 * MIB, LIMIT)[0] != '\0');
}

TEST_IN_CHILD(L1_not_with_too_little_memory_left)
{
	start_process(1);
	ASSERT_IN_CHILD(beat(500 * MIB, LIMIT - 31 * MIB, LIMIT)[0] == '\0');
	ASSERT_IN_CHILD(beat(500 * MIB, LIMIT - 32 * MIB, LIMIT)[0] != '\0');
}

TEST_IN_CHILD(without_a_limit_it_is_the_machines_memory)
{
	start_process(1);
	ASSERT_IN_CHILD(beat(2 * LIMIT - MIB, 0, UINT64_MAX)[0] == '\0');
	ASSERT_IN_CHILD(strcmp(beat(2 * LIMIT, 0, UINT64_MAX), "4711 17179869184\n") == 0);
}

TEST_IN_CHILD(a_limit_of_addresses_is_a_limit)
{
	start_process(1);
	space_limit_bytes = 256 * MIB;
	ASSERT_IN_CHILD(beat(31 * MIB, 200 * MIB, LIMIT)[0] == '\0');
	ASSERT_IN_CHILD(strcmp(beat(32 * MIB, 200 * MIB, LIMIT), "4711 268435456\n") == 0);
	space_limit_bytes = 2 * LIMIT; // the smaller one counts
	launcher_pipe_forked();
	ASSERT_IN_CHILD(strcmp(beat(128 * MIB, 200 * MIB, LIMIT), "4711 1073741824\n") == 0);
}

/* numpy.empty() of 4 GiB is no reason to look, nor the measure of what comes after it. */
TEST_IN_CHILD(L1_what_was_never_touched_does_not_count)
{
	start_process(1);
	untouched_bytes = 4 * LIMIT;
	ASSERT_IN_CHILD(beat(4 * LIMIT + 127 * MIB, 200 * MIB, LIMIT)[0] == '\0');
	ASSERT_IN_CHILD(beat(4 * LIMIT + 128 * MIB, 200 * MIB, LIMIT)[0] != '\0');
	ASSERT_IN_CHILD(beat(4 * LIMIT + 144 * MIB, 200 * MIB, LIMIT)[0] != '\0');
	space_limit_bytes = 512 * MIB; // addresses are taken all the same
	launcher_pipe_forked();
	ASSERT_IN_CHILD(beat(4 * LIMIT + 10 * MIB, 200 * MIB, LIMIT)[0] != '\0');
}

TEST_IN_CHILD(nobody_is_asked_where_nobody_looks)
{
	start_process(0);
	ASSERT_IN_CHILD(beat(500 * MIB, 500 * MIB, LIMIT)[0] == '\0');
	start_process(1);
	atomic_store(tracker_state, TRACKER_OFF);
	ASSERT_IN_CHILD(beat(500 * MIB, 500 * MIB, LIMIT)[0] == '\0');
}

static volatile sig_atomic_t tracers_named;

static void
count_tracer(int number)
{
	tracers_named++;
}

/* From now on PR_SET_PTRACER is counted instead. */
static bool
count_tracers(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_PTRACER, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	(void)signal(SIGSYS, count_tracer);
	return raw_syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) == 0 &&
	       raw_syscall(SYS_prctl, PR_SET_SECCOMP, (long)SECCOMP_MODE_FILTER, &program, 0L, 0L) == 0;
}

TEST_IN_CHILD(a_tracer_that_the_program_named_stays)
{
	start_process(1);
	ASSERT_IN_CHILD(count_tracers());
	ASSERT_IN_CHILD(beat(200 * MIB, 200 * MIB, LIMIT)[0] != '\0' && tracers_named == 1);
	launcher_pipe_names_tracer(true);
	ASSERT_IN_CHILD(beat(300 * MIB, 300 * MIB, LIMIT)[0] != '\0' && tracers_named == 1);
	launcher_pipe_names_tracer(false);
	ASSERT_IN_CHILD(beat(400 * MIB, 400 * MIB, LIMIT)[0] != '\0' && tracers_named == 2);
	launcher_pipe_names_tracer(true);
	launcher_pipe_forked(); // a child of the program has named nobody
	ASSERT_IN_CHILD(beat(500 * MIB, 500 * MIB, LIMIT)[0] != '\0' && tracers_named == 3);
}

#define ROUNDS 400

static pthread_barrier_t together;

static void *
asks(void *unused)
{
	(void)pthread_barrier_wait(&together);
	launcher_pipe_ask_for_look(0);
	return unused;
}

TEST_IN_CHILD(threads_that_ask_together_make_room_once)
{
	char text[64];

	ASSERT_IN_CHILD(pthread_barrier_init(&together, NULL, 2) == 0);
	for (int i = 0; i < ROUNDS; i++) {
		pthread_t other;

		start_process(1);
		ASSERT_IN_CHILD(pthread_create(&other, NULL, asks, NULL) == 0);
		(void)asks(NULL);
		ASSERT_IN_CHILD(pthread_join(other, NULL) == 0);
		ASSERT_IN_CHILD(capture_file_header()->used_bytes[KMEM_SECTION_HOLDERS] == 2 * KMEM_HOLDERS_BYTES);
		ASSERT_IN_CHILD(capture_file_header()->losses[KMEM_LOST_GROWTH] == 0);
		ASSERT_IN_CHILD(read(pipe_end, text, sizeof(text)) == 10 && memcmp(text, "4711\n4711\n", 10) == 0);
	}
}

/* Others may write in the folder. */
TEST_IN_CHILD(nothing_is_written_where_a_link_or_a_file_took_the_pipes_place)
{
	char path[128];
	char aside[160];
	char file[96];
	struct stat status;

	start_process(1);
	(void)snprintf(path, sizeof(path), KMEM_GUARD_PIPE, folder, "5e55");
	(void)snprintf(aside, sizeof(aside), "%s.aside", path);
	(void)snprintf(file, sizeof(file), "%s/file", folder);
	ASSERT_IN_CHILD(launcher_pipe_tell(true, 0));
	ASSERT_IN_CHILD(rename(path, aside) == 0);
	(void)close(open(file, O_WRONLY | O_CREAT, 0600));
	for (int i = 0; i < 3; i++) {
		ASSERT_IN_CHILD((i == 0 ? symlink(file, path) : i == 1 ? link(file, path) : symlink(aside, path)) == 0);
		ASSERT_IN_CHILD(!launcher_pipe_tell(false, 0));
		ASSERT_IN_CHILD(stat(file, &status) == 0 && status.st_size == 0);
		ASSERT_IN_CHILD(unlink(path) == 0);
	}
	ASSERT_IN_CHILD(rename(aside, path) == 0);
	ASSERT_IN_CHILD(launcher_pipe_tell(true, 0));
	ASSERT_IN_CHILD(
		!(geteuid() == 0 && (chown(path, 65534, 65534) != 0 || launcher_pipe_tell(true, 0) || chown(path, 0, 0) != 0)));
}

RUN_TESTS_IN(start, end)
