/*
 * launcher_guard.h - runs a command when a process passes its guard (--guard-action exec:CMD).
 *
 * Safe from   one thread; the process is the launcher's, which ends both.
 */
#ifndef LAUNCHER_GUARD_H
#define LAUNCHER_GUARD_H

#include <stdint.h>

/* Before the program is started, with the default signals. guard_action: NULL = as the environment says; other actions do nothing. */
void launcher_guard_start(const char *folder, uint64_t started_ns, const char *guard_action);

/* When it has ended: what was passed until then is run, and goes on by itself. */
void launcher_guard_end(void);

#endif
