/*
 * kill_counters.h - how often has the kernel killed for memory here, up to now?
 *
 * When failing  what cannot be read is UINT64_MAX; a counter that is not known proves nothing.
 */
#ifndef KILL_COUNTERS_H
#define KILL_COUNTERS_H

#include "kmem_format.h"

/*
 * The same files that the recorder read at start.
 *
 * identity   of the capture: cgroup version and folders
 * counters   out
 */
void kill_counters_read(const struct kmem_identity *identity, struct kmem_kill_counters *counters);

/*
 * How much is left below the limit of the cgroup, where the kernel would end the program for the memory that we take: it kills all processes
 * of the cgroup at once (memory.oom.group), or the program alone, which counts with its pages of files and so looks larger than a process
 * of ours, oom_score_adj or not. Contents of files are not counted, which the kernel drops before. UINT64_MAX: it would end us, or it is
 * not known.
 *
 * file_bytes  that the program has in memory of files and of shared memory
 */
uint64_t kill_counters_room_of_all(const struct kmem_identity *identity, uint64_t file_bytes);

/* Takes as many kills out of `after` as were of our own processes; no more than were counted since `before`. */
void kill_counters_leave_out(struct kmem_kill_counters *after, const struct kmem_kill_counters *before, uint64_t kills);

#endif
