/*
 * diag.h - one-line messages from inside somebody else's process.
 *
 * Safe from   any context: a stack buffer and one write(2) to stderr; errno kept.
 * Levels      KMEMSHIM_LOG=quiet|warn|debug; the default is warn: quiet when all is well. Never stdout.
 */
#ifndef DIAG_H
#define DIAG_H

#include <stddef.h>

enum diag_level { DIAG_QUIET, DIAG_WARN, DIAG_DEBUG };
extern enum diag_level diag_level; // DIAG_WARN until the settings say otherwise

/* Once, at the start: remembers what stderr is. Before it, and when stderr is something else by now, nothing is written. */
void diag_start(void);

/* printf-like, small: %s %d %u %x %lx %lu %zu %%. */
void diag_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void diag_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same formatting into a buffer; always terminated; returns the length that was written. */
size_t diag_format(char *buffer, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
