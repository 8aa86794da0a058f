/*
 * launcher_guard.h - what the launcher does when a process passes its guard: runs a command (--guard-action exec:CMD), or looks who holds
 * what. It also looks when a process has much live, and a line of it is a leak.
 *
 * Context     the process is the launcher's, which ends both.
 */
#ifndef LAUNCHER_GUARD_H
#define LAUNCHER_GUARD_H

#include <stdint.h>
#include <sys/types.h>

/* As in struct launch. */
struct guard_task {
	const char *folder;
	const char *action;
	void (*look)(const char *pid, uint64_t leak_limit_bytes, uint64_t stop_ns); // limit: as holders_keep() takes it
	uint64_t look_stop_ns;
};

/*
 * To be called before the program is started, with the default signals. What the task does not say, the environment says.
 *
 * returns   the process that looks, which the program is to name to the kernel; 0 = none does
 */
pid_t launcher_guard_start(const struct guard_task *task, uint64_t started_ns);

/*
 * To be called when the program has ended. Commands for what was passed until then are run, and go on by themselves; a look that is
 * under way is finished. Returns how many looks were killed: mostly by the kernel, when the cgroup was full.
 */
unsigned launcher_guard_end(void);

#endif
