/*
 * hooks_signal.h - the guard against a capture that is cut short while it is mapped.
 */
#ifndef HOOKS_SIGNAL_H
#define HOOKS_SIGNAL_H

/* Once in each process that records, after the capture was opened. */
void hooks_signal_start(void);

#endif
