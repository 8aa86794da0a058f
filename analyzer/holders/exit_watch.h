/*
 * exit_watch.h - a program is started, and stands still when it is about to end: its memory is all there, its functions for the exit have run.
 *
 * By ptrace, as stopped_process.h. Signals reach the program as they do without. What it starts itself is left alone. When this command dies
 * the program goes on.
 *
 * When failing  false, and one line in `fail`.
 */
#ifndef EXIT_WATCH_H
#define EXIT_WATCH_H

#include "holders/stopped_process.h"

/* The program gets our environment, and our standard error as its standard output: the result goes to ours. arguments: end with NULL */
bool exit_watch_start(const char *command, char *const *arguments, pid_t *pid, struct fail *fail);

/* Waits until the program is about to end. False: it was killed, and its memory is gone; the status is known then. */
bool exit_watch_wait(const char *command, pid_t pid, struct stopped_process *process, int *status, struct fail *fail);

#endif
