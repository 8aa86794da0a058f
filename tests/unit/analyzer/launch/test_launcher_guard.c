/*
 * test_launcher_guard.c - is a look that was killed told from a program that was?
 */
#include "test.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/kill_counters.h"
#include "launch/launcher_guard.h"
#include "base/memory.h"

#define MOMENT_US 1000
#define MOMENTS_MAX 100000 // what never comes must not hold up the rest

static char told[] = "/tmp/kmem-guard-told-XXXXXX";

static bool
waits_until_told(void)
{
	for (int moments = 0; access(told, F_OK) != 0; moments++) {
		if (moments == MOMENTS_MAX)
			return false;
		(void)usleep(MOMENT_US);
	}
	return true;
}

/* No other look is under way. */
static bool
is_alone(void)
{
	int file = open(told, O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (file < 0)
		return false;
	(void)usleep(20 * MOMENT_US);
	(void)close(file);
	return unlink(told) == 0;
}

/* As the kernel does when the cgroup is full. */
static void
killed_at_2(const char *pid, uint64_t leak_limit_bytes, uint64_t stop_ns)
{
	if (strcmp(pid, "2") == 0)
		(void)raise(SIGKILL);
	if (strcmp(pid, "3") == 0)
		(void)raise(SIGSEGV); // a fault of ours, which no counter counts
	if ((strcmp(pid, "4") == 0 && !waits_until_told()) || (strcmp(pid, "5") == 0 && !is_alone()))
		(void)raise(SIGKILL);
}

static unsigned
killed_looks(const char *lines, const char *action)
{
	char folder[] = "/tmp/kmem-guard-XXXXXX";
	const struct guard_task task = { .folder = mkdtemp(folder), .action = action, .look = killed_at_2 };

	assert_true(launcher_guard_start(&task, 1000) > 0);
	const char *path = TEXT(PATH_MAX, KMEM_GUARD_PIPE, folder, "1");
	int pipe_end = open(path, O_WRONLY);
	assert_true(pipe_end >= 0);
	assert_int_equal(write(pipe_end, lines, strlen(lines)), strlen(lines));
	(void)close(pipe_end);
	unsigned killed = launcher_guard_end();
	assert_int_equal(rmdir(folder), 0);
	return killed;
}

TEST(looks_that_were_killed_are_counted)
{
	assert_int_equal(killed_looks("", NULL), 0);
	assert_int_equal(killed_looks("1\n", NULL), 0);
	assert_int_equal(killed_looks("2\n1 1000\n3\n2 1000\n", NULL), 2);
}

TEST(so_they_are_beside_a_command)
{
	assert_int_equal(killed_looks("2 1000\n1 1000\n3 1000\n2 1000\n", "exec:true"), 2);
	/* The command of a guard is the user's. */
	assert_int_equal(killed_looks("2\n2 1000\n", "exec:kill -9 $$"), 1);
}

TEST(what_is_no_pid_is_passed_over)
{
	char written[] = "/tmp/kmem-guard-written-XXXXXX";
	int file = mkstemp(written);
	char text[32] = "";

	assert_true(file >= 0);
	const char *action = TEXT(96, "exec:echo $KMEMSHIM_GUARD_PID >>%s", written);
	assert_int_equal(killed_looks("$(x)\n-1\n1x\n\n 7\n2 \n2 x\n12\n", action), 0);
	for (int i = 0; i < 1000 && read(file, text, sizeof(text) - 1) == 0; i++) // nobody waits for the command
		(void)usleep(10000);
	assert_string_equal(text, "12\n");
	(void)close(file);
	assert_int_equal(unlink(written), 0);
}

TEST(nobody_reads_in_a_folder_of_another_user)
{
	char folder[] = "/tmp/kmem-guard-XXXXXX";
	const struct guard_task task = { .folder = mkdtemp(folder), .action = "exec:true", .look = killed_at_2 };

	if (geteuid() == 0) {
		assert_int_equal(chown(folder, 65534, 65534), 0);
		assert_int_equal(launcher_guard_start(&task, 1000), 0);
	}
	assert_int_equal(rmdir(folder), 0); // without a pipe in it
}

/* Memory is short. */
TEST(looks_are_taken_one_by_one)
{
	int file = mkstemp(told);

	assert_true(file >= 0);
	(void)close(file);
	assert_int_equal(unlink(told), 0);
	assert_int_equal(killed_looks("5\n5\n5 1000\n", NULL), 0);
	assert_int_equal(killed_looks("5 1000\n5 1000\n1\n5 1000\n", "exec:true"), 0);
}

TEST(a_command_does_not_wait_for_a_look)
{
	const char *action = TEXT(64, "exec:echo >%s", told);
	assert_int_equal(killed_looks("4 1000\n4 1000\n1\n", action), 0);
	assert_int_equal(unlink(told), 0);
}

TEST(the_pipe_goes_with_a_launcher_that_is_killed)
{
	char folder[] = "/tmp/kmem-guard-XXXXXX";
	const struct guard_task task = { .folder = mkdtemp(folder), .look = killed_at_2 };
	pid_t launcher = fork();
	int moments = 0;

	if (launcher == 0) {
		(void)launcher_guard_start(&task, 1000);
		(void)raise(SIGKILL);
	}
	assert_true(launcher > 0);
	assert_int_equal(waitpid(launcher, NULL, 0), launcher);
	while (rmdir(folder) != 0 && moments++ < MOMENTS_MAX)
		(void)usleep(MOMENT_US);
	assert_in_range(moments, 0, MOMENTS_MAX);
}

static const struct {
	uint64_t before, after, kills, left;
	const char *why;
} counted_cases[] = {
	{ 5, 7, 1, 6, "one of two was ours" },
	{ 5, 6, 1, 5, "ours alone: nothing of the program's was killed" },
	{ 5, 6, 3, 5, "somebody else killed ours too, and was not counted" },
	{ 5, 5, 1, 5, "not counted here" },
	{ 5, 6, 0, 6, "none was ours" },
	{ UINT64_MAX, 6, 1, 6, "unknown before" },
	{ 5, UINT64_MAX, 1, UINT64_MAX, "unknown now" },
};

TEST(kills_of_ours_are_left_out)
{
	for (size_t i = 0; i < sizeof(counted_cases) / sizeof(counted_cases[0]); i++) {
		struct kmem_kill_counters before = { .cgroup_oom_kill = counted_cases[i].before,
			                                 .machine_oom_kill = counted_cases[i].before };
		struct kmem_kill_counters after = { .cgroup_oom_kill = counted_cases[i].after,
			                                .cgroup_oom = 9,
			                                .machine_oom_kill = counted_cases[i].after };

		kill_counters_leave_out(&after, &before, counted_cases[i].kills);
		if (after.cgroup_oom_kill != counted_cases[i].left || after.machine_oom_kill != counted_cases[i].left ||
		    after.cgroup_oom != 9)
			fail_msg("%s: %" PRIu64, counted_cases[i].why, after.cgroup_oom_kill);
	}
}

RUN_TESTS(NULL, NULL)
