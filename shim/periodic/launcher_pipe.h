/*
 * launcher_pipe.h - tells the launcher of this process: that it passed its guard, or that a look at who holds what is due.
 *
 * The launcher has a pipe in the folder of captures, and a process of its own that reads it (analyzer/launch/launcher_guard.c). Without a
 * launcher nothing is told, and nothing is done.
 *
 * Safe from   any hook.
 * When failing  nobody is told.
 */
#ifndef LAUNCHER_PIPE_H
#define LAUNCHER_PIPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory_limits.h"

/* folder: of captures; "" = none */
void launcher_pipe_start(const char *folder);
void launcher_pipe_forked(void); // forked child: one thread

/* limit_bytes: 0 = the guard was passed. is_trial: writes nothing, only returns whether a reader is there. */
bool launcher_pipe_tell(bool is_trial, uint64_t limit_bytes);

/* The same to a launcher that looks. Makes room for what it finds, and lets the kernel allow the look. */
void launcher_pipe_ask_for_look(uint64_t limit_bytes);

/*
 * The program names who may trace it (PR_SET_PTRACER), or nobody any more. The kernel keeps one name: it is left to the program, which
 * may need it for a handler of crashes, or to copy between processes (MPI).
 */
void launcher_pipe_names_tracer(bool is_any);

/*
 * Where ptrace_scope 1 of Yama forbids tracing, names the process that may trace this one, until the next call. Where the program has
 * named one itself nothing is done, and the look may be refused.
 *
 * pid  0 = the launcher's process that looks; nobody where there is none
 */
void launcher_pipe_let_look(uint64_t pid);

/*
 * At a beat: asks the launcher to look when an eighth of the limit is live, and again for each further eighth. The launcher knows which
 * lines are leaks: it looks only when one of them holds so much. Not asked with less memory left than a look takes.
 */
void launcher_pipe_beat(const struct memory_limits_now *now, uint64_t live_bytes);

#endif
