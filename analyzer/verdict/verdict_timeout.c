/*
 * verdict_timeout.c - was the program run by timeout(1), and was its time up?
 *
 * When failing  it cannot: it was not, as far as is known.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "verdict/verdict.h"

#define TIMEOUT_STATUS 124   // of timeout(1), when the time was up
#define TIMEOUT_EARLY_NS 1e9 // clocks are set while it waits

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
verdict_was_time_up(const struct verdict_facts *facts)
{
	const struct model_process *first = &facts->model->processes[0];
	const struct kmem_launcher *launcher = first->launcher;

	if (!verdict_is_timeout(first) || launcher == NULL || facts->cgroup_kills != 0)
		return false;
	return WIFSIGNALED(launcher->wait_status) ? WTERMSIG(launcher->wait_status) == SIGKILL && has_sent_kill(first)
	                                          : WEXITSTATUS(launcher->wait_status) == TIMEOUT_STATUS;
}
