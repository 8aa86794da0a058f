/*
 * endings.h - how and when did a process end?
 */
#ifndef ENDINGS_H
#define ENDINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/system_log.h"
#include "model/model.h"

enum verdict_end {
	VERDICT_END_RUNNING,   // still alive
	VERDICT_END_OK,        // exited with status 0, or replaced by exec and nothing known after it
	VERDICT_END_FAILED,    // exited with another status
	VERDICT_END_SIGNAL,    // ended by a signal: the launcher saw it
	VERDICT_END_GONE,      // no clean-exit mark, same boot, not alive: ended by a signal nobody saw, or lost power
	VERDICT_END_ELSEWHERE, // no clean-exit mark, and another boot or another machine: nothing can be said
};

/* What is known about this moment on this machine; replaced in tests. */
struct verdict_now {
	const char *boot_id;   // "" = unknown
	uint64_t booted_at_ns; // since 1970, by the clock of today; 0 = unknown
	void (*read_counters)(const struct kmem_identity *identity, struct kmem_kill_counters *counters);
	/* What logs of the process's boot say of ends at about its time. NULL: nobody asks. For system_log_free(). */
	void (*read_log)(const struct model_process *process, struct system_log *log);
};

/* This machine, now. The result points to static memory. */
const struct verdict_now *verdict_now(void);

enum verdict_end verdict_end_of(const struct model_process *process, const struct verdict_now *now);

/* It did not end by itself, or nobody knows. */
static inline bool
verdict_is_sudden(enum verdict_end end)
{
	return end == VERDICT_END_SIGNAL || end == VERDICT_END_GONE || end == VERDICT_END_ELSEWHERE;
}

/* This boot began so long after the process's last sign of life. UINT64_MAX: not known, or before it: clocks were set. */
uint64_t verdict_dark_ns(const struct model_process *process, const struct verdict_now *now);

/* timeout(1): when SIGKILL ended its child, it ends itself in the same way. */
bool verdict_is_timeout(const struct model_process *process);

/*
 * `first` is timeout(1), and its time was up: its status is 124 or, with -s KILL, it died by the same signal. False where the kernel
 * counted a kill.
 */
bool verdict_was_time_up(const struct model_process *first, uint64_t cgroup_kills);

#endif
