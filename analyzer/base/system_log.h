/*
 * system_log.h - what did the kernel and low-memory daemons write down about processes that ended?
 *
 * Only lines that tell of an end are kept. They come from the kernel's own buffer where this user may read it, and from the journal. Of
 * the journal those alone that the kernel or a service of the system wrote: anybody may write there under any name.
 *
 * When failing  there are no lines: most users may not read these logs. Waiting for the journal ends after two seconds.
 */
#ifndef SYSTEM_LOG_H
#define SYSTEM_LOG_H

#include <stddef.h>
#include <stdint.h>

struct system_log_line {
	uint64_t monotonic_ns; // CLOCK_MONOTONIC of that boot; the kernel's clock differs from it by a few seconds at most
	char writer[32];       // "kernel", "systemd-oomd", "earlyoom"
	char text[400];        // printable, one line; cut
};

struct system_log {
	size_t count;
	struct system_log_line *lines; // in the order in which they were written, by source
};

/* Adds what the kernel's buffer of this boot has. */
void system_log_read_kernel(struct system_log *log);

/*
 * Adds what the journal has of one boot.
 *
 * boot_id   as in /proc/sys/kernel/random/boot_id
 * from, to  seconds since 1970; an hour more on both sides is read, for clocks that were set
 */
void system_log_read_journal(struct system_log *log, const char *boot_id, uint64_t from, uint64_t to);

void system_log_free(struct system_log *log);

#endif
