/*
 * memory_limits.h - which limits could end this process, and how close is it now?
 *
 * Safe from   anywhere: open, read, close of files under /proc and /sys with buffers on the stack; no allocation.
 *             errno changes.
 * When failing  a file that is missing leaves its fields 0 (counters: UINT64_MAX).
 */
#ifndef MEMORY_LIMITS_H
#define MEMORY_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kmem_format.h"

/* Fills limits[], before, machine_bytes ... limit_path of the identity. */
void memory_limits_read(struct kmem_identity *identity);

/*
 * Was the process moved to another cgroup since the last call, or since memory_limits_read()? From then on what is read now is of that
 * one; the identity does not change. Looks once in five seconds, and not before the first five are over. A few moves are followed.
 */
bool memory_limits_follow(const struct kmem_identity *identity, uint64_t now_ns);

struct memory_limits_now {
	uint64_t resident_bytes;    // of this process
	uint64_t space_bytes;       // addresses of this process without the recorder's, which RLIMIT_AS limits; 0 = unknown
	uint64_t space_limit_bytes; // RLIMIT_AS, less the recorder's; 0 = none, or the recorder's alone are as many
	uint64_t cgroup_bytes;      // charged to the cgroup that owns the limit; 0 = none or unknown
	uint64_t limit_bytes;       // the smallest limit on physical memory in force now; UINT64_MAX = none
	uint64_t available_bytes;   // MemAvailable; UINT64_MAX = unknown
	uint64_t swap_free_bytes;
};
void memory_limits_read_now(const struct kmem_identity *identity, struct memory_limits_now *now);

/* RLIMIT_AS of now: the program may have set one since its start. 0 = none, or not known. */
uint64_t memory_limits_space(void);

/* Of this process; 0 when not known. Takes 3 us. */
uint64_t memory_limits_resident(const struct kmem_identity *identity);

/* Page faults of this process that read nothing from a disk, as bytes: pages that were touched first, or copied. 0 when not known. */
uint64_t memory_limits_faulted(const struct kmem_identity *identity);

/*
 * What is charged to the cgroup that owns the limit, by kind; all 0 when not known. Takes 20 us.
 *
 * text, bytes  room for its memory.stat: 4 KiB do
 */
void memory_limits_read_container(const struct kmem_identity *identity, char *text, size_t bytes,
                                  struct kmem_container *now);

/* A file of at most size - 1 bytes, terminated; returns its length, 0 when it cannot be read. */
size_t memory_limits_read_file(const char *path, char *buffer, size_t size);

#endif
