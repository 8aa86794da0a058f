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
 * Where the kernel kills all processes of the cgroup at once (memory.oom.group): how much is left below its limit. Contents of files are not
 * counted, which the kernel drops before. UINT64_MAX: it kills one alone, or it is not known.
 */
uint64_t kill_counters_room_of_all(const struct kmem_identity *identity);

/* Takes as many kills out of `after` as were of our own processes; no more than were counted since `before`. */
void kill_counters_leave_out(struct kmem_kill_counters *after, const struct kmem_kill_counters *before, uint64_t kills);

#endif
