/*
 * debug_gate.h - which files does elfutils get to open, and which unit of a package does it find?
 *
 * elfutils opens separate debug files by itself, by names that stand in other files. While the gate is shut, its open() is ours:
 * only regular files, whose debug information is not larger when it is unpacked than a report can bear. A split unit
 * (-gsplit-dwarf) whose file is gone is taken from the package (.dwp) that was named, which elfutils does not read before 0.191.
 *
 * When failing  the file cannot be opened.
 */
#ifndef DEBUG_GATE_H
#define DEBUG_GATE_H

#include <stdbool.h>
#include <stdint.h>

/* From here to debug_gate_open(). */
void debug_gate_shut(void);
void debug_gate_open(void);

/* For a file that somebody else opened; it stands at its beginning afterwards. */
bool debug_gate_is_bearable(int fd);

/* Of all files so far: refused since their debug information is too large. Only grows. */
unsigned debug_gate_refused(void);

/* Until it is called again: what a split file that is not there may be taken from. path: NULL = nothing; must live as long. */
void debug_gate_package(const char *path, uint64_t unit);

/*
 * debug_package.c: one unit of a package, as a file of its own in memory, as the compiler made it (.dwo). A descriptor of the caller's; -1:
 * it has none. package: an open descriptor; stays open.
 */
int debug_package_unit(int package, uint64_t unit);

#endif
