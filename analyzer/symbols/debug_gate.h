/*
 * debug_gate.h - which files does elfutils get to open?
 *
 * elfutils opens separate debug files by itself, by names that stand in other files. While the gate is shut, its open() is ours:
 * only regular files, whose debug information is not larger when it is unpacked than a report can bear.
 *
 * When failing  the file cannot be opened.
 */
#ifndef DEBUG_GATE_H
#define DEBUG_GATE_H

#include <stdbool.h>

/* From here to debug_gate_open(). */
void debug_gate_shut(void);
void debug_gate_open(void);

/* For a file that somebody else opened; it stands at its beginning afterwards. */
bool debug_gate_is_bearable(int fd);

/* Of all files so far: refused since their debug information is too large. Only grows. */
unsigned debug_gate_refused(void);

#endif
