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
 * What is recorded here is worth a file from now on, if it has none yet. Before a first heartbeat, a refused request, a thread, and
 * before rights are given up.
 */
void lifecycle_needs_file(void);

/* exit or quick_exit was called, or main has returned: handlers and destructors come next. Those later than the first change nothing. */
void lifecycle_exit_begins(void);

/* Before the program's main: from here on its own exit handlers run before ours. */
void lifecycle_main_begins(void);

/* The program has registered an exit handler, which would run before ours. */
void lifecycle_handler_was_added(void);

/* The process is about to end; exit and quick_exit have handlers of their own. */
void lifecycle_end(int exit_code);

/*
 * The same for _exit. In a program that has confined itself it may be a vfork child that ends, which cannot be told: then the record says
 * that the program has ended, and goes on. The next heartbeat takes it back.
 */
void lifecycle_end_at_once(int exit_code);

/* Of this process's folder of captures its children will not find the way: they are not recorded. */
void lifecycle_loses_folder(void);

/* This thread is inside daemon(): its next fork ends the process, and nothing tells us afterwards. Were it to fail, the record has ended. */
extern __thread bool lifecycle_fork_ends_parent __attribute__((tls_model("initial-exec")));

/*
 * The image is about to be replaced. True: its capture is one that nobody would ask for, and is to go when the new one's file exists and
 * may be executed. A vfork child, which borrows its parent's memory and perhaps little of its stack, changes nothing.
 */
bool lifecycle_exec_begin(void);
void lifecycle_exec_replaces_small(void);
void lifecycle_exec_failed(void);

#endif
