/*
 * endings.c - how and when did a process end, and was it timeout(1) that ended it?
 *
 * When failing  it cannot: unknown times are 0, unknown ends are so named.
 */

#include "analysis/endings.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/read_each.h"
#include "capture/kill_counters.h"

#define TIMEOUT_STATUS 124   // of timeout(1), when the time was up
#define TIMEOUT_EARLY_NS 1e9 // clocks are set while it waits

static char boot_id[40]; // of this machine, now

static void
read_log(const struct model_process *process, struct system_log *log)
{
	const struct kmem_identity *identity = process->identity;
	uint64_t start = identity->start_realtime_ns / 1000000000;
	uint64_t ended_ns = model_ended_ns(process) ?: model_last_seen_ns(process);
	uint64_t ran_ns = ended_ns > identity->start_monotonic_ns ? ended_ns - identity->start_monotonic_ns : 0;

	if (strcmp(identity->boot_id, boot_id) == 0)
		system_log_read_kernel(log);
	system_log_read_journal(log, identity->boot_id, start, start + ran_ns / 1000000000);
}

/* The kernel's own figure (btime) is made in the same way; some containers show one of theirs. */
static uint64_t
booted_at_ns(void)
{
	struct timespec real;
	struct timespec since;

	if (clock_gettime(CLOCK_REALTIME, &real) != 0 || clock_gettime(CLOCK_BOOTTIME, &since) != 0 || real.tv_sec < 0)
		return 0;

	uint64_t real_ns = (uint64_t)real.tv_sec * 1000000000 + (uint64_t)real.tv_nsec;
	uint64_t since_ns = (uint64_t)since.tv_sec * 1000000000 + (uint64_t)since.tv_nsec;

	return real_ns > since_ns ? real_ns - since_ns : 0;
}

const struct verdict_now *
verdict_now(void)
{
	static struct verdict_now now = { .boot_id = boot_id, .read_counters = kill_counters_read, .read_log = read_log };

	now.booted_at_ns = booted_at_ns();
	EACH_LINE (line, "/proc/sys/kernel/random/boot_id")
		(void)snprintf(boot_id, sizeof(boot_id), "%s", line);
	return &now;
}

enum verdict_end
verdict_end_of(const struct model_process *process, const struct verdict_now *now)
{
	const struct kmem_launcher *launcher = process->launcher;

	if (process->is_alive && launcher == NULL)
		return VERDICT_END_RUNNING;
	if (process->state == KMEM_STATE_EXEC_REPLACED)
		return VERDICT_END_OK;
	if (launcher != NULL && WIFSIGNALED(launcher->wait_status))
		return VERDICT_END_SIGNAL;
	if (launcher != NULL && WIFEXITED(launcher->wait_status))
		return WEXITSTATUS(launcher->wait_status) == 0 ? VERDICT_END_OK : VERDICT_END_FAILED;
	if (process->state == KMEM_STATE_CLEAN_EXIT)
		return process->exit_code > 0 ? VERDICT_END_FAILED : VERDICT_END_OK;
	if (process->identity->boot_id[0] == '\0' || strcmp(process->identity->boot_id, now->boot_id) != 0)
		return VERDICT_END_ELSEWHERE;
	return VERDICT_END_GONE;
}

uint64_t
verdict_dark_ns(const struct model_process *process, const struct verdict_now *now)
{
	const struct kmem_identity *identity = process->identity;
	uint64_t ran_ns = model_last_seen_ns(process) > identity->start_monotonic_ns
	                      ? model_last_seen_ns(process) - identity->start_monotonic_ns
	                      : 0;
	uint64_t seen_ns = identity->start_realtime_ns + ran_ns;

	return now->booted_at_ns > seen_ns && seen_ns >= ran_ns ? now->booted_at_ns - seen_ns : UINT64_MAX;
}

bool
verdict_is_timeout(const struct model_process *process)
{
	return strcmp(process->name, "timeout") == 0;
}

/* "1.5h", of timeout(1); 0 = it is none, or there is no limit. */
static double
duration_ns(const char *text)
{
	char *unit;
	double value = strtod(text, &unit);

	return value * 1e9 * (*unit == 'm' ? 60 : *unit == 'h' ? 3600 : *unit == 'd' ? 86400 : 1);
}

/* Did it send SIGKILL itself? An option of it says so, and the time was up: it dies of its child's signal, too. */
static bool
has_sent_kill(const struct model_process *timeout)
{
	const struct kmem_identity *identity = timeout->identity;
	const char *end = identity->command + identity->command_bytes;
	const char *at = identity->command + strlen(identity->command) + 1;
	uint64_t ran_ns = timeout->launcher->ended_realtime_ns - identity->start_realtime_ns;
	bool may_kill = false;

	for (; at < end && *at == '-'; at += strlen(at) + 1) {
		bool is_kill_after = strncmp(at, "-k", 2) == 0 || strncmp(at, "--k", 3) == 0;
		bool is_signal = strncmp(at, "-s", 2) == 0 || strncmp(at, "--s", 3) == 0;

		/* The value is the next word, if there is none in this one. */
		if ((is_kill_after || is_signal) && (at[1] == '-' ? strchr(at, '=') == NULL : at[2] == '\0'))
			at += strlen(at) + 1;
		if (at >= end)
			return false;
		may_kill = may_kill || is_kill_after ||
		           (is_signal && (strstr(at, "KILL") != NULL || strcmp(at + strcspn(at, "0123456789"), "9") == 0));
	}
	return may_kill && at < end && timeout->launcher->ended_realtime_ns > identity->start_realtime_ns &&
	       duration_ns(at) > 0 && (double)ran_ns + TIMEOUT_EARLY_NS >= duration_ns(at);
}

bool
verdict_was_time_up(const struct model_process *first, uint64_t cgroup_kills)
{
	const struct kmem_launcher *launcher = first->launcher;

	if (!verdict_is_timeout(first) || cgroup_kills != 0)
		return false;
	if (launcher == NULL) // it wrote down its own status
		return first->state == KMEM_STATE_CLEAN_EXIT && first->exit_code == TIMEOUT_STATUS;
	return WIFSIGNALED(launcher->wait_status) ? WTERMSIG(launcher->wait_status) == SIGKILL && has_sent_kill(first)
	                                          : WEXITSTATUS(launcher->wait_status) == TIMEOUT_STATUS;
}
