/*
 * lifecycle.h - start, fork, exec and exit of recording in one process.
 *
 * Recording starts at the first hooked call after libc is initialised (other libraries' constructors may run before ours),
 * or in our constructor. A forked child starts again, with a file of its own, at its first event.
 *
 * Safe from   any hook.
 */
#ifndef LIFECYCLE_H
#define LIFECYCLE_H

#include <stdbool.h>

/*
 * From now on this recording is worth a file, if it has none yet. To be called before a first heartbeat, a refused request and a thread,
 * and before rights are given up.
 */
void lifecycle_needs_file(void);

/* exit or quick_exit was called, or main has returned: handlers and destructors come next. Only the first call counts. */
void lifecycle_exit_begins(void);

/* To be called before the program's main: from here on the program's exit handlers run before ours. */
void lifecycle_main_begins(void);

/* The program has registered an exit handler, which would run before ours. */
void lifecycle_handler_was_added(void);

/* The process is about to end; exit and quick_exit have handlers of their own. */
void lifecycle_end(int exit_code);

/*
 * The same for _exit. In a program that has confined itself the caller may be a vfork child, which cannot be told: then the record says
 * that the program has ended, and recording goes on. The next heartbeat takes that back.
 */
void lifecycle_end_at_once(int exit_code);

/* Children will not find this process's folder of captures: they are not recorded. */
void lifecycle_loses_folder(void);

/* This thread is inside daemon(): its next fork ends the process unseen. If that fork fails the record has ended all the same. */
extern __thread bool lifecycle_fork_ends_parent __attribute__((tls_model("initial-exec")));

/*
 * The image is about to be replaced. True: nobody would ask for its capture, which is to go when the new one's file exists and may be
 * executed. A vfork child borrows its parent's memory and perhaps little of its stack: it changes nothing.
 */
bool lifecycle_exec_begin(void);
void lifecycle_exec_replaces_small(void);
void lifecycle_exec_failed(void);

#endif
